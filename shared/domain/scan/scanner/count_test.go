package scanner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/testkit"
)

// returning is a library whose three books were marked deleted, and whose files are there again.
func returning(t *testing.T) *rig {
	t.Helper()
	r := newRig(t)
	for i := range 3 {
		testkit.WriteFile(t, r.folder, fmt.Sprintf("S/%d.cbz", i), testkit.Comic(t, i, 1, ""))
	}
	testkit.WriteFile(t, r.folder, "T/stays.cbz", testkit.Comic(t, 9, 1, ""))
	r.scanned("normal")
	r.rename("S", "../away")
	if res := r.scanned("normal"); res.Deleted != 3 {
		t.Fatalf("%+v", res)
	}
	if err := os.Rename(filepath.Join(r.folder, "../away"), filepath.Join(r.folder, "S")); err != nil {
		t.Fatal(err)
	}
	return r
}

// unsettled runs a scan, but neither its tasks nor what follows its end.
func (r *rig) unsettled() (id uuid.UUID, err error) {
	runner := r.runner(1)
	runner.ScanEnded = nil
	id = r.start("normal")
	return id, runner.Take(context.Background(), `{"tenant":"`+r.tenant.String()+`","task":"`+id.String()+`"}`)
}

// Unchanged books that return count as processed at once, and no task reads them again.
func TestReturningBooksCountAtOnce(t *testing.T) {
	t.Parallel()
	r := returning(t)
	testkit.WriteFile(t, r.folder, "S/new.cbz", testkit.Comic(t, 4, 1, ""))
	id, err := r.unsettled()
	if err != nil {
		t.Fatal(err)
	}
	if res := r.result(id); res.Total != 5 || res.Processed != 4 || res.Restored != 3 || res.Updated != 0 || res.Created != 1 || res.Status != task.Running {
		t.Errorf("%+v", res)
	}
	if got := values[string](r, "select params::text from task where tenant_id = app.tenant() and parent_id = $1", id); len(got) != 1 || got[0] != `{"keys": ["S/new.cbz"]}` {
		t.Errorf("tasks: %q", got)
	}
	if open := values[int](r, "select open_children from task where tenant_id = app.tenant() and id = $1", id); open[0] != 1 {
		t.Errorf("the scan waits for %d tasks", open[0])
	}
	r.idle()
	if res := r.result(id); res.Status != task.Completed || res.Processed != 5 {
		t.Errorf("at the end: %+v", res)
	}
}

// A scan does not count what a notification has restored before the scan wrote it.
func TestBooksThatAnotherRestoredAreNotCounted(t *testing.T) {
	t.Parallel()
	r := returning(t)
	r.exec(`create function wait() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock_shared(42); return new; end $$`)
	r.exec("create trigger wait before update on scan for each row when (new.files_total > old.files_total) execute function wait()")
	gate, err := r.db.Owner.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer gate.Rollback(context.Background())
	if _, err := gate.Exec(t.Context(), "select pg_advisory_xact_lock(42)"); err != nil {
		t.Fatal(err)
	}
	var id uuid.UUID
	done := make(chan error, 1)
	go func() {
		var err error
		id, err = r.unsettled()
		done <- err
	}()
	testkit.Eventually(t, stuck, func() bool { // it has compared
		return values[bool](r, `select exists (select from pg_locks where locktype = 'advisory' and objid = 42 and not granted
			and database = (select oid from pg_database where datname = current_database()))`)[0]
	})
	r.noticed("S/0.cbz", "S/1.cbz", "S/2.cbz")
	if err := gate.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if res := r.result(id); res.Restored != 0 || res.Updated != 0 || res.Created != 0 || res.Processed != 4 || res.Total != 4 || r.live() != 4 {
		t.Errorf("%d books: %+v", r.live(), res)
	}
}

// running is what the events of a running scan say, in their order.
func (r *rig) running(kind string) (all []map[string]any) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		data, err := json.Marshal(e.Data)
		if err != nil {
			r.t.Fatal(err)
		}
		var v map[string]any
		if e.Kind == kind && json.Unmarshal(data, &v) == nil && v["status"] == task.Running {
			all = append(all, v)
		}
	}
	return all
}

// Both streams say what a scan has listed and removed while it runs.
func TestProgressOfListingAndRemovals(t *testing.T) {
	t.Parallel()
	const gone = 505
	r := newRig(t)
	for i := range gone + 1 {
		testkit.WriteFile(t, r.folder, fmt.Sprintf("%c/%03d.cbz", 'A'+rune(i/gone), i), []byte("no archive"))
	}
	r.listed()
	r.exec("update book set error_type = 'other'") // as if all had been read
	r.exec("update task set status = 'completed', completed_at = now(), open_children = 0")
	r.events = nil
	r.listed()
	listed := false
	for _, v := range r.running("task_progress") {
		listed = listed || v["task_type"] == task.ScanLibrary && v["progress"].(map[string]any)["current"] == float64(gone+1)
	}
	if !listed {
		t.Errorf("the task stream says %v", r.running("task_progress"))
	}
	r.removeAll("A")
	r.events = nil
	id := r.startWith(scan.Params{Mode: scan.Normal, Removals: gone})
	r.take(id)
	if res := r.result(id); res.Status != task.Completed || res.Deleted != gone {
		t.Fatalf("%+v", res)
	}
	removed := map[any]bool{}
	for _, v := range r.running("scan_progress") {
		removed[v["books_deleted"]] = true
	}
	if !removed[500.] || !removed[505.] {
		t.Errorf("the scan stream says that these numbers of books were removed: %v", removed)
	}
}
