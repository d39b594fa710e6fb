package scanner_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/testkit"
)

// A person edits a book, which locks the fields, while a worker waits for the book's row: the worker does not overwrite
// them.
func TestEditWhileAWorkerWaitsForTheBook(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, book, number, file, kind, before, want string }{
		{"read again", "filename", "filename", "S/S 3.cbz", task.AnalyzeBook, "analyzed = false", "S: Mine 70 - -"},
		{"positions of some", "filename", "smart", "S/a.cbz", task.RenumberSeries, "number = 9", "S: Mine 70 - -"},
		{"positions", "filename", "file_order", "S/a.cbz", task.RenumberSeries, "number = 9", "S: Mine 70 - -"},
		{"titles", "series_name", "file_order", "S/a.cbz", task.RenumberSeries, "title = 'Other'", "S: Mine 70 - -"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.choose("series_volume", "", c.book, "", c.number)
			testkit.WriteFile(t, r.folder, c.file, testkit.Comic(t, 1, 1, ""))
			r.scanned("normal")
			r.exec("update book set "+c.before+" where tenant_id = $1", r.tenant)
			id := values[uuid.UUID](r, "select id from book where tenant_id = app.tenant()")[0]
			series := values[uuid.UUID](r, "select series_id from book where tenant_id = app.tenant()")[0]

			edit, err := r.db.Owner.Pool().Begin(r.ctx())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = edit.Rollback(context.Background()) }()
			for _, sql := range []string{
				"update book set title = 'Mine', number = 70 where id = $1",
				`insert into book_metadata (tenant_id, book_id, locks) select tenant_id, id, '{titleLock,numberLock}' from book where id = $1
					on conflict (tenant_id, book_id) do update set locks = excluded.locks`,
			} {
				if _, err := edit.Exec(r.ctx(), sql, id); err != nil {
					t.Fatal(err)
				}
			}
			spec := task.Spec{Type: c.kind, LibraryID: &r.library, SeriesID: &series}
			if c.kind == task.AnalyzeBook {
				spec.SeriesID, spec.BookID, spec.Params = nil, &id, map[string]any{"bookIds": []uuid.UUID{id}}
			}
			var b pgx.Batch
			var added uuid.UUID
			if err := task.Add(&b, spec, &added); err != nil {
				t.Fatal(err)
			}
			if err := r.db.App.Run(r.ctx(), &b); err != nil {
				t.Fatal(err)
			}
			r.commitWhileAWorkerWaits(edit)
			r.mustBe(c.want)
		})
	}
}

// commitWhileAWorkerWaits starts a worker, commits the edit when the worker waits for it, and returns when all tasks
// have ended.
func (r *rig) commitWhileAWorkerWaits(edit pgx.Tx) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	wait := r.work(ctx)
	defer wait()
	defer cancel()
	r.db.AwaitLock(r.t)
	if err := edit.Commit(r.ctx()); err != nil {
		r.t.Fatal(err)
	}
	testkit.Eventually(r.t, time.Minute, func() bool {
		return values[bool](r, "select not exists (select from task where tenant_id = app.tenant() and status in ('pending', 'running'))")[0]
	})
}

// A person edits the series while a worker waits for its row: the worker fills and adds only what is still to be filled
// and not locked.
func TestEditWhileAWorkerWaitsForTheSeries(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	testkit.WriteFile(t, r.folder, "S/a.cbz", testkit.Comic(t, 1, 1, "<Publisher>P</Publisher><Year>2020</Year><Genre>G</Genre><LocalizedSeries>L</LocalizedSeries>"))
	r.scanned("normal")
	r.exec("delete from alternate_title where tenant_id = $1", r.tenant)
	r.exec("delete from series_genre where tenant_id = $1", r.tenant)
	r.exec("update series set publisher = null, year = null where tenant_id = $1", r.tenant)
	id := values[uuid.UUID](r, "select id from book where tenant_id = app.tenant()")[0]
	edit, err := r.db.Owner.Pool().Begin(r.ctx())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = edit.Rollback(context.Background()) }()
	if _, err := edit.Exec(r.ctx(), "update series set summary = 'Mine', year = 1999, locks = '{genres,alternateTitles}' where tenant_id = $1", r.tenant); err != nil {
		t.Fatal(err)
	}
	var b pgx.Batch
	var added uuid.UUID
	if err := task.Add(&b, task.Analysis(id), &added); err != nil {
		t.Fatal(err)
	}
	if err := r.db.App.Run(r.ctx(), &b); err != nil {
		t.Fatal(err)
	}
	r.commitWhileAWorkerWaits(edit)
	if got := r.one(`select concat_ws('|', summary, publisher, year, (select count(*) from series_genre where tenant_id = app.tenant()),
		(select count(*) from alternate_title where tenant_id = app.tenant())) from series where tenant_id = app.tenant()`); got != "Mine|1999|0|0" {
		t.Errorf("%s", got)
	}
}

