// Package redis runs the private Redis of the one-machine system, with its own folder, port and password, on loopback
// only.
package redis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/longbox/longbox/localstack/account"
	"github.com/longbox/longbox/localstack/socket"
	"github.com/longbox/longbox/localstack/supervise"
)

// Server is one private Redis.
type Server struct {
	dir      string
	program  string
	port     int
	socket   string // "": none
	password string
	account  account.Account
}

// New prepares <dataDir>/redis with its configuration (a file, so that process lists do not show the password). The
// server listens on 127.0.0.1:port and, if possible, on a Unix socket in that folder, which the connection string then
// uses.
func New(dataDir string, port int, password string, a account.Account) (*Server, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("no redis-server found: apt-get install redis-server")
	}
	s := &Server{dir: filepath.Join(dataDir, "redis"), program: program, port: port, password: password, account: a}
	if err := a.Folder(s.dir); err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	if path := filepath.Join(s.dir, "redis.sock"); socket.Usable(path) {
		s.socket = path
	}
	if err := a.File(s.config(), []byte(s.settings())); err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	return s, nil
}

func (s *Server) config() string { return filepath.Join(s.dir, "redis.conf") }

// settings persist what matters after a restart (the event replay). A crash loses at most one second.
func (s *Server) settings() string {
	listen := ""
	if s.socket != "" {
		listen = "unixsocket " + quoted(s.socket)
	}
	return strings.Join([]string{
		listen, "bind 127.0.0.1", fmt.Sprintf("port %d", s.port), "requirepass " + s.password,
		"dir " + quoted(s.dir), "daemonize no", "databases 1",
		"appendonly yes", "appendfsync everysec", `save ""`,
		"maxmemory 256mb", "maxmemory-policy volatile-lru",
		"",
	}, "\n")
}

// quoted quotes a path for Redis. strconv.Quote would not do: it writes some spaces as \u, which Redis does not know.
func quoted(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
}

// URL returns the connection string.
func (s *Server) URL() string {
	if s.socket != "" {
		return (&url.URL{Scheme: "unix", User: url.UserPassword("", s.password), Path: s.socket}).String()
	}
	return fmt.Sprintf("redis://:%s@127.0.0.1:%d/0", s.password, s.port)
}

// Spec returns how to run the server. On SIGTERM it writes its append-only file and exits. It opens its configuration
// through its working directory: in the path it would read *, ? and [ as a pattern, and start without configuration.
func (s *Server) Spec() supervise.Spec {
	return supervise.Spec{
		Name: "redis", Path: s.program, Args: []string{"/proc/self/cwd/" + filepath.Base(s.config())},
		Env: supervise.Environment(), Dir: s.dir,
		Account: s.account, Quiet: true,
		Stop: syscall.SIGTERM, Grace: 20 * time.Second, Orphan: syscall.SIGTERM,
		Ready: s.ping, Patience: time.Minute,
	}
}

// PutAside renames the server's data, so that it starts empty. It returns the new path and a function that restores the
// data. It deletes data that was put aside earlier. The error is os.ErrNotExist if there is no data.
func (s *Server) PutAside() (aside string, back func() error, err error) {
	kept := filepath.Join(s.dir, "appendonlydir")
	aside = kept + ".damaged"
	if _, err := os.Stat(kept); err != nil {
		return "", nil, err
	}
	if err := errors.Join(os.RemoveAll(aside), os.Rename(kept, aside)); err != nil {
		return "", nil, err
	}
	return aside, func() error { return errors.Join(os.RemoveAll(kept), os.Rename(aside, kept)) }, nil
}

// ping uses Redis' own protocol. A server that is loading its file answers -LOADING.
func (s *Server) ping(ctx context.Context) error {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", s.port))
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(conn, "AUTH %s\r\nPING\r\nQUIT\r\n", s.password); err != nil {
		return err
	}
	answer, err := io.ReadAll(io.LimitReader(conn, 1000))
	if err != nil {
		return err
	}
	if !strings.HasPrefix(string(answer), "+OK\r\n+PONG\r\n") {
		return fmt.Errorf("redis answers %q", answer)
	}
	return nil
}
