package task

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/testkit"
)

func add(t *testing.T, d *testkit.Databases, tenant uuid.UUID, n int) {
	t.Helper()
	var b pgx.Batch
	for range n {
		if err := Add(&b, Spec{Type: AnalyzeBooks}, new(uuid.UUID)); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.App.Run(db.In(context.Background(), db.Tenant(tenant)), &b); err != nil {
		t.Fatal(err)
	}
}

func TestNoTaskIsClaimedTwice(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	add(t, d, d.Tenant(t, "one"), 300)
	system := pool(t, d.SystemURL)
	var mu sync.Mutex
	seen := map[uuid.UUID]int{}
	var claimers sync.WaitGroup
	for range 32 {
		claimers.Go(func() {
			for {
				got, err := claim(context.Background(), system, "w", time.Minute, 3)
				if err != nil {
					t.Error(err)
					return
				}
				if len(got) == 0 {
					return
				}
				mu.Lock()
				for _, h := range got {
					seen[h.ID]++
				}
				mu.Unlock()
			}
		})
	}
	claimers.Wait()
	if len(seen) != 300 {
		t.Errorf("%d of 300 tasks were claimed", len(seen))
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("task %s was claimed %d times", id, n)
		}
	}
}

// pool has a connection for each of 32 workers.
func pool(t *testing.T, url string) *db.DB {
	t.Helper()
	p, err := db.Open(db.Config{URL: url, MaxConns: 32, Timeout: 30 * time.Second})
	must(t, err)
	t.Cleanup(p.Close)
	return p
}

