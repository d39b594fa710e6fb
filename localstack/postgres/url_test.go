package postgres

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/localstack/account"
	"github.com/longbox/longbox/localstack/secret"
)

// A comma in a socket's path would turn it into two hosts, neither of which is the server's.
func TestOneHost(t *testing.T) {
	t.Parallel()
	root, err := os.MkdirTemp("", "lb") // short, for the socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	for name, socket := range map[string]bool{"a b": true, "a, b": false} {
		scratch := filepath.Join(root, name)
		if err := os.Mkdir(scratch, 0o755); err != nil {
			t.Fatal(err)
		}
		c, err := New(root, scratch, 5433, account.Account{}, secret.Set{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := pgx.ParseConfig(c.AppURL())
		if err != nil {
			t.Fatal(err)
		}
		want := "127.0.0.1"
		if socket {
			want = scratch
		}
		if got.Host != want || len(got.Fallbacks) != 0 {
			t.Errorf("%q: the server is looked for at %q and %d others", name, got.Host, len(got.Fallbacks))
		}
	}
}

func TestURL(t *testing.T) {
	t.Parallel()
	c := &Cluster{scratch: `/data/é "x" & ?/tmp`, port: 5433}
	for host, socket := range map[string]bool{"127.0.0.1": false, c.scratch: true} {
		c.socket = socket
		got, err := pgx.ParseConfig(c.url("reader", "p@ss:w/rd", "books"))
		if err != nil {
			t.Fatal(err)
		}
		if got.Host != host || got.Port != 5433 || got.User != "reader" || got.Password != "p@ss:w/rd" || got.Database != "books" || got.TLSConfig != nil {
			t.Errorf("socket %v: read as %+v", socket, got.Config)
		}
	}
}
