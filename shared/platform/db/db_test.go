package db_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/testkit"
)

func TestNoTenantSeesNothing(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	one := d.Tenant(t, "one")
	var n int
	if err := d.App.Pool().QueryRow(context.Background(), "select count(*) from tenant").Scan(&n); err != nil || n != 0 {
		t.Fatalf("without a tenant: %d rows, %v", n, err)
	}
	if _, err := d.App.Pool().Exec(context.Background(),
		"insert into library_root (tenant_id, path, bucket) values ($1, '/x', 'x')", one); err == nil || !strings.Contains(err.Error(), "row-level security policy") {
		t.Fatalf("an insert without a tenant: %v", err)
	}
}

func TestScopeSeesItsOwn(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	one, two := d.Tenant(t, "one"), d.Tenant(t, "two")
	ctx := db.In(context.Background(), db.Tenant(one))
	if n, err := db.Exec(ctx, d.App, "insert into library_root (tenant_id, path, bucket) values ($1, '/x', 'x')", one); err != nil || n != 1 {
		t.Fatalf("own insert: %d, %v", n, err)
	}
	if _, err := db.Exec(ctx, d.App, "insert into library_root (tenant_id, path, bucket) values ($1, '/y', 'y')", two); err == nil || !strings.Contains(err.Error(), "row-level security policy") {
		t.Fatalf("an insert for another tenant: %v", err)
	}
	other := db.In(context.Background(), db.Tenant(two))
	got, err := db.List[struct{ Path string }](other, d.App, "select path from library_root")
	if err != nil || len(got) != 0 {
		t.Fatalf("another tenant sees %v, %v", got, err)
	}
}

// A statement of a request that takes longer than app.request_timeout is refused with 503.
func TestStatementTakesTooLong(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t)
	user := s.User(t, "one", "reader")
	d, err := db.Open(db.Config{URL: s.DB.AppURL + "&app.request_timeout=20ms", MaxConns: 1, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	ctx := db.In(context.Background(), &auth.Caller{Tenant: s.One, AccountID: user.ID})
	_, err = db.Exec(ctx, d, "select pg_sleep(30)")
	var refused *fault.Error
	if !errors.As(err, &refused) || refused.Code != fault.Unavailable || refused.RetryAfter == 0 || !strings.Contains(refused.Message, "too long") {
		t.Errorf("%v, want a refusal that says when to try again", err)
	}
	// A worker's task and the programs themselves have no such limit.
	if _, err := db.Exec(db.In(context.Background(), db.Tenant(s.One)), d, "select pg_sleep(0.05)"); err != nil {
		t.Error(err)
	}
}

// The statement of a client that leaves ends at once, and its connection serves the next one, unless the machine is too
// busy to cancel the statement in time.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t)
	d, err := db.Open(db.Config{URL: s.DB.AppURL, MaxConns: 1, Timeout: time.Minute, Prepare: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	within := db.In(context.Background(), db.Tenant(s.One))
	run := func(ctx context.Context) error {
		_, err := db.Exec(ctx, d, "select pg_sleep(30)")
		return err
	}
	transact := func(ctx context.Context) error {
		return d.Tx(ctx, func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "select pg_sleep(30)")
			return err
		})
	}
	for name, ask := range map[string]func(context.Context) error{"batch": run, "transaction": transact} {
		kept := false
		for try := 0; try < 5 && !kept; try++ {
			session, err := db.GetValue[int](within, d, "select pg_backend_pid()")
			if err != nil {
				t.Fatal(err)
			}
			ctx, leave := context.WithCancel(within)
			time.AfterFunc(100*time.Millisecond, leave)
			if err := ask(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("%s ended with %v", name, err)
			}
			next, err := db.GetValue[int](within, d, "select pg_backend_pid()")
			if err != nil {
				t.Error(err)
			}
			kept = next == session
		}
		if !kept {
			t.Errorf("%s: every client that left cost a session", name)
		}
	}
	if left, err := db.GetValue[string](within, d, "select app.tenant()::text"); err != nil || left != s.One.String() {
		t.Errorf("tenant %s, %v", left, err)
	}
}

