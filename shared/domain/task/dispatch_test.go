package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/queue"
	"github.com/longbox/longbox/shared/testkit"
	"github.com/longbox/longbox/shared/testkit/sqs"
)

func TestMain(m *testing.M) {
	os.Setenv("AWS_ACCESS_KEY_ID", "longboxtest")
	os.Setenv("AWS_SECRET_ACCESS_KEY", "longboxtestsecret")
	os.Exit(m.Run())
}

func dispatcher(t *testing.T, s *sqs.Server, window int, resend time.Duration) *Dispatcher {
	t.Helper()
	q := queue.Open(queue.Config{Region: "us-east-1"}, s.Queue("tasks", time.Minute, "", 0))
	return &Dispatcher{Queue: q, Window: window, Resend: resend}
}

func exec(t *testing.T, d *testkit.Databases, sql string, args ...any) {
	t.Helper()
	d.Exec(t, sql, args...)
}

func count(t *testing.T, d *testkit.Databases, where string, args ...any) (n int) {
	t.Helper()
	must(t, d.Owner.Pool().QueryRow(context.Background(), "select count(*) from task where "+where, args...).Scan(&n))
	return n
}

// worker returns a runner that handles analyze_books tasks by work.
func worker(d *testkit.Databases, work Handler) *Runner {
	return &Runner{System: d.System, Worker: "w", Slots: 4, Poll: 50 * time.Millisecond, Lease: 10 * time.Second,
		Publish:  func(context.Context, uuid.UUID, ...events.Event) {},
		Handlers: map[string]Handler{AnalyzeBooks: work, ScanLibrary: work}}
}

func nothing(context.Context, Held) (any, error) { return nil, nil }

func TestWindow(t *testing.T) {
	t.Parallel()
	d, s, ctx := testkit.DB(t), sqs.Start(t), context.Background()
	big, small := d.Tenant(t, "big"), d.Tenant(t, "small")
	add(t, d, big, 30)
	add(t, d, small, 2)
	p := dispatcher(t, s, 8, time.Hour)
	var at sync.WaitGroup
	for range 6 { // concurrently: together at most one window
		at.Go(func() {
			if err := p.Dispatch(ctx, d.App, big); err != nil {
				t.Error(err)
			}
		})
	}
	at.Wait()
	must(t, p.All(ctx, d.System))
	if n, _ := s.Len("tasks"); n != 10 || count(t, d, "queued_at is not null") != 10 {
		t.Fatalf("%d messages, want a window of 8 and 2", n)
	}
	// Each end sends the next one.
	r := worker(d, nothing)
	r.Added = p.To(d.System)
	for done := 0; done < 32; {
		got, err := p.Queue.Receive(ctx, 10, 0, time.Minute)
		must(t, err)
		if len(got) == 0 {
			t.Fatalf("no message although %d tasks are left", 32-done)
		}
		for _, m := range got {
			must(t, r.Take(ctx, m.Body))
			done++
			if out := count(t, d, "tenant_id = $1 and status = 'pending' and queued_at is not null", big); out > 8 {
				t.Fatalf("%d messages of one tenant are out", out)
			}
		}
		must(t, p.Queue.Delete(ctx, got...))
	}
	if n := count(t, d, "status = 'completed'"); n != 32 {
		t.Errorf("%d completed", n)
	}
}

