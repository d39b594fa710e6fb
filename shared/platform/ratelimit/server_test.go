package ratelimit

import (
	"bufio"
	"log/slog"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/longbox/longbox/shared/platform/redisconn"
)

// startRedis runs a Redis of its own on the given port of the loopback until
// the test ends, and returns when it accepts connections.
func startRedis(t testing.TB, port int) {
	t.Helper()
	cmd := exec.Command("redis-server", "--port", strconv.Itoa(port), "--bind", "127.0.0.1",
		"--save", "", "--appendonly", "no", "--dir", t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("these tests need the program redis-server (Debian package redis-server): %v", err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // it says that it was killed
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "Ready to accept connections") {
			go func() { // keep its pipe from filling
				for lines.Scan() {
				}
			}()
			return
		}
	}
	t.Fatal("redis-server ended before it was ready")
}

func freePort(t testing.TB) int {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port
}

func client(t testing.TB, port int) *redis.Client {
	t.Helper()
	opt, err := redisconn.Options("redis://127.0.0.1:" + strconv.Itoa(port))
	if err != nil {
		t.Fatal(err)
	}
	opt.ReadTimeout, opt.WriteTimeout, opt.PoolTimeout = 10*time.Second, 10*time.Second, 10*time.Second // the limiter's own deadline counts
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
	port := freePort(t)
	startRedis(t, port)
	rdb := client(t, port)
	l := limiter(t, rdb)
	l.within = 10 * time.Second // these tests are not about a slow machine
	return l, rdb
}
