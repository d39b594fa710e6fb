package task_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

const base = "/api/v1/tasks"

// published collects events by kind and status.
type published struct {
	mu   sync.Mutex
	seen []string
}

func (p *published) publish(_ context.Context, _ uuid.UUID, all ...events.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range all {
		switch d := e.Data.(type) {
		case events.TaskProgress:
			p.seen = append(p.seen, e.Kind+" "+d.TaskType+" "+d.Status)
		case events.ScanProgress:
			p.seen = append(p.seen, fmt.Sprintf("%s %s %d", e.Kind, d.Status, d.BooksFound))
		}
	}
}

func (p *published) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.seen, ", ")
}

func serve(t *testing.T) (*testkit.Server, *published) {
	p := &published{}
	return testkit.Serve(t, func(a *httpapi.API, d *db.DB) { task.Routes(a, d, p.publish, nil) }), p
}

func add(t *testing.T, s *testkit.Server, tenant uuid.UUID, spec task.Spec) uuid.UUID {
	t.Helper()
	var b pgx.Batch
	var id uuid.UUID
	if err := task.Add(&b, spec, &id); err != nil {
		t.Fatal(err)
	}
	if err := s.DB.App.Run(s.In(tenant), &b); err != nil {
		t.Fatal(err)
	}
	return id
}

func exec(t *testing.T, s *testkit.Server, sql string, args ...any) {
	t.Helper()
	s.DB.Exec(t, sql, args...)
}

func library(t *testing.T, s *testkit.Server) uuid.UUID {
	t.Helper()
	id := uuid.New()
	exec(t, s, `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2, 'Comics', '/c', 'c', '', 'series_volume', 'filename', 'file_order')`, s.One, id)
	return id
}

func TestListAndGet(t *testing.T) {
	t.Parallel()
	s, _ := serve(t)
	reader := s.User(t, "one", "maintainer")
	lib := library(t, s)
	scan := add(t, s, s.One, task.Spec{Type: task.ScanLibrary, LibraryID: &lib, Params: map[string]any{"mode": "deep", "snake_case": 1}})
	purge := add(t, s, s.One, task.Spec{Type: task.AnalyzeSeries})
	exec(t, s, "update task set status = 'running', started_at = now(), lease_until = now() + interval '1 min', progress_current = 3, progress_total = 9 where id = $1", scan)

	m := reader.Do("GET", base+"?pageSize=1", nil).Want(200).Map()
	if m["total"] != 2.0 || m["totalPages"] != 2.0 || m["data"].([]any)[0].(map[string]any)["id"] != purge.String() {
		t.Errorf("newest first: %v", m)
	}
	for query, want := range map[string]string{
		"status=running": scan.String(), "status=processing": scan.String(), "status=pending": purge.String(),
		"taskType=scan_library": scan.String(), "task_type=analyze_series": purge.String(),
		"libraryId=" + lib.String(): scan.String(), "library_id=" + lib.String() + "&status=running": scan.String(),
	} {
		m := reader.Do("GET", base+"?"+query, nil).Want(200).Map()
		if m["total"] != 1.0 || m["data"].([]any)[0].(map[string]any)["id"] != want {
			t.Errorf("%s: %v", query, m)
		}
	}
	for _, query := range []string{"taskType=nothing", "libraryId=" + uuid.NewString(), "libraryId=" + uuid.Nil.String(), "status=failed"} {
		if m := reader.Do("GET", base+"?"+query, nil).Want(200).Map(); m["total"] != 0.0 || len(m["data"].([]any)) != 0 {
			t.Errorf("%s: %v", query, m)
		}
	}
	for query, field := range map[string]string{"status=done": "status", "libraryId=x": "libraryId", "page=0": "page"} {
		m := reader.Do("GET", base+"?"+query, nil).Want(400).Map()
		if m["details"].([]any)[0].(map[string]any)["field"] != field {
			t.Errorf("%s: %v", query, m)
		}
	}

	got := reader.Do("GET", base+"/"+scan.String(), nil).Want(200).Map()
	progress := got["progress"].(map[string]any)
	if got["libraryName"] != "Comics" || got["taskType"] != "scan_library" || got["status"] != "running" || progress["current"] != 3.0 ||
		progress["total"] != 9.0 || got["params"].(map[string]any)["snake_case"] != 1.0 || got["priority"] != 600.0 {
		t.Errorf("%v", got)
	}
	for _, k := range []string{"seriesId", "bookTitle", "result", "lastError", "completedAt"} {
		if v, ok := got[k]; !ok || v != nil {
			t.Errorf("%s: %v, present %v", k, v, ok)
		}
	}
	for _, k := range []string{"createdAt", "startedAt", "scheduledFor", "lockedUntil"} {
		if !strings.HasSuffix(got[k].(string), "Z") {
			t.Errorf("%s: %v", k, got[k])
		}
	}
	m = reader.Do("GET", base+"/stats", nil).Want(200).Map()
	byType := m["byType"].(map[string]any)["scan_library"].(map[string]any)
	if m["running"] != 1.0 || m["pending"] != 1.0 || m["stale"] != 0.0 || m["total"] != 2.0 || byType["running"] != 1.0 || byType["total"] != 1.0 {
		t.Errorf("stats: %v", m)
	}
	exec(t, s, "update task set lease_until = now() - interval '1 min' where id = $1", scan)
	if m := reader.Do("GET", base+"/stats", nil).Want(200).Map(); m["running"] != 0.0 || m["stale"] != 1.0 {
		t.Errorf("stale: %v", m)
	}
}