// Without app.request_timeout a statement of a request has 2 s, and one of a worker or a program any time.
func TestTimeOfAStatement(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t)
	user := s.User(t, "one", "reader")
	d, err := db.Open(db.Config{URL: s.DB.AppURL + "&app.request_timeout=", MaxConns: 1, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	for want, scope := range map[string]db.Scope{"2s": &auth.Caller{Tenant: s.One, AccountID: user.ID}, "0": db.Tenant(s.One)} {
		var limit string
		var b pgx.Batch
		b.Queue("select current_setting('statement_timeout')").QueryRow(func(row pgx.Row) error { return row.Scan(&limit) })
		if err := d.Run(db.In(context.Background(), scope), &b); err != nil || limit != want {
			t.Errorf("%q, %v, want %q", limit, err, want)
		}
	}
}

// A full or failing disk, a closed connection, a deadlock or a row that was just deleted is not an internal error: the
// client gets the reason and when to retry.
func TestTryAgain(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t)
	for state, text := range map[string]string{"53100": "disk of the database is full", "58030": "disk of the database reports errors",
		"23503": "removed at the same moment", "40P01": "try again", "40001": "try again", "55P03": "try again",
		// A cancelled query, transaction_timeout, temp_file_limit.
		"57014": "too long", "25P04": "too long", "53400": "too long",
		// Idle sessions are ended.
		"57P01": "not reachable", "57P02": "not reachable", "57P03": "not reachable", "57P04": "not reachable", "57P05": "not reachable", "25P03": "not reachable",
		"08000": "not reachable", "08003": "not reachable", "08006": "not reachable",
		"53000": "not reachable", "53200": "not reachable", "53300": "not reachable"} {
		_, err := db.Exec(db.In(context.Background(), db.Tenant(s.One)), s.DB.System, "do $$ begin raise using errcode = '"+state+"'; end $$")
		if !later(err, text) {
			t.Errorf("%s: %v, want %q", state, err, text)
		}
	}
}

