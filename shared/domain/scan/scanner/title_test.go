package scanner_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/scan/scanner"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/testkit"
)

// do runs a task of the library, or of one of its series, and returns the result.
func (r *rig) do(s task.Spec) []byte {
	r.t.Helper()
	s.LibraryID = &r.library
	return r.finish(func(b *pgx.Batch, id *uuid.UUID) error { return task.Add(b, s, id) })
}

// doOfSeveral is do for a task of several series of any libraries.
func (r *rig) doOfSeveral(s task.Spec, series []uuid.UUID) []byte {
	r.t.Helper()
	return r.finish(func(b *pgx.Batch, id *uuid.UUID) error { return task.AddFor(b, s, task.OfSeveralSeries(series), id) })
}

// finish runs a task to its end.
func (r *rig) finish(add func(b *pgx.Batch, id *uuid.UUID) error) []byte {
	r.t.Helper()
	var b pgx.Batch
	var id uuid.UUID
	if err := add(&b, &id); err != nil {
		r.t.Fatal(err)
	}
	if err := r.db.App.Run(r.ctx(), &b); err != nil {
		r.t.Fatal(err)
	}
	r.until("(select status = 'completed' from task where tenant_id = app.tenant() and id = $1)", id)
	return values[[]byte](r, "select result from task where tenant_id = app.tenant() and id = $1", id)[0]
}

func (r *rig) titles(of, by string) string {
	return strings.Join(values[string](r, "select title || ' / ' || title_sort from "+of+" where tenant_id = app.tenant() order by "+by), ", ")
}

// Later changes of rules apply to existing series, except locked titles; a dry run only reports.
func TestTitlesAreMadeAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i, name := range []string{"A (2020)", "B (2021)", "C (2022)", "D"} {
		testkit.WriteFile(t, r.folder, name+"/1.cbz", testkit.Comic(t, i, 1, ""))
	}
	values[int](r, "update library set book_strategy = 'series_name' where tenant_id = app.tenant() returning 1")
	if res := r.scan("normal"); res.Series != 4 {
		t.Fatalf("%+v", res)
	}
	values[int](r, `update series set locks = '{title}', title = 'Mine' where tenant_id = app.tenant() and name = 'B (2021)' returning 1`)
	values[int](r, `update series set custom_title_sort = 'zz', title_sort = 'zz', locks = '{titleSort}' where tenant_id = app.tenant() and name = 'C (2022)' returning 1`)
	values[int](r, `update series set custom_title_sort = 'yy', title_sort = 'yy' where tenant_id = app.tenant() and name = 'A (2020)' returning 1`)
	values[int](r, `update library set title_preprocessing_rules = '[{"pattern": " \\(\\d+\\)$", "replacement": ""}]' where tenant_id = app.tenant() returning 1`)
	was := r.titles("series", "name")

	var dry, done scanner.TitleChanges
	if err := json.Unmarshal(r.do(task.Spec{Type: task.ReprocessTitles, Params: map[string]any{"dryRun": true}}), &dry); err != nil {
		t.Fatal(err)
	}
	if got := r.titles("series", "name"); got != was {
		t.Errorf("a dry run made of %s: %s", was, got)
	}
	if err := json.Unmarshal(r.do(task.Spec{Type: task.ReprocessTitles}), &done); err != nil {
		t.Fatal(err)
	}
	if got := r.titles("series", "name"); got != "A / A, Mine / B (2021), C / zz, D / D" {
		t.Errorf("titles: %s", got)
	}
	if got := r.titles("book", "key"); got != "A v.01 / A v.01, B (2021) v.01 / B (2021) v.01, C v.01 / C v.01, D v.01 / D v.01" {
		t.Errorf("books that are called after their series: %s", got)
	}
	if !dry.DryRun || done.DryRun || done.Changed != 2 || done.Skipped != 1 || done.Unchanged != 1 || len(done.Results) != 3 || dry.Changed != done.Changed || dry.Skipped != done.Skipped {
		t.Errorf("dry %+v, done %+v", dry, done)
	}
	for _, c := range done.Results {
		if c.Changed != (c.NewTitle == "A" || c.NewTitle == "C") || c.Skipped != (c.OriginalTitle == "Mine" && c.SkipReason != nil) || c.TitleSortCleared != (c.NewTitle == "A") {
			t.Errorf("%+v", c)
		}
	}
}

// If the books that are named after a series cannot be renamed, the series keeps its title, and the next attempt
// renames all.
func TestTitlesAfterAFailure(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	testkit.WriteFile(t, r.folder, "A (2020)/1.cbz", testkit.Comic(t, 1, 1, ""))
	r.exec("update library set book_strategy = 'series_name'")
	r.scanned("normal")
	r.exec(`update library set title_preprocessing_rules = '[{"pattern": " \\(\\d+\\)$", "replacement": ""}]'`)
	var b pgx.Batch
	var id uuid.UUID
	if err := task.Add(&b, task.Spec{Type: task.ReprocessTitles, LibraryID: &r.library}, &id); err != nil {
		t.Fatal(err)
	}
	if err := r.db.App.Run(r.ctx(), &b); err != nil {
		t.Fatal(err)
	}
	r.exec("alter table book_metadata rename to book_metadata_kept")
	r.take(id)
	r.exec("alter table book_metadata_kept rename to book_metadata")
	if got := r.titles("series", "name") + ", " + r.titles("book", "key"); got != "A (2020) / A (2020), A (2020) v.01 / A (2020) v.01" {
		t.Errorf("after the failure: %s", got)
	}
	r.exec("update task set scheduled_for = now() where status = 'pending'")
	r.idle()
	if got := r.titles("series", "name") + ", " + r.titles("book", "key"); got != "A / A, A v.01 / A v.01" {
		t.Errorf("after the next attempt: %s", got)
	}
}

