package scanner_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/content"
	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/domain/scan/scanner"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/testkit"
)

// failing makes the store fail for one file.
func (r *rig) failing(key string) {
	r.s3.Counter.Meddle(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if req.Method == "GET" && req.URL.Path == "/books/"+key {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, req)
	})
}

// unread returns the books that were not read and have no error.
func (r *rig) unread() []string {
	return values[string](r, "select key from book where tenant_id = app.tenant() and not analyzed and error_type is null order by key")
}

// A book whose data the database rejects gets an error of its own, regardless of its batch.
func TestWhatCannotBeStored(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, sql := range []string{
		`create function refuse() returns trigger language plpgsql as $$ begin raise 'no such text' using errcode = '22P05'; end $$`,
		"create trigger refuse before insert or update on book_metadata for each row when (new.metadata ->> 'title' like 'Bad%') execute function refuse()",
	} {
		r.exec(sql)
	}
	var want []string
	for i := range 40 {
		key, title := fmt.Sprintf("S/%02d.cbz", i), "Good"
		if i == 7 || i == 8 || i == 39 {
			title, want = "Bad", append(want, key)
		}
		testkit.WriteFile(t, r.folder, key, testkit.Comic(t, i, 1, "<Title>"+title+"</Title>"))
	}
	for range 2 {
		res := r.scan("normal")
		if res.Status != "completed" {
			t.Errorf("%+v", res)
		}
		if got := values[string](r, "select key from book where tenant_id = app.tenant() and not analyzed and error_type = 'other' and error_message like '%cannot be stored%' order by key"); !slices.Equal(got, want) {
			t.Errorf("refused: %q", got)
		}
		if got := values[int](r, "select count(*)::integer from book where tenant_id = app.tenant() and analyzed"); got[0] != 37 {
			t.Errorf("%d are read", got[0])
		}
	}
	if failed := values[string](r, "select type from task where tenant_id = app.tenant() and status = 'failed'"); len(failed) > 0 {
		t.Errorf("failed: %q", failed)
	}
}

// A file whose name no listing can contain is a book with an error that says so, once, wherever it is: the next scan
// finds nothing new. Files that listings cannot distinguish are one book. Names that really contain U+FFFD are normal.
func TestNamesThatNoListingHolds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	names := []string{"S/a\x01.cbz", "S/a\x02.cbz", "S/ab.cbz", "S/b\xff\xfe.cbz", "S/c.cbz", "Ast\x01rix/1.cbz", "Ast\x01rix/2.cbz", "T/\x01.cbz", "T/1.cbz", "U/1.cbz"}
	const own = 1200
	for i := range own {
		names = append(names, fmt.Sprintf("A\uFFFD/%04d.cbz", i))
	}
	for i, name := range names {
		testkit.WriteFile(t, r.folder, name, testkit.Comic(t, i, 1, ""))
	}
	if res := r.scan("normal"); res.Status != "completed" || res.Created != own+9 || res.Errors != 5 || !strings.Contains(res.Texts[0], "rename it without special characters") {
		t.Errorf("first scan: %+v", res)
	}
	if res := r.scan("normal"); res.Status != "completed" || res.Created+res.Deleted+res.Restored+res.Updated+res.Errors != 0 {
		t.Errorf("scan of the same: %+v", res)
	}
	if n := r.live(); n != own+9 {
		t.Errorf("%d books, want %d", n, own+9)
	}
}

// Books that the store did not return are errors of the scan, not of the books, and the next scan reads them. They do
// not block others.
func TestUnreadBooksAreErrorsOfTheScan(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec("alter table task alter max_attempts set default 1")
	for i := range 150 {
		testkit.WriteFile(t, r.folder, fmt.Sprintf("S/%03d.cbz", i), testkit.Comic(t, i, 1, ""))
	}
	r.failing("S/001.cbz")
	res := r.scan("normal")
	if res.Status != "completed" || res.Errors != 1 || len(res.Texts) != 1 || !strings.Contains(res.Texts[0], "1 of 100 files could not be read from the store, the first of them S/001.cbz") ||
		!strings.Contains(res.Texts[0], "next scan") {
		t.Errorf("while the store fails: %+v", res)
	}
	if got := r.unread(); !slices.Equal(got, []string{"S/001.cbz"}) {
		t.Errorf("not read: %q", got)
	}
	r.failing("nothing")
	if res := r.scan("normal"); res.Status != "completed" || res.Errors != 0 || len(res.Texts) != 0 || len(r.unread()) != 0 {
		t.Errorf("with the store: %+v, not read: %q", res, r.unread())
	}
}