// Messages are lost after commit.
func TestLostMessages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		faults         sqs.Faults
		arrive, vanish bool
	}{{"a fifth lost", sqs.Faults{Seed: 5, Lose: 0.2}, true, true}, {"all lost", sqs.Faults{Lose: 1}, false, true},
		{"all refused", sqs.Faults{Refuse: 1}, false, false}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d, s, ctx := testkit.DB(t), sqs.Start(t), context.Background()
			tenant := d.Tenant(t, "one")
			p := dispatcher(t, s, 100, time.Second)
			s.Fault(c.faults)
			for range 100 {
				add(t, d, tenant, 1)
				started := time.Now()
				p.To(d.App)(ctx, tenant) // what an operation does after commit; it never fails
				if took := time.Since(started); took > 2*dispatchTime {
					t.Fatalf("adding a task took %s", took)
				}
				if c.faults.Refuse > 0 {
					break // three attempts each
				}
			}
			if n, _ := s.Len("tasks"); n > 0 != c.arrive || s.Done().Lost > 0 != c.vanish {
				t.Errorf("%d messages arrived, %d were lost", n, s.Done().Lost)
			}
			total := count(t, d, "true")
			if n := count(t, d, "status = 'pending'"); n != total {
				t.Fatalf("%d of %d tasks are pending", n, total)
			}
			if n := count(t, d, "queued_at is null"); c.faults.Refuse > 0 && n != total {
				t.Errorf("%d of %d tasks whose messages were refused count as sent", total-n, total)
			}
			s.Fault(sqs.Faults{})
			r := worker(d, nothing)
			r.Added = p.To(d.System)
			healed := time.Now()
			testkit.Eventually(t, time.Minute, func() bool {
				must(t, p.All(ctx, d.System)) // the scheduler's round
				got, err := p.Queue.Receive(ctx, 10, 0, time.Minute)
				must(t, err)
				for _, m := range got {
					must(t, r.Take(ctx, m.Body))
				}
				must(t, p.Queue.Delete(ctx, got...))
				return count(t, d, "status = 'completed'") == total
			})
			t.Logf("%d tasks, all done %s after the faults ended", total, time.Since(healed).Round(time.Millisecond))
		})
	}
}

func TestForgedMessages(t *testing.T) {
	t.Parallel()
	d, ctx := testkit.DB(t), context.Background()
	one, two := d.Tenant(t, "one"), d.Tenant(t, "two")
	add(t, d, one, 1)
	var id uuid.UUID
	must(t, d.Owner.Pool().QueryRow(ctx, "select id from task").Scan(&id))
	ran := 0
	r := worker(d, func(context.Context, Held) (any, error) { ran++; return nil, nil })
	for _, body := range []string{
		"", "x", "null", "[]", "{}", `{"tenant":"x","task":"y"}`, `{"tenant":"` + one.String() + `"}`,
		message{two, id}.String(),         // another tenant's id for a task
		message{uuid.New(), id}.String(),  // no tenant
		message{one, uuid.New()}.String(), // no task
		message{one, id}.String() + `{}`,
		`{"tenant":"` + one.String() + `","task":"` + id.String() + `","type":"scan_library"}`,
		`{"tenant":"` + one.String() + `' or true --","task":"` + id.String() + `"}`,
	} {
		if err := r.Take(ctx, body); err != nil {
			t.Errorf("%s comes again: %v", body, err)
		}
		if err := r.GiveUp(ctx, body, 5); err != nil {
			t.Errorf("%s comes again: %v", body, err)
		}
	}
	if ran != 0 || count(t, d, "status = 'pending' and attempts = 0") != 1 {
		t.Fatalf("a forged message ran %d tasks or changed one", ran)
	}
	must(t, r.Take(ctx, message{one, id}.String()))
	must(t, r.Take(ctx, message{one, id}.String())) // repeated: it has ended
	must(t, r.GiveUp(ctx, message{one, id}.String(), 5))
	if ran != 1 || count(t, d, "status = 'completed'") != 1 {
		t.Errorf("the true message ran %d tasks", ran)
	}
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	d, ctx := testkit.DB(t), context.Background()
	tenant := d.Tenant(t, "one")
	var b pgx.Batch
	parent, child, id := uuid.New(), uuid.New(), uuid.Nil
	must(t, Add(&b, Spec{ID: parent, Type: ScanLibrary}, &id))
	must(t, Add(&b, Spec{ID: child, Type: AnalyzeBooks, ParentID: &parent}, &id))
	b.Queue("update task set status = 'running', done = true, open_children = 1 where tenant_id = app.tenant() and id = $1", parent)
	b.Queue("update task set last_error = 'the store is away' where tenant_id = app.tenant() and id = $1", child)
	must(t, d.App.Run(db.In(ctx, db.Tenant(tenant)), &b))
	var scans []uuid.UUID
	r := worker(d, nothing)
	r.ScanEnded = func(_ context.Context, _, id uuid.UUID) { scans = append(scans, id) }
	exec(t, d, "update task set status = 'running', lease_until = now() + interval '1 minute' where id = $1", child)
	must(t, r.GiveUp(ctx, message{tenant, child}.String(), 6)) // a worker holds it
	if n := count(t, d, "id = $1 and status = 'running'", child); n != 1 {
		t.Fatal("a task was failed under its worker")
	}
	exec(t, d, "update task set lease_until = now() - interval '1 second', attempts = max_attempts where id = $1", child)
	must(t, r.GiveUp(ctx, message{tenant, child}.String(), 6))
	var reason string
	must(t, d.Owner.Pool().QueryRow(ctx, "select status || ': ' || last_error from task where id = $1", child).Scan(&reason))
	if reason != "failed: No worker finished the task in 6 attempts: the store is away" {
		t.Error(reason)
	}
	if !slices.Equal(scans, []uuid.UUID{parent}) {
		t.Errorf("scans that have ended: %v", scans)
	}
}

