package testkit

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/testkit/bound"
)

// Pooler starts pgbouncer in transaction mode in front of the server of a database URL, with at most size connections
// to it. It returns the URL for the pooler.
func Pooler(t testing.TB, databaseURL string, size int) string {
	t.Helper()
	bin, err := exec.LookPath("pgbouncer")
	if err != nil {
		bin = "/usr/sbin/pgbouncer" // not in the PATH of ordinary users
		if _, err := os.Stat(bin); err != nil {
			t.Fatal("no pgbouncer: install it with apt-get install pgbouncer")
		}
	}
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "longbox-pgbouncer-")
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	users := write("users.txt", fmt.Sprintf("%q %q\n", u.User.Username(), password))
	config := write("pgbouncer.ini", fmt.Sprintf(`[databases]
* = host=%s port=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = trust
auth_file = %s
pool_mode = transaction
default_pool_size = %d
max_client_conn = 500
server_login_retry = 1
log_connections = 0
log_disconnections = 0
`, u.Hostname(), u.Port(), port, users, size))
	if err := giveAway(dir); err != nil {
		t.Fatal(err)
	}
	stop, err := bound.Start(asUser(exec.Command(bin, config)), "KILL", dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	u.Host = fmt.Sprintf("127.0.0.1:%d", port)
	if err := waitForPostgres(time.Minute, u.String()); err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		t.Fatalf("pgbouncer: %v: %s", err, strings.TrimSpace(string(log)))
	}
	return u.String()
}