// A statement that waited too long for a row which somebody else changes is not told to ask for less.
func TestRowHeldTooLong(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t)
	s.DB.Exec(t, "insert into library_root (tenant_id, path, bucket) values ($1, '/x', 'x')", s.One)
	holder, err := s.DB.Owner.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Rollback(context.WithoutCancel(t.Context())) }()
	const change = "update library_root set bucket = 'y'"
	if _, err := holder.Exec(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{change, "select from library_root for update", "delete from library_root", "insert into library_root (tenant_id, path, bucket) values (app.tenant(), '/x', 'x') on conflict do nothing"} {
		var b pgx.Batch
		b.Queue("set local statement_timeout = '500ms'")
		b.Queue(sql)
		if err := s.DB.System.Run(db.In(t.Context(), db.Tenant(s.One)), &b); !later(err, "Somebody else changed the same data") {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

// later reports whether an error has the reason and when to retry.
func later(err error, text string) bool {
	var refused *fault.Error
	return errors.As(err, &refused) && refused.Code == fault.Unavailable && refused.RetryAfter != 0 && strings.Contains(refused.Message, text)
}

// A server that refuses logins, because a password is being changed or a database restored, counts as unreachable.
func TestConnectionRefused(t *testing.T) {
	t.Parallel()
	s := testkit.DB(t)
	at, err := url.Parse(s.AppURL)
	if err != nil {
		t.Fatal(err)
	}
	at.Path = "/gone"
	d, err := db.Open(db.Config{URL: at.String(), MaxConns: 1, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	if err := d.Enter(db.In(context.Background(), db.Tenant(uuid.New()))); !later(err, "not reachable") {
		t.Errorf("%v, want a refusal that says when to try again", err)
	}
}

// After a failover the writer's host name leads to a reader for a while. A connection from that time could not write
// until it ends, possibly hours later. So it is closed at the first refusal.
func TestReaderIsLeft(t *testing.T) {
	t.Parallel()
	s := testkit.DB(t)
	tenant := s.Tenant(t, "one")
	d, err := db.Open(db.Config{URL: s.AppURL, MaxConns: 1, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	ctx := db.In(context.Background(), db.Tenant(tenant))
	insert := "insert into library_root (tenant_id, path, bucket) values (app.tenant(), '/x', 'x')"
	write := map[string]func() error{
		"a batch": func() error { _, err := db.Exec(ctx, d, insert); return err },
		"a transaction": func() error {
			return d.Tx(ctx, func(ctx context.Context, tx pgx.Tx) error { _, err := tx.Exec(ctx, insert); return err })
		},
	}
	for name, f := range write {
		if _, err := d.Pool().Exec(ctx, "set default_transaction_read_only = on"); err != nil { // as a reader answers
			t.Fatal(err)
		}
		var refused *fault.Error
		if err := f(); !errors.As(err, &refused) || refused.Code != fault.Unavailable || refused.RetryAfter == 0 {
			t.Errorf("%s: %v, want a refusal that says when to try again", name, err)
		}
		if err := f(); err != nil {
			t.Errorf("%s once more: %v", name, err)
		}
		s.Exec(t, "delete from library_root")
	}
}

// A timeout during a statement does not mean that the database is down: the request was too expensive, and is rolled
// back. Without a connection nothing was sent.
func TestTimeIsUp(t *testing.T) {
	t.Parallel()
	s := testkit.DB(t)
	tenant := s.Tenant(t, "one")
	d, err := db.Open(db.Config{URL: s.AppURL, MaxConns: 1, Timeout: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	ctx := db.In(context.Background(), db.Tenant(tenant))
	insert := "insert into library_root (tenant_id, path, bucket) values (app.tenant(), '/x', 'x')"
	for name, c := range map[string]struct {
		run  func() error
		want string
	}{
		"a batch": {func() error {
			var b pgx.Batch
			b.Queue(insert)
			b.Queue("select pg_sleep(30)")
			return d.Run(ctx, &b)
		}, "database took too long"},
		"a transaction": {func() error {
			return d.Tx(ctx, func(ctx context.Context, tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, insert); err != nil {
					return err
				}
				_, err := tx.Exec(ctx, "select pg_sleep(0.31)")
				return err
			})
		}, "database took too long"},
		"no connection": {func() error {
			conn, err := d.Pool().Acquire(ctx) // the only one
			if err != nil {
				return err
			}
			defer conn.Release()
			return d.Enter(ctx)
		}, "not reachable"},
	} {
		// Connected first, because that is not what takes the time.
		testkit.Eventually(t, 30*time.Second, func() bool { return d.Enter(ctx) == nil })
		var refused *fault.Error
		if err := c.run(); !errors.As(err, &refused) || refused.Code != fault.Unavailable || refused.RetryAfter == 0 || !strings.Contains(refused.Message, c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if got, err := db.List[struct{ Path string }](db.In(context.Background(), db.Tenant(tenant)), s.App, "select path from library_root"); err != nil || len(got) != 0 {
		t.Errorf("stored after all: %v, %v", got, err)
	}
}

// Only one statement waits for a server that accepts connections and does not answer. Then every statement is refused
// at once, until the next attempt.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listen.Close() })
	accepted := make(chan net.Conn, 100)
	go func() {
		for {
			conn, err := listen.Accept()
			if err != nil {
				close(accepted)
				return
			}
			accepted <- conn
		}
	}()
	d, err := db.Open(db.Config{URL: "postgres://u@" + listen.Addr().String() + "/d?sslmode=disable", MaxConns: 4, Timeout: time.Minute,
		Connect: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	ctx := db.In(context.Background(), db.Tenant(uuid.New()))
	refuse := func() {
		t.Helper()
		var refused *fault.Error
		if err := d.Enter(ctx); !errors.As(err, &refused) || refused.Code != fault.Unavailable || refused.RetryAfter == 0 {
			t.Fatalf("%v, want a refusal that says when to try again", err)
		}
	}
	for range 200 {
		refuse()
	}
	n := len(accepted)
	if n > 20 {
		t.Errorf("%d connections were tried for 200 statements", n)
	}
	testkit.Eventually(t, 10*time.Second, func() bool { refuse(); return len(accepted) > n })
}
