package testkit

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/longbox/longbox/shared/platform/redisconn"
)

var (
	redisOnce sync.Once
	redisURL  string
	redisErr  error
)

// RedisURL returns a Redis that all tests of a program share. Keys contain the tenant, and every test has its own
// tenants.
func RedisURL(t testing.TB) string {
	t.Helper()
	redisOnce.Do(func() { redisURL, redisErr = startRedis() })
	if redisErr != nil {
		t.Fatalf("Redis for tests: %v (install it: apt-get install redis-server, or set TEST_REDIS_URL)", redisErr)
	}
	return redisURL
}

// Redis returns a client of RedisURL.
func Redis(t testing.TB) *redis.Client {
	t.Helper()
	o, err := redisconn.Options(RedisURL(t))
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(o)
	t.Cleanup(func() { c.Close() })
	return c
}

func startRedis() (string, error) {
	return source{setting: "TEST_REDIS_URL", program: onPath("redis-server"), run: runRedis, image: func() (string, error) {
		address, _, err := containerImage{name: "redis:7.4.5-bookworm", port: "6379"}.start()
		return "redis://" + address, err
	}}.address()
}

func runRedis(bin string) (string, error) {
	dir, err := os.MkdirTemp("", "longbox-redis-")
	if err != nil {
		return "", err
	}
	if err := giveAway(dir); err != nil {
		return "", err
	}
	port, err := freePort()
	if err != nil {
		return "", err
	}
	cmd := asUser(exec.Command(bin, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir))
	if err := startBound(cmd, dir); err != nil {
		return "", err
	}
	u := "redis://127.0.0.1:" + strconv.Itoa(port)
	o, err := redisconn.Options(u)
	if err != nil {
		return "", err
	}
	c := redis.NewClient(o)
	defer c.Close()
	return u, waitFor(10*time.Second, func() error { return c.Ping(context.Background()).Err() })
}
