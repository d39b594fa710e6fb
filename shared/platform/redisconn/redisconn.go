// Package redisconn turns a Redis URL into client options for a server that must work without Redis: no retries, short
// timeouts, no extra commands.
package redisconn

import (
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	dialTimeout = 500 * time.Millisecond
	ioTimeout   = 500 * time.Millisecond
)

// Options parses a redis://, rediss:// or unix:// URL. Nothing is dialled: a client connects with its first command.
// Errors never contain the URL, which may hold a password.
//
// By default the client library dials five times with pauses and retries failed commands, so that a missing Redis costs
// over a second per request. Here there is one try. Deadlines of a command's context apply. Readers that block on a
// stream need a longer ReadTimeout: set it on the result.
func Options(rawURL string) (*redis.Options, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		var parse *url.Error
		if errors.As(err, &parse) {
			err = parse.Err // the outer error contains the URL
		}
		return nil, fmt.Errorf("REDIS_URL: must be a URL: %w", err)
	}
	switch u.Scheme {
	case "redis", "rediss", "unix":
	default:
		return nil, fmt.Errorf("REDIS_URL: must be redis://host:port/0, rediss://… or unix:///path, has the scheme %q", u.Scheme)
	}
	opt, err := redis.ParseURL(rawURL)
	if err != nil {
		return nil, fmt.Errorf("REDIS_URL: %w", err)
	}
	opt.MaxRetries = -1
	opt.DialerRetries = 1
	opt.DialTimeout = dialTimeout
	opt.ReadTimeout = ioTimeout
	opt.WriteTimeout = ioTimeout
	opt.PoolTimeout = ioTimeout
	opt.ContextTimeoutEnabled = true
	opt.PoolSize = max(16, 8*runtime.GOMAXPROCS(0))
	opt.PipelinePoolSize = -1 // pipelines share the pool
	opt.ConnMaxIdleTime = 5 * time.Minute
	opt.ReadBufferSize, opt.WriteBufferSize = 8<<10, 8<<10
	opt.DisableIdentity = true
	opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return opt, nil
}
