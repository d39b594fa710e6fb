package redis

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/longbox/longbox/localstack/account"
	"github.com/longbox/longbox/localstack/port"
	"github.com/longbox/longbox/localstack/supervise"
	"github.com/longbox/longbox/shared/platform/redisconn"
)

// A server starts in any folder, also if Go and Redis quote its name in different ways.
func TestAnyFolder(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"漫画\u3000本", "a\u00a0b", `é "x" \x41 & '?`, "a, b", "[a] b*", "a\nb"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root, err := os.MkdirTemp("", "lb") // short, for the socket
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(root) })
			dir := filepath.Join(root, name)
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			ports, err := port.Free(1)
			if err != nil {
				t.Fatal(err)
			}
			s, err := New(dir, ports[0], "secret", account.Account{UID: os.Geteuid(), GID: os.Getegid()})
			if err != nil {
				t.Fatal(err)
			}
			supervisor, err := supervise.New(t.Context(), dir, supervise.NewConsole(io.Discard))
			if err != nil {
				t.Fatal(err)
			}
			defer supervisor.Close()
			p, err := supervisor.Start(t.Context(), s.Spec())
			if err != nil {
				t.Fatal(err)
			}
			defer p.Stop()
			if _, err := os.Stat(filepath.Join(s.dir, "appendonlydir")); err != nil {
				t.Errorf("it keeps its data elsewhere: %v", err)
			}
			if _, err := os.Stat(s.socket); err != nil {
				t.Errorf("it listens elsewhere: %v", err)
			}
		})
	}
}

func TestURL(t *testing.T) {
	t.Parallel()
	s := &Server{port: 6380, password: "secret"}
	for address, socket := range map[string]string{"127.0.0.1:6380": "", `/data/é "x" & ?/redis.sock`: `/data/é "x" & ?/redis.sock`} {
		s.socket = socket
		got, err := redisconn.Options(s.URL())
		if err != nil {
			t.Fatal(err)
		}
		if got.Addr != address || got.Password != "secret" || got.DB != 0 {
			t.Errorf("socket %q: read as %q, password %q", socket, got.Addr, got.Password)
		}
	}
}
