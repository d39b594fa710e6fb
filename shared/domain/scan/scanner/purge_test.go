package scanner_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/testkit"
)

// gone returns the missing books of the first library.
func (r *two) gone() []string {
	r.t.Helper()
	return values[string](r.rig, "select key from book where tenant_id = app.tenant() and library_id = $1 and deleted_at is not null order by key", r.a)
}

func (r *two) remove(files ...string) {
	r.t.Helper()
	for _, name := range files {
		if err := os.Remove(filepath.Join(r.folder, name)); err != nil {
			r.t.Fatal(err)
		}
	}
}

// refused scans the other library, where the limit of books keeps one file out.
func (r *two) refused() {
	r.t.Helper()
	r.exec("update tenant set max_books = 5")
	r.library = r.b
	if res := r.scan("normal"); res.Status != task.Completed || res.Errors != 1 {
		r.t.Fatalf("at the limit: %+v", res)
	}
}

// A file that the limit keeps out of its new library keeps its book in the old one, if somebody has read it.
func TestMovedOverAboveTheLimit(t *testing.T) {
	t.Parallel()
	for name, purge := range map[string]func(r *two){
		"asked for": func(r *two) { r.purged(r.a) },
		"after a scan": func(r *two) {
			r.exec("update library set purge_deleted_on_scan = true where id = $1", r.a)
			r.refused()
			r.scans(r.a)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTwo(t)
			id := r.ids()
			r.rename("a/"+numbered(1), "b/T/one.cbz")
			r.remove("a/Other/0.cbz")
			r.refused()
			r.scans(r.a)
			purge(r)
			same(t, "gone, and still there", r.gone(), []string{numbered(1)})
			if got := r.one("select result::text from task where tenant_id = app.tenant() and type = 'purge_deleted'"); !strings.Contains(got, `"keptBecause": ["people have read, edited or chosen them, and their files may be in another library`) || !strings.Contains(got, `"booksKept": 1,`) {
				t.Errorf("the purge tells %s", got)
			}
			r.exec("update tenant set max_books = null")
			r.scans(r.b)
			r.moved(id, "ann 1")
		})
	}
}

// A scan that the limit kept files out of has not seen its library whole: what people have read stays in another
// library, also when nobody knows that scan any more.
func TestPurgeAfterAForgottenScan(t *testing.T) {
	t.Parallel()
	r := newTwo(t)
	id := r.ids()
	r.rename("a/"+numbered(1), "b/T/one.cbz")
	r.scans(r.a)
	r.refused()
	r.exec("delete from task where tenant_id = $1", r.tenant)
	r.exec("update library set purge_deleted_on_scan = true where id = $1", r.a)
	r.scans(r.a)
	same(t, "gone, and still there", r.gone(), []string{numbered(1)})
	r.exec("update tenant set max_books = null")
	r.scans(r.b)
	r.moved(id, "ann 1")
}

// Books of folders that a library excludes make room for what the limit has kept out of another one.
func TestExcludedFoldersMakeRoom(t *testing.T) {
	t.Parallel()
	r := newTwo(t)
	id := r.ids()
	r.rename("a/"+numbered(1), "b/T/one.cbz")
	r.refused()
	r.scans(r.a)
	r.exec("update tenant set max_books = 7") // there are ten
	same(t, "gone", r.gone(), []string{numbered(1)})
	r.exec("update library set excluded_patterns = 'Other/**' where id = $1", r.a)
	r.scans(r.a, r.b)
	same(t, "gone", r.gone(), []string{"Other/0.cbz", "Other/1.cbz", "Other/2.cbz", "Other/3.cbz"})
	if refuses := values[bool](r.rig, "select "+scan.KeptOutSQL("$1"), r.b); refuses[0] {
		t.Error("the other library still counts as one that files are kept out of")
	}
	r.moved(id, "ann 1")
}

// A folder that cannot be listed may hold the files of books that are gone: none of its library is removed then, also
// when somebody asks for it, and of another library none that somebody has read.
func TestPurgeWhileAFolderCannotBeListed(t *testing.T) {
	t.Parallel()
	r := newTwo(t)
	r.closing("b/Closed/")
	testkit.WriteFile(t, r.folder, "b/Closed/1.cbz", testkit.Comic(t, 9200, 1, ""))
	r.remove("a/Other/0.cbz", "a/"+numbered(1), "b/Other/0.cbz")
	r.scans(r.a)
	r.library = r.b
	if res := r.scan("normal"); res.Status != task.Completed || res.Errors != 1 {
		t.Fatalf("%+v", res)
	}
	(&run{rig: r.rig}).settled()
	r.purged(r.b)
	r.purged(r.a)
	gone := func() []string {
		return values[string](r.rig, "select key from book where tenant_id = app.tenant() and deleted_at is not null order by library_id = $1, key", r.b)
	}
	same(t, "while it cannot be listed", gone(), []string{numbered(1), "Other/0.cbz"})
	r.s3.Counter.Meddle(nil)
	r.scans(r.b)
	r.purged(r.b)
	r.purged(r.a)
	same(t, "when it can", gone(), nil)
}

