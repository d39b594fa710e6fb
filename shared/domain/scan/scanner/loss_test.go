package scanner_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/domain/scan/scanner"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/testkit"
)

// Cases found by TestNothingIsLost.

// noticed looks at keys, as for notifications. Tasks that follow stay pending.
func (r *rig) noticed(keys ...string) {
	r.t.Helper()
	s := &scanner.Scanner{Database: r.db.App, Library: r.s3.Store, Publish: r.publish, Parallel: 2}
	if err := s.Look(r.ctx(), r.tenant, r.library, keys); err != nil {
		r.t.Error(err)
	}
}

// looked looks at a key, and runs all tasks that follow.
func (r *run) looked(key string) {
	r.t.Helper()
	r.noticed(key)
	r.settled()
}

// wrote writes a file with a modification time some seconds after others.
func (r *rig) wrote(key string, data []byte, seconds int) {
	r.t.Helper()
	testkit.WriteFile(r.t, r.folder, key, data)
	at := time.Date(2020, 1, 1, 0, 0, seconds, 0, time.UTC)
	if err := os.Chtimes(filepath.Join(r.folder, key), at, at); err != nil {
		r.t.Fatal(err)
	}
}

// A locked number stays when the file moves, is deleted and returns, or loses its name to another file.
func TestLockedNumberIsKept(t *testing.T) {
	t.Parallel()
	r := newRun(t, 2, 4)
	r.exec("update book set number = 500 + page_count where key like 'S/%'")
	r.exec("update book_metadata m set locks = '{numberLock}' from book b where b.id = m.book_id and b.key like 'S/%'")
	numbers := func() []string {
		return values[string](r.rig, "select key || ' ' || coalesce(number::text, 'none') from book where tenant_id = app.tenant() and key like 'S/%' and deleted_at is null order by key")
	}
	r.rename(numbered(2), "S/10.cbz")
	r.rename(numbered(4), "away.txt")
	r.scanned("normal")
	r.rename("away.txt", numbered(4))
	r.scanned("normal")
	if got, want := numbers(), []string{"S/03.cbz 504", "S/04.cbz 505", "S/10.cbz 503"}; !slices.Equal(got, want) {
		t.Errorf("moved, gone and back: %q, want %q", got, want)
	}
	r.rename(numbered(3), "away.txt")
	r.rename(numbered(4), numbered(3))
	r.scanned("normal")
	r.rename("away.txt", numbered(5))
	r.scanned("normal")
	if got, want := numbers(), []string{"S/03.cbz 505", "S/05.cbz 504", "S/10.cbz 503"}; !slices.Equal(got, want) {
		t.Errorf("back after its name was taken: %q, want %q", got, want)
	}
}

// A program that rewrites and renames a file may keep its size: its new metadata counts anyway.
func TestRenamedAndRetaggedFile(t *testing.T) {
	t.Parallel()
	r := &run{newRig(t), map[string]string{}}
	r.wrote("S/01.cbz", testkit.Comic(t, 1, 2, "<Title>Old</Title><Summary>Old</Summary><Web>https://example.org/1</Web>"), 1)
	r.scanned("normal")
	before := values[string](r.rig, "select id::text from book where tenant_id = app.tenant()")
	r.remove("S/01.cbz")
	r.wrote("S/02.cbz", testkit.Comic(t, 1, 2, "<Title>New</Title><Summary>New</Summary><Web>https://example.org/2</Web>"), 2)
	if res := r.scan("normal"); res.Moved != 1 {
		t.Fatalf("the two have not the same size: %+v", res)
	}
	got := values[string](r.rig, `select b.id || concat_ws('|', '', b.key, b.title, m.metadata ->> 'title', m.metadata ->> 'summary', x.url) from book b
		join book_metadata m on m.book_id = b.id join external_link x on x.book_id = b.id where b.tenant_id = app.tenant()`)
	if want := []string{before[0] + "|S/02.cbz|New|New|New|https://example.org/2"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// One half of a move may come by a notification, the other by a scan.
func TestAnnouncementsAndScansShareAMove(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(r *run)
		looked string
		places map[int]string
	}{
		"moved, the new place announced": {
			change: func(r *run) { r.rename(numbered(2), "R/02.cbz") },
			looked: "R/02.cbz",
			places: map[int]string{2: "R/02.cbz", 3: numbered(3), 4: numbered(4)},
		},
		"swapped, one announced": {
			change: func(r *run) { r.permute(map[string]string{numbered(2): numbered(4), numbered(4): numbered(2)}) },
			looked: numbered(4),
			places: map[int]string{2: numbered(4), 3: numbered(3), 4: numbered(2)},
		},
		"over another, that one announced": {
			change: func(r *run) { r.permute(map[string]string{numbered(4): numbered(3), numbered(3): "R/03.cbz"}) },
			looked: numbered(3),
			places: map[int]string{2: numbered(2), 3: "R/03.cbz", 4: numbered(3)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRun(t, 2, 4)
			c.change(r)
			r.looked(c.looked)
			r.scanned("normal")
			same(t, "books", r.books("true"), placed(c.places, nil))
			r.counted()
		})
	}
}

// Sidecars that a cancelled scan has found, changed or missed take effect with the next one.
func TestSidecarsOfACancelledScan(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(r *rig){
		"cancelled": (*rig).cancelAfterListing,
		"deleted":   func(r *rig) { r.listed(); r.exec("delete from task") },
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); sidecarsAfter(t, end) })
	}
}