// Several messages of one task may end as dead letters: those that come together count as one.
func TestDeadLettersOfOneTask(t *testing.T) {
	t.Parallel()
	d, ctx := testkit.DB(t), context.Background()
	tenant := d.Tenant(t, "one")
	add(t, d, tenant, 1)
	exec(t, d, "update task set queued_at = now() - interval '1 hour'")
	var id uuid.UUID
	must(t, d.Owner.Pool().QueryRow(ctx, "select id from task").Scan(&id))
	r := worker(d, nothing)
	letter := func(state string) {
		t.Helper()
		must(t, r.GiveUp(ctx, message{tenant, id}.String(), 6))
		if count(t, d, state) != 1 {
			t.Errorf("the task is not %s", state)
		}
	}
	letter("status = 'pending' and queued_at is null")
	exec(t, d, "update task set scheduled_for = now() - interval '1 hour'") // other tasks go first
	letter("status = 'pending' and queued_at is null")
	exec(t, d, "update task set queued_at = now(), scheduled_for = now()")
	letter("status = 'pending' and queued_at is not null")
	exec(t, d, "update task set scheduled_for = now() - interval '1 hour'")
	letter("status = 'failed'")
}

// A database that is away for a while ends no task that has attempts left.
func TestDeadLetterOfATaskWithAttempts(t *testing.T) {
	t.Parallel()
	d, ctx := testkit.DB(t), context.Background()
	tenant := d.Tenant(t, "one")
	add(t, d, tenant, 1)
	held, err := claim(ctx, d.System, "w", time.Minute, 1)
	must(t, err)
	r := worker(d, nothing)
	letter := func(state string) {
		t.Helper()
		must(t, r.GiveUp(ctx, message{tenant, held[0].ID}.String(), 6))
		if count(t, d, state) != 1 {
			t.Errorf("the task is not %s", state)
		}
	}
	exec(t, d, "update task set lease_until = now() - interval '1 second'")
	letter("status = 'running' and attempts = 1") // the scheduler takes it back
	if n, err := Rescue(ctx, d.System, nil); n != 1 || err != nil {
		t.Fatalf("%d taken back, %v", n, err)
	}
	exec(t, d, "update task set queued_at = now(), scheduled_for = now() + interval '1 hour'") // it waits after a failure
	letter("status = 'pending' and queued_at is null and scheduled_for > now() + interval '59 minutes'")
	exec(t, d, "update task set queued_at = now(), scheduled_for = now() - interval '1 hour'")
	letter("status = 'failed' and last_error = 'No worker finished the task in 6 attempts: No worker could start the task: " + rescued + "'")
}