// Somebody turns back a page while a worker, for whom the book has become shorter, waits for the progress: the page
// stays.
func TestPageTurnedWhileAWorkerWaits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	testkit.WriteFile(t, r.folder, "S/a.cbz", testkit.Comic(t, 1, 9, ""))
	r.scanned("normal")
	r.read("ann", "S/a.cbz", 8)
	testkit.WriteFile(t, r.folder, "S/a.cbz", testkit.Comic(t, 2, 4, ""))
	turn, err := r.db.Owner.Pool().Begin(r.ctx())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = turn.Rollback(context.Background()) }()
	if _, err := turn.Exec(r.ctx(), "update progress set current_page = 2 where tenant_id = $1", r.tenant); err != nil {
		t.Fatal(err)
	}
	r.start("normal")
	r.commitWhileAWorkerWaits(turn)
	if got := r.one("select concat_ws(' ', p.current_page, b.page_count) from progress p join book b on b.id = p.book_id where p.tenant_id = app.tenant()"); got != "2 4" {
		t.Errorf("page and pages: %s", got)
	}
}

// The titleSort in a file affects neither order nor display of a book with a locked title.
func TestTitleSortOfAFileBesideALockedTitle(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	testkit.WriteFile(t, r.folder, "A/T (1)/T - A.cbz", testkit.Comic(t, 1, 1, ""))
	testkit.WriteFile(t, r.folder, "A/T (1)/metadata.opf", opf("The Hobbit", `<meta name="calibre:title_sort" content="Hobbit, The"/>`))
	r.scanned("normal")
	shown := func() string {
		return r.one(`select concat_ws('|', b.title, b.title_sort, m.metadata ->> 'titleSort') from book b join book_metadata m on m.book_id = b.id where b.tenant_id = app.tenant()`)
	}
	if got := shown(); got != "The Hobbit|Hobbit, The|Hobbit, The" {
		t.Fatalf("of the file: %s", got)
	}
	r.exec("update book set title = 'Mine', title_sort = 'Mine' where tenant_id = $1", r.tenant)
	r.exec(`update book_metadata set locks = '{titleLock}', metadata = metadata - 'titleSort' || '{"title": "Mine"}' where tenant_id = $1`, r.tenant)
	r.scanned("deep")
	if got := shown(); got != "Mine|Mine" {
		t.Errorf("once it was edited: %s", got)
	}
}

// A locked titleSort without a value neither keeps the order of an old title nor takes that of the file.
func TestLockedTitleSortWithoutAValue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ book, number, want string }{
		"read again": {"metadata_first", "smart", "The Hobbit|Hobbit, The||The New|The New"},
		"arranged":   {"series_name", "file_order", "T v.01|T v.01||T v.01|T v.01"},
		"renamed":    {"metadata_first", "smart", "The Hobbit|Hobbit, The||The New|The New"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.choose("series_volume", "", c.book, "", c.number)
			testkit.WriteFile(t, r.folder, "T/a.cbz", testkit.Comic(t, 1, 1, ""))
			sorted := `<meta name="calibre:title_sort" content="Hobbit, The"/>`
			testkit.WriteFile(t, r.folder, "T/a.opf", opf("The Hobbit", sorted))
			r.scanned("normal")
			shown := "select concat_ws('|', b.title, b.title_sort) from book b where b.tenant_id = app.tenant() and b.deleted_at is null"
			before := r.one(shown)
			r.exec("update book_metadata set locks = '{titleSortLock}', metadata = metadata - 'titleSort' where tenant_id = $1", r.tenant)
			if c.book == "series_name" {
				r.exec("update book set title = 'Other', title_sort = 'Other' where tenant_id = $1", r.tenant)
			}
			testkit.WriteFile(t, r.folder, "T/a.opf", opf("The New", sorted))
			if name == "renamed" {
				r.rename("T/a.cbz", "T/b.cbz")
				r.rename("T/a.opf", "T/b.opf")
				r.scanned("normal")
			} else {
				r.scanned("deep")
			}
			if got := before + "||" + r.one(shown); got != c.want {
				t.Errorf("%s", got)
			}
		})
	}
}
