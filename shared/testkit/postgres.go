// Package testkit provides real services to tests: Postgres with the restricted role and one database per test, Redis,
// an S3 gateway, fixture books and a signed-in client. A service comes from the environment (TEST_DATABASE_URL,
// TEST_REDIS_URL, TEST_S3_ENDPOINT), else from the installed program, else from a container. If there is none, the test
// fails.
package testkit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // goose uses database/sql

	"github.com/longbox/longbox/migrations"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/schema"
	"github.com/longbox/longbox/shared/testkit/bound"
)

// Databases holds connections to one test's database as its three roles.
type Databases struct {
	App, System, Owner          *db.DB
	AppURL, SystemURL, OwnerURL string
}

// Exec runs a statement as the owner, who sees the rows of all tenants.
func (d *Databases) Exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	if _, err := d.Owner.Pool().Exec(context.Background(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// AwaitLock waits until a session of the database waits for a lock.
func (d *Databases) AwaitLock(t testing.TB) {
	t.Helper()
	d.AwaitLocks(t, 1)
}

// AwaitLocks waits until n sessions of the database wait for locks.
func (d *Databases) AwaitLocks(t testing.TB, n int) {
	t.Helper()
	Eventually(t, 10*time.Second, func() bool {
		var wait int
		err := d.Owner.Pool().QueryRow(context.Background(), `select count(distinct pid) from pg_locks where not granted
			and pid in (select pid from pg_stat_activity where datname = current_database())`).Scan(&wait)
		return err == nil && wait >= n
	})
}

// Set sets a setting of a tenant.
func (d *Databases) Set(t testing.TB, tenant uuid.UUID, key, value string) {
	t.Helper()
	d.Exec(t, "insert into setting (tenant_id, key, value) values ($1, $2, $3) on conflict (tenant_id, key) do update set value = excluded.value", tenant, key, value)
}

const testPassword = "longbox"

var (
	clusterOnce sync.Once
	clusterURL  string
	clusterErr  error
	databases   atomic.Int64
)

// DB creates a database with the schema for the test, from a template.
func DB(t testing.TB) *Databases {
	t.Helper()
	Superuser(t)
	name := fmt.Sprintf("t%d_%d", os.Getpid(), databases.Add(1))
	admin(t,
		"drop database if exists "+name+" with (force)", // of another program that had this number and was killed
		"create database "+name+" template "+template+" owner longbox_owner",
		// How long a statement takes says nothing on a machine that does many things at once: no test depends on it.
		"alter database "+name+" set app.request_timeout = '0'")
	d := &Databases{
		AppURL:    userURL(t, "longbox_app", name),
		SystemURL: userURL(t, "longbox_system", name),
		OwnerURL:  userURL(t, "longbox_owner", name),
	}
	open := func(u string) *db.DB {
		pool, err := db.Open(db.Config{URL: u, MaxConns: 8, Timeout: 30 * time.Second})
		if err != nil {
			t.Fatalf("open %s: %v", u, err)
		}
		return pool
	}
	d.App, d.System, d.Owner = open(d.AppURL), open(d.SystemURL), open(d.OwnerURL)
	t.Cleanup(func() {
		d.App.Close()
		d.System.Close()
		d.Owner.Close()
		admin(t, "drop database "+name+" with (force)")
	})
	return d
}

// Superuser returns the URL of the test server's superuser.
func Superuser(t testing.TB) string {
	t.Helper()
	clusterOnce.Do(func() { clusterURL, clusterErr = startCluster() })
	if clusterErr != nil {
		t.Fatalf("PostgreSQL for tests: %v (install it: apt-get install postgresql, or set TEST_DATABASE_URL to a superuser's URL)", clusterErr)
	}
	return clusterURL
}

// Tenant adds a tenant to the database.
func (d *Databases) Tenant(t testing.TB, name string) uuid.UUID {
	t.Helper()
	id := uuid.New()
	_, err := d.Owner.Pool().Exec(context.Background(),
		"insert into tenant (id, name, hosts, secret) values ($1, $2, $3, $4)", id, name, []string{name + ".test"}, make32(id))
	if err != nil {
		t.Fatalf("add tenant: %v", err)
	}
	return id
}

func make32(id uuid.UUID) []byte { return append(id[:], id[:]...) }

// admin runs statements as the superuser.
func admin(t testing.TB, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), clusterURL)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	defer conn.Close(context.Background())
	for _, sql := range statements {
		if _, err := conn.Exec(context.Background(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

func userURL(t testing.TB, user, database string) string {
	u, err := url.Parse(clusterURL)
	if err != nil {
		t.Fatalf("cluster URL: %v", err)
	}
	u.User = url.UserPassword(user, testPassword)
	u.Path = "/" + database
	return u.String()
}

func startCluster() (string, error) {
	superuser, err := source{setting: "TEST_DATABASE_URL", program: postgresBin, run: startInstalled, image: func() (string, error) {
		// The version that template.yaml deploys.
		address, _, err := containerImage{name: "postgres:17", port: "5432", env: map[string]string{"POSTGRES_PASSWORD": testPassword},
			command: serverSettings}.start()
		if err != nil {
			return "", err
		}
		u := "postgres://postgres:" + testPassword + "@" + address + "/postgres?sslmode=disable"
		return u, waitForPostgres(time.Minute, u) // it listens shortly before it accepts logins
	}}.address()
	if err != nil {
		return "", err
	}
	return superuser, prepareTemplate(superuser)
}

// template is the database that others are copies of: another one for each state of the migrations, since a server that
// tests share outlives changes of them.
var template = "longbox_template_" + migrated()

// migrated stands for what the migrations say.
func migrated() string {
	names, err := fs.Glob(migrations.FS, "*.sql") // in order
	hash := sha256.New()
	for _, name := range names {
		sql, failed := migrations.FS.ReadFile(name)
		err = errors.Join(err, failed)
		fmt.Fprintf(hash, "%s %d\n%s", name, len(sql), sql)
	}
	if err != nil {
		panic(err) // they are part of the program
	}
	return hex.EncodeToString(hash.Sum(nil)[:8])
}

// prepareTemplate makes roles and the template database, once for a server that several test programs share.
func prepareTemplate(superuser string) error {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, superuser)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "select pg_advisory_lock(7266)"); err != nil {
		return err
	}
	for _, role := range []string{"longbox_owner", "longbox_app", "longbox_system"} {
		sql := fmt.Sprintf(`do $$ begin
			if not exists (select from pg_roles where rolname = '%s') then create role %s login password '%s'; end if;
		end $$`, role, role, testPassword)
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	if err := schema.EnsureLimited(ctx, conn); err != nil {
		return err
	}
	var exists bool
	if err := conn.QueryRow(ctx, "select exists (select from pg_database where datname = $1 and datistemplate)", template).Scan(&exists); err != nil {
		return err
	}
	if exists {
		return nil
	}
	if _, err := conn.Exec(ctx, "drop database if exists "+template); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "create database "+template+" owner longbox_owner encoding 'UTF8' locale 'C.UTF-8' template template0"); err != nil {
		return err
	}
	u, err := url.Parse(superuser)
	if err != nil {
		return err
	}
	u.Path = "/" + template
	u.User = url.UserPassword("longbox_owner", testPassword)
	if _, _, err := schema.Migrate(ctx, u.String()); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "alter database "+template+" is_template true")
	return err
}

func postgresBin() string {
	if p, err := exec.LookPath("initdb"); err == nil {
		if _, err := os.Stat(filepath.Join(filepath.Dir(p), "postgres")); err == nil {
			return filepath.Dir(p)
		}
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return ""
	}
	return filepath.Dir(found[len(found)-1])
}

// serverSettings of every test server: many connections, no durability.
var serverSettings = []string{"-c", "fsync=off", "-c", "full_page_writes=off", "-c", "synchronous_commit=off",
	"-c", "max_connections=200", "-c", "jit=off", "-c", "max_wal_size=512MB"}

func startInstalled(bin string) (string, error) {
	dir, err := os.MkdirTemp("", "longbox-pg-")
	if err != nil {
		return "", err
	}
	data := filepath.Join(dir, "data")
	if shared := os.Getenv("TEST_POSTGRES_SEED"); shared != "" {
		if err := copySeed(bin, shared, data); err != nil {
			return "", err
		}
	}
	u, _, err := serve(bin, data, dir)
	return u, err
}

// copySeed makes a data folder with the template, as a copy of the one in the folder shared, which the first test
// program makes: the others save the time for initdb and the migrations.
func copySeed(bin, shared, data string) error {
	lock, err := os.Create(filepath.Join(shared, "lock"))
	if err != nil {
		return err
	}
	defer lock.Close() // unlocks
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	seed := filepath.Join(shared, "seed")
	if _, err := os.Stat(seed); errors.Is(err, fs.ErrNotExist) {
		if err := makeSeed(bin, shared, seed); err != nil {
			return fmt.Errorf("make %s: %w", seed, err)
		}
	}
	if out, err := exec.Command("cp", "-a", seed, data).CombinedOutput(); err != nil {
		return fmt.Errorf("copy %s: %w: %s", seed, err, out)
	}
	return nil
}

func makeSeed(bin, shared, seed string) error {
	if err := giveAway(shared); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(shared, "server-")
	if err != nil {
		return err
	}
	data := dir + ".data" // outlives the server's folder
	u, stop, err := serve(bin, data, dir)
	if err != nil {
		return err
	}
	if err := prepareTemplate(u); err != nil {
		return err
	}
	stop()
	return os.Rename(data, seed)
}

// serve starts a server, with a new data folder if there is none, and returns its superuser's URL and how to stop it.
// Its socket and its log are in dir.
func serve(bin, data, dir string) (superuser string, stop func(), err error) {
	if err := giveAway(dir); err != nil {
		return "", nil, err
	}
	if _, err := os.Stat(data); errors.Is(err, fs.ErrNotExist) {
		if out, err := asUser(exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "postgres",
			"-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")).CombinedOutput(); err != nil {
			return "", nil, fmt.Errorf("initdb: %w: %s", err, out)
		}
	}
	port, err := freePort()
	if err != nil {
		return "", nil, err
	}
	cmd := asUser(exec.Command(filepath.Join(bin, "postgres"),
		append([]string{"-D", data, "-p", fmt.Sprint(port), "-h", "127.0.0.1", "-k", dir}, serverSettings...)...))
	if stop, err = bound.Start(cmd, "INT", dir); err != nil {
		return "", nil, err
	}
	superuser = fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port)
	return superuser, stop, waitForPostgres(time.Minute, superuser)
}

func waitForPostgres(limit time.Duration, databaseURL string) error {
	return waitFor(limit, func() error {
		conn, err := pgx.Connect(context.Background(), databaseURL)
		if err != nil {
			return err
		}
		return conn.Close(context.Background())
	})
}
