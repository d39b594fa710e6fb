package scanner_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/scan/scanner"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/testkit"
)

// An unreadable file is skipped while it is unchanged, unless the setting says otherwise.
func TestFailedFilesAreTriedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	testkit.WriteFile(t, r.folder, "S/good.cbz", testkit.Comic(t, 1, 1, ""))
	testkit.WriteFile(t, r.folder, "S/broken.cbz", []byte("no archive"))
	if res := r.scan("normal"); res.Errors != 1 {
		t.Fatalf("%+v", res)
	}
	for _, again := range []int64{0, 1} {
		if res := r.scan("normal"); res.Status != "completed" || res.Processed != 2 || res.Errors != again {
			t.Errorf("%d to be tried again: %+v", again, res)
		}
		r.set("scanner.retry_failed_files", "true")
	}
}

// set changes a setting of the tenant.
func (r *rig) set(key, value string) {
	r.t.Helper()
	if _, err := db.Exec(r.ctx(), r.db.App, `insert into setting (tenant_id, key, value) values (app.tenant(), $1, $2)
		on conflict (tenant_id, key) do update set value = excluded.value`, key, value); err != nil {
		r.t.Fatal(err)
	}
}

// An analysis task takes as many books as the setting says.
func TestBatchSize(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.fill(1, 25)
	for _, c := range []struct {
		size  string
		tasks int64
	}{{"10", 3}, {"25", 1}} {
		r.set("scanner.batch_size", c.size)
		if res := r.scan("deep"); res.Status != "completed" || res.Processed != 25 {
			t.Fatalf("%+v", res)
		}
		if n := values[int64](r, "select count(*) from task where tenant_id = app.tenant() and type = 'analyze_books' and status = 'completed'"); n[0] != c.tasks {
			t.Errorf("%s books a task: %d tasks, want %d", c.size, n[0], c.tasks)
		}
		if _, err := r.db.Owner.Pool().Exec(r.ctx(), "delete from task"); err != nil {
			t.Fatal(err)
		}
	}
}

// A scan that exceeds the time limit of its listing, in all its runs, fails and is not retried. The time between the
// runs does not count: its tenant may have been suspended.
func TestScanIsGivenUp(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.fill(1, 3)
	r.set("scanner.scan_timeout_minutes", "10")
	for _, c := range []struct {
		minutes time.Duration
		status  string
	}{{11, "failed"}, {9, "completed"}} {
		id := r.start("normal")
		r.exec(`update task set started_at = now() - interval '3 hours',
			place = jsonb_build_object('Ranges', '[["", ""]]'::jsonb, 'Spent', $2::bigint) where id = $1`, id, c.minutes*time.Minute)
		ctx, stop := context.WithCancel(context.Background())
		wait := r.work(ctx)
		res := r.await(id)
		stop()
		wait()
		if res.Status != c.status || (c.status == "failed") != (res.Failure != nil && strings.Contains(*res.Failure, "scanner.scan_timeout_minutes")) {
			t.Errorf("after %d minutes: %+v", c.minutes, res)
		}
	}
}

// A scan that pauses stores how long it has worked. The run that continues it uses the checkpoint once.
func TestPausedScanKeepsItsTime(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.fill(1, 3)
	r.scanned("normal")
	r.remove("S00/b000.cbz")
	id := r.start("normal")
	pausing := make(chan struct{})
	var once sync.Once
	s := &scanner.Scanner{Database: r.db.App, Library: r.s3.Store, Parallel: 2, Publish: func(context.Context, uuid.UUID, ...events.Event) {
		once.Do(func() { close(pausing) })
	}}
	runner := &task.Runner{System: r.db.System, Publish: r.publish, Worker: "pauses", Slots: 1, Handlers: map[string]task.Handler{task.ScanLibrary: s.Scan}}
	if err := runner.Take(task.WithPause(t.Context(), pausing), `{"tenant":"`+r.tenant.String()+`","task":"`+id.String()+`"}`); err != nil {
		t.Fatal(err)
	}
	spent := values[int64](r, "select coalesce((place ->> 'Spent')::bigint, 0) from task where tenant_id = app.tenant() and id = $1 and status = 'pending'", id)
	if len(spent) != 1 || spent[0] <= 0 {
		t.Errorf("spent %v", spent)
	}
	var again sync.Once
	var stored []bool
	s.Publish = func(context.Context, uuid.UUID, ...events.Event) {
		again.Do(func() {
			stored = values[bool](r, "select place is not null from task where tenant_id = app.tenant() and id = $1", id)
		})
	}
	if err := runner.Take(t.Context(), `{"tenant":"`+r.tenant.String()+`","task":"`+id.String()+`"}`); err != nil {
		t.Fatal(err)
	}
	if len(stored) != 1 || stored[0] {
		t.Errorf("the checkpoint is still stored (%v): a run that dies now skips what it has listed", stored)
	}
}