// Tasks that were added at once follow each other in one order, so that no page repeats or lacks one.
func TestTasksAddedAtOnce(t *testing.T) {
	t.Parallel()
	s, _ := serve(t)
	reader := s.User(t, "one", "maintainer")
	exec(t, s, "drop index task_list") // it would bring them into this order
	exec(t, s, `insert into task (tenant_id, id, type, created_at) select $1, lpad(n::text, 32, '0')::uuid, 'analyze_series', now() from generate_series(5, 1, -1) n`, s.One)
	var got string
	for page := range 3 {
		var list struct{ Data []struct{ ID string } }
		reader.Do("GET", fmt.Sprintf("%s?pageSize=2&page=%d", base, page+1), nil).Want(200).JSON(&list)
		for _, one := range list.Data {
			got += one.ID[len(one.ID)-1:]
		}
	}
	if got != "12345" {
		t.Errorf("in the order %s", got)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	s, p := serve(t)
	c := s.User(t, "one", "maintainer")
	lib := library(t, s)
	scan := add(t, s, s.One, task.Spec{Type: task.ScanLibrary, LibraryID: &lib})
	exec(t, s, "insert into scan (tenant_id, id, library_id, mode, books_created) values ($1, $2, $3, 'normal', 7)", s.One, scan, lib)
	child := add(t, s, s.One, task.Spec{Type: task.AnalyzeBooks, ParentID: &scan})
	grandchild := add(t, s, s.One, task.Spec{Type: task.AnalyzeBooks, ParentID: &child})
	finished := add(t, s, s.One, task.Spec{Type: task.AnalyzeBooks, ParentID: &scan})
	other := add(t, s, s.One, task.Spec{Type: task.AnalyzeSeries})
	failed := add(t, s, s.One, task.Spec{Type: task.AnalyzeLibrary})
	left := add(t, s, s.One, task.Spec{Type: task.AnalyzeBooks, ParentID: &failed}) // continues
	exec(t, s, "update task set status = 'running', started_at = now(), lease_epoch = 1, open_children = 2 where id in ($1, $2)", scan, child)
	exec(t, s, "update task set status = 'completed', completed_at = now() where id = $1", finished)
	exec(t, s, "update task set status = 'failed', completed_at = now() where id = $1", failed)

	if m := c.Do("POST", base+"/"+scan.String()+"/cancel", nil).Want(200).Map(); m["message"] == "" {
		t.Errorf("%v", m)
	}
	for id, want := range map[uuid.UUID]string{scan: "cancelled", child: "cancelled", grandchild: "cancelled", finished: "completed", other: "pending"} {
		got := c.Do("GET", base+"/"+id.String(), nil).Want(200).Map()
		if got["status"] != want || (want == "cancelled") != (got["completedAt"] != nil && id != finished) {
			t.Errorf("%s: %v, want %s", got["taskType"], got, want)
		}
	}
	// Listeners know the running child, but no pending one.
	if got, want := p.String(), "task_progress analyze_books cancelled, task_progress scan_library cancelled, scan_progress cancelled 7"; got != want {
		t.Errorf("events %q, want %q", got, want)
	}
	held := db.In(context.Background(), db.Task{Tenant: s.One, ID: child, Epoch: 1})
	if err := s.DB.App.Enter(held); !db.LeaseLost(err) {
		t.Errorf("the worker of a cancelled child may still write: %v", err)
	}
	for _, id := range []uuid.UUID{scan, finished, failed} {
		m := c.Do("POST", base+"/"+id.String()+"/cancel", nil).Want(400).Map()
		if !strings.Contains(m["message"].(string), "already") {
			t.Errorf("%v", m)
		}
	}
	if got := c.Do("GET", base+"/"+left.String(), nil).Want(200).Map(); got["status"] != "pending" {
		t.Errorf("the cancellation of a task that had failed was refused, and one below it is %v", got["status"])
	}
	c.Do("POST", base+"/"+uuid.NewString()+"/cancel", nil).Want(404)
	c.Do("POST", base+"/x/cancel", nil).Want(400)
}

func TestCancelledChildEndsItsWaitingParent(t *testing.T) {
	t.Parallel()
	s, p := serve(t)
	c := s.User(t, "one", "maintainer")
	parent := add(t, s, s.One, task.Spec{Type: task.AnalyzeSeries})
	first := add(t, s, s.One, task.Spec{Type: task.AnalyzeBooks, ParentID: &parent})
	second := add(t, s, s.One, task.Spec{Type: task.AnalyzeBooks, ParentID: &parent})
	exec(t, s, "update task set status = 'running', done = true, open_children = 2 where id = $1", parent)
	c.Do("POST", base+"/"+first.String()+"/cancel", nil).Want(200)
	c.Do("POST", base+"/"+first.String()+"/cancel", nil).Want(400)
	if m := c.Do("GET", base+"/"+parent.String(), nil).Want(200).Map(); m["status"] != "running" {
		t.Errorf("one child is open: %v", m)
	}
	c.Do("POST", base+"/"+second.String()+"/cancel", nil).Want(200)
	if m := c.Do("GET", base+"/"+parent.String(), nil).Want(200).Map(); m["status"] != "completed" || m["completedAt"] == nil {
		t.Errorf("no child is open: %v", m)
	}
	if !strings.HasSuffix(p.String(), "task_progress analyze_series completed") {
		t.Errorf("events: %s", p)
	}
}

// endingChildren creates a running task whose 20 children end at the same time.
func endingChildren(t *testing.T, s *testkit.Server, wg *sync.WaitGroup) (parent uuid.UUID) {
	t.Helper()
	parent = add(t, s, s.One, task.Spec{Type: task.ScanLibrary})
	exec(t, s, "update task set status = 'running', lease_epoch = 1, open_children = 20 where id = $1", parent)
	children := make([]uuid.UUID, 20)
	for i := range children {
		children[i] = add(t, s, s.One, task.Spec{Type: task.AnalyzeBooks, ParentID: &parent})
	}
	exec(t, s, "update task set status = 'running', lease_epoch = 1 where parent_id = $1", parent)
	for _, id := range children {
		wg.Go(func() {
			if _, err := s.DB.System.Pool().Exec(context.Background(), "select app.finish_task($1, $2, 1, '{}', null, null)", s.One, id); err != nil {
				t.Errorf("finish: %v", err)
			}
		})
	}
	return parent
}

// Children that end or are added while their parent is cancelled must neither block nor survive it.
func TestCancelBesideWorkers(t *testing.T) {
	t.Parallel()
	s, _ := serve(t)
	c := s.User(t, "one", "maintainer")
	for round := range 5 {
		var wg sync.WaitGroup
		parent := endingChildren(t, s, &wg)
		wg.Go(func() {
			held := db.In(context.Background(), db.Task{Tenant: s.One, ID: parent, Epoch: 1})
			var b pgx.Batch
			var id uuid.UUID
			if err := task.Add(&b, task.Spec{Type: task.AnalyzeBooks, ParentID: &parent}, &id); err != nil {
				t.Error(err)
			}
			if err := s.DB.App.Run(held, &b); err != nil && !db.LeaseLost(err) {
				t.Errorf("add a child: %v", err)
			}
		})
		wg.Go(func() {
			if r := c.Do("POST", base+"/"+parent.String()+"/cancel", nil); r.Status != 200 {
				t.Errorf("cancel: %d %s", r.Status, r.Body)
			}
		})
		wg.Wait()
		var open int
		if err := s.DB.Owner.Pool().QueryRow(context.Background(),
			"select count(*) from task where (parent_id = $1 or id = $1) and status in ('pending', 'running')", parent).Scan(&open); err != nil || open != 0 {
			t.Fatalf("round %d: %d unfinished tasks, %v", round, open, err)
		}
	}
}

func TestRetry(t *testing.T) {
	t.Parallel()
	s, p := serve(t)
	c := s.User(t, "one", "maintainer")
	id := add(t, s, s.One, task.Spec{Type: task.AnalyzeBook, DedupeKey: "k"})
	c.Do("POST", base+"/"+id.String()+"/retry", nil).Want(400)
	exec(t, s, `update task set status = 'failed', attempts = 3, last_error = 'x', completed_at = now(), deaths = 2, place = '1', parent_id = gen_random_uuid(),
		queued_at = now(), started_at = now(), result = '1', done = true, progress_current = 1, progress_total = 2, scheduled_for = now() + interval '1 hour' where id = $1`, id)
	if m := c.Do("POST", base+"/"+id.String()+"/retry", nil).Want(200).Map(); m["taskId"] != id.String() {
		t.Errorf("%v", m)
	}
	var fresh bool
	if err := s.DB.Owner.Pool().QueryRow(t.Context(), `select deaths = 0 and num_nonnulls(place, parent_id, queued_at, started_at, result) = 0 and not done
		and progress_current + progress_total = 0 and scheduled_for <= now() from task where id = $1`, id).Scan(&fresh); err != nil || !fresh {
		t.Errorf("something of the task's first life is left: %v", err)
	}
	got := c.Do("GET", base+"/"+id.String(), nil).Want(200).Map()
	if got["status"] != "pending" || got["attempts"] != 0.0 || got["lastError"] != nil || got["completedAt"] != nil {
		t.Errorf("%v", got)
	}
	if p.String() != "task_progress analyze_book pending" {
		t.Errorf("events: %s", p)
	}
	exec(t, s, "update task set status = 'failed' where id = $1", id)
	add(t, s, s.One, task.Spec{Type: task.AnalyzeBook, DedupeKey: "k"})
	c.Do("POST", base+"/"+id.String()+"/retry", nil).Want(409)
	c.Do("POST", base+"/"+uuid.NewString()+"/retry", nil).Want(404)
}

func TestPurge(t *testing.T) {
	t.Parallel()
	s, _ := serve(t)
	c := s.User(t, "one", "maintainer")
	old, fresh, running := add(t, s, s.One, task.Spec{Type: task.AnalyzeBook}), add(t, s, s.One, task.Spec{Type: task.AnalyzeBook}), add(t, s, s.One, task.Spec{Type: task.AnalyzeBook})
	foreign := add(t, s, s.Two, task.Spec{Type: task.AnalyzeBook})
	exec(t, s, "update task set status = 'failed', completed_at = now() - interval '31 days' where id in ($1, $2)", old, foreign)
	exec(t, s, "update task set status = 'completed', completed_at = now() - interval '29 days' where id = $1", fresh)
	if m := c.Do("DELETE", base+"/purge", nil).Want(200).Map(); m["deleted"] != 1.0 {
		t.Errorf("%v", m)
	}
	c.Do("GET", base+"/"+old.String(), nil).Want(404)
	c.Do("GET", base+"/"+fresh.String(), nil).Want(200)
	if m := c.Do("DELETE", base+"/purge?days=0", nil).Want(200).Map(); m["deleted"] != 1.0 {
		t.Errorf("%v", m)
	}
	c.Do("GET", base+"/"+running.String(), nil).Want(200)
	s.User(t, "two", "admin").Do("GET", base+"/"+foreign.String(), nil).Want(200)
	for _, days := range []string{"-1", "x", "3651"} {
		c.Do("DELETE", base+"/purge?days="+days, nil).Want(400)
	}
}

// The newest scan of each library is kept, however old.
func TestLastScanIsKept(t *testing.T) {
	t.Parallel()
	s, _ := serve(t)
	c := s.User(t, "one", "maintainer")
	var first, last [2]uuid.UUID
	var library uuid.UUID
	for i := range 2 {
		library = uuid.New()
		exec(t, s, `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
			values ($1, $2, $3, '/c', 'c', '', 'series_volume', 'filename', 'file_order')`, s.One, library, library.String())
		for _, id := range []*uuid.UUID{&first[i], &last[i]} {
			*id = add(t, s, s.One, task.Spec{Type: task.ScanLibrary, LibraryID: &library})
			exec(t, s, "insert into scan (tenant_id, id, library_id, mode) values ($1, $2, $3, 'normal')", s.One, *id, library)
		}
	}
	exec(t, s, "update task set status = 'completed', completed_at = now() - interval '99 days' where tenant_id = $1", s.One)
	kept := func() {
		t.Helper()
		for i := range 2 {
			c.Do("GET", base+"/"+first[i].String(), nil).Want(404)
			c.Do("GET", base+"/"+last[i].String(), nil).Want(200)
		}
	}
	if m := c.Do("DELETE", base+"/purge?days=0", nil).Want(200).Map(); m["deleted"] != 2.0 {
		t.Errorf("%v", m)
	}
	kept()
	if _, err := task.Forget(t.Context(), s.DB.System, time.Minute); err != nil {
		t.Fatal(err)
	}
	kept()
	exec(t, s, "delete from library where id = $1", library)
	if n, err := task.Forget(t.Context(), s.DB.System, time.Minute); err != nil || n != 1 {
		t.Errorf("of a deleted library: %d are forgotten, %v", n, err)
	}
}

// The last completed scan of a whole library is kept, too, whatever followed: moved files are found since that one.
func TestLastWholeScanIsKept(t *testing.T) {
	t.Parallel()
	s, _ := serve(t)
	library := library(t, s)
	var ids [5]uuid.UUID
	for i, params := range []scanned{{}, {}, {Path: "a"}, {}, {Path: "b"}} {
		ids[i] = add(t, s, s.One, task.Spec{Type: task.ScanLibrary, LibraryID: &library, Params: params})
	}
	exec(t, s, "update task set status = 'completed', completed_at = now() - interval '99 days' where tenant_id = $1", s.One)
	exec(t, s, "update task set status = 'failed' where id = $1", ids[3])
	if n, err := task.Forget(t.Context(), s.DB.System, time.Minute); err != nil || n != 3 {
		t.Errorf("%d are forgotten, %v", n, err)
	}
	c := s.User(t, "one", "maintainer")
	for i, status := range []int{404, 200, 404, 404, 200} {
		c.Do("GET", base+"/"+ids[i].String(), nil).Want(status)
	}
}

// A scan whose files were gone counts as one with the next for a day: until then, the last one before it is kept.
func TestLastScanThatFoundItsFilesIsKept(t *testing.T) {
	t.Parallel()
	s, _ := serve(t)
	library := library(t, s)
	c := s.User(t, "one", "maintainer")
	var ids [4]uuid.UUID
	for i, gone := range []int{0, 0, 1, 1} {
		ids[i] = add(t, s, s.One, task.Spec{Type: task.ScanLibrary, LibraryID: &library, Params: scanned{}})
		exec(t, s, "insert into scan (tenant_id, id, library_id, mode, files_gone) values ($1, $2, $3, 'normal', $4)", s.One, ids[i], library, gone)
	}
	for _, step := range []struct {
		ended string
		want  []int
	}{{"1 hour", []int{404, 200, 200, 200}}, {"2 days", []int{404, 404, 404, 200}}} {
		exec(t, s, "update task set status = 'completed', completed_at = now() - interval '99 days' where tenant_id = $1", s.One)
		exec(t, s, "update task set completed_at = now() - $2::interval where id = any($1)", ids[2:], step.ended)
		if _, err := task.Forget(t.Context(), s.DB.System, time.Minute); err != nil {
			t.Fatal(err)
		}
		c.Do("DELETE", base+"/purge?days=1", nil).Want(200)
		for i, status := range step.want {
			if res := c.Do("GET", base+"/"+ids[i].String(), nil); res.Status != status {
				t.Errorf("%s later, scan %d: %d, want %d", step.ended, i, res.Status, status)
			}
		}
	}
}

// A scan that has not seen all files is kept until a scan of the whole library has completed: until then, no book of
// the library is purged.
func TestScanThatMissedFilesIsKept(t *testing.T) {
	t.Parallel()
	for _, missed := range []string{"unlisted = 101", "files_refused = 1"} {
		s, _ := serve(t)
		library := library(t, s)
		c := s.User(t, "one", "maintainer")
		var ids [6]uuid.UUID
		for i, params := range []scanned{{}, {}, {Path: "a"}, {}, {Path: "b"}, {Path: "c"}} {
			ids[i] = add(t, s, s.One, task.Spec{Type: task.ScanLibrary, LibraryID: &library, Params: params})
			exec(t, s, "insert into scan (tenant_id, id, library_id, mode) values ($1, $2, $3, 'normal')", s.One, ids[i], library)
		}
		exec(t, s, "update scan set "+missed+" where id in ($1, $2, $3)", ids[0], ids[2], ids[3])
		exec(t, s, "update task set status = 'completed', completed_at = now() - interval '99 days' where tenant_id = $1", s.One)
		exec(t, s, "update task set status = 'failed' where id = $1", ids[3])
		if m := c.Do("DELETE", base+"/purge?days=30", nil).Want(200).Map(); m["deleted"] != 2.0 {
			t.Errorf("%s: %v", missed, m)
		}
		if n, err := task.Forget(t.Context(), s.DB.System, time.Minute); err != nil || n != 0 {
			t.Errorf("%s: %d are forgotten, %v", missed, n, err)
		}
		for i, status := range []int{404, 200, 200, 200, 404, 200} {
			c.Do("GET", base+"/"+ids[i].String(), nil).Want(status)
		}
		whole := add(t, s, s.One, task.Spec{Type: task.ScanLibrary, LibraryID: &library, Params: scanned{}})
		exec(t, s, "update task set status = 'completed', completed_at = now() where id = $1", whole)
		if n, err := task.Forget(t.Context(), s.DB.System, time.Minute); err != nil || n != 4 {
			t.Errorf("%s: after a whole scan %d are forgotten, %v", missed, n, err)
		}
	}
}

// scanned are the parameters of a scan.
type scanned struct {
	Path string `json:"path,omitempty"`
}

// A user who does not see every series gets no task of a hidden or deleted series, nor of a book.
func TestTasksOfTheHidden(t *testing.T) {
	t.Parallel()
	s, _ := serve(t)
	me, tag, lib := s.User(t, "one", "maintainer"), uuid.New(), library(t, s)
	exec(t, s, "insert into sharing_tag (tenant_id, id, name) values ($1, $2, 'hidden')", s.One, tag)
	tasks := map[string]uuid.UUID{"none": add(t, s, s.One, task.Spec{Type: task.FindDuplicates})}
	for _, name := range []string{"seen", "hidden", "seen and gone", "hidden and gone"} {
		series, book := uuid.New(), uuid.New()
		exec(t, s, `insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title) values ($1, $2, $3, $4, $4, $4, $4, $4)`, s.One, series, lib, name)
		exec(t, s, `insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title)
			values ($1, $2, $3, $4, $5, 10, now(), 'cbz', $5, $5, $5)`, s.One, book, lib, series, name)
		if strings.HasPrefix(name, "hidden") {
			exec(t, s, "insert into series_sharing_tag (tenant_id, series_id, sharing_tag_id) values ($1, $2, $3)", s.One, series, tag)
		}
		tasks[name+": series"] = add(t, s, s.One, task.Spec{Type: task.AnalyzeSeries, SeriesID: &series})
		tasks[name+": book"] = add(t, s, s.One, task.Spec{Type: task.AnalyzeBook, BookID: &book})
		if strings.HasSuffix(name, "gone") {
			exec(t, s, "delete from series where id = $1", series)
		}
	}
	for mode, want := range map[string][]string{"": slices.Collect(maps.Keys(tasks)), "deny": {"none", "seen: series", "seen: book"}, "allow": {"none", "hidden: series", "hidden: book"}} {
		exec(t, s, "delete from sharing_grant where account_id = $1", me.ID)
		if mode != "" {
			exec(t, s, "insert into sharing_grant (tenant_id, id, sharing_tag_id, account_id, mode) values ($1, gen_random_uuid(), $2, $3, $4)", s.One, tag, me.ID, mode)
		}
		if m := me.Do("GET", base, nil).Want(200).Map(); m["total"] != float64(len(want)) {
			t.Errorf("%q: %v tasks, want %d", mode, m["total"], len(want))
		}
		for name, id := range tasks {
			status := 404
			if slices.Contains(want, name) {
				status = 200
			}
			if r := me.Do("GET", base+"/"+id.String(), nil); r.Status != status {
				t.Errorf("%q: the task of %s: status %d, want %d", mode, name, r.Status, status)
			}
		}
	}
}

// Only the user and administrators see the details of a task for a user; others see that it exists.
func TestPersonalTasks(t *testing.T) {
	t.Parallel()
	s, _ := serve(t)
	me, other, admin := s.User(t, "one", "maintainer"), s.User(t, "one", "maintainer"), s.User(t, "one", "admin")
	for _, typ := range task.Personal {
		id := add(t, s, s.One, task.Spec{Type: typ, Params: map[string]any{"userId": me.ID, "externalId": "secret"}})
		exec(t, s, "update task set status = 'failed', result = '{\"externalUsername\": \"secret\"}', last_error = 'secret' where id = $1", id)
		for c, times := range map[*testkit.Client]int{me: 3, admin: 3, other: 0} {
			for _, path := range []string{base + "/" + id.String(), base + "?taskType=" + typ} {
				if r := c.Do("GET", path, nil).Want(200); strings.Count(string(r.Body), "secret") != times || !strings.Contains(string(r.Body), id.String()) {
					t.Errorf("%s tells %v", path, string(r.Body))
				}
			}
		}
		text := "secret"
		if e := task.Progressed(events.TaskProgress{TaskID: id, TaskType: typ, Status: task.Failed, Error: &text}); e.Data.(events.TaskProgress).Error != nil {
			t.Errorf("every listener hears why a task of %s failed", typ)
		}
	}
}

func TestWhoMay(t *testing.T) {
	t.Parallel()
	s, _ := serve(t)
	id := add(t, s, s.One, task.Spec{Type: task.AnalyzeBook}).String()
	reader, onlyReads, foreign := s.User(t, "one", "reader"), s.User(t, "one", "reader", "TasksRead"), s.User(t, "two", "admin")
	for _, c := range []struct {
		method, path string
		write        bool
	}{{"GET", "", false}, {"GET", "/stats", false}, {"GET", "/" + id, false}, {"POST", "/" + id + "/cancel", true},
		{"POST", "/" + id + "/retry", true}, {"POST", "/" + id + "/unlock", true}, {"DELETE", "/purge", true}, {"DELETE", "/nuke", true}} {
		reader.Do(c.method, base+c.path, nil).Want(403)
		s.Anonymous(t, "one").Do(c.method, base+c.path, nil).Want(401)
		if c.write {
			onlyReads.Do(c.method, base+c.path, nil).Want(403)
		} else {
			onlyReads.Do(c.method, base+c.path, nil).Want(200)
		}
		if strings.Contains(c.path, id) {
			foreign.Do(c.method, base+c.path, nil).Want(404)
		}
	}
	if m := foreign.Do("GET", base, nil).Want(200).Map(); m["total"] != 0.0 {
		t.Errorf("another tenant's tasks: %v", m)
	}
	if m := onlyReads.Do("GET", base+"/"+id, nil).Want(200).Map(); m["status"] != "pending" {
		t.Errorf("a refused request changed the task: %v", m)
	}
}
