package relay

import (
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/longbox/longbox/shared/platform/environ"
	"github.com/longbox/longbox/shared/platform/redisconn"
)

// Config is the relay's environment; every setting has a default that works on one machine.
type Config struct {
	ListenAddr string     `env:"LISTEN_ADDR" envDefault:"127.0.0.1:8083"`
	LogLevel   slog.Level `env:"LOG_LEVEL" envDefault:"INFO"`

	APIURL     string        `env:"API_URL" envDefault:"http://127.0.0.1:8080"`
	APITimeout time.Duration `env:"API_TIMEOUT" envDefault:"3s"`
	// If false, requests have API_URL's host, and the client's host in X-Forwarded-Host.
	APIKeepHost bool `env:"API_KEEP_HOST" envDefault:"true"`
	// OriginSecret is sent to an API that answers only its CDN. Of two secrets, separated by a comma, the first is
	// sent.
	OriginSecret []string `env:"ORIGIN_SECRET"`
	CORSOrigins  []string `env:"CORS_ORIGINS"` // allowed origins of web clients; * for any, without cookies
	RedisURL     string   `env:"REDIS_URL" envDefault:"redis://127.0.0.1:6379/0"`

	RedisPing time.Duration `env:"REDIS_PING" envDefault:"5s"` // reconnect after a silence of more than twice this

	KeepAlive      time.Duration `env:"KEEP_ALIVE" envDefault:"15s"`
	WriteTimeout   time.Duration `env:"WRITE_TIMEOUT" envDefault:"10s"`    // drop clients that read nothing this long
	ClientQueue    int           `env:"CLIENT_QUEUE" envDefault:"1048576"` // bytes queued for a client with a full socket
	MaxConnections int           `env:"MAX_CONNECTIONS" envDefault:"20000"`
	MaxPerUser     int           `env:"MAX_CONNECTIONS_PER_USER" envDefault:"50"`
	ReplayPage     int           `env:"REPLAY_PAGE" envDefault:"100"` // entries per read of a stream
	ReplayReads    int           `env:"REPLAY_READS" envDefault:"32"` // concurrent reads of streams

	// Maximum interval between checks of a tenant's access generation, and of a topic's stream for lost events.
	AccessInterval time.Duration `env:"ACCESS_INTERVAL" envDefault:"30s"`
	// Maximum age of the API's answer, even with the same generation.
	AccessMaxAge time.Duration `env:"ACCESS_MAX_AGE" envDefault:"10m"`
	// Close a connection that is unconfirmed for this long.
	AccessGrace time.Duration `env:"ACCESS_GRACE" envDefault:"1m"`
}

// Validate names the first setting that is out of bounds.
func (c Config) Validate() error {
	if _, _, err := net.SplitHostPort(c.ListenAddr); err != nil {
		return fmt.Errorf("LISTEN_ADDR: must be host:port, is %q", c.ListenAddr)
	}
	if api, err := url.Parse(c.APIURL); err != nil || api.Host == "" || api.Scheme != "http" && api.Scheme != "https" {
		return fmt.Errorf("API_URL: must be http:// or https:// and a host, is %q", c.APIURL)
	}
	if _, err := redisconn.Options(c.RedisURL); err != nil { // its errors never contain the password
		return err
	}
	if err := environ.WebOrigins("CORS_ORIGINS", c.CORSOrigins); err != nil {
		return err
	}
	if err := environ.Secrets("ORIGIN_SECRET", c.OriginSecret); err != nil {
		return err
	}
	for _, limit := range []struct {
		name             string
		value, low, high time.Duration
	}{
		{"API_TIMEOUT", c.APITimeout, 10 * time.Millisecond, time.Minute},
		{"KEEP_ALIVE", c.KeepAlive, 10 * time.Millisecond, 5 * time.Minute},
		{"WRITE_TIMEOUT", c.WriteTimeout, 10 * time.Millisecond, time.Minute},
		{"REDIS_PING", c.RedisPing, 10 * time.Millisecond, time.Minute},
		{"ACCESS_INTERVAL", c.AccessInterval, 10 * time.Millisecond, time.Minute},
		{"ACCESS_MAX_AGE", c.AccessMaxAge, time.Second, 24 * time.Hour},
		{"ACCESS_GRACE", c.AccessGrace, 10 * time.Millisecond, time.Hour},
	} {
		if limit.value < limit.low || limit.value > limit.high {
			return fmt.Errorf("%s: must be %s to %s, is %s", limit.name, limit.low, limit.high, limit.value)
		}
	}
	for _, limit := range []struct {
		name             string
		value, low, high int
	}{
		{"CLIENT_QUEUE", c.ClientQueue, 1 << 10, 16 << 20},
		{"MAX_CONNECTIONS", c.MaxConnections, 1, 1_000_000},
		{"MAX_CONNECTIONS_PER_USER", c.MaxPerUser, 1, 1_000_000},
		{"REPLAY_PAGE", c.ReplayPage, 2, 10_000},
		{"REPLAY_READS", c.ReplayReads, 1, 1_000},
	} {
		if limit.value < limit.low || limit.value > limit.high {
			return fmt.Errorf("%s: must be %d to %d, is %d", limit.name, limit.low, limit.high, limit.value)
		}
	}
	return nil
}

// RedisClient returns a client with longer timeouts than that of requests, but few retries: the relay handles Redis
// outages itself.
func (c Config) RedisClient() (*redis.Client, error) {
	options, err := redisconn.Options(c.RedisURL)
	if err != nil {
		return nil, err
	}
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout, options.PoolTimeout = 2*time.Second, 2*time.Second, 2*time.Second, 3*time.Second
	options.MaxRetries = 1
	options.PoolSize = c.ReplayReads + 16
	return redis.NewClient(options), nil
}