// Leases run out all the time, so that tasks go from worker to worker. Only the last one's work counts, and one ends
// the task.
func TestLostTasksEndOnce(t *testing.T) {
	t.Parallel()
	d, ctx := testkit.DB(t), context.Background()
	add(t, d, d.Tenant(t, "one"), 100)
	exec(t, d, "update task set max_attempts = 1000")
	exec(t, d, "create table work (n bigint generated always as identity, task uuid, epoch integer)")
	exec(t, d, "grant insert on work to longbox_app")
	app, system := pool(t, d.AppURL), pool(t, d.SystemURL)
	var mu sync.Mutex
	ended, lost := map[uuid.UUID]int{}, 0
	work := func(h Held) error {
		_, err := db.Exec(db.In(ctx, h.Scope()), app, "insert into work (task, epoch) values ($1, $2)", h.ID, h.Epoch)
		var end []state
		if err == nil {
			end, err = finish(ctx, system, h, nil, nil, nil)
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case db.LeaseLost(err) || err == nil && len(end) == 0:
			lost++
			return nil
		case err == nil:
			ended[h.ID]++
		}
		return err
	}
	var workers, rescuers sync.WaitGroup
	over := make(chan struct{})
	for range 4 {
		rescuers.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				if _, err := Rescue(ctx, system, nil); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 28 {
		workers.Go(func() {
			for {
				var open bool
				got, err := claim(ctx, system, "w", time.Millisecond, 1)
				if err == nil && len(got) > 0 {
					err, open = work(got[0]), true
				} else if err == nil {
					err = d.Owner.Pool().QueryRow(ctx, "select exists (select from task where status in ('pending', 'running'))").Scan(&open)
				}
				if err != nil {
					t.Error(err)
				}
				if err != nil || !open {
					return
				}
			}
		})
	}
	workers.Wait()
	close(over)
	rescuers.Wait()
	for id, n := range ended {
		if n != 1 {
			t.Errorf("task %s ended %d times", id, n)
		}
	}
	if n := count(t, d, "status = 'completed' and lease_epoch = (select max(epoch) from work where task = id)"); n != 100 || len(ended) != 100 || lost == 0 {
		t.Errorf("%d tasks completed by who worked last, %d ended, %d times the lease was lost", n, len(ended), lost)
	}
	var late int
	must(t, d.Owner.Pool().QueryRow(ctx, `select count(*) from (select epoch <= lag(epoch) over (partition by task order by n) as late from work) w where late`).Scan(&late))
	if late != 0 {
		t.Errorf("%d times one worked who had lost the task to another", late)
	}
	t.Logf("the lease was lost %d times", lost)
}

// Each message arrives eight times, at 32 receivers.
func TestNoMessageRunsATaskTwice(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	tenant := d.Tenant(t, "one")
	add(t, d, tenant, 200)
	var ids []uuid.UUID
	rows, err := d.Owner.Pool().Query(context.Background(), "select id from task")
	must(t, err)
	ids, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	must(t, err)
	var mu sync.Mutex
	runs, open := map[uuid.UUID]int{}, map[uuid.UUID]bool{}
	r := worker(d, func(ctx context.Context, h Held) (any, error) {
		mu.Lock()
		runs[h.ID]++
		if open[h.ID] {
			t.Errorf("task %s has two holders", h.ID)
		}
		open[h.ID] = true
		mu.Unlock()
		err := d.App.Enter(ctx)
		mu.Lock()
		delete(open, h.ID)
		mu.Unlock()
		return nil, err
	})
	r.Slots = 32
	messages := make(chan uuid.UUID)
	var receivers sync.WaitGroup
	for range 32 {
		receivers.Go(func() {
			for id := range messages {
				if err := r.Take(context.Background(), message{tenant, id}.String()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 4 {
		for _, id := range ids {
			messages <- id // twice in a row, so that two receivers have it at the same moment
			messages <- id
		}
	}
	close(messages)
	receivers.Wait()
	for id, n := range runs {
		if n != 1 {
			t.Errorf("task %s ran %d times", id, n)
		}
	}
	if n := count(t, d, "status = 'completed' and attempts = 1"); n != 200 || len(runs) != 200 {
		t.Errorf("%d tasks completed, %d ran", n, len(runs))
	}
}

// A tenant with 100,000 pending tasks and one with ten get workers in turn, and claiming stays fast.
func TestClaimsAreFair(t *testing.T) {
	t.Parallel()
	d, ctx := testkit.DB(t), context.Background()
	big, small := d.Tenant(t, "big"), d.Tenant(t, "small")
	exec(t, d, `insert into task (tenant_id, id, type, priority) select $1, gen_random_uuid(), 'analyze_books', 600 from generate_series(1, 100000)`, big)
	add(t, d, small, 10)
	var first []Held
	var slowest time.Duration
	for turn := range 10 {
		started := time.Now()
		got, err := claim(ctx, d.System, "w", time.Minute, 2)
		must(t, err)
		slowest = max(slowest, time.Since(started))
		if first = append(first, got...); len(got) != 2 || got[0].Tenant == got[1].Tenant {
			t.Errorf("turn %d: %v", turn+1, got)
		}
	}
	n := map[uuid.UUID]int{}
	for _, h := range first {
		n[h.Tenant]++
	}
	if n[big] != 10 || n[small] != 10 {
		t.Errorf("of the first 20 claims %d went to the big tenant, %d to the small one", n[big], n[small])
	}
	t.Logf("slowest claim of two tasks beside 100,000 pending: %s", slowest)
	// Both ways of choosing read a few pages per task that they change, regardless of the backlog; the tasks fill 2,000
	// pages.
	for _, sql := range []string{"select * from app.claim_task('w', '1 minute')", "select app.next_to_send(21, '1 minute')"} {
		if n := pagesRead(t, d, big, sql); n > 1000 {
			t.Errorf("%s reads %d pages", sql, n)
		} else {
			t.Logf("%s reads %d pages", sql, n)
		}
	}
	more, err := claim(ctx, d.System, "w", time.Minute, 5) // nobody else waits: the big tenant gets the rest
	must(t, err)
	if len(more) != 5 || more[0].Tenant != big {
		t.Errorf("%v", more)
	}
}

// A failed task is retried when it is due, however it reaches a worker.
func TestTasksThatAreNotDueWait(t *testing.T) {
	t.Parallel()
	d, ctx := testkit.DB(t), context.Background()
	tenant := d.Tenant(t, "one")
	add(t, d, tenant, 1)
	first, err := claim(ctx, d.System, "w", time.Minute, 1)
	must(t, err)
	failure, wait := "the store is away", time.Hour
	states, err := finish(ctx, d.System, first[0], nil, &failure, &wait)
	if err != nil || len(states) != 1 || states[0].Status != Pending {
		t.Fatal(states, err)
	}
	tries := func() (ways [3]bool) {
		t.Helper()
		sent, err := db.List[struct {
			ID uuid.UUID `db:"id"`
		}](db.In(ctx, db.Tenant(tenant)), d.System, "select id from app.next_to_send(8, '1 hour') id")
		must(t, err)
		_, v, err := claimNamed(ctx, d.System, "w", time.Minute, tenant, first[0].ID)
		must(t, err)
		exec(t, d, "update task set status = 'pending'")
		held, err := claim(ctx, d.System, "w", time.Minute, 1)
		must(t, err)
		return [3]bool{len(sent) == 1, v == claimed, len(held) == 1}
	}
	if got := tries(); got != [3]bool{} {
		t.Errorf("before its time it is sent, claimed by name, claimed: %v", got)
	}
	exec(t, d, "update task set scheduled_for = now()")
	if got := tries(); got != [3]bool{true, true, true} {
		t.Errorf("in its time it is sent, claimed by name, claimed: %v", got)
	}
}

func TestAPausedWorkerIsFencedOff(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	tenant := d.Tenant(t, "one")
	add(t, d, tenant, 1)
	ctx := context.Background()
	first, err := claim(ctx, d.System, "slow", time.Millisecond, 1)
	if err != nil || len(first) != 1 {
		t.Fatal(first, err)
	}
	testkit.Eventually(t, 5*time.Second, func() bool { n, err := Rescue(ctx, d.System, nil); return err == nil && n == 1 })
	second, err := claim(ctx, d.System, "fast", time.Minute, 1)
	if err != nil || len(second) != 1 || second[0].Epoch != first[0].Epoch+1 {
		t.Fatal(second, err)
	}
	// Later writes of the first worker have no effect, and its end is not recorded.
	_, err = db.Exec(db.In(ctx, first[0].Scope()), d.App, "insert into library_root (tenant_id, path, bucket) values (app.tenant(), '/late', 'x')")
	if !db.LeaseLost(err) {
		t.Errorf("a late write: %v", err)
	}
	if states, err := finish(ctx, d.System, first[0], nil, nil, nil); err != nil || len(states) != 0 {
		t.Errorf("a late end: %v, %v", states, err)
	}
	if still, err := renew(ctx, d.System, time.Hour, first); err != nil || still[first[0].Scope()] || count(t, d, "lease_until > now() + interval '1 minute'") != 0 {
		t.Errorf("a late renewal: %v, %v", still, err)
	}
	if _, err := db.Exec(db.In(ctx, second[0].Scope()), d.App, "select 1"); err != nil {
		t.Errorf("the holder: %v", err)
	}
	if states, err := finish(ctx, d.System, second[0], nil, nil, nil); err != nil || len(states) != 1 || states[0].Status != Completed {
		t.Errorf("the holder's end: %v, %v", states, err)
	}
}

// Events are published for tasks that end because their worker died, and for those that only waited for them. Listeners
// of the tenant reload their state once.
func TestDeadWorkersEndsAreTold(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	tenant := d.Tenant(t, "one")
	ctx := context.Background()
	var b pgx.Batch
	var parent, child, other uuid.UUID
	must(t, Add(&b, Spec{Type: AnalyzeLibrary}, &parent))
	must(t, d.App.Run(db.In(ctx, db.Tenant(tenant)), &b))
	b = pgx.Batch{}
	must(t, Add(&b, Spec{Type: AnalyzeBooks, ParentID: &parent}, &child))
	must(t, Add(&b, Spec{Type: FindDuplicates}, &other))
	must(t, d.App.Run(db.In(ctx, db.Tenant(tenant)), &b))
	b = pgx.Batch{}
	b.Queue("update task set status = 'running', lease_until = now() - interval '1 s', attempts = case when id = $1 then max_attempts else 1 end where tenant_id = app.tenant() and id <> $2", child, parent)
	b.Queue("update task set status = 'running', done = true, open_children = 1, progress_current = 3, progress_total = 4 where tenant_id = app.tenant() and id = $1", parent)
	must(t, d.App.Run(db.In(ctx, db.Tenant(tenant)), &b))
	told, resyncs := map[uuid.UUID]events.TaskProgress{}, 0
	n, err := Rescue(ctx, d.System, func(h Held, e events.Event) {
		if h.Tenant != tenant {
			t.Errorf("the tenant is %s", h.Tenant)
		}
		if e.Kind == "resync" && e.Topic == events.Entities {
			resyncs++
			return
		}
		told[h.ID] = e.Data.(events.TaskProgress)
	})
	if err != nil || n != 3 || len(told) != 2 {
		t.Fatalf("%d, %v: %+v", n, err, told)
	}
	if resyncs != 1 {
		t.Errorf("%d times told to reload: want once, because the worker may have died before it published", resyncs)
	}
	if c := told[child]; c.Status != Failed || c.Error == nil || *c.Error != rescued || c.CompletedAt == nil {
		t.Errorf("the child: %+v", c)
	}
	if p := told[parent]; p.Status != Completed || p.Error != nil || p.CompletedAt == nil || p.Progress.Current != 3 || p.Progress.Total != 4 {
		t.Errorf("the parent: %+v", p)
	}
}

// The events of a round are published even if the rest of it fails.
func TestDeadWorkersEndsAreToldAtOnce(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	tenant := d.Tenant(t, "one")
	add(t, d, tenant, 1)
	_, err := db.Exec(db.In(t.Context(), db.Tenant(tenant)), d.App, "update task set status = 'running', attempts = max_attempts, lease_until = now() - interval '1 s' where tenant_id = app.tenant()")
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	told := 0
	if _, err := Rescue(ctx, d.System, func(_ Held, e events.Event) {
		if cancel(); e.Kind == "task_progress" {
			told++
		}
	}); err == nil || told != 1 {
		t.Errorf("told %d, %v", told, err)
	}
}

func TestParentWaitsForChildren(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	tenant := d.Tenant(t, "one")
	ctx := context.Background()
	var b pgx.Batch
	parent := uuid.New()
	var id uuid.UUID
	must(t, Add(&b, Spec{ID: parent, Type: ScanLibrary}, &id))
	for range 2 {
		must(t, Add(&b, Spec{Type: AnalyzeBooks, ParentID: &parent}, &id))
	}
	b.Queue("update task set open_children = 2 where tenant_id = app.tenant() and id = $1", parent)
	must(t, d.App.Run(db.In(ctx, db.Tenant(tenant)), &b))
	all, err := claim(ctx, d.System, "w", time.Minute, 3)
	if err != nil || len(all) != 3 || all[0].ID != parent {
		t.Fatal(all, err)
	}
	want := []string{Running, Completed, Completed}
	failure := "broken"
	for i, h := range all {
		var text *string
		if i == 1 {
			text = &failure // a failed child ends, too
			want[1] = Failed
		}
		states, err := finish(ctx, d.System, h, nil, text, nil)
		if err != nil || len(states) == 0 || states[0].Status != want[i] {
			t.Fatalf("task %d: %v, %v", i, states, err)
		}
		if i == 2 && (len(states) != 2 || states[1].ID != parent || states[1].Status != Completed) {
			t.Errorf("the parent after its last child: %v", states)
		}
	}
}

// family adds a parent with children, all claimed, and returns them, parent first.
func family(t *testing.T, d *testkit.Databases, tenant uuid.UUID, children int) []Held {
	t.Helper()
	var b pgx.Batch
	parent := uuid.New()
	var id uuid.UUID
	must(t, Add(&b, Spec{ID: parent, Type: ScanLibrary}, &id))
	for range children {
		must(t, Add(&b, Spec{Type: AnalyzeBooks, ParentID: &parent}, &id))
	}
	b.Queue("update task set open_children = $2 where tenant_id = app.tenant() and id = $1", parent, children)
	must(t, d.App.Run(db.In(context.Background(), db.Tenant(tenant)), &b))
	all, err := claim(context.Background(), d.System, "w", time.Minute, children+1)
	if err != nil || len(all) != children+1 || all[0].ID != parent {
		t.Fatal(all, err)
	}
	return all
}

// Children that are added while a rescue counts them stay counted.
func TestRescueBesideNewChildren(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	ctx := context.Background()
	all := family(t, d, d.Tenant(t, "one"), 2)
	// A child has ended without decrementing the parent's count.
	exec(t, d, "update task set open_children = 3 where id = $1", all[0].ID)
	fanout, err := d.Owner.Pool().Begin(ctx)
	must(t, err)
	defer func() { _ = fanout.Rollback(ctx) }()
	_, err = fanout.Exec(ctx, "update task set open_children = open_children + 5 where id = $1", all[0].ID)
	must(t, err)
	_, err = Rescue(ctx, d.System, nil)
	must(t, err)
	must(t, fanout.Commit(ctx))
	if n := count(t, d, "id = $1 and open_children = 8", all[0].ID); n != 1 {
		t.Error("the new children are not counted any more")
	}
}

// A permanently failed parent that is retried waits for its children that still run.
func TestRetryBesideOldChildren(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	ctx := context.Background()
	tenant := d.Tenant(t, "one")
	all := family(t, d, tenant, 2)
	text := "broken"
	if _, err := finish(ctx, d.System, all[0], nil, &text, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := retry(db.In(ctx, db.Tenant(tenant)), d.App, all[0].ID); err != nil {
		t.Fatal(err)
	}
	again, err := claim(ctx, d.System, "w", time.Minute, 1)
	if err != nil || len(again) != 1 {
		t.Fatal(again, err)
	}
	for i, h := range append(again, all[1:]...) {
		if _, err := finish(ctx, d.System, h, nil, nil, nil); err != nil {
			t.Fatal(err)
		}
		if n, want := count(t, d, "id = $1 and status = 'completed'", all[0].ID), i/2; n != want {
			t.Errorf("after %d of 3: the parent is completed %d times, want %d", i+1, n, want)
		}
	}
}

// A beat that is in flight when a task ends does not renew its lease: otherwise the task would be rescued and run
// again.
func TestBeatAfterTheEnd(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	ctx := context.Background()
	all := family(t, d, d.Tenant(t, "one"), 1)
	if _, err := finish(ctx, d.System, all[0], nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := renew(ctx, d.System, time.Minute, all); err != nil {
		t.Fatal(err)
	}
	if n := count(t, d, "done and lease_until is not null"); n != 0 {
		t.Error("a task that waits for its children has a lease")
	}
	if n := count(t, d, "not done and lease_until > now() + interval '50 seconds'"); n != 1 {
		t.Error("the lease of a running task was not renewed")
	}
}

// A lease that is about to expire is renewed even if the task's own transactions lock its row all the time.
func TestLeaseIsRenewedBesideTheTasksTransactions(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	add(t, d, d.Tenant(t, "one"), 1)
	ctx := context.Background()
	all, err := claim(ctx, d.System, "w", time.Minute, 1)
	must(t, err)
	exec(t, d, "update task set lease_until = now() + interval '1 second'")
	held, written := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(written) })
	var work sync.WaitGroup
	defer work.Wait()
	defer release()
	work.Go(func() {
		if err := d.App.Tx(db.In(ctx, all[0].Scope()), func(context.Context, pgx.Tx) error {
			close(held)
			<-written
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
	<-held
	beating, stop := context.WithCancel(ctx)
	defer stop()
	work.Go(func() {
		for beating.Err() == nil {
			if still, err := renew(beating, d.System, time.Hour, all); beating.Err() == nil && (err != nil || !still[all[0].Scope()]) {
				t.Errorf("held: %v, %v", still, err)
			}
		}
	})
	sql := func(where string) func() bool {
		return func() (yes bool) {
			must(t, d.Owner.Pool().QueryRow(ctx, "select exists ("+where+")").Scan(&yes))
			return yes
		}
	}
	testkit.Eventually(t, time.Minute, sql(`select from pg_locks w join pg_locks l on l.pid = w.pid join pg_database b on b.oid = l.database
		where not w.granted and l.locktype = 'tuple' and b.datname = current_database()`)) // it waits
	release()
	testkit.Eventually(t, time.Minute, sql("select from task where lease_until > now() + interval '50 minutes'"))
}

// pagesRead counts the pages that a statement reads in a tenant.
func pagesRead(t *testing.T, d *testkit.Databases, tenant uuid.UUID, sql string) (pages int) {
	t.Helper()
	must(t, d.System.Tx(db.In(context.Background(), db.Tenant(tenant)), func(ctx context.Context, tx pgx.Tx) error {
		var plans []struct {
			Plan struct {
				Hit  int `json:"Shared Hit Blocks"`
				Read int `json:"Shared Read Blocks"`
			}
		}
		if err := tx.QueryRow(context.Background(), "explain (analyze, buffers, format json) "+sql).Scan(&plans); err != nil {
			return err
		}
		pages = plans[0].Plan.Hit + plans[0].Plan.Read
		return nil
	}))
	return pages
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A parent that is locked, possibly forever by a worker whose machine is gone, is left for the next round.
func TestRescueBesideAParentThatIsHeld(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	family(t, d, d.Tenant(t, "one"), 2)
	d.Exec(t, "update task set status = 'failed', completed_at = now() where id = (select id from task where parent_id is not null limit 1)")
	holder, err := d.Owner.Pool().Begin(t.Context())
	must(t, err)
	defer func() { _ = holder.Rollback(context.Background()) }()
	_, err = holder.Exec(t.Context(), "select from task where parent_id is null for share")
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := Rescue(ctx, d.System, nil); err != nil {
		t.Error(err)
	}
	must(t, holder.Commit(t.Context()))
	if _, err := Rescue(t.Context(), d.System, nil); err != nil || count(t, d, "open_children = 1") != 1 {
		t.Errorf("the child that failed is still waited for, %v", err)
	}
}
