// Package redistest starts a real Redis for a test.
package redistest

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/longbox/longbox/shared/testkit/bound"
)

// Server is a redis-server for one test, without persistence, on a Unix socket.
type Server struct {
	URL    string // for redis.ParseURL
	Client *redis.Client
	folder string // while it runs
	socket string
	stop   func()
}

// Start runs the installed redis-server until the test ends. If it is not installed, the test fails.
func Start(tb testing.TB) *Server {
	tb.Helper()
	folder, err := os.MkdirTemp("", "lbredis") // short: a socket path has at most 107 bytes
	if err != nil {
		tb.Fatal(err)
	}
	s := &Server{folder: folder, socket: filepath.Join(folder, "s")}
	s.URL = "unix://" + s.socket
	s.Run(tb)
	s.Client = redis.NewClient(&redis.Options{Network: "unix", Addr: s.socket})
	tb.Cleanup(func() {
		s.Client.Close()
		s.Stop(tb)
	})
	return s
}

// Run starts the server again after [Server.Stop], empty.
func (s *Server) Run(tb testing.TB) {
	tb.Helper()
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		tb.Fatal(err)
	}
	var err error
	if s.stop, err = bound.Start(exec.Command("redis-server", "--port", "0", "--unixsocket", s.socket, "--save", "", "--appendonly", "no",
		"--dir", s.folder), "KILL", s.folder); err != nil {
		tb.Fatalf("start redis-server (install the package redis-server): %v", err)
	}
	ctx, cancel := context.WithTimeout(tb.Context(), 10*time.Second)
	defer cancel()
	for {
		if conn, err := net.Dial("unix", s.socket); err == nil {
			conn.Close()
			return
		}
		select {
		case <-ctx.Done():
			log, _ := os.ReadFile(filepath.Join(s.folder, "log"))
			tb.Fatalf("redis-server did not open its socket within 10 s: %s", log)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// Stop kills the server, like a crash.
func (s *Server) Stop(tb testing.TB) {
	tb.Helper()
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
}