// All listeners get the error of a task: it contains no stack trace, and no data.
func TestCauseIsForTheLog(t *testing.T) {
	t.Parallel()
	d, ctx := testkit.DB(t), context.Background()
	tenant := d.Tenant(t, "one")
	secret := errors.New("postgres://longbox:secret@db")
	for name, work := range map[string]Handler{
		"a panic":  func(context.Context, Held) (any, error) { panic(secret) },
		"an error": func(context.Context, Held) (any, error) { return nil, fmt.Errorf("read: %w", secret) },
		"a statement": func(ctx context.Context, _ Held) (any, error) {
			return nil, second(db.Exec(ctx, d.App, "select secret"))
		},
		"an internal error": func(context.Context, Held) (any, error) { return nil, fault.From(secret) },
		"no JSON":           func(context.Context, Held) (any, error) { return map[string]any{"secret": make(chan int)}, nil },
	} {
		var b pgx.Batch
		var id uuid.UUID
		must(t, Add(&b, Spec{ID: uuid.New(), Type: AnalyzeBooks}, &id))
		must(t, d.App.Run(db.In(ctx, db.Tenant(tenant)), &b))
		r := worker(d, work)
		var told []events.Event
		r.Publish = func(_ context.Context, _ uuid.UUID, e ...events.Event) { told = append(told, e...) }
		must(t, r.Take(ctx, message{tenant, id}.String()))
		var reason string
		must(t, d.Owner.Pool().QueryRow(ctx, "select last_error from task where id = $1", id).Scan(&reason))
		said, err := json.Marshal(told)
		must(t, err)
		for _, text := range []string{reason, string(said)} {
			if strings.Contains(text, "secret") || strings.Contains(text, "goroutine") || !strings.Contains(text, "error occurred") && !strings.Contains(text, "its log has the cause") {
				t.Errorf("%s: told %.300s", name, text)
			}
		}
	}
}

func second(_ int64, err error) error { return err }

// The error of a task is one line.
func TestReasonIsOneLine(t *testing.T) {
	t.Parallel()
	d, ctx := testkit.DB(t), context.Background()
	tenant := d.Tenant(t, "one")
	for want, err := range map[string]error{
		"one; two":            fmt.Errorf("zero: %w", errors.Join(errors.New("secret"), fault.New(fault.Conflict, "one\r\n\n  two\n"))),
		"three; four":         fault.Wrap(errors.New("five"), fault.Conflict, "three\nfour"),
		"nine":                fault.Wrap(errors.New("six\nseven\t8\n"), fault.Internal, "nine"),
		errUnexpected.Message: errors.Join(errors.New("one"), errors.New("two")),
	} {
		var b pgx.Batch
		var id uuid.UUID
		must(t, Add(&b, Spec{ID: uuid.New(), Type: AnalyzeBooks}, &id))
		must(t, d.App.Run(db.In(ctx, db.Tenant(tenant)), &b))
		must(t, worker(d, func(context.Context, Held) (any, error) { return nil, err }).Take(ctx, message{tenant, id}.String()))
		var reason string
		must(t, d.Owner.Pool().QueryRow(ctx, "select last_error from task where id = $1", id).Scan(&reason))
		if reason != want {
			t.Errorf("%q, want %q", reason, want)
		}
	}
}

func TestMessageOfADeadWorkersTask(t *testing.T) {
	t.Parallel()
	d, ctx := testkit.DB(t), context.Background()
	tenant := d.Tenant(t, "one")
	add(t, d, tenant, 1)
	held, err := claim(ctx, d.System, "dead", time.Minute, 1)
	must(t, err)
	body := message{tenant, held[0].ID}.String()
	r := worker(d, nothing)
	must(t, r.Take(ctx, body)) // its worker may be alive
	if count(t, d, "status = 'running' and locked_by = 'dead'") != 1 {
		t.Fatal("a task was taken from its holder")
	}
	// One task waits for its children, the other has no attempts left.
	for _, why := range []string{"lease_until = null, done = true",
		"lease_until = now() - interval '1 second', done = false, max_attempts = 1"} {
		exec(t, d, "update task set "+why)
		must(t, r.Take(ctx, body))
		if count(t, d, "status = 'running' and lease_epoch = 1") != 1 {
			t.Fatalf("a task was taken over: %s", why)
		}
	}
	exec(t, d, "update task set max_attempts = 3")
	must(t, r.Take(ctx, body))
	if count(t, d, "status = 'completed' and attempts = 2 and deaths = 1 and lease_epoch = 2") != 1 {
		t.Error("the message that came again did not take the task over")
	}
}