func sidecarsAfter(t *testing.T, end func(r *rig)) {
	r := newRig(t)
	for i, name := range []string{"S/a", "S/b", "T/c", "U/d"} {
		testkit.WriteFile(t, r.folder, name+".cbz", testkit.Comic(t, i, 2, "<Title>Inside</Title>"))
	}
	testkit.WriteFile(t, r.folder, "S/a.opf", opf("Own", ""))
	testkit.WriteFile(t, r.folder, "T/metadata.opf", opf("Old", ""))
	testkit.WriteFile(t, r.folder, "T/series.json", []byte(`{"metadata":{"publisher":"Old"}}`))
	testkit.WriteFile(t, r.folder, "U/series.json", []byte(`{"metadata":{"publisher":"Old"}}`))
	r.scanned("normal")
	r.remove("S/a.opf")
	testkit.WriteFile(t, r.folder, "S/b.opf", opf("New", ""))
	testkit.WriteFile(t, r.folder, "T/metadata.opf", opf("Changed", ""))
	testkit.WriteFile(t, r.folder, "T/series.json", []byte(`{"metadata":{"publisher":"Changed"}}`))
	r.remove("U/series.json")
	const scanned = "select last_scanned_at from library where tenant_id = app.tenant()"
	before := values[time.Time](r, scanned)[0]
	end(r)
	if at := values[time.Time](r, scanned)[0]; !at.Equal(before) {
		t.Error("the library counts as scanned by a scan that was cancelled")
	}
	if res := r.scan("normal"); res.Status != "completed" {
		t.Fatalf("%+v", res)
	}
	if at := values[time.Time](r, scanned)[0]; !at.After(before) {
		t.Error("the library does not count as scanned")
	}
	got := values[string](r, `select b.key || ' ' || b.title || ' ' || coalesce(s.publisher, '') from book b join series s on s.id = b.series_id where b.tenant_id = app.tenant() order by b.key`)
	if want := []string{"S/a.cbz Inside ", "S/b.cbz New ", "T/c.cbz Changed Changed", "U/d.cbz Inside "}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	// Processed sidecars are not processed again.
	tasks := values[int](r, "select count(*) from task where tenant_id = app.tenant()")[0]
	r.scan("normal")
	if n := values[int](r, "select count(*) from task where tenant_id = app.tenant()")[0]; n != tasks+1 {
		t.Errorf("the scan after it has added %d tasks", n-tasks-1)
	}
}

// cancelAfterListing runs a scan until it has listed everything, but none of its tasks has run.
func (r *rig) cancelAfterListing() {
	r.t.Helper()
	if _, err := task.Cancel(r.ctx(), r.db.App, r.listed()); err != nil {
		r.t.Fatal(err)
	}
}

// A book moves if a deep scan finds its file gone after another scan has found the new place.
func TestDeepScanAfterOneOfAFolder(t *testing.T) {
	t.Parallel()
	r := newRun(t, 2, 4)
	r.rename(numbered(2), "R/02.cbz")
	r.startWith(scan.Params{Mode: scan.Normal, Path: "R"})
	r.settled()
	r.scanned("deep")
	same(t, "books", r.books("true"), placed(map[int]string{2: "R/02.cbz", 3: numbered(3), 4: numbered(4)}, nil))
	r.counted()
}

