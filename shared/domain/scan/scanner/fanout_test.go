package scanner_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/scan/scanner"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/testkit"
)

// All books of a library, or the new ones, are analysed by children that count in the task's progress.
func TestLibraryIsAnalysedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 25 {
		testkit.WriteFile(t, r.folder, fmt.Sprintf("A/A %d.cbz", i+1), testkit.Comic(t, i, 1, ""))
	}
	values[int](r, "insert into setting (tenant_id, key, value) values (app.tenant(), 'scanner.batch_size', '10') returning 1")
	values[int](r, "update library set number_strategy = 'file_order' where tenant_id = app.tenant() returning 1")
	if res := r.scan("normal"); res.Created != 25 {
		t.Fatalf("%+v", res)
	}
	for _, c := range []struct {
		what         string
		params       map[string]any
		books, tasks int64
	}{
		{"nothing is new", map[string]any{"onlyNew": true}, 0, 0},
		{"all", nil, 25, 3},
		{"three are new", map[string]any{"onlyNew": true}, 3, 1},
	} {
		if c.books == 3 {
			values[int](r, "update book set analyzed = false where tenant_id = app.tenant() and key in ('A/A 1.cbz', 'A/A 2.cbz', 'A/A 3.cbz') returning 1")
			values[int](r, "update book set error_type = 'other' where tenant_id = app.tenant() and key = 'A/A 4.cbz' returning 1")
		}
		values[int](r, "update book set page_count = 99, number = 7 where tenant_id = app.tenant() returning 1")
		r.events = nil
		var got struct{ Books, Tasks int64 }
		if err := json.Unmarshal(r.do(task.Spec{Type: task.AnalyzeLibrary, Params: c.params}), &got); err != nil {
			t.Fatal(err)
		}
		read := values[int64](r, "select count(*) from book where tenant_id = app.tenant() and page_count = 1")[0]
		progress := values[string](r, "select progress_current || ' of ' || progress_total from task where tenant_id = app.tenant() and type = 'analyze_library' order by id desc limit 1")[0]
		if got.Books != c.books || got.Tasks != c.tasks || read != c.books || progress != fmt.Sprintf("%d of %d", c.books, c.books) {
			t.Errorf("%s: %+v, read %d, progress %s", c.what, got, read, progress)
		}
		told := r.told(task.AnalyzeLibrary)
		if int64(len(told)) < c.tasks+2 { // its start, each child, its end
			t.Errorf("%s: listeners were told %+v", c.what, told)
		}
		if last := told[len(told)-1]; last.Status != task.Completed || last.CompletedAt == nil || last.Progress.Current != c.books || last.Progress.Total != c.books {
			t.Errorf("%s: listeners were told of the end %+v", c.what, last)
		}
		if n := values[int64](r, "select count(*) from book where tenant_id = app.tenant() and number = 7")[0]; c.books > 0 && n != 1 {
			t.Errorf("%s: %d books were not numbered again", c.what, n-1)
		}
	}
	if n := values[int64](r, "select count(*) from task where tenant_id = app.tenant() and status not in ('completed', 'cancelled')")[0]; n != 0 {
		t.Errorf("%d tasks have not ended well", n)
	}
}

// An analysis of many books reports its progress.
func TestLongAnalysisTellsHowFarItIs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 201 {
		testkit.WriteFile(t, r.folder, fmt.Sprintf("A/A %d.cbz", i+1), testkit.Comic(t, i, 1, ""))
	}
	r.scan("normal")
	r.do(task.Spec{Type: task.AnalyzeSeries, SeriesID: &values[uuid.UUID](r, "select id from series where tenant_id = app.tenant()")[0]})
	var far []string
	for _, p := range r.told(task.AnalyzeSeries) {
		if p.Progress.Total > 0 {
			far = append(far, p.Progress.Message)
		}
	}
	want := []string{"Analysing a series: 100 of 201", "Analysing a series: 200 of 201", "Analysing a series: 201 of 201", "Analysing a series: 201 of 201, completed"}
	if !slices.Equal(far, want) {
		t.Errorf("%q", far)
	}
}

// told returns the events of tasks of a type, in order.
func (r *rig) told(typ string) (out []events.TaskProgress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if p, ok := e.Data.(events.TaskProgress); ok && p.TaskType == typ {
			out = append(out, p)
		}
	}
	return out
}