func TestSuspendedTenantsWait(t *testing.T) {
	t.Parallel()
	d, s, ctx := testkit.DB(t), sqs.Start(t), context.Background()
	tenant := d.Tenant(t, "one")
	add(t, d, tenant, 3)
	p := dispatcher(t, s, 2, time.Hour)
	must(t, p.Dispatch(ctx, d.App, tenant))
	exec(t, d, "update tenant set status = 'suspended'")
	r := worker(d, func(context.Context, Held) (any, error) { t.Error("a suspended tenant's task ran"); return nil, nil })
	got, err := p.Queue.Receive(ctx, 10, 0, time.Minute)
	must(t, err)
	for _, m := range got { // sent before the suspension
		must(t, r.Take(ctx, m.Body))
	}
	must(t, p.All(ctx, d.System))
	if held, err := claim(ctx, d.System, "w", time.Minute, 3); err != nil || len(held) != 0 {
		t.Errorf("claimed from the table: %v, %v", held, err)
	}
	if n := count(t, d, "status = 'pending' and queued_at is null and attempts = 0"); n != 3 || len(got) != 2 {
		t.Fatalf("%d of 3 tasks wait, %d messages", n, len(got))
	}
	exec(t, d, "update tenant set status = 'active'")
	must(t, p.All(ctx, d.System))
	if n := count(t, d, "queued_at is not null"); n != 2 {
		t.Errorf("%d messages after the tenant came back, want 2", n)
	}
}

