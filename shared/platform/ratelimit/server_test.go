package ratelimit

import (
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/longbox/longbox/shared/platform/events/redistest"
	"github.com/longbox/longbox/shared/platform/redisconn"
)

// nowhere is the URL of a port on which nothing listens.
func nowhere(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return "redis://" + ln.Addr().String()
}

func client(t testing.TB, url string) *redis.Client {
	t.Helper()
	opt, err := redisconn.Options(url)
	if err != nil {
		t.Fatal(err)
	}
	// The limiter's own deadline counts.
	opt.ReadTimeout, opt.WriteTimeout, opt.PoolTimeout = 10*time.Second, 10*time.Second, 10*time.Second
	rdb := redis.NewClient(opt)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func limiter(t testing.TB, rdb *redis.Client) *Limiter {
	t.Helper()
	l := New(rdb, slog.New(slog.DiscardHandler))
	t.Cleanup(l.Close)
	return l
}

// withRedis starts a Redis and returns a limiter on it.
func withRedis(t testing.TB) (*Limiter, *redis.Client) {
	t.Helper()
	rdb := client(t, redistest.Start(t).URL)
	l := limiter(t, rdb)
	l.within = 10 * time.Second // these tests are not about a slow machine
	return l, rdb
}
