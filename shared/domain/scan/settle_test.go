package scan_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/testkit"
)

// told records the kinds of events.
type told []string

func (l *told) publish(_ context.Context, _ uuid.UUID, all ...events.Event) {
	for _, e := range all {
		*l = append(*l, e.Kind)
	}
}

// A scan whose last part is cancelled ends without a worker: the scheduler counts it, publishes its end and queues the
// purge, once.
func TestScanThatNoWorkerEnded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var last told
	s := &scan.Settler{Database: r.DB.App, Publish: last.publish}
	id, child := uuid.New(), uuid.New()
	r.exec("update library set purge_deleted_on_scan = true")
	r.exec("insert into task (tenant_id, id, type, library_id, status, done, open_children, started_at) values ($1, $2, 'scan_library', $3, 'running', true, 1, now())", r.tenant, id, r.library)
	r.exec("insert into scan (tenant_id, id, library_id, mode, files_total, files_processed) values ($1, $2, $3, 'normal', 3, 1)", r.tenant, id, r.library)
	r.exec("insert into task (tenant_id, id, type, library_id, parent_id) values ($1, $2, 'analyze_books', $3, $4)", r.tenant, child, r.library, id)
	settle := func() {
		t.Helper()
		if err := s.All(t.Context(), r.DB.System); err != nil {
			t.Fatal(err)
		}
	}
	state := func() (processed int, settled bool, purges int) {
		t.Helper()
		if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select files_processed, settled, (select count(*) from task where type = 'purge_deleted') from scan where id = $1", id).
			Scan(&processed, &settled, &purges); err != nil {
			t.Fatal(err)
		}
		return
	}
	settle() // still running
	if _, err := task.Cancel(db.In(t.Context(), db.Tenant(r.tenant)), r.DB.App, child); err != nil {
		t.Fatal(err)
	}
	settle() // just ended: its worker may be about to settle it
	if n, settled, purges := state(); n != 1 || settled || purges != 0 || len(last) != 0 {
		t.Fatalf("settled too early: %d files, %v, %d purges, %v", n, settled, purges, last)
	}
	r.exec("update task set completed_at = now() - interval '1 minute' where id = $1", id)
	settle()
	if n, settled, purges := state(); n != 3 || !settled || purges != 1 || len(last) != 2 {
		t.Errorf("%d files processed, settled %v, %d purges, told %v", n, settled, purges, last)
	}
	r.exec("update task set status = 'completed' where type = 'purge_deleted'")
	settle()
	if err := s.Settle(t.Context(), r.tenant, id); err != nil {
		t.Fatal(err)
	}
	if _, _, purges := state(); purges != 1 {
		t.Errorf("%d purges after one scan", purges)
	}
}

// The scans of a suspended tenant are settled when it is active again; a cancelled scan is left to the next one.
func TestScansThatAreNotSettled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var last told
	s := &scan.Settler{Database: r.DB.App, Publish: last.publish}
	id := uuid.New()
	r.exec("insert into task (tenant_id, id, type, library_id, status, completed_at) values ($1, $2, 'scan_library', $3, 'failed', now() - interval '1 minute')", r.tenant, id, r.library)
	r.exec("insert into scan (tenant_id, id, library_id, mode) values ($1, $2, $3, 'normal')", r.tenant, id, r.library)
	for _, change := range []string{"update tenant set status = 'suspended'", "update tenant set status = 'active'; update task set status = 'cancelled'", "update task set status = 'failed'"} {
		if len(last) != 0 {
			t.Errorf("before %s: told %v", change, last)
		}
		if _, err := r.DB.Owner.Pool().Exec(t.Context(), change); err != nil {
			t.Fatal(err)
		}
		if err := s.All(t.Context(), r.DB.System); err != nil {
			t.Fatal(err)
		}
	}
	if len(last) != 2 {
		t.Errorf("told %v", last)
	}
}