// A file that is replaced and renamed within the hour stays the same book, like one that is only renamed.
func TestReplacedFileMoves(t *testing.T) {
	t.Parallel()
	r := newRun(t, 2, 4)
	testkit.WriteFile(t, r.folder, numbered(3), r.numbered(20))
	r.looked(numbered(3))
	r.rename(numbered(3), "R/03.cbz")
	r.looked(numbered(3))
	r.looked("R/03.cbz")
	id := func(key string) string {
		return values[string](r.rig, "select id || ' ' || page_count from book where tenant_id = app.tenant() and deleted_at is null and key = $1", key)[0]
	}
	if got := id("R/03.cbz"); got != r.ids[numbered(3)]+" 21" {
		t.Errorf("the book is %s", got)
	}
	// The first content returns: it belongs to the book.
	testkit.WriteFile(t, r.folder, "R/04.cbz", r.numbered(3))
	r.looked("R/04.cbz")
	if got := id("R/04.cbz"); got != r.ids[numbered(3)]+" 4" {
		t.Errorf("the book of what was there first is %s", got)
	}
	if got := values[int](r.rig, "select current_page from progress where tenant_id = app.tenant() and book_id = $1", r.ids[numbered(3)]); !slices.Equal(got, []int{4}) {
		t.Errorf("its reader is on %v", got)
	}
	r.counted()
}

// Two files change their names with each other before a scan, and one of them is renamed again before it is read, in
// this scan and perhaps in the next: each book goes on with its content.
func TestRenamedBetweenListingAndReading(t *testing.T) {
	t.Parallel()
	for _, scans := range []int{1, 2, 3} {
		t.Run(fmt.Sprint(scans), func(t *testing.T) {
			t.Parallel()
			r := newRun(t, 2, 4)
			r.permute(map[string]string{numbered(2): numbered(3), numbered(3): numbered(2)})
			at := numbered(3) // where the second book's content is
			for n := range scans {
				r.listed()
				next := fmt.Sprintf("R/%02d.cbz", n)
				r.rename(at, next)
				at = next
				r.idle()
			}
			for _, mode := range []string{"normal", "deep"} {
				r.scanned(mode)
				same(t, "books after a "+mode+" scan", r.books("b.deleted_at is null"), placed(map[int]string{2: at, 3: numbered(2), 4: numbered(4)}, nil))
			}
			r.counted()
		})
	}
}

// A book that returns to a folder whose series was renamed belongs to a series of that folder.
func TestBookComesBackToTheOldFolder(t *testing.T) {
	t.Parallel()
	r := newRun(t, 2, 4)
	r.rename(numbered(4), "away.txt")
	r.scanned("normal")
	r.rename("S", "R")
	r.scanned("normal")
	r.rename("away.txt", numbered(4))
	for _, mode := range []string{"normal", "deep"} {
		r.scanned(mode)
		got := values[string](r.rig, `select concat_ws(' ', s.path, s.book_count, (select string_agg(b.key, ',' order by b.key) from book b where b.series_id = s.id)) from series s
			where s.tenant_id = app.tenant() and s.path <> 'Other' order by 1`)
		if want := []string{"R 2 R/02.cbz,R/03.cbz", "S 1 S/04.cbz"}; !slices.Equal(got, want) {
			t.Errorf("after a %s scan: %q, want %q", mode, got, want)
		}
	}
	same(t, "books", r.books("true"), placed(map[int]string{2: "R/02.cbz", 3: "R/03.cbz", 4: numbered(4)}, nil))
	r.counted()
}

// A client may send pages of a book whose page count is unknown; after the analysis no progress is beyond the last
// page, and completed ones are there, even if the book turns out to be a renamed one.
func TestProgressBeforeTheFirstAnalysis(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]bool{"new": false, "renamed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			testkit.WriteFile(t, r.folder, "S/0.cbz", testkit.Comic(t, 1, 4, ""))
			if known {
				r.scanned("normal")
			}
			r.rename("S/0.cbz", "S/1.cbz")
			r.cancelAfterListing()
			values[int](r, `with reader as (insert into account (tenant_id, id, username, email, password_hash, role)
					select app.tenant(), gen_random_uuid(), name, name || '@example.org', '', 'reader' from unnest('{ann,bob,eve}'::text[]) name returning id, username)
				insert into progress (tenant_id, account_id, book_id, id, current_page, completed)
				select app.tenant(), reader.id, b.id, gen_random_uuid(), case username when 'ann' then 500 else 0 end, username = 'bob' from reader, book b
				where b.tenant_id = app.tenant() and b.key = 'S/1.cbz' returning 1`)
			r.scanned("normal")
			got := values[string](r, `select b.key || ' ' || p.current_page from progress p join account a on a.id = p.account_id join book b on b.id = p.book_id
				where p.tenant_id = app.tenant() order by a.username`)
			if want := []string{"S/1.cbz 4", "S/1.cbz 4", "S/1.cbz 0"}; !slices.Equal(got, want) {
				t.Errorf("the readers of 4 pages are on %v", got)
			}
			if got := values[int](r, "select count(*)::int from book where tenant_id = app.tenant()"); got[0] != 1 {
				t.Errorf("%d books of one file", got[0])
			}
		})
	}
}

