package scanner_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/testkit"
)

func (r *rig) removeAll(folder string) {
	r.t.Helper()
	if err := os.RemoveAll(filepath.Join(r.folder, folder)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) live() int64 {
	return values[int64](r, "select count(*) from book where tenant_id = app.tenant() and deleted_at is null")[0]
}

func TestGuardHoldsLargeRemovals(t *testing.T) {
	r := newRig(t)
	for i := range 24 {
		testkit.WriteFile(t, r.folder, fmt.Sprintf("%c/%d.cbz", 'A'+rune(i%2), i), testkit.Comic(t, i, 1, ""))
	}
	testkit.WriteFile(t, r.folder, "B/more.cbz", testkit.Comic(t, 99, 1, ""))
	r.scanned("normal")

	r.removeAll("B") // 13 of 25
	for range 2 {
		res := r.scan("normal")
		if res.Status != "failed" || res.Held != 13 || res.Deleted != 0 || res.Failure == nil || !strings.Contains(*res.Failure, "13 of the 25 books") || r.live() != 25 {
			t.Fatalf("%d books: %+v", r.live(), res)
		}
	}
	told := false
	for _, e := range r.events {
		told = told || strings.Contains(fmt.Sprintf("%+v", e), "more than half: nothing was removed")
	}
	if !told {
		t.Error("no event says so")
	}
	// A retry after everything is back needs no confirmation.
	again := values[uuid.UUID](r, "select id from task where tenant_id = app.tenant() and type = 'scan_library' and status = 'failed' order by id desc limit 1")[0]
	for i := 1; i < 24; i += 2 {
		testkit.WriteFile(t, r.folder, fmt.Sprintf("B/%d.cbz", i), testkit.Comic(t, i, 1, ""))
	}
	testkit.WriteFile(t, r.folder, "B/more.cbz", testkit.Comic(t, 99, 1, ""))
	r.exec("update task set status = 'pending', attempts = 0, completed_at = null, last_error = null where id = $1", again)
	r.until("status = 'completed' from task where tenant_id = app.tenant() and id = $1", again)
	if res := r.result(again); res.Held != 0 || r.live() != 25 {
		t.Fatalf("%+v", res)
	}
	r.removeAll("B")
	// A larger number needs a new confirmation.
	r.removeAll("A/0.cbz")
	if res := r.scanWith(scan.Params{Mode: "normal", Removals: 13}); res.Status != "failed" || res.Held != 14 || r.live() != 25 {
		t.Fatalf("%+v", res)
	}
	if res := r.scanWith(scan.Params{Mode: "normal", Removals: 14}); res.Status != "completed" || res.Deleted != 14 || r.live() != 11 {
		t.Fatalf("confirmed: %+v", res)
	}
	// A new file does not make up for missing ones.
	r.removeAll("A")
	testkit.WriteFile(t, r.folder, "C/new.cbz", testkit.Comic(t, 77, 2, ""))
	for i := range 12 {
		testkit.WriteFile(t, r.folder, fmt.Sprintf("C/new %d.cbz", i), testkit.Comic(t, 100+i, 2, ""))
	}
	for range 2 { // nor in the next scan
		if res := r.scan("normal"); res.Status != "failed" || res.Held != 11 {
			t.Fatalf("eleven of eleven: %+v", res)
		}
	}
}

// Books that come back do not make up for missing ones, as when another disk is mounted.
func TestGuardOfReturningBooks(t *testing.T) {
	r := newRig(t)
	folder := func(name string, first int) {
		for i := first; i < first+12; i++ {
			testkit.WriteFile(t, r.folder, fmt.Sprintf("%s/%d.cbz", name, i), testkit.Comic(t, i, 1, ""))
		}
	}
	folder("A", 0)
	folder("B", 12)
	r.scanned("normal")
	r.removeAll("A") // half of them
	if res := r.scanned("normal"); res.Deleted != 12 {
		t.Fatalf("%+v", res)
	}
	r.removeAll("B")
	folder("A", 0)
	for again := range 2 {
		if res := r.scan("normal"); res.Status != "failed" || res.Held != 12 || res.Restored != int64(12-12*again) || !strings.Contains(*res.Failure, "12 of the 12 books") {
			t.Fatalf("%d: %+v", again, res)
		}
	}
	if res := r.scanWith(scan.Params{Mode: "normal", Removals: 12}); res.Status != "completed" || res.Deleted != 12 || r.live() != 12 {
		t.Errorf("confirmed: %+v", res)
	}
}

// A library whose folders were all renamed loses nothing.
func TestGuardLetsMovesPass(t *testing.T) {
	r := newRig(t)
	for i := range 30 {
		testkit.WriteFile(t, r.folder, fmt.Sprintf("Old/S%d/%d.cbz", i%3, i), testkit.Comic(t, i, 1+i%2, ""))
	}
	r.scanned("normal")
	ids := values[string](r, "select id::text from book where tenant_id = app.tenant() order by id")
	r.rename("Old", "New")
	if res := r.scanned("normal"); res.Moved != 30 || res.Created+res.Deleted+res.Series != 0 {
		t.Errorf("%+v", res)
	}
	if again := values[string](r, "select id::text from book where tenant_id = app.tenant() order by id"); !slices.Equal(ids, again) {
		t.Error("the books are others")
	}
}

// A scan of one folder does not affect others, not even with the same name prefix.
func TestScanOfOneFolder(t *testing.T) {
	r := newRig(t)
	for i, key := range []string{"A/1.cbz", "A/B/2.cbz", "A/B/sub/3.cbz", "A/B 2/4.cbz", "A/B.cbz", "C/5.cbz"} {
		testkit.WriteFile(t, r.folder, key, testkit.Comic(t, i, 1, ""))
	}
	r.scanned("normal")
	scanned := values[string](r, "select last_scanned_at::text from library where tenant_id = app.tenant()")
	for _, key := range []string{"A/1.cbz", "A/B/2.cbz", "A/B 2/4.cbz", "C/5.cbz"} {
		r.removeAll(key)
	}
	for i, key := range []string{"A/new.cbz", "A/B/new.cbz", "C/new.cbz"} {
		testkit.WriteFile(t, r.folder, key, testkit.Comic(t, 20+i, 1, ""))
	}
	res := r.scanWith(scan.Params{Mode: "normal", Path: "A/B"})
	if res.Status != "completed" || res.Total != 2 || res.Created != 1 || res.Deleted != 1 {
		t.Fatalf("%+v", res)
	}
	want := []string{"A/1.cbz", "A/B 2/4.cbz", "A/B.cbz", "A/B/new.cbz", "A/B/sub/3.cbz", "C/5.cbz"}
	if got := values[string](r, "select key from book where tenant_id = app.tenant() and deleted_at is null order by key"); !slices.Equal(got, want) {
		t.Errorf("books %q, want %q", got, want)
	}
	if again := values[string](r, "select last_scanned_at::text from library where tenant_id = app.tenant()"); !slices.Equal(scanned, again) {
		t.Error("the library counts as scanned")
	}
	// A missing folder needs confirmation, since it may not be mounted.
	r.removeAll("A/B")
	if res := r.scanWith(scan.Params{Mode: "normal", Path: "A/B"}); res.Status != "failed" || res.Held != 2 || !strings.HasPrefix(*res.Failure, "/books/A/B now lists no books, but the library has 2 there: ") {
		t.Errorf("%+v", res)
	}
	for _, deleted := range []int64{2, 0} { // the second scan has nothing to do
		if res := r.scanWith(scan.Params{Mode: "normal", Path: "A/B", Removals: 2}); res.Status != "completed" || res.Deleted != deleted {
			t.Errorf("%+v", res)
		}
	}
	for _, nothing := range []string{"a", "nope", "A/B.c", "\u00c9luard"} {
		res := r.scanWith(scan.Params{Mode: "normal", Path: nothing})
		if res.Status != "failed" || res.Held != 0 {
			t.Errorf("%s: %+v", nothing, res)
		}
		if accents := strings.Contains(*res.Failure, "names with accents may be stored in another form"); accents != (nothing == "\u00c9luard") {
			t.Errorf("%s: %s", nothing, *res.Failure)
		}
	}
	for _, bad := range []string{"/A", "A/", "A//B", "..", "A/../B", "./A", strings.Repeat("a", 2601), "a\x00"} {
		if (scan.Params{Mode: "normal", Path: bad}).Check() == nil {
			t.Errorf("%q is taken for a folder", bad)
		}
	}
}

// A folder whose path is longer than an S3 key can be scanned separately, if the store has it.
func TestScanOfAFolderWithALongPath(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	folder := strings.TrimSuffix(strings.Repeat(strings.Repeat("a", 250)+"/", 8), "/")
	testkit.WriteFile(t, r.folder, folder+"/1.cbz", testkit.Comic(t, 1, 1, ""))
	testkit.WriteFile(t, r.folder, "B/1.cbz", testkit.Comic(t, 2, 1, ""))
	if res := r.scanWith(scan.Params{Mode: "normal", Path: folder}); res.Status != "completed" || res.Created != 1 || res.Errors != 0 {
		t.Errorf("%+v", res)
	}
}

// The result of a scan's task contains the same counts as scan-status.
func TestResultCountsWhatWasFound(t *testing.T) {
	r := newRig(t)
	for i, name := range []string{"S/a.cbz", "S/b.cbz", "T/c.cbz"} {
		testkit.WriteFile(t, r.folder, name, testkit.Comic(t, i, 1, ""))
	}
	for _, c := range []struct {
		makes func()
		want  string
	}{
		{func() {}, "3 files, 2 series, 3 created, 0 deleted, 0 errors"},
		{func() { r.removeAll("S/a.cbz"); testkit.WriteFile(t, r.folder, "T/d.cbz", []byte("no archive")) }, "3 files, 0 series, 1 created, 1 deleted, 1 errors"},
	} {
		c.makes()
		r.scan("normal")
		got := values[string](r, `select concat_ws(', ', (x ->> 'filesProcessed') || ' files', (x ->> 'seriesCreated') || ' series',
			(x ->> 'booksCreated') || ' created', (x ->> 'booksDeleted') || ' deleted', (x ->> 'errors') || ' errors')
			from (select result as x from task where tenant_id = app.tenant() and type = 'scan_library' order by id desc limit 1) t`)
		if got[0] != c.want {
			t.Errorf("the result says: %s; want: %s", got[0], c.want)
		}
	}
}

// Nine books may go from any library; ten may not, and no confirmation allows removing everything when nothing is
// listed.
func TestGuardAtItsBorder(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	book := func(i int) { testkit.WriteFile(t, r.folder, fmt.Sprintf("A/%d.cbz", i), testkit.Comic(t, i, 1, "")) }
	for i := range 12 {
		book(i)
	}
	r.scanned("normal")
	for i := range 10 {
		r.removeAll(fmt.Sprintf("A/%d.cbz", i))
	}
	if res := r.scan("normal"); res.Status != "failed" || res.Held != 10 || r.live() != 12 {
		t.Errorf("ten of twelve: %d books, %+v", r.live(), res)
	}
	book(9)
	if res := r.scan("normal"); res.Status != "completed" || res.Deleted != 9 || r.live() != 3 {
		t.Errorf("nine of twelve: %d books, %+v", r.live(), res)
	}
	r.removeAll("A")
	if res := r.scanWith(scan.Params{Mode: "normal", Removals: 3}); res.Status != "failed" || res.Held != 3 || r.live() != 3 {
		t.Errorf("nothing is listed: %d books, %+v", r.live(), res)
	}
}

// A disk that is unmounted while the library on it is listed leaves an empty folder, which is listed without an error:
// nothing is removed, though less than half of the books are missing in the listing.
func TestGuardOfADiskThatVanishes(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]scan.Params{"library": {Mode: scan.Normal}, "folder": {Mode: scan.Normal, Path: "Disk"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			for i := range 24 {
				testkit.WriteFile(t, r.folder, fmt.Sprintf("Disk/%c/%d.cbz", 'A'+rune(i%2), i), testkit.Comic(t, i, 1, ""))
			}
			if name == "folder" {
				testkit.WriteFile(t, r.folder, "Other/1.cbz", testkit.Comic(t, 99, 1, ""))
			}
			r.exec("update library set purge_deleted_on_scan = true")
			r.scanned("normal")
			books := r.live()

			var mu sync.Mutex
			mounted := true
			r.s3.Counter.Meddle(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
				q := req.URL.Query()
				if q.Get("list-type") == "" || q.Get("delimiter") != "" {
					next.ServeHTTP(w, req)
					return
				}
				mu.Lock() // ranges are listed at once
				defer mu.Unlock()
				next.ServeHTTP(w, req)
				if after := q.Get("start-after"); mounted && len(after) > len("Disk/") && strings.HasPrefix(after, "Disk/") { // half of the books
					mounted = false
					r.removeAll("Disk")
				}
			})
			res := r.scanWith(p)
			r.idle()
			if res.Status != "failed" || res.Held != 12 || res.Deleted != 0 || r.live() != books || !strings.Contains(*res.Failure, "while it was scanned") {
				t.Errorf("%d books of %d: %+v", r.live(), books, res)
			}
			if mounted {
				t.Error("the disk is still there")
			}
		})
	}
}
