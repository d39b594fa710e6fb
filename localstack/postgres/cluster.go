// Package postgres creates and runs the private PostgreSQL cluster of the one-machine system. It never touches a
// system-wide server: it has its own data folder, port and socket, on loopback only.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/localstack/account"
	"github.com/longbox/longbox/localstack/secret"
	"github.com/longbox/longbox/localstack/socket"
	"github.com/longbox/longbox/localstack/supervise"
	"github.com/longbox/longbox/shared/platform/db"
)

// Cluster is one private PostgreSQL server.
type Cluster struct {
	dir     string // The data folder.
	scratch string // A folder of the account for short-lived files.
	bin     string
	port    int
	socket  bool // It also listens on a socket in scratch, which clients use.
	account account.Account
	secrets secret.Set
	version string // server version, set by Bootstrap
}

// KeepsPlansApart reports whether programs may cache plans in the server's sessions: see db.KeepsPlansApart.
func (c *Cluster) KeepsPlansApart() bool { return db.KeepsPlansApart(c.version) }

const superuser = "longbox_super"

// New describes the cluster in <dataDir>/postgres. It listens on 127.0.0.1:port and, if possible, on a Unix socket in
// scratch, which the connection strings then use.
func New(dataDir, scratch string, port int, a account.Account, s secret.Set) (*Cluster, error) {
	dir := filepath.Join(dataDir, "postgres")
	bin, err := programs(programFolders, dir)
	if err != nil {
		return nil, err
	}
	own := filepath.Join(scratch, ".s.PGSQL."+strconv.Itoa(port))
	usable := !strings.Contains(scratch, ",") && socket.Usable(own) // a comma in a connection string separates hosts
	return &Cluster{dir: dir, scratch: scratch, bin: bin, port: port, socket: usable, account: a, secrets: s}, nil
}

// Exists reports whether the cluster was created before.
func (c *Cluster) Exists() bool {
	_, err := os.Stat(filepath.Join(c.dir, "PG_VERSION"))
	return err == nil
}

// Init creates the cluster. It creates it under another name and renames it, so that an interrupted start leaves
// nothing half done.
func (c *Cluster) Init(ctx context.Context, supervisor *supervise.Supervisor) error {
	fresh := c.dir + ".new"
	if err := removeLeft(ctx, fresh, os.RemoveAll); err != nil {
		return fmt.Errorf("database: %w", err)
	}
	if err := c.account.Folder(fresh); err != nil {
		return fmt.Errorf("database: %w", err)
	}
	password := filepath.Join(c.scratch, "initdb-password")
	defer os.Remove(password)
	if err := c.account.File(password, []byte(c.secrets.PostgresSuper)); err != nil {
		return fmt.Errorf("database: %w", err)
	}
	err := supervisor.RunOnce(ctx, supervise.Spec{
		Name: "initdb", Path: filepath.Join(c.bin, "initdb"), Dir: c.scratch, Env: supervise.Environment(), Account: c.account, Quiet: true,
		Args: []string{"--pgdata=" + fresh, "--username=" + superuser, "--pwfile=" + password,
			"--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8"},
		Stop: syscall.SIGTERM, Grace: 5 * time.Second, Orphan: syscall.SIGKILL,
	})
	if err != nil {
		return err
	}
	if err := os.Rename(fresh, c.dir); err != nil {
		return fmt.Errorf("database: %w", err)
	}
	return nil
}

// removeLeft removes what an interrupted Init left in dir. The programs that its initdb started may still write there
// for a moment.
func removeLeft(ctx context.Context, dir string, remove func(string) error) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		err := remove(dir)
		if !errors.Is(err, syscall.ENOTEMPTY) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// settings are modest: at most a few hundred megabytes, and nothing that risks committed data.
var settings = []string{
	"listen_addresses=127.0.0.1", "max_connections=60",
	"shared_buffers=128MB", "work_mem=8MB", "maintenance_work_mem=64MB", "effective_cache_size=1GB",
	"random_page_cost=1.1", "jit=off", "synchronous_commit=on",
	"wal_level=minimal", "max_wal_senders=0", "max_wal_size=1GB", "checkpoint_timeout=15min",
	"log_destination=stderr", "logging_collector=off", "log_min_messages=warning", "log_line_prefix=%m [%p] %q%u@%d ",
	"timezone=UTC", "log_timezone=UTC",
}

// Spec returns how to run the server. SIGINT is its fast shutdown: it disconnects clients and writes all committed
// data.
func (c *Cluster) Spec() supervise.Spec {
	sockets := ""
	if c.socket {
		sockets = `"` + strings.ReplaceAll(c.scratch, `"`, `""`) + `"`
	}
	args := []string{"-D", c.dir, "-p", strconv.Itoa(c.port), "-c", "unix_socket_directories=" + sockets}
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	return supervise.Spec{
		Name: "postgres", Path: filepath.Join(c.bin, "postgres"), Args: args, Env: supervise.Environment(), Dir: c.scratch,
		Account: c.account, Quiet: true,
		Stop: syscall.SIGINT, Grace: time.Minute, Orphan: syscall.SIGINT,
		Ready: c.ping, Patience: 2 * time.Minute, // Recovery after a crash may take a while.
	}
}

func (c *Cluster) ping(ctx context.Context) error {
	conn, err := c.connect(ctx)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

func (c *Cluster) connect(ctx context.Context) (*pgx.Conn, error) {
	return pgx.Connect(ctx, c.url(superuser, c.secrets.PostgresSuper, "postgres"))
}

func (c *Cluster) url(role, password, database string) string {
	at := url.Values{"sslmode": {"disable"}, "host": {"127.0.0.1"}, "port": {strconv.Itoa(c.port)}}
	if c.socket {
		at.Set("host", c.scratch)
	}
	query := strings.ReplaceAll(at.Encode(), "+", "%20") // PostgreSQL's libraries do not decode + as a space
	return (&url.URL{Scheme: "postgres", User: url.UserPassword(role, password), Path: "/" + database, RawQuery: query}).String()
}

// AppURL returns the connection string of the role that is always under row-level security.
func (c *Cluster) AppURL() string { return c.url("longbox_app", c.secrets.PostgresApp, database) }

// SystemURL returns the connection string of the scheduler's role.
func (c *Cluster) SystemURL() string {
	return c.url("longbox_system", c.secrets.PostgresSystem, database)
}

// OwnerURL returns the connection string of the role that owns the schema.
func (c *Cluster) OwnerURL() string { return c.url("longbox_owner", c.secrets.PostgresOwner, database) }

// ClearStale removes the lock file of a server that died with the machine, if its process id now belongs to another
// program or to a server of other data. PostgreSQL cannot detect that itself.
func (c *Cluster) ClearStale() error {
	path := filepath.Join(c.dir, "postmaster.pid")
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("database: %w", err)
	}
	first, _, _ := strings.Cut(string(raw), "\n")
	process := filepath.Join("/proc", strings.TrimSpace(first))
	name, err := os.ReadFile(filepath.Join(process, "comm"))
	if err != nil || strings.TrimSpace(string(name)) == "postgres" && !worksElsewhere(process, c.dir) {
		return nil // Gone, which PostgreSQL detects; or a server, which must block the start.
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("database: %w", err)
	}
	return nil
}

// worksElsewhere reports whether a process certainly has another working directory than dir. A server works in its data
// folder.
func worksElsewhere(process, dir string) bool {
	its, err := os.Stat(filepath.Join(process, "cwd"))
	if err != nil {
		return false
	}
	ours, err := os.Stat(dir)
	return err == nil && !os.SameFile(its, ours)
}