// The books of a series are renumbered by the library's current strategy.
func TestSeriesIsNumberedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i, n := range []int{5, 7, 9} {
		testkit.WriteFile(t, r.folder, fmt.Sprintf("A/A %d.cbz", n), testkit.Comic(t, i, 1, ""))
	}
	r.scan("normal")
	series := values[uuid.UUID](r, "select id from series where tenant_id = app.tenant()")[0]
	numbers := func() string {
		return fmt.Sprint(values[float64](r, "select number from book where tenant_id = app.tenant() order by key"))
	}
	if got := numbers(); got != "[5 7 9]" {
		t.Fatalf("by name: %s", got)
	}
	for strategy, want := range map[string]string{"file_order": "[1 2 3]", "filename": "[5 7 9]"} {
		values[int](r, "update library set number_strategy = $1 where tenant_id = app.tenant() returning 1", strategy)
		r.do(task.Spec{Type: task.RenumberSeries, SeriesID: &series})
		if got := numbers(); got != want {
			t.Errorf("%s: %s, want %s", strategy, got, want)
		}
	}
}

// Books named by their position are renamed when several series are renumbered, too.
func TestSeveralSeriesAreNumberedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.choose("series_volume", "", "series_name", "", "filename")
	for i, name := range []string{"A", "B"} {
		testkit.WriteFile(t, r.folder, name+"/"+name+" 5.cbz", testkit.Comic(t, 2*i, 1, ""))
		testkit.WriteFile(t, r.folder, name+"/"+name+" 7.cbz", testkit.Comic(t, 2*i+1, 1, ""))
	}
	r.scan("normal")
	was := r.titles("book", "key")
	values[int](r, "update book set number = 1, title = '?', title_sort = '?' where tenant_id = app.tenant() returning 1")
	r.doOfSeveral(task.Spec{Type: task.RenumberSeries}, values[uuid.UUID](r, "select id from series where tenant_id = app.tenant()"))
	r.until("not exists (select from task where tenant_id = app.tenant() and status in ('pending', 'running'))")
	if got := r.titles("book", "key"); got != was || strings.Contains(was, "?") {
		t.Errorf("titles %s, want %s", got, was)
	}
	if got := fmt.Sprint(values[float64](r, "select number from book where tenant_id = app.tenant() order by key")); got != "[5 7 5 7]" {
		t.Errorf("numbers %s", got)
	}
}

// Events are published for series whose books were renumbered or renamed because of a neighbour, and for series that
// took metadata from a book.
func TestSeriesAreToldOfTheirBooks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec("update library set number_strategy = 'file_order', book_strategy = 'series_name'")
	for i := range 3 {
		testkit.WriteFile(t, r.folder, fmt.Sprintf("S/%d.cbz", i), testkit.Comic(t, i, 1, ""))
		testkit.WriteFile(t, r.folder, fmt.Sprintf("Other/%d.cbz", i), testkit.Comic(t, 10+i, 1, ""))
	}
	r.scan("normal")
	of := map[uuid.UUID]string{}
	for _, id := range values[uuid.UUID](r, "select id from series where tenant_id = app.tenant()") {
		of[id] = values[string](r, "select name from series where tenant_id = app.tenant() and id = $1", id)[0]
	}
	// told returns the series_updated events since the last call: series and fields, without duplicates.
	told := func() string {
		r.mu.Lock()
		defer r.mu.Unlock()
		var out []string
		for _, e := range r.events {
			if e.Kind != "series_updated" {
				continue
			}
			data, err := json.Marshal(e.Data)
			var d struct {
				Series uuid.UUID `json:"series_id"`
				Fields []string
			}
			if err = errors.Join(err, json.Unmarshal(data, &d)); err != nil {
				t.Error(err)
			} else {
				out = append(out, of[d.Series]+fmt.Sprint(d.Fields))
			}
		}
		r.events = nil
		slices.Sort(out)
		return strings.Join(slices.Compact(out), " ")
	}
	told()
	for _, step := range []struct {
		name, want string
		change     func() error
	}{
		{"nothing", "", func() error { return nil }},
		{"the first is gone", "S[books]", func() error { return os.Remove(r.folder + "/S/0.cbz") }},
		{"one before the others", "S[books]", func() error { testkit.WriteFile(t, r.folder, "S/00.cbz", testkit.Comic(t, 20, 1, "")); return nil }},
		{"the last with metadata", "S[] S[books]", func() error {
			testkit.WriteFile(t, r.folder, "S/9.cbz", testkit.Comic(t, 21, 1, "<Genre>Drama</Genre><AgeRating>Teen</AgeRating>"))
			return nil
		}},
		{"the same in another", "S[books]", func() error {
			testkit.WriteFile(t, r.folder, "S/91.cbz", testkit.Comic(t, 22, 1, "<Genre>Drama</Genre><AgeRating>Teen</AgeRating>"))
			return nil
		}},
		{"a tag", "S[] S[books]", func() error {
			testkit.WriteFile(t, r.folder, "S/92.cbz", testkit.Comic(t, 23, 1, "<Tags>blue</Tags>"))
			return nil
		}},
	} {
		if err := step.change(); err != nil {
			t.Fatal(err)
		}
		r.scan("normal")
		if got := told(); got != step.want {
			t.Errorf("%s: told %q, want %q", step.name, got, step.want)
		}
	}
	id := values[uuid.UUID](r, "select id from series where tenant_id = app.tenant() and name = 'S'")[0]
	r.exec("update book set number = 77 where series_id = $1", id)
	r.do(task.Spec{Type: task.RenumberSeries, SeriesID: &id})
	if got := told(); got != "S[books]" {
		t.Errorf("renumbered: told %q", got)
	}
}