// The end of a scan is published once, whether its last batch of books ends it, or the scan itself, which found nothing
// new or failed.
func TestEndOfScanIsToldOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	testkit.WriteFile(t, r.folder, "A/1.cbz", testkit.Comic(t, 1, 1, ""))
	testkit.WriteFile(t, r.folder, "B/2.cbz", testkit.Comic(t, 2, 1, ""))
	for _, c := range []struct {
		what, status string
		before       func()
	}{
		{"new books", task.Completed, func() {}},
		{"nothing new", task.Completed, func() {}},
		{"an empty folder", task.Failed, func() { r.removeAll("A"); r.removeAll("B") }},
	} {
		c.before()
		r.events = nil
		res := r.scan("normal")
		var ends []events.TaskProgress
		for _, p := range r.told(task.ScanLibrary) {
			if p.CompletedAt != nil {
				ends = append(ends, p)
			}
		}
		if len(ends) != 1 || ends[0].Status != c.status || (ends[0].Error == nil) != (res.Failure == nil) ||
			res.Failure != nil && *ends[0].Error != *res.Failure {
			t.Errorf("%s: told %+v of %+v", c.what, ends, res)
		}
	}
}

// One task retitles or renumbers series of several libraries; others stay.
func TestSeveralSeriesAreMadeAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i, name := range []string{"A (2020)", "B (2021)", "C (2022)"} {
		testkit.WriteFile(t, r.folder, name+"/n 5.cbz", testkit.Comic(t, i, 1, ""))
	}
	r.scan("normal")
	// B moves to another library, which cleans titles differently and numbers by position.
	other := uuid.New()
	values[int](r, `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		select tenant_id, $1, 'Other', '/other', bucket, prefix, series_strategy, book_strategy, 'file_order' from library where tenant_id = app.tenant() returning 1`, other)
	values[int](r, `with b as (update book k set library_id = $1, number = 9 from series s where k.tenant_id = app.tenant() and s.tenant_id = k.tenant_id and s.id = k.series_id and s.name = 'B (2021)' returning 1)
		update series set library_id = $1 where tenant_id = app.tenant() and name = 'B (2021)' returning 1`, other)
	values[int](r, `update library set title_preprocessing_rules = case when id = $1 then '[{"pattern": ".*", "replacement": "Other"}]' else '[{"pattern": " \\(\\d+\\)$", "replacement": ""}]' end::jsonb
		where tenant_id = app.tenant() returning 1`, other)
	values[int](r, "update book set number = 3 where tenant_id = app.tenant() and library_id <> $1 returning 1", other)
	ids := values[uuid.UUID](r, "select id from series where tenant_id = app.tenant() and name in ('A (2020)', 'B (2021)')")

	var done scanner.TitleChanges
	if err := json.Unmarshal(r.doOfSeveral(task.Spec{Type: task.ReprocessTitles}, ids), &done); err != nil {
		t.Fatal(err)
	}
	if got := r.titles("series", "name"); got != "A / A, Other / Other, C (2022) / C (2022)" || done.Changed != 2 {
		t.Errorf("titles: %s, %+v", got, done)
	}
	if got := string(r.doOfSeveral(task.Spec{Type: task.RenumberSeries}, ids)); got != `{"tasks": 2}` {
		t.Errorf("result: %s", got)
	}
	if got := fmt.Sprint(values[float64](r, "select number from book where tenant_id = app.tenant() order by key")); got != "[5 1 3]" {
		t.Errorf("numbers: %s", got)
	}
	if got := string(r.doOfSeveral(task.Spec{Type: task.RenumberSeries}, nil)); got != `{"tasks": 0}` {
		t.Errorf("of no series: %s", got)
	}
}

// A failed part of a library's analysis can be retried on its own.
func TestPartOfALibraryIsTriedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec("alter table task alter max_attempts set default 1")
	testkit.WriteFile(t, r.folder, "S/1.cbz", testkit.Comic(t, 1, 1, ""))
	r.scan("normal")
	r.failing("S/1.cbz")
	r.do(task.Spec{Type: task.AnalyzeLibrary})
	r.failing("nothing")
	failed := values[string](r, "select id::text from task where tenant_id = app.tenant() and status = 'failed' and type = 'analyze_books'")
	if len(failed) != 1 {
		t.Fatalf("failed: %v", failed)
	}
	r.exec("update task set status = 'pending', attempts = 0, scheduled_for = now(), completed_at = null, last_error = null, result = null, parent_id = null where id = $1", failed[0])
	r.until("not exists (select from task where tenant_id = app.tenant() and status in ('pending', 'running'))")
	if got := values[string](r, "select status || coalesce(': ' || last_error, '') from task where tenant_id = app.tenant() and id = $1", failed[0])[0]; got != task.Completed {
		t.Error(got)
	}
}