// A file that a gateway lists but cannot open is a book with its own error: at once for a link, otherwise at the last
// attempt.
func TestClosedFilesAreErrorsOfTheirOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec("alter table task alter max_attempts set default 1")
	testkit.WriteFile(t, r.folder, "S/closed.cbz", testkit.Comic(t, 1, 1, ""))
	testkit.WriteFile(t, r.folder, "S/open.cbz", testkit.Comic(t, 2, 1, ""))
	testkit.WriteFile(t, r.folder, "elsewhere.bin", testkit.Comic(t, 3, 1, ""))
	if err := os.Symlink("../elsewhere.bin", filepath.Join(r.folder, "S/link.cbz")); err != nil {
		t.Fatal(err)
	}
	r.s3.Counter.Meddle(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if req.Method == "GET" && (strings.HasSuffix(req.URL.Path, "closed.cbz") || strings.HasSuffix(req.URL.Path, "link.cbz")) {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		next.ServeHTTP(w, req)
	})
	if res := r.scan("normal"); res.Status != "completed" || res.Created != 3 || res.Errors != 2 {
		t.Errorf("scan: %+v", res)
	}
	if got := values[string](r, "select key || ': ' || error_message from book where tenant_id = app.tenant() and error_type = 'other' order by key"); len(got) != 2 ||
		!strings.HasPrefix(got[0], "S/closed.cbz: the file cannot be opened: check its permissions") || !strings.Contains(got[1], "it is a link") {
		t.Errorf("errors: %q", got)
	}
	if got := values[string](r, "select type || ' ' || status from task where tenant_id = app.tenant() and status <> 'completed'"); len(got) > 0 {
		t.Errorf("tasks: %q", got)
	}
}

// Sidecars that the store did not return are errors of the scan, too.
func TestUnreadSidecarsAreErrorsOfTheScan(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec("alter table task alter max_attempts set default 1")
	testkit.WriteFile(t, r.folder, "S/1.cbz", testkit.Comic(t, 1, 1, ""))
	testkit.WriteFile(t, r.folder, "S/series.json", []byte(`{"metadata":{"publisher":"One"}}`))
	r.failing("S/series.json")
	if res := r.scan("normal"); res.Status != "completed" || res.Errors != 1 || len(res.Texts) != 1 {
		t.Errorf("while the store fails: %+v", res)
	}
	r.failing("nothing")
	if res := r.scan("normal"); res.Status != "completed" || res.Errors != 0 {
		t.Errorf("with the store: %+v", res)
	}
}

// pagesOfText returns a PDF with one page that must be drawn.
func pagesOfText() []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n")
	var at []int
	for i, object := range []string{"<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Count 1/Kids[3 0 R]/MediaBox[0 0 200 300]>>",
		"<</Type/Page/Parent 2 0 R/Contents 4 0 R>>", "<</Length 12>>stream\n0 0 10 10 re\nendstream"} {
		at = append(at, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	start := b.Len()
	b.WriteString("xref\n0 5\n0000000000 65535 f \n")
	for _, o := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(&b, "trailer<</Size 5/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", start)
	return b.Bytes()
}

// A book whose cover cannot be drawn, or not in time, is analysed anyway.
func TestCoverIsNotDrawn(t *testing.T) {
	t.Parallel()
	for name, draw := range map[string]content.Drawing{
		"PDFium is broken": func(context.Context, io.ReaderAt, int64, int) ([]byte, error) {
			return nil, &archive.Undrawn{Err: errors.New("it cannot be started")}
		},
		"PDFium is busy": func(ctx context.Context, _ io.ReaderAt, _ int64, _ int) ([]byte, error) {
			<-ctx.Done()
			return nil, &archive.Undrawn{Err: ctx.Err()}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			testkit.WriteFile(t, r.folder, "S/1.pdf", pagesOfText())
			s := &scanner.Scanner{Database: r.db.App, Library: r.s3.Store, Publish: r.publish, Parallel: 2, Timeout: 2 * time.Second,
				Content: &content.Reader{Store: r.s3.Store, Draw: draw},
				Cover: func(context.Context, uuid.UUID, uuid.UUID, []byte, string, int, int, []byte) (string, error) {
					return "", errors.New("there is no picture")
				}}
			res := r.scanBy(s)
			got := values[string](r, `select b.analyzed || ' ' || coalesce(b.error_type, 'good') || ', ' || b.page_count || ' page: ' || array_to_string(m.warnings, ' ')
				from book b join book_metadata m on m.book_id = b.id where b.tenant_id = app.tenant()`)
			if res.Status != "completed" || res.Errors != 0 || len(got) != 1 || !strings.HasPrefix(got[0], "true good, 1 page: the cover was not drawn") {
				t.Errorf("%+v, %q", res, got)
			}
		})
	}
}

