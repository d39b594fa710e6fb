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
)

// Server is a redis-server of one test, without persistence, on a Unix socket.
type Server struct {
	URL     string // for redis.ParseURL
	Client  *redis.Client
	socket  string
	command *exec.Cmd
}

// Start runs the installed redis-server until the test ends; its absence fails the test.
func Start(tb testing.TB) *Server {
	tb.Helper()
	folder, err := os.MkdirTemp("", "lbredis") // short: a socket path has at most 107 bytes
	if err != nil {
		tb.Fatal(err)
	}
	s := &Server{socket: filepath.Join(folder, "s")}
	s.URL = "unix://" + s.socket
	s.Run(tb)
	s.Client = redis.NewClient(&redis.Options{Network: "unix", Addr: s.socket})
	tb.Cleanup(func() {
		s.Client.Close()
		s.Stop(tb)
		os.RemoveAll(folder)
	})
	return s
}

// Run starts the server again after [Server.Stop], empty.
func (s *Server) Run(tb testing.TB) {
	tb.Helper()
	s.command = exec.Command("redis-server", "--port", "0", "--unixsocket", s.socket, "--save", "", "--appendonly", "no",
		"--dir", filepath.Dir(s.socket))
	if err := s.command.Start(); err != nil {
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
			tb.Fatal("redis-server did not open its socket within 10 s")
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// Stop ends the server at once, as a crash would.
func (s *Server) Stop(tb testing.TB) {
	tb.Helper()
	if s.command == nil {
		return
	}
	if err := s.command.Process.Kill(); err != nil {
		tb.Errorf("stop redis-server: %v", err)
	}
	_ = s.command.Wait() // says "killed"
	_ = os.Remove(s.socket)
	s.command = nil
}