// Titles and numbers made from positions follow every change of the series.
func TestPositionsFollowTheSeries(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		book, number string
		change       func(r *run)
		want         []string
	}{
		"a file is renamed, and announced": {"series_name", "metadata", func(r *run) {
			r.rename("S/c.cbz", "S/d.cbz")
			r.looked("S/c.cbz")
			r.looked("S/d.cbz")
		}, []string{"S: S v.01 - - -", "S: S v.02 - - -"}},
		"a file is gone": {"series_name", "file_order", func(r *run) {
			r.remove("S/b.cbz")
			r.scanned("normal")
		}, []string{"S: S v.01 1 - -"}},
		"a file is gone, and that is announced": {"series_name", "file_order", func(r *run) {
			r.remove("S/b.cbz")
			r.looked("S/b.cbz")
		}, []string{"S: S v.01 1 - -"}},
		"a file comes before others": {"filename", "smart", func(r *run) {
			testkit.WriteFile(t, r.folder, "S/a.cbz", testkit.Comic(t, 7, 2, ""))
			r.scanned("normal")
		}, []string{"S: a 1 - -", "S: b 2 - -", "S: c 3 - -"}},
		"a file comes before others, and is announced": {"filename", "smart", func(r *run) {
			testkit.WriteFile(t, r.folder, "S/a.cbz", testkit.Comic(t, 7, 2, ""))
			r.looked("S/a.cbz")
		}, []string{"S: a 1 - -", "S: b 2 - -", "S: c 3 - -"}},
		"a file is gone before others": {"filename", "smart", func(r *run) {
			r.remove("S/b.cbz")
			r.looked("S/b.cbz")
		}, []string{"S: c 1 - -"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &run{newRig(t), map[string]string{}}
			r.choose("series_volume", "", c.book, "", c.number)
			for i, key := range []string{"S/b.cbz", "S/c.cbz"} {
				testkit.WriteFile(t, r.folder, key, testkit.Comic(t, i, 2, ""))
			}
			r.scanned("normal")
			c.change(r)
			r.mustBe(c.want...)
		})
	}
}

// cancelAt runs a scan until a given event. Then, if read is set, another worker runs the pending tasks, and the scan
// is cancelled.
func (r *rig) cancelAt(kind string, read bool) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	defer cancel()
	id := r.start("normal")
	take := func(ctx context.Context, runner *task.Runner, id uuid.UUID) {
		if err := runner.Take(ctx, `{"tenant":"`+r.tenant.String()+`","task":"`+id.String()+`"}`); err != nil {
			r.t.Error(err)
		}
	}
	s := &scanner.Scanner{Database: r.db.App, Library: r.s3.Store, Parallel: 2, Publish: func(_ context.Context, _ uuid.UUID, all ...events.Event) {
		if ctx.Err() != nil || !slices.ContainsFunc(all, func(e events.Event) bool { return e.Kind == kind }) {
			return
		}
		if read {
			for _, id := range values[uuid.UUID](r, "select id from task where tenant_id = app.tenant() and status = 'pending'") {
				take(r.t.Context(), r.runner(1), id)
			}
		}
		cancel()
	}}
	take(ctx, &task.Runner{System: r.db.System, Publish: r.publish, Worker: "stopped", Slots: 1, ScanEnded: ended(s), Handlers: map[string]task.Handler{task.ScanLibrary: s.Scan}}, id)
	if ctx.Err() == nil {
		r.t.Fatalf("the scan has told of no %s", kind)
	}
	if _, err := task.Cancel(r.ctx(), r.db.App, id); err != nil {
		r.t.Fatal(err)
	}
}

// A cancelled scan may have changed series: the next one corrects their positions.
func TestPositionsAfterACancelledScan(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(r *run)
		event  string
		want   []string
	}{
		"gone":  {func(r *run) { r.remove("S/b.cbz") }, "book_updated", []string{"S: c 1 - -", "S: d 2 - -"}},
		"moved": {func(r *run) { r.rename("S/b.cbz", "R/b.cbz") }, "book_updated", []string{"R: b 1 - -", "S: c 1 - -", "S: d 2 - -"}},
		"new": {func(r *run) { testkit.WriteFile(t, r.folder, "S/a.cbz", testkit.Comic(t, 7, 2, "")) }, "book_created",
			[]string{"S: a 1 - -", "S: b 2 - -", "S: c 3 - -", "S: d 4 - -"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &run{newRig(t), map[string]string{}}
			r.choose("series_volume", "", "filename", "", "file_order")
			for i, key := range []string{"S/b.cbz", "S/c.cbz", "S/d.cbz"} {
				testkit.WriteFile(t, r.folder, key, testkit.Comic(t, i, 2, ""))
			}
			r.scanned("normal")
			c.change(r)
			r.cancelAt(c.event, true)
			r.scanned("normal")
			r.mustBe(c.want...)
		})
	}
}