func TestScanQuota(t *testing.T) {
	t.Parallel()
	d, s, ctx := testkit.DB(t), sqs.Start(t), context.Background()
	tenant := d.Tenant(t, "one")
	exec(t, d, "update tenant set max_scans = 2")
	var b pgx.Batch
	ids := make([]uuid.UUID, 6)
	for i := range ids {
		must(t, Add(&b, Spec{Type: ScanLibrary}, &ids[i]))
	}
	must(t, d.App.Run(db.In(ctx, db.Tenant(tenant)), &b))
	add(t, d, tenant, 1)
	p := dispatcher(t, s, 8, time.Hour)
	must(t, p.Dispatch(ctx, d.App, tenant))
	if n, _ := s.Len("tasks"); n != 3 {
		t.Errorf("%d messages, want two scans and one other", n)
	}
	exec(t, d, "update task set queued_at = null")
	var claimers sync.WaitGroup
	for i := range 12 { // from the table and by id, concurrently
		claimers.Go(func() {
			var err error
			if i%2 == 0 {
				_, err = claim(ctx, d.System, "w", time.Minute, 3)
			} else {
				_, _, err = claimNamed(ctx, d.System, "w", time.Minute, tenant, ids[i/2])
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	claimers.Wait()
	if n := count(t, d, "type = 'scan_library' and status = 'running'"); n > 2 || n == 0 {
		t.Errorf("%d scans run at once", n)
	}
	testkit.Eventually(t, 5*time.Second, func() bool { // a rejected message comes again
		_, err := claim(ctx, d.System, "w", time.Minute, 3)
		must(t, err)
		return count(t, d, "type = 'scan_library' and status = 'running'") == 2 && count(t, d, "type <> 'scan_library' and status = 'running'") == 1
	})
	// While scans wait for children, they are still running.
	exec(t, d, "update task set done = true where type = 'scan_library' and status = 'running'")
	if held, err := claim(ctx, d.System, "w", time.Minute, 3); err != nil || len(held) != 0 {
		t.Errorf("%v %v", held, err)
	}
	exec(t, d, "update task set status = 'completed' where done")
	if held, err := claim(ctx, d.System, "w", time.Minute, 3); err != nil || len(held) != 2 {
		t.Errorf("%d scans after the first two ended, %v", len(held), err)
	}
}

// No task makes room for a scan that its tenant's limit holds back.
func TestRoomForScans(t *testing.T) {
	t.Parallel()
	d, ctx := testkit.DB(t), context.Background()
	at, other := d.Tenant(t, "one"), d.Tenant(t, "two")
	var b pgx.Batch
	var id uuid.UUID
	must(t, Add(&b, Spec{Type: ScanLibrary}, &id))
	must(t, d.App.Run(db.In(ctx, db.Tenant(other)), &b))
	exec(t, d, "update task set scheduled_for = now() - interval '1 minute'")
	for limit, want := range map[int]bool{0: false, 1: true} {
		exec(t, d, "update tenant set max_scans = $1", limit)
		r := worker(d, nothing)
		r.Slots, r.Slice = 1, time.Nanosecond
		r.init()
		paused := false
		h := Held{Tenant: at, ID: uuid.New()}
		r.held[h.Scope()] = &running{Held: h, since: time.Now().Add(-time.Hour), pause: func() { paused = true }}
		must(t, r.makeRoom(ctx))
		if paused != want {
			t.Errorf("at most %d scans: paused %v, want %v", limit, paused, want)
		}
	}
}

// If every slot is taken and another tenant waits, the longest-running task of the tenant with the most slots makes
// room, and if it does not, the next one.
func TestWhoMakesRoom(t *testing.T) {
	t.Parallel()
	d, ctx := testkit.DB(t), context.Background()
	most, other, waits := d.Tenant(t, "one"), d.Tenant(t, "two"), d.Tenant(t, "three")
	add(t, d, waits, 1)
	for _, c := range []struct {
		slots          int
		slice, pending time.Duration
		waits          uuid.UUID
		want           []string // one after another
	}{
		{4, time.Minute, time.Minute, waits, []string{"older", "newer", "oldest", ""}},
		{5, time.Minute, time.Minute, waits, []string{""}},
		{4, 24 * time.Hour, time.Minute, waits, []string{""}},
		{4, time.Minute, 0, waits, []string{""}}, // a free worker takes it
		{4, time.Minute, time.Minute, other, []string{""}},
		{4, time.Minute, time.Minute, most, []string{""}},
	} {
		exec(t, d, "update task set tenant_id = $1, scheduled_for = now() - $2::interval", c.waits, c.pending)
		r := worker(d, nothing)
		r.Slots, r.Slice = c.slots, c.slice
		r.init()
		var paused string
		for name, run := range map[string]running{"newer": {Held: Held{Tenant: most}, since: time.Now().Add(-time.Hour)}, "older": {Held: Held{Tenant: most}, since: time.Now().Add(-2 * time.Hour)},
			"oldest": {Held: Held{Tenant: other}, since: time.Now().Add(-3 * time.Hour)}, "fresh": {Held: Held{Tenant: most}, since: time.Now()}} {
			run.ID, run.pause = uuid.New(), func() { paused += name }
			r.held[run.Scope()] = &run
		}
		for _, want := range c.want {
			paused = ""
			if must(t, r.makeRoom(ctx)); paused != want {
				t.Errorf("%+v: paused %q, want %q", c, paused, want)
			}
		}
	}
}

// Scans beyond the tenant's limit take no place in its window from other tasks.
func TestWindowBesideScans(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	tenant := d.Tenant(t, "one")
	exec(t, d, "update tenant set max_scans = 1")
	exec(t, d, "insert into task (tenant_id, id, type, priority) select $1, gen_random_uuid(), 'scan_library', 900 from generate_series(1, 5)", tenant)
	exec(t, d, "insert into task (tenant_id, id, type) select $1, gen_random_uuid(), 'analyze_books' from generate_series(1, 5)", tenant)
	for range 2 { // the second time the window is full
		if _, err := db.Exec(db.In(t.Context(), db.Tenant(tenant)), d.System, "select app.next_to_send(4, '1 hour')"); err != nil {
			t.Fatal(err)
		}
		if scans, others := count(t, d, "queued_at is not null and type = 'scan_library'"), count(t, d, "queued_at is not null and type <> 'scan_library'"); scans != 1 || others != 3 {
			t.Errorf("%d scans and %d other tasks are to be sent, want 1 and 3", scans, others)
		}
	}
}