// A book whose cover cannot be stored is analysed anyway.
func TestCoverIsNotStored(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	testkit.WriteFile(t, r.folder, "S/1.cbz", testkit.Comic(t, 1, 2, ""))
	s := &scanner.Scanner{Database: r.db.App, Library: r.s3.Store, Publish: r.publish, Parallel: 2,
		Cover: func(context.Context, uuid.UUID, uuid.UUID, []byte, string, int, int, []byte) (string, error) {
			return "", errors.New("507: no space left")
		}}
	res := r.scanBy(s)
	if got := values[int](r, "select page_count from book where tenant_id = app.tenant() and analyzed and error_type is null"); res.Status != "completed" || res.Errors != 0 || !slices.Equal(got, []int{2}) {
		t.Errorf("%+v, %v", res, got)
	}
}

// A file that was empty when it was scanned, because it was still being copied, is read completely by a retry.
func TestRetriedFileIsNoLongerEmpty(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	testkit.WriteFile(t, r.folder, "S/1.cbz", nil)
	r.scan("normal")
	if got := values[string](r, "select error_message from book where tenant_id = app.tenant()"); len(got) != 1 || !strings.Contains(got[0], "empty") {
		t.Fatalf("the empty file says %q", got)
	}
	again := func() {
		id := values[uuid.UUID](r, "update book set error_type = null, error_message = null where tenant_id = app.tenant() returning id")[0]
		r.do(task.Spec{Type: task.AnalyzeBook, BookID: &id, Params: map[string]any{"bookIds": []uuid.UUID{id}}})
	}
	again()
	if got := values[string](r, "select error_message from book where tenant_id = app.tenant()"); !strings.Contains(got[0], "empty") {
		t.Errorf("still empty, it says %q", got)
	}
	testkit.WriteFile(t, r.folder, "S/1.cbz", testkit.Comic(t, 1, 3, ""))
	again()
	r.until("(select analyzed and page_count = 3 and error_type is null from book where tenant_id = app.tenant())")
}

// A file that the store has archived is a book with an error at once: a retry does not help.
func TestArchivedFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i, name := range []string{"S/1.cbz", "S/2.cbz"} {
		testkit.WriteFile(t, r.folder, name, testkit.Comic(t, i, 1, ""))
	}
	testkit.WriteFile(t, r.folder, "S/series.json", []byte(`{"metadata": {"type": "comicSeries", "name": "S"}}`))
	r.s3.Counter.Meddle(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if req.Method == "GET" && (strings.HasSuffix(req.URL.Path, "2.cbz") || strings.HasSuffix(req.URL.Path, "series.json")) {
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>InvalidObjectState</Code><Message>The operation is not valid for the object's storage class</Message><StorageClass>GLACIER</StorageClass></Error>`)
			return
		}
		next.ServeHTTP(w, req)
	})
	res := r.scan("normal")
	if res.Status != "completed" || res.Created != 2 || len(res.Texts) == 0 || !slices.Contains(res.Texts, "S/2.cbz: the store has archived the file (S3 Glacier): restore it, then retry it") {
		t.Errorf("%+v", res)
	}
	if got := values[string](r, "select key from book where tenant_id = app.tenant() and error_type = 'other'"); !slices.Equal(got, []string{"S/2.cbz"}) {
		t.Errorf("with an error: %q", got)
	}
	if tried := values[int](r, "select max(attempts) from task where tenant_id = app.tenant()"); tried[0] != 1 {
		t.Errorf("tried %d times", tried[0])
	}
}