// A book that a cancelled scan has left unread is read by the next one, even if a notification for it arrives during
// that scan.
func TestUnreadBookIsAnnouncedDuringAScan(t *testing.T) {
	t.Parallel()
	r := &run{newRig(t), map[string]string{}}
	testkit.WriteFile(t, r.folder, "S/1.cbz", testkit.Comic(t, 1, 4, ""))
	r.cancelAfterListing()
	s := &scanner.Scanner{Database: r.db.App, Library: r.s3.Store, Publish: r.publish, Parallel: 2}
	var announced atomic.Bool
	r.s3.Counter.Meddle(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if announced.CompareAndSwap(false, true) { // the look asks the store, too
			if err := s.Look(r.ctx(), r.tenant, r.library, []string{"S/1.cbz"}); err != nil {
				t.Error(err)
			}
		}
		next.ServeHTTP(w, req)
	})
	r.scanned("normal")
	if got := values[int](r.rig, "select page_count from book where tenant_id = app.tenant()"); !slices.Equal(got, []int{4}) {
		t.Errorf("the book of 4 pages has %v", got)
	}
}

// A file that was away returns with its number; if unchanged, it is not read again.
func TestFileComesBackWithItsNumber(t *testing.T) {
	t.Parallel()
	for number, want := range map[string][]string{
		"metadata": {"07 40", "b -"}, "filename": {"07 7", "b -"}, "smart": {"07 40", "b 2"},
	} {
		t.Run(number, func(t *testing.T) {
			t.Parallel()
			r := &run{newRig(t), map[string]string{}}
			r.choose("series_volume", "", "filename", "", number)
			testkit.WriteFile(t, r.folder, "S/07.cbz", testkit.Comic(t, 1, 2, "<Number>40</Number>"))
			testkit.WriteFile(t, r.folder, "S/b.cbz", testkit.Comic(t, 2, 2, ""))
			r.scanned("normal")
			for _, key := range []string{"S/07.cbz", "S/b.cbz"} {
				r.rename(key, "away.txt")
				r.scanned("normal")
				r.rename("away.txt", key)
				r.scanned("normal")
			}
			if got := values[string](r.rig, "select b.title || ' ' || coalesce(b.number::text, '-') from book b where b.tenant_id = app.tenant() order by b.key"); !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// Another worker may be first with a book, and put it into the series in its metadata: no empty series is left.
func TestAnotherWorkerIsFirst(t *testing.T) {
	t.Parallel()
	r := &run{newRig(t), map[string]string{}}
	r.choose("flat", "", "filename", "", "filename")
	testkit.WriteFile(t, r.folder, "Plain 1.cbz", testkit.Comic(t, 1, 1, ""))
	r.scanned("normal")
	testkit.WriteFile(t, r.folder, "Folder 1.cbz", testkit.Comic(t, 2, 1, "<Series>Saga</Series>"))
	tx, err := r.db.Owner.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "select from library_count where library_id = $1 for update", r.library); err != nil {
		t.Fatal(err)
	}
	id := r.start("normal")
	ctx, cancel := context.WithCancel(context.Background())
	wait := r.work(ctx)
	defer wait()
	defer cancel()
	testkit.Eventually(t, stuck, func() (waits bool) {
		err := r.db.Owner.Pool().QueryRow(t.Context(), `select exists (select from pg_locks where not granted
			and pid in (select pid from pg_stat_activity where datname = current_database()))`).Scan(&waits)
		return err == nil && waits
	})
	_, err = tx.Exec(t.Context(), `with s as (insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title)
			values ($1, gen_random_uuid(), $2, 'saga', 'Saga', 'Saga', 'Saga', 'saga') returning id)
		insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title, seen_at)
		select $1, gen_random_uuid(), $2, id, 'Folder 1.cbz', 1, now(), 'cbz', 'Folder 1', 'Folder 1', 'folder 1', clock_timestamp() from s`, r.tenant, r.library)
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if res := r.await(id); res.Series != 0 {
		t.Errorf("the scan counts %d series of its own", res.Series)
	}
	if got := values[string](r.rig, "select title || ' ' || book_count from series where tenant_id = app.tenant() order by 1"); !slices.Equal(got, []string{"Plain 1", "Saga 1"}) {
		t.Errorf("series %q", got)
	}
}

// The analysis of a file that has changed since does not move the book.
func TestBookChangesWhileItIsRead(t *testing.T) {
	t.Parallel()
	r := &run{newRig(t), map[string]string{}}
	r.choose("flat", "", "filename", "", "filename")
	r.wrote("1.cbz", testkit.Comic(t, 1, 1, "<Series>One</Series>"), 1)
	r.wrote("2.cbz", testkit.Comic(t, 2, 1, "<Series>Two</Series>"), 2)
	r.start("normal")
	var read atomic.Bool
	r.s3.Counter.Meddle(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		next.ServeHTTP(w, req)
		// Before the response arrives.
		if req.URL.Path == "/books/1.cbz" && req.Method == "GET" && read.CompareAndSwap(false, true) {
			r.rename("1.cbz", "away.txt")
			r.rename("2.cbz", "1.cbz")
			r.rename("away.txt", "2.cbz")
			r.noticed("1.cbz", "2.cbz")
			for _, id := range values[uuid.UUID](r.rig, "select id from task where tenant_id = app.tenant() and status = 'pending' and parent_id is null") {
				if err := r.runner(1).Take(context.Background(), `{"tenant":"`+r.tenant.String()+`","task":"`+id.String()+`"}`); err != nil {
					t.Error(err)
				}
			}
		}
	})
	r.settled()
	if !read.Load() {
		t.Error("the book was not read in one request")
	}
	r.mustBe("One: 2 2 - -", "Two: 1 1 - -")
}

// A file renamed over one that could never be read stays the same book, whichever of the two is noticed first.
func TestRenamedOverAnUnreadableFile(t *testing.T) {
	t.Parallel()
	for name, first := range map[string][]string{
		"scanned": nil, "the new place announced": {numbered(5)}, "the old place announced": {numbered(3)}, "both announced": {numbered(5), numbered(3)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRun(t, 2, 4)
			testkit.WriteFile(t, r.folder, numbered(5), []byte("half of it"))
			if res := r.scan("normal"); res.Errors != 1 {
				t.Fatalf("%+v", res)
			}
			r.rename(numbered(3), numbered(5))
			for _, key := range first {
				r.looked(key)
			}
			r.scanned("normal")
			same(t, "books", r.books("true"), placed(map[int]string{2: numbered(2), 3: numbered(5), 4: numbered(4)}, nil))
			r.counted()
		})
	}
}

// A scan of one folder does not purge what has moved out of it.
func TestMovedOutOfAFolder(t *testing.T) {
	t.Parallel()
	r := newRun(t, 2, 4)
	r.exec("update library set purge_deleted_on_scan = true")
	r.rename(numbered(3), "R/03.cbz")
	if res := r.scanWith(scan.Params{Mode: scan.Normal, Path: "S"}); res.Status != "completed" || res.Deleted != 1 {
		t.Fatalf("one folder: %+v", res)
	}
	r.settled()
	r.scanned("normal")
	same(t, "books", r.books("true"), placed(map[int]string{2: numbered(2), 3: "R/03.cbz", 4: numbered(4)}, nil))
	r.counted()
}

// A book with progress is not purged while a file of any size that may be its own cannot be read.
func TestMovedWhileTheStoreFails(t *testing.T) {
	t.Parallel()
	r := newRun(t, 2, 4)
	r.exec("update library set purge_deleted_on_scan = true")
	r.exec("alter table task alter max_attempts set default 1")
	r.rename(numbered(3), "R/03.cbz")
	r.remove(numbered(4))
	r.s3.Counter.Meddle(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if req.Method == "GET" && req.URL.Path == "/books/R/03.cbz" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, req)
	})
	r.start("normal")
	const purged = "exists (select from task where type = 'purge_deleted') and not exists (select from task where tenant_id = app.tenant() and status in ('pending', 'running'))"
	r.until(purged)
	if n := values[int](r.rig, "select count(*) from book where tenant_id = app.tenant() and deleted_at is not null")[0]; n != 2 {
		t.Errorf("%d books wait for their files, want 2", n)
	}
	r.s3.Counter.Meddle(nil)
	r.exec("delete from task where status = 'failed' or type = 'purge_deleted'")
	r.scanned("normal")
	r.until(purged)
	same(t, "books", r.books("true"), placed(map[int]string{2: numbered(2), 3: "R/03.cbz"}, nil))
	r.counted()
}