// A purge after a scan deletes books that nobody has read or chosen at once. The others wait until every other library
// was completely scanned.
func TestPurgeAfterAScan(t *testing.T) {
	t.Parallel()
	r := newTwo(t)
	r.exec("update library set purge_deleted_on_scan = true where id = $1", r.a)
	r.exec("insert into collection (tenant_id, id, kind, name) values ($1, $2, 'books', 'List')", r.tenant, r.a)
	r.exec("insert into collection_member (tenant_id, id, collection_id, book_id, place) select tenant_id, id, $1, id, 1 from book where library_id = $1 and key = 'Other/1.cbz'", r.a)
	r.remove("a/Other/0.cbz", "a/Other/1.cbz", "a/"+numbered(2))
	r.scans(r.a)
	waiting := []string{"Other/1.cbz", numbered(2)}
	same(t, "before the other library is scanned", r.gone(), waiting)
	r.scans(r.a)
	same(t, "before the other library is scanned", r.gone(), waiting)
	r.scans(r.b, r.a)
	same(t, "afterwards", r.gone(), nil)
}

// A purge of one series leaves the missing books of others, and does not count them.
func TestPurgeOfOneSeries(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i, key := range []string{"S/1.cbz", "S/2.cbz", "T/1.cbz", "T/2.cbz"} {
		testkit.WriteFile(t, r.folder, key, testkit.Comic(t, i, 1, ""))
	}
	r.scanned("normal")
	r.read("ann", "T/1.cbz", 1)
	r.removeAll("S/1.cbz")
	r.removeAll("T/1.cbz")
	r.scanned("normal")
	series := values[uuid.UUID](r, "select series_id from book where tenant_id = app.tenant() and key = 'S/2.cbz'")[0]
	started, err := scan.RequestPurge(r.ctx(), r.db.App, nil, nil, &series)
	if err != nil || started.Message != "Books whose files are gone (1) will be deleted permanently" {
		t.Fatalf("%+v, %v", started, err)
	}
	r.idle()
	same(t, "books", values[string](r, "select key || case when deleted_at is null then '' else ' gone' end from book where tenant_id = app.tenant()"),
		[]string{"S/2.cbz", "T/1.cbz gone", "T/2.cbz"})
	if n := values[int64](r, "select count(*) from progress where tenant_id = app.tenant()")[0]; n != 1 {
		t.Errorf("%d people have read a book of the other series", n)
	}
	if got := r.one("select result::text from task where tenant_id = app.tenant() and type = 'purge_deleted'"); !strings.Contains(got, `"booksPurged": 1`) || strings.Contains(got, "booksKept") {
		t.Errorf("the purge tells %s", got)
	}
}

// A purge that was asked for before a scan deletes nothing while the scan may find the files under other names.
func TestPurgeBesideAScan(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	testkit.WriteFile(t, r.folder, "S/1.cbz", testkit.Comic(t, 1, 1, ""))
	testkit.WriteFile(t, r.folder, "S/2.cbz", testkit.Comic(t, 2, 1, ""))
	r.scanned("normal")
	r.read("ann", "S/1.cbz", 1)
	id := values[string](r, "select id::text from book where tenant_id = app.tenant() and key = 'S/1.cbz'")
	r.rename("S/1.cbz", "S/1.part")
	r.scanned("normal")
	purge, err := scan.RequestPurge(r.ctx(), r.db.App, nil, &r.library, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.rename("S/1.part", "S/9.cbz")
	r.start("normal")
	r.take(purge.TaskID)
	r.idle()
	same(t, "books", values[string](r, `select b.id::text from book b join progress p on p.tenant_id = b.tenant_id and p.book_id = b.id
		where b.tenant_id = app.tenant() and b.key = 'S/9.cbz' and b.deleted_at is null`), id)
}

// What the limit of books has kept out is not seen by a scan of another folder, nor by one that was cancelled.
func TestScansThatDoNotShowWhatWasKeptOut(t *testing.T) {
	t.Parallel()
	r := newTwo(t)
	testkit.WriteFile(t, r.folder, "b/T/one.cbz", testkit.Comic(t, 9200, 1, ""))
	r.refused()
	keptOut := func(after string) {
		t.Helper()
		if is := values[bool](r.rig, "select "+scan.KeptOutSQL("$1"), r.b); !is[0] {
			t.Errorf("after %s, no files count as kept out", after)
		}
	}
	keptOut("the scan itself")
	if res := r.scanWith(scan.Params{Mode: scan.Normal, Path: "Other"}); res.Status != task.Completed || res.Errors != 0 {
		t.Fatalf("%+v", res)
	}
	keptOut("a scan of another folder")
	r.exec("update task set status = 'cancelled', completed_at = now() where id = $1", r.start("normal"))
	keptOut("a cancelled scan")
}