// A worker whose invocation ends leaves a scan that takes longer to the scheduler, also if its own context has ended.
func TestSettlingEndsWithTheInvocation(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := uuid.New()
	r.exec("insert into task (tenant_id, id, type, library_id, status, completed_at) values ($1, $2, 'scan_library', $3, 'completed', now() - interval '1 minute')", r.tenant, id, r.library)
	r.exec("insert into scan (tenant_id, id, library_id, mode) values ($1, $2, $3, 'normal')", r.tenant, id, r.library)
	lock, err := r.DB.Owner.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Rollback(context.Background())
	if _, err := lock.Exec(t.Context(), "select from scan for update"); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(task.WithEnd(t.Context(), time.Now().Add(time.Second)))
	end()
	var last told
	done := make(chan struct{})
	go func() {
		(&scan.Settler{Database: r.DB.App, Publish: last.publish}).Ended(ended, r.tenant, id)
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Error("it goes on after the invocation's end")
	}
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-done
	if len(last) != 0 {
		t.Errorf("told %v", last)
	}
	s := &scan.Settler{Database: r.DB.App, Publish: last.publish}
	if err := s.All(t.Context(), r.DB.System); err != nil || len(last) != 2 {
		t.Errorf("told %v, %v", last, err)
	}
}

// Of two concurrent calls, one settles the scan and publishes its end.
func TestScanIsSettledOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := uuid.New()
	r.exec("update library set purge_deleted_on_scan = true")
	r.exec("insert into task (tenant_id, id, type, library_id, status, completed_at) values ($1, $2, 'scan_library', $3, 'completed', now())", r.tenant, id, r.library)
	r.exec("insert into scan (tenant_id, id, library_id, mode) values ($1, $2, $3, 'normal')", r.tenant, id, r.library)
	var mu sync.Mutex
	var last told
	s := &scan.Settler{Database: r.DB.App, Publish: func(ctx context.Context, tenant uuid.UUID, all ...events.Event) {
		mu.Lock()
		defer mu.Unlock()
		last.publish(ctx, tenant, all...)
	}}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := s.Settle(t.Context(), r.tenant, id); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	var purges int
	if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select count(*) from task where type = 'purge_deleted'").Scan(&purges); err != nil {
		t.Fatal(err)
	}
	if len(last) != 2 || purges != 1 {
		t.Errorf("told %v, %d purges", last, purges)
	}
}

// A scan that ended before another one of the library is settled separately; what failed to settle is retried later.
func TestEachScanIsSettled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var last told
	s := &scan.Settler{Database: r.DB.App, Publish: last.publish}
	ids := []uuid.UUID{uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())}
	for _, id := range ids {
		r.exec("insert into task (tenant_id, id, type, library_id, status, completed_at) values ($1, $2, 'scan_library', $3, 'completed', now() - interval '1 minute')", r.tenant, id, r.library)
		r.exec("insert into scan (tenant_id, id, library_id, mode, files_total) values ($1, $2, $3, 'normal', 3)", r.tenant, id, r.library)
	}
	if err := s.Settle(t.Context(), r.tenant, ids[1]); err != nil {
		t.Fatal(err)
	}
	r.exec("alter function app.follow_over(uuid, uuid, uuid[]) rename to away")
	for range 3 {
		_ = s.All(t.Context(), r.DB.System) // it fails the first time, and is not retried at once
	}
	if len(last) != 2 {
		t.Errorf("told %v of a scan that is not settled", last)
	}
	r.exec("alter function app.away(uuid, uuid, uuid[]) rename to follow_over")
	if err := (&scan.Settler{Database: r.DB.App, Publish: last.publish}).All(t.Context(), r.DB.System); err != nil {
		t.Fatal(err)
	}
	var done int
	if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select count(*) from scan where settled and files_processed = 3").Scan(&done); err != nil {
		t.Fatal(err)
	}
	if len(last) != 4 || done != 2 {
		t.Errorf("told %v, %d scans are settled", last, done)
	}
}