// Above the limit of books a renamed file is added only when there is room: until then its book is not purged.
func TestRenamedAboveTheLimit(t *testing.T) {
	t.Parallel()
	r := newRun(t, 2, 4)
	r.exec("update library set purge_deleted_on_scan = true")
	limit := func(n int) { r.exec("update tenant set max_books = $2 where id = $1", r.tenant, n) }
	limit(6)
	r.rename(numbered(3), "R/03.cbz")
	if res := r.scan("normal"); res.Status != "completed" || res.Errors != 1 || res.Deleted != 1 {
		t.Fatalf("at the limit: %+v", res)
	}
	purge := func() {
		var b pgx.Batch
		var id uuid.UUID
		if err := task.Add(&b, task.Spec{Type: task.PurgeDeleted, LibraryID: &r.library, Params: scan.PurgeParams{}, DedupeKey: task.PurgeDeleted + ":" + r.library.String()}, &id); err != nil {
			t.Fatal(err)
		}
		if err := r.db.App.Run(r.ctx(), &b); err != nil {
			t.Fatal(err)
		}
		r.until("exists (select from task where tenant_id = app.tenant() and id = $1 and status in ('completed', 'failed'))", id)
	}
	purge() // queued by another request
	limit(7)
	r.scanned("normal")
	same(t, "books", r.books("true"), placed(map[int]string{2: numbered(2), 3: "R/03.cbz", 4: numbered(4)}, nil))
	r.remove(numbered(4))
	r.scanned("normal")
	r.until("not exists (select from book where tenant_id = app.tenant() and deleted_at is not null)")
	same(t, "books", r.books("true"), placed(map[int]string{2: numbered(2), 3: "R/03.cbz"}, nil))
	r.counted()
}

