package relay

import (
	"strings"
	"testing"

	"github.com/caarlos0/env/v11"
)

func TestConfig(t *testing.T) {
	t.Parallel()
	parse := func(set map[string]string) (Config, error) {
		cfg, err := env.ParseAsWithOptions[Config](env.Options{Environment: set})
		if err != nil {
			return cfg, err
		}
		return cfg, cfg.Validate()
	}
	if cfg, err := parse(nil); err != nil || cfg.ListenAddr != "127.0.0.1:8083" || cfg.KeepAlive.Seconds() != 15 || cfg.MaxConnections != 20000 || cfg.MaxPerUser != 50 {
		t.Errorf("without any environment: %+v, %v", cfg, err)
	}
	if cfg, err := parse(map[string]string{"CORS_ORIGINS": ""}); err != nil || cfg.CORSOrigins != nil {
		t.Errorf("no origins: %v, %v", cfg.CORSOrigins, err)
	}
	if _, err := parse(map[string]string{"REDIS_URL": "redis://:a wo%rd@localhost:6379/0"}); err == nil || strings.Contains(err.Error(), "wo%rd") {
		t.Errorf("%v, want an error without the password", err)
	}
	for name, bad := range map[string]string{
		"LISTEN_ADDR": "8083", "API_URL": "localhost:8080", "REDIS_URL": "127.0.0.1", "LOG_LEVEL": "loud", "API_TIMEOUT": "0s",
		"KEEP_ALIVE": "1h", "WRITE_TIMEOUT": "x", "CLIENT_QUEUE": "1", "MAX_CONNECTIONS": "0", "MAX_CONNECTIONS_PER_USER": "-1",
		"REPLAY_PAGE": "1", "REPLAY_READS": "0", "REDIS_PING": "1ms", "ACCESS_INTERVAL": "2m", "ACCESS_MAX_AGE": "1ms", "ACCESS_GRACE": "0",
		"CORS_ORIGINS": "https://read.example/", "ORIGIN_SECRET": "short",
	} {
		_, err := parse(map[string]string{name: bad})
		field := strings.ReplaceAll(strings.ToLower(name), "_", "")
		if err == nil || !strings.Contains(strings.ReplaceAll(strings.ToLower(err.Error()), "_", ""), strings.TrimSuffix(strings.TrimPrefix(field, "max"), "peruser")) &&
			!strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: %v, want an error that names it", name, bad, err)
		}
	}
}