// A library counts as scanned when a complete scan has completed, with all its books read; not after a cancelled or
// failed scan, or one of a folder.
func TestLastScanned(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := &scan.Settler{Database: r.DB.App, Publish: new(told).publish}
	for _, c := range []struct{ status, params, want string }{
		{"failed", "{}", "never"}, {"cancelled", "{}", "never"}, {"completed", `{"path":"A"}`, "never"},
		{"completed", "{}", "2026-01-02"}, {"failed", "{}", "2026-01-02"},
	} {
		id := uuid.Must(uuid.NewV7())
		r.exec(`insert into task (tenant_id, id, type, library_id, status, params, completed_at)
			values ($1, $2, 'scan_library', $3, $4, $5, '2026-01-02 12:00Z')`, r.tenant, id, r.library, c.status, c.params)
		r.exec("insert into scan (tenant_id, id, library_id, mode) values ($1, $2, $3, 'normal')", r.tenant, id, r.library)
		if err := s.Settle(t.Context(), r.tenant, id); err != nil {
			t.Fatal(err)
		}
		var got string
		if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select coalesce(last_scanned_at::date::text, 'never') from library").Scan(&got); err != nil || got != c.want {
			t.Errorf("after a scan with %s that has %s: scanned %s, %v, want %s", c.params, c.status, got, err, c.want)
		}
	}
}

// Two scans of a library that end one right after the other are both settled by their workers.
func TestScansAreSettledAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	scans := []uuid.UUID{uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())}
	for _, id := range scans {
		r.exec("insert into task (tenant_id, id, type, library_id, status, completed_at) values ($1, $2, 'scan_library', $3, 'completed', now())", r.tenant, id, r.library)
		r.exec("insert into scan (tenant_id, id, library_id, mode) values ($1, $2, $3, 'normal')", r.tenant, id, r.library)
	}
	hold, err := r.DB.Owner.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hold.Rollback(context.Background()) }()
	if _, err := hold.Exec(t.Context(), "select from library where id = $1 for update", r.library); err != nil {
		t.Fatal(err)
	}
	s := &scan.Settler{Database: r.DB.App, Publish: func(context.Context, uuid.UUID, ...events.Event) {}}
	var all sync.WaitGroup
	for i, id := range []uuid.UUID{scans[1], scans[0]} {
		all.Go(func() {
			if err := s.Settle(context.Background(), r.tenant, id); err != nil {
				t.Error(err)
			}
		})
		testkit.Eventually(t, 10*time.Second, func() bool {
			var wait int
			err := r.DB.Owner.Pool().QueryRow(t.Context(), `select count(distinct pid) from pg_locks where not granted
				and pid in (select pid from pg_stat_activity where datname = current_database())`).Scan(&wait)
			return err == nil && wait == i+1
		})
	}
	if err := hold.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	all.Wait()
}

// A scan requested while its library was being deleted has a task that fails, and its end is published.
func TestScanThatWentWithItsLibrary(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var last told
	id := uuid.New()
	r.exec("insert into task (tenant_id, id, type, library_id) values ($1, $2, 'scan_library', $3)", r.tenant, id, r.library)
	r.exec("delete from library where id = $1", r.library)
	w := &task.Runner{System: r.DB.System, Publish: last.publish, Worker: "test", Slots: 1, ScanEnded: (&scan.Settler{Database: r.DB.App, Publish: last.publish}).Ended,
		Handlers: map[string]task.Handler{task.ScanLibrary: func(context.Context, task.Held) (any, error) {
			return nil, fault.New(fault.NotFound, "The library was deleted")
		}}}
	if err := w.Take(t.Context(), `{"tenant":"`+r.tenant.String()+`","task":"`+id.String()+`"}`); err != nil {
		t.Fatal(err)
	}
	if want := (told{"task_progress", "task_progress"}); !slices.Equal(last, want) {
		t.Errorf("told %v: that it runs, and not that it has failed", last)
	}
}