// A book that was to be read again when its file was deleted is read when that returns.
func TestFileComesBackBeforeItIsReadAgain(t *testing.T) {
	t.Parallel()
	r := newRun(t, 2, 4)
	r.exec("update page_index x set revision = -1 from book b where b.id = x.book_id and b.key = $1", numbered(3))
	r.rename(numbered(3), "away.txt")
	r.scanned("normal")
	r.rename("away.txt", numbered(3))
	r.scanned("normal")
	if got := values[string](r.rig, "select b.key from book b join page_index x on x.tenant_id = b.tenant_id and x.book_id = b.id where b.tenant_id = app.tenant() and x.revision < 0"); len(got) != 0 {
		t.Errorf("%q are still to be read again", got)
	}
	same(t, "books", r.books("true"), placed(map[int]string{2: numbered(2), 3: numbered(3), 4: numbered(4)}, nil))
}

// Files that took each other's names and move on before they are read are identified by what was read last.
func TestMovedBeforeTheChangeIsRead(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(r *run){
		"scanned":               func(r *run) { r.scanned("normal") },
		"announced":             func(r *run) { r.noticed(numbered(2), numbered(3), "R/02.cbz", "R/03.cbz"); r.settled() },
		"scanned after reading": func(r *run) { r.settled(); r.scanned("normal") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRun(t, 2, 3)
			r.permute(map[string]string{numbered(2): numbered(3), numbered(3): numbered(2)})
			r.noticed(numbered(2), numbered(3))
			r.permute(map[string]string{numbered(2): "R/02.cbz", numbered(3): "R/03.cbz"})
			next(r)
			same(t, "books", r.books("true"), placed(map[int]string{2: "R/03.cbz", 3: "R/02.cbz"}, nil))
		})
	}
}

// Progress on a file in its new place, before it is matched with its book, goes to the book.
func TestSessionsFollowTheirBook(t *testing.T) {
	t.Parallel()
	r := newRun(t, 2, 3)
	session := func(key string, pass, page int) {
		r.exec(`insert into reading_session (tenant_id, account_id, id, book_id, pass, kind, device_id, started_at, ended_at, page)
			select tenant_id, $1, gen_random_uuid(), id, $3, 'progress', 'd', now(), now(), $4 from book where key = $2`, uuid.NewSHA1(uuid.Nil, []byte("ann")), key, pass, page)
	}
	session(numbered(2), 1, 1)
	session(numbered(2), 2, 2)
	r.rename(numbered(2), numbered(5))
	r.looked(numbered(5))
	session(numbered(5), 1, 3)
	fresh := values[string](r.rig, "select id::text from book where tenant_id = app.tenant() and key = $1", numbered(5))[0]
	r.looked(numbered(2))
	got := values[string](r.rig, "select s.book_id || ' ' || s.pass || ' ' || s.page from reading_session s where s.tenant_id = app.tenant() order by s.page")
	id := r.ids[numbered(2)]
	same(t, "sessions", got, []string{id + " 1 1", id + " 2 2", id + " 2 3"})
	heirs := func() []string {
		return values[string](r.rig, "select id || ' is ' || book_id from book_heir where tenant_id = app.tenant()")
	}
	same(t, "what is told later is of", heirs(), []string{fresh + " is " + id})
	other := r.ids[numbered(3)]
	hand := func(from, to string) {
		values[bool](r.rig, "select app.hand_books(array[$1]::uuid[], array[$2]::uuid[]) is null", from, to)
	}
	hand(id, other)
	same(t, "when that is another, too", heirs(), []string{fresh + " is " + other, id + " is " + other})
	r.exec("update book_heir set at = at - interval '91 days' where id = $1", fresh)
	hand(id, other)
	same(t, "after a long time", heirs(), []string{id + " is " + other})
}

