package worker_test

import (
	"context"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/longbox/longbox/shared/app/scheduler"
	"github.com/longbox/longbox/shared/testkit"
)

// The rounds of the scheduler start the search for duplicates by the setting, and workers make it.
func TestDuplicatesAreLookedForBySchedule(t *testing.T) {
	t.Parallel()
	r := newRig(t, false)
	o := r.owner("one")
	r.exec("insert into setting (tenant_id, key, value) values ($1, 'deduplication.cron_schedule', '* * * * * *')", o.tenant)
	stop := r.work(1)
	defer stop()
	testkit.Eventually(t, time.Minute, func() bool {
		var done, others int
		err := r.db.Owner.Pool().QueryRow(context.Background(), `select count(*) filter (where type = 'find_duplicates' and status = 'completed'),
			count(*) filter (where type <> 'find_duplicates' or status = 'failed') from task`).Scan(&done, &others)
		if err != nil || others > 0 {
			t.Fatalf("%d other tasks, %v", others, err)
		}
		return done > 1
	})
}

// An invocation that wakes a paused database waits until it is awake: one that fails raises an alarm, every hour.
func TestAnInvocationWakesTheDatabase(t *testing.T) {
	t.Parallel()
	r := newRig(t, false)
	s, base, err := scheduler.New(scheduler.Config{Config: r.config.Config, SystemURL: drowsy(t, r.config.SystemURL, 5), Every: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer base.Close()
	if _, err := s.Invoked(context.Background(), nil); err != nil {
		t.Error(err)
	}
}

// A round that finds no database says so once, not for each thing that it would have done.
func TestARoundWithoutADatabase(t *testing.T) {
	t.Parallel()
	r := newRig(t, false)
	s, base, err := scheduler.New(scheduler.Config{Config: r.config.Config, SystemURL: drowsy(t, r.config.SystemURL, math.MaxInt64), Every: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer base.Close()
	if err := s.Round(context.Background(), time.Now()); err == nil || strings.Count(err.Error(), "failed to connect") != 1 {
		t.Errorf("a round says %v", err)
	}
}

// drowsy is a database that breaks the first connections off.
func drowsy(t *testing.T, address string, first int64) string {
	t.Helper()
	var came atomic.Int64
	return forwarded(t, address, func(client, server net.Conn) {
		if came.Add(1) > first {
			_, _ = io.Copy(client, server)
		}
	})
}

// forwarded is the database by way of a port of its own, where answer passes on what it says.
func forwarded(t *testing.T, address string, answer func(client, server net.Conn)) string {
	t.Helper()
	to, err := pgx.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer client.Close()
				network, address := pgconn.NetworkAddress(to.Host, to.Port)
				server, err := net.Dial(network, address)
				if err != nil {
					return
				}
				defer server.Close()
				go func() { _, _ = io.Copy(server, client) }()
				answer(client, server)
			}()
		}
	}()
	u := &url.URL{Scheme: "postgres", User: url.UserPassword(to.User, to.Password), Host: l.Addr().String(), Path: "/" + to.Database, RawQuery: "sslmode=disable"}
	return u.String()
}

// A database that disappears without closing its connections, as in a failover, does not stop the rounds: they continue
// with new connections.
func TestRoundsGoOnAfterASilentDatabase(t *testing.T) {
	t.Parallel()
	r := newRig(t, false)
	o := r.owner("one")
	address, silence := silenced(t, r.config.SystemURL)
	s, base, err := scheduler.New(scheduler.Config{Config: r.config.Config, SystemURL: address, Every: time.Second, Within: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer base.Close()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	r.exec("update library set scan_on_start = true")
	running.Go(func() { s.Run(ctx) })
	scans := func(n int) func() bool {
		return func() bool {
			var scans int
			if err := r.db.Owner.Pool().QueryRow(ctx, "select count(*) from scan where library_id = $1", o.library).Scan(&scans); err != nil {
				t.Fatal(err)
			}
			return scans == n
		}
	}
	testkit.Eventually(t, 20*time.Second, scans(1))
	silence()
	r.exec("update task set status = 'completed', completed_at = now()")
	r.exec("update library set scan_enabled = true, scan_cron = '0 0 1 1 *', next_scan_at = now()")
	testkit.Eventually(t, 30*time.Second, scans(2))
}

// A library whose scan on start fails once is scanned by the next round.
func TestScansOnStartAreRepeatedAfterAnError(t *testing.T) {
	t.Parallel()
	r := newRig(t, false)
	r.owner("one")
	r.owner("two")
	r.exec("create sequence scans")
	r.exec(`create function refuse() returns trigger language plpgsql security definer as $$
		begin if nextval('public.scans') = 1 then raise 'no scan'; end if; return new; end $$`)
	r.exec("create trigger refuse before insert on scan for each row execute function refuse()")
	r.exec("update library set scan_on_start = true")
	s := r.scheduler()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { s.Run(ctx) })
	testkit.Eventually(t, time.Minute, func() bool {
		var libraries int
		if err := r.db.Owner.Pool().QueryRow(ctx, "select count(distinct library_id) from scan").Scan(&libraries); err != nil {
			t.Fatal(err)
		}
		return libraries == 2
	})
}

// silenced is a database whose connections of before silence stay open and answer no more.
func silenced(t *testing.T, address string) (silent string, silence func()) {
	t.Helper()
	var quiet atomic.Bool
	return forwarded(t, address, func(client, server net.Conn) {
		old := !quiet.Load()
		buffer := make([]byte, 32<<10)
		for {
			n, err := server.Read(buffer)
			if err != nil {
				return
			}
			if old && quiet.Load() {
				continue
			}
			if _, err := client.Write(buffer[:n]); err != nil {
				return
			}
		}
	}), func() { quiet.Store(true) }
}

// Libraries with scan on start are scanned, even if the scheduler starts before its database.
func TestAStartBeforeTheDatabaseScansLibraries(t *testing.T) {
	t.Parallel()
	r := newRig(t, false)
	o := r.owner("one")
	r.exec("update library set scan_on_start = true")
	s, base, err := scheduler.New(scheduler.Config{Config: r.config.Config, SystemURL: drowsy(t, r.config.SystemURL, 5), Every: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer base.Close()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { s.Run(ctx) })
	testkit.Eventually(t, 20*time.Second, func() bool {
		var scans int
		if err := r.db.Owner.Pool().QueryRow(ctx, "select count(*) from scan where library_id = $1", o.library).Scan(&scans); err != nil {
			t.Fatal(err)
		}
		return scans == 1
	})
}

// A scan whose settlement takes longer than an invocation does not keep the others from their turn: the round ends in
// time, has cleaned up before, and the next one leaves that scan out.
func TestALongSettlement(t *testing.T) {
	t.Parallel()
	r := newRig(t, false)
	o := r.owner("one")
	id := o.start()
	r.exec("update task set status = 'completed', completed_at = now() - interval '1 minute' where id = $1", id)
	r.exec("insert into task (tenant_id, id, type, status, completed_at) values ($1, gen_random_uuid(), 'analyze_books', 'completed', '2020-01-01')", o.tenant)
	busy, err := r.db.Owner.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Rollback(context.Background())
	if _, err := busy.Exec(t.Context(), "select from scan where id = $1 for update", id); err != nil {
		t.Fatal(err)
	}
	s := r.scheduler()
	ctx, cancel := context.WithTimeout(t.Context(), 16*time.Second)
	defer cancel()
	if _, err := s.Invoked(ctx, nil); err == nil || !strings.Contains(err.Error(), "settle scan") || ctx.Err() != nil {
		t.Errorf("%v; the invocation: %v", err, ctx.Err())
	}
	var old int
	if err := r.db.Owner.Pool().QueryRow(t.Context(), "select count(*) from task where completed_at < '2021-01-01'").Scan(&old); err != nil || old != 0 {
		t.Errorf("%d old tasks are left, %v", old, err)
	}
	if _, err := s.Invoked(t.Context(), nil); err != nil {
		t.Errorf("the next round: %v", err)
	}
}

// Rounds that are too short for the whole cleaning continue where the one before ended, although the store does not
// answer.
func TestShortRoundsCleanUpInTurn(t *testing.T) {
	t.Parallel()
	r := newRig(t, false)
	o := r.owner("one")
	r.exec("update tenant set max_rendition_bytes = 1000000000 where id = $1", o.tenant)
	release := make(chan struct{})
	defer close(release)
	r.s3.Counter.Meddle(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
		select {
		case <-r.Context().Done():
		case <-release:
		}
	})
	s := r.scheduler()
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		began := time.Now()
		_ = s.Round(ctx, time.Now()) // the store's failures
		cancel()
		if took := time.Since(began); took > 20*time.Second {
			t.Fatalf("a round took %s", took)
		}
		var measured bool
		if err := r.db.Owner.Pool().QueryRow(t.Context(), "select exists (select from rendition_usage where tenant_id = $1)", o.tenant).Scan(&measured); err != nil {
			t.Fatal(err)
		}
		if measured {
			return
		}
	}
	t.Error("no round has measured the tenant")
}

// scheduler makes a scheduler that is closed at the end of the test.
func (r *rig) scheduler() *scheduler.Scheduler {
	r.t.Helper()
	s, base, err := scheduler.New(scheduler.Config{Config: r.config.Config, SystemURL: r.config.SystemURL, Every: time.Second})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(base.Close)
	return s
}