// A file that is archived after it was read keeps what it said; one that was replaced does not.
func TestFileIsArchivedLater(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.choose("series_volume", "", "metadata_first", "", "metadata")
	info := "<Number>7</Number><Volume>2</Volume><Manga>YesAndRightToLeft</Manga>"
	for i, name := range []string{"S/a.cbz", "S/b.cbz"} {
		testkit.WriteFile(t, r.folder, name, testkit.Comic(t, i, 1, info))
	}
	r.scanned("normal")
	r.s3.Counter.Meddle(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if req.Method == "GET" && strings.HasSuffix(req.URL.Path, ".cbz") {
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>InvalidObjectState</Code></Error>`)
			return
		}
		next.ServeHTTP(w, req)
	})
	testkit.WriteFile(t, r.folder, "S/b.cbz", testkit.Comic(t, 5, 3, info))
	if res := r.scan("deep"); res.Status != "completed" || res.Errors != 2 {
		t.Errorf("%+v", res)
	}
	got := values[string](r, "select concat_ws(' ', key, number, volume, reading_direction, error_type) from book where tenant_id = app.tenant() order by key")
	if want := []string{"S/a.cbz 7 2 rtl other", "S/b.cbz other"}; !slices.Equal(got, want) {
		t.Errorf("books %q, want %q", got, want)
	}
}

// Many files that Longbox may not read do not block later ones.
func TestFilesThatAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec("alter table task alter max_attempts set default 1")
	r.exec("insert into setting (tenant_id, key, value) select id, 'scanner.batch_size', '200' from tenant on conflict (tenant_id, key) do update set value = excluded.value")
	for i := range 150 {
		testkit.WriteFile(t, r.folder, fmt.Sprintf("S/%03d.cbz", i), testkit.Comic(t, i, 1, ""))
	}
	r.s3.Counter.Meddle(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if req.Method == "GET" && (strings.HasPrefix(req.URL.Path, "/books/S/0") || strings.HasPrefix(req.URL.Path, "/books/S/10")) {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, req)
	})
	res := r.scan("normal")
	if got := len(r.unread()); got != 110 || res.Status != "completed" || res.Errors != 110 {
		t.Errorf("%d are not read: %+v", got, res)
	}
}

// Books that are stored are told, even if their page packs cannot be ordered: the next attempt finds nothing to read.
func TestToldWithoutPacks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec("create function refuse() returns trigger language plpgsql as $$ begin raise 'no more tasks'; end $$")
	r.exec("create trigger refuse before insert on task for each row when (new.type = '" + task.PackBook + "') execute function refuse()")
	r.exec("alter table task alter max_attempts set default 1")
	testkit.WriteFile(t, r.folder, "S/1.cb7", testkit.SevenZip(t, testkit.File{Name: "1.jpg", Data: testkit.JPEG(t, 30, 40, 1)}))
	s := &scanner.Scanner{Database: r.db.App, Library: r.s3.Store, Publish: r.publish, Parallel: 4, Packs: true}
	r.scanBy(s)
	if got := values[bool](r, "select analyzed from book where tenant_id = app.tenant()"); !slices.Equal(got, []bool{true}) {
		t.Fatalf("read: %v", got)
	}
	if !slices.ContainsFunc(r.events, func(e events.Event) bool { return e.Kind == "book_updated" }) {
		t.Errorf("nobody is told: %v", r.events)
	}
}

// What a task leaves unread whose worker died in its last attempt, or had no time left, are errors of the scan, once.
func TestUnreadBooksOfInterruptedTasks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		want string
		fail func(r *rig, scan, child uuid.UUID)
	}{
		"the worker died": {"The worker stopped responding", func(r *rig, id, child uuid.UUID) {
			r.exec("update task set status = 'running', attempts = max_attempts, started_at = now(), lease_until = now() - interval '1 minute' where id = $1", child)
			if _, err := task.Rescue(r.t.Context(), r.db.System, nil); err != nil {
				r.t.Fatal(err)
			}
		}},
		"its time is up": {"The task ran out of time", func(r *rig, id, child uuid.UUID) {
			r.exec("update task set max_attempts = 1 where id = $1", child)
			ctx, end := context.WithCancelCause(r.t.Context())
			defer end(nil)
			r.s3.Counter.Meddle(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
				end(task.ErrTime)
				<-req.Context().Done()
			})
			if err := r.runner(1).Take(ctx, `{"tenant":"`+r.tenant.String()+`","task":"`+child.String()+`"}`); err != nil {
				r.t.Fatal(err)
			}
			r.s3.Counter.Meddle(nil)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			for i := range 3 {
				testkit.WriteFile(t, r.folder, fmt.Sprintf("S/%d.cbz", i), testkit.Comic(t, i, 1, ""))
			}
			id := r.listed()
			c.fail(r, id, values[uuid.UUID](r, "select id from task where tenant_id = app.tenant() and parent_id = $1", id)[0])
			settler := scan.Settler{Database: r.db.App, Publish: r.publish}
			for range 2 {
				if err := settler.Settle(t.Context(), r.tenant, id); err != nil {
					t.Fatal(err)
				}
				r.exec("update scan set settled = false") // as when a failed scan is retried
			}
			if res := r.result(id); res.Status != task.Completed || res.Errors != 3 || len(res.Texts) != 1 || !strings.HasPrefix(res.Texts[0], c.want) {
				t.Errorf("%+v", res)
			}
			if res := r.scan("normal"); res.Status != task.Completed || res.Errors != 0 || len(r.unread()) != 0 {
				t.Errorf("the next scan: %+v, not read: %q", res, r.unread())
			}
		})
	}
}