// A disk that disappears while its books are read again removes none of them: only a complete listing removes books,
// and an empty folder removes none.
func TestDiskGoesWhileItsBooksAreRead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec("update library set purge_deleted_on_scan = true")
	for i := range 12 {
		testkit.WriteFile(t, r.folder, fmt.Sprintf("S/%02d.cbz", i), testkit.Comic(t, i, 1, ""))
	}
	r.scan("normal")
	const all = "select id || ' ' || key || ' ' || analyzed || ' ' || page_count || coalesce(error_type, '') from book where tenant_id = app.tenant() and deleted_at is null order by key"
	before := values[string](r, all)
	away := filepath.Join(filepath.Dir(r.folder), "away")
	var once sync.Once
	r.s3.Counter.Meddle(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if req.Method == "GET" && strings.HasSuffix(req.URL.Path, ".cbz") {
			once.Do(func() {
				if err := os.Rename(filepath.Join(r.folder, "S"), away); err != nil {
					t.Error(err)
				}
			})
		}
		next.ServeHTTP(w, req)
	})
	r.start("deep")
	// Wait for the next scan.
	r.until("exists (select from task where tenant_id = app.tenant() and type = 'scan_library' and last_error like '%now lists no books%')")
	if n := r.live(); n != 12 {
		t.Errorf("%d of 12 books are left while the disk is away", n)
	}
	if err := os.Rename(away, filepath.Join(r.folder, "S")); err != nil {
		t.Fatal(err)
	}
	r.scan("normal")
	if after := values[string](r, all); !slices.Equal(after, before) {
		t.Errorf("once it is back: %q, want %q", after, before)
	}
}

// Files that move twice, with only a scan of their folder in between, go back to the books with progress, not to those
// made meanwhile, although these have their names.
func TestTheBookThatWasReadComesFirst(t *testing.T) {
	t.Parallel()
	r := newRun(t, 2, 4)
	var want []string
	for n := 2; n <= 4; n++ {
		r.rename(numbered(n), fmt.Sprintf("New/N %02d.cbz", n))
		want = append(want, fmt.Sprintf("%s Last/N %02d.cbz 1", r.ids[numbered(n)], n))
	}
	r.scanWith(scan.Params{Mode: scan.Normal, Path: "New"})
	for n := 2; n <= 4; n++ {
		r.rename(fmt.Sprintf("New/N %02d.cbz", n), fmt.Sprintf("Last/N %02d.cbz", n))
	}
	r.scanned("normal")
	got := values[string](r.rig, `select b.id || ' ' || b.key || ' ' || (select count(*) from progress p where p.tenant_id = b.tenant_id and p.book_id = b.id) from book b
		where b.tenant_id = app.tenant() and b.key like 'Last/%' and b.deleted_at is null order by b.key`)
	same(t, "books", got, want)
	r.counted()
}

// Who needs a scan gets one that begins after that: a scan that has listed the files already, but waits for its tasks,
// is followed by another one, even if it fails.
func TestScanIsNeededDuringAScan(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"completed", "failed"} {
		t.Run(status, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			testkit.WriteFile(t, r.folder, "S/1.cbz", testkit.Comic(t, 1, 1, ""))
			id := r.start("normal")
			rules := "update library set title_preprocessing_rules = $1::jsonb"
			if status == "failed" {
				r.exec("update task set started_at = now()") // by a worker that has given it back
				r.exec(rules, `"none"`)
			} else {
				r.take(id)
			}
			testkit.WriteFile(t, r.folder, "S/2.cbz", testkit.Comic(t, 2, 1, ""))
			if err := scan.Resume(context.Background(), r.db.System, r.tenant); err != nil {
				t.Fatal(err)
			}
			if status == "failed" {
				r.take(id)
				r.exec(rules, nil)
			}
			r.idle() // until the scan has ended
			r.idle()
			if res := r.result(id); res.Status != status {
				t.Fatalf("%+v", res)
			}
			if r.live() != 2 {
				t.Errorf("%d books", r.live())
			}
			if scans := values[int](r, "select count(*)::integer from scan where tenant_id = app.tenant()"); scans[0] != 2 {
				t.Errorf("%d scans", scans[0])
			}
		})
	}
}

// A scan that starts over after its worker has died does not count the books that it has created as updated.
func TestRestartedScanCountsNewBooksOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.fill(1, 3)
	id := r.listed()
	r.exec("update task set status = 'pending', done = false where id = $1", id)
	r.take(id)
	r.idle()
	if res := r.result(id); res.Status != "completed" || res.Created != 3 || res.Updated != 0 || res.Processed != 3 {
		t.Errorf("%+v", res)
	}
}
