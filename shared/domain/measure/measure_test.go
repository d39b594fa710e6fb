package measure_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/analysis"
	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/content"
	"github.com/longbox/longbox/shared/domain/measure"
	"github.com/longbox/longbox/shared/domain/pack"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
	"github.com/longbox/longbox/shared/testkit/rarpack"
)

// rig is a book whose index has no sizes, with a server and a worker.
type rig struct {
	*testing.T
	*testkit.Server
	s3     *testkit.S3
	reader *testkit.Client
	book   uuid.UUID
	object blob.Object
	told   []string // fields of book_updated
	added  int      // calls of added
	epoch  int32
	m      *measure.Measurer
}

func newRig(t *testing.T, file []byte) *rig {
	t.Helper()
	r := &rig{T: t, s3: testkit.StartS3(t, "books"), book: uuid.New()}
	var mu sync.Mutex
	told := func(context.Context, uuid.UUID) { mu.Lock(); r.added++; mu.Unlock() }
	r.Server = testkit.Serve(t, func(a *httpapi.API, d *db.DB) { book.Routes(a, d, nil, told) })
	r.reader = r.User(t, "one", "reader")
	r.m = &measure.Measurer{Database: r.DB.App, Content: &content.Reader{Store: r.s3.Store}, Media: r.s3.Config.Media(), Bucket: "media",
		Publish: func(_ context.Context, tenant uuid.UUID, all ...events.Event) {
			for _, e := range all {
				r.told = append(r.told, fmt.Sprintf("%+v", e))
			}
		}}
	testkit.WriteFile(t, r.s3.Dir, "books/a", file)
	for list, err := range r.s3.Store.List(t.Context(), "books", "", "") {
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		r.object = list[0]
	}
	found, err := analysis.File(t.Context(), r.m.Content, "books", r.object, analysis.Options{})
	if err != nil {
		t.Fatal(err)
	}
	library, series := uuid.New(), uuid.New()
	r.DB.Exec(t, `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2, 'Books', '/books', 'books', '', 'series_volume', 'metadata_first', 'smart')`, r.One, library)
	r.DB.Exec(t, "insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title) values ($1, $2, $3, 's', 's', 's', 's', 's')", r.One, series, library)
	r.DB.Exec(t, `insert into book (tenant_id, id, library_id, series_id, key, size, etag, modified_at, format, title, title_sort, search_title, fingerprint, analyzed)
		values ($1, $2, $3, $4, 'a', $5, $6, $7, 'cbz', 'a', 'a', 'a', $8, true)`, r.One, r.book, library, series, r.object.Size, r.object.ETag, r.object.Modified, found.Fingerprint)
	var names, types []string
	var offsets, lengths, packed, sizes, crcs []int64
	var methods []int16
	for _, p := range found.Pages {
		names, types, offsets, lengths = append(names, p.Name), append(types, p.MediaType), append(offsets, p.Offset), append(lengths, p.Length)
		packed, sizes, crcs, methods = append(packed, p.CompressedSize), append(sizes, p.Size), append(crcs, int64(p.CRC32)), append(methods, int16(p.Method))
	}
	r.DB.Exec(t, `insert into page_index (tenant_id, book_id, revision, names, types, offsets, lengths, packed, sizes, methods, crcs, widths, heights, file_size, file_etag, file_modified)
		values ($1, $2, 0, $3, $4, $5, $6, $7, $8, $9, $10, array_fill(0, array[$11::integer]), array_fill(0, array[$11::integer]), $12, $13, $14)`,
		r.One, r.book, names, types, offsets, lengths, packed, sizes, methods, crcs, len(names), r.object.Size, r.object.ETag, r.object.Modified)
	r.s3.Counter.Reset()
	return r
}

// pages returns the sizes in the response, as 3x4; "-" if unknown.
func (r *rig) pages() (out []string) {
	r.Helper()
	var got struct {
		Data []struct{ Width, Height *int }
	}
	r.reader.Do("GET", "/api/v1/books/"+r.book.String()+"/pages?pageSize=500", nil).Want(200).JSON(&got)
	for _, p := range got.Data {
		switch {
		case p.Width != nil && p.Height != nil:
			out = append(out, fmt.Sprintf("%dx%d", *p.Width, *p.Height))
		case p.Width == nil && p.Height == nil:
			out = append(out, "-")
		default:
			r.Errorf("half a size: %v, %v", p.Width, p.Height)
		}
	}
	return out
}

// waiting returns the pending tasks of a type.
func (r *rig) waiting(typ string) (ids []uuid.UUID) {
	r.Helper()
	rows, err := r.DB.Owner.Pool().Query(r.Context(), "select id from task where type = $1 and status = 'pending' and book_id = $2 and tenant_id = $3", typ, r.book, r.One)
	if err == nil {
		ids, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	}
	if err != nil {
		r.Fatal(err)
	}
	return ids
}

// run runs the only pending task, as a worker does; ctx may pause it.
func (r *rig) run(ctx context.Context) (measure.Result, error) {
	r.Helper()
	waiting := r.waiting(task.MeasurePages)
	if len(waiting) != 1 {
		r.Fatalf("%d tasks wait", len(waiting))
	}
	r.epoch++
	h := task.Held{Tenant: r.One, ID: waiting[0], Type: task.MeasurePages, BookID: &r.book, Epoch: r.epoch}
	r.DB.Exec(r, "update task set status = 'running', lease_epoch = $2 where id = $1", h.ID, r.epoch)
	out, err := r.m.Measure(db.In(ctx, h.Scope()), h)
	r.DB.Exec(r, "update task set status = 'completed' where id = $1", h.ID)
	got, _ := out.(measure.Result)
	return got, err
}

func (r *rig) want(what string, got, want any) {
	r.Helper()
	if !reflect.DeepEqual(got, want) {
		r.Errorf("%s: %v, want %v", what, got, want)
	}
}

func encodedPNG(t *testing.T, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// described returns a JPEG with n bytes of metadata before its size.
func described(jpeg []byte, n int) []byte {
	head := []byte{0xff, 0xd8, 0xff, 0xe1}
	return slices.Concat(binary.BigEndian.AppendUint16(head, uint16(n+2)), make([]byte, n), jpeg[2:])
}

func TestSizesAreThereTheNextTime(t *testing.T) {
	t.Parallel()
	r := newRig(t, testkit.Zip(t,
		testkit.File{Name: "1.jpg", Data: testkit.JPEG(t, 300, 450, 1)},
		testkit.File{Name: "2.jpg", Data: testkit.JPEG(t, 610, 460, 2), Deflate: true},
		testkit.File{Name: "3.png", Data: encodedPNG(t, 40, 50)},
		testkit.File{Name: "4.png", Data: encodedPNG(t, 1000, 2000), Deflate: true},
		testkit.File{Name: "5.jpg", Data: described(testkit.JPEG(t, 310, 450, 3), 20_000)},
	))
	unknown := []string{"-", "-", "-", "-", "-"}
	r.want("at first", r.pages(), unknown)
	r.want("asked again", r.pages(), unknown)
	r.want("tasks that wait", len(r.waiting(task.MeasurePages)), 1)
	r.want("times that workers were told", r.added, 1)

	res, err := r.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.want("result", res, measure.Result{Pages: 5})
	// One request per page; the last page has its size beyond the first four thousand bytes.
	r.want("requests", len(r.s3.Counter.Reset()), 6)
	if len(r.told) != 1 || !strings.Contains(r.told[0], "pages") || !strings.Contains(r.told[0], r.book.String()) {
		t.Errorf("listeners heard %v", r.told)
	}
	r.want("afterwards", r.pages(), []string{"300x450", "610x460", "40x50", "1000x2000", "310x450"})
	r.want("tasks that wait then", len(r.waiting(task.MeasurePages)), 0)
}

// A printer's colour profile takes half a megabyte, in segments of 64 KB before the size.
func TestSizeBehindMuchMetadata(t *testing.T) {
	t.Parallel()
	page := testkit.JPEG(t, 300, 450, 1)
	for range 10 {
		page = described(page, 60_000)
	}
	r := newRig(t, testkit.Zip(t,
		testkit.File{Name: "1.jpg", Data: testkit.JPEG(t, 20, 30, 1)}, // the cover
		testkit.File{Name: "2.jpg", Data: page},
		testkit.File{Name: "3.jpg", Data: page, Deflate: true},
	))
	r.pages()
	if _, err := r.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.want("sizes", r.pages(), []string{"20x30", "300x450", "300x450"})
}

// While one task runs, no second is added.
func TestOneTaskAtATime(t *testing.T) {
	t.Parallel()
	r := newRig(t, testkit.Comic(t, 1, 3, ""))
	r.pages()
	r.s3.Counter.Meddle(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		r.reader.Do("GET", "/api/v1/books/"+r.book.String()+"/pages", nil).Want(200)
		next.ServeHTTP(w, req)
	})
	if _, err := r.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.want("tasks", len(r.waiting(task.MeasurePages)), 0)
	r.want("sizes", r.pages(), []string{"60x90", "60x90", "60x90"})
}

func TestUnmeasurablePageIsTriedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, testkit.Zip(t,
		testkit.File{Name: "1.tif", Data: append([]byte("II*\x00"), make([]byte, 9000)...)},
		testkit.File{Name: "2.jpg", Data: []byte("short")},
		testkit.File{Name: "3.jpg", Data: testkit.JPEG(t, 20, 30, 1)},
		testkit.File{Name: "4.jpg", Data: bytes.Repeat([]byte("no image "), 2000), Deflate: true},
		testkit.File{Name: "5.svg.jpg", Data: []byte(`<svg xmlns="http://www.w3.org/2000/svg" width="3" height="4"/>`)},
	))
	r.pages()
	res, err := r.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.want("result", res, measure.Result{Pages: 1, Unknown: 4})
	r.want("requests", len(r.s3.Counter.Reset()), 5)
	r.want("sizes", r.pages(), []string{"-", "-", "20x30", "-", "-"})
	r.want("tasks", len(r.waiting(task.MeasurePages)), 0)
	// The analysis rewrites the index: then sizes are read again.
	r.DB.Exec(t, "update page_index set widths[1] = 0, heights[1] = 0 where tenant_id = $1", r.One)
	r.pages()
	r.want("tasks", len(r.waiting(task.MeasurePages)), 1)
}

// The headers of compressed entries of a RAR can be read, too.
func TestCompressedRAR(t *testing.T) {
	t.Parallel()
	data, err := rarpack.Archive(rarpack.Options{}, rarpack.File{Name: "1.jpg", Data: testkit.JPEG(t, 300, 450, 1)}, rarpack.File{Name: "2.jpg", Data: testkit.JPEG(t, 900, 1300, 2)})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, data)
	r.pages()
	if _, err := r.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.want("sizes", r.pages(), []string{"300x450", "900x1300"})
}

// If the book has other content by the time its sizes are stored, they are not.
func TestBookThatChangesMeanwhile(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"another revision": "update page_index set revision = 1",
		"another file":     "update page_index set file_etag = 'other'",
		"not yet analysed": "update book set etag = 'other'",
		"other places":     "update page_index set offsets[1] = 7",
		"gone":             "delete from book",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, testkit.Comic(t, 1, 2, ""))
			r.pages()
			var once sync.Once
			r.s3.Counter.Meddle(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
				once.Do(func() { r.DB.Exec(t, change) })
				next.ServeHTTP(w, req)
			})
			if _, err := r.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			var known int
			if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select count(*) from page_index where widths <> '{0,0}' or heights <> '{0,0}'").Scan(&known); err != nil || known != 0 || len(r.told) != 0 {
				t.Errorf("stored %d (%v), told %v", known, err, r.told)
			}
		})
	}
}

// The file has changed unnoticed: it is analysed.
func TestFileThatChanged(t *testing.T) {
	t.Parallel()
	r := newRig(t, testkit.Comic(t, 1, 2, ""))
	r.pages()
	testkit.WriteFile(t, r.s3.Dir, "books/a", testkit.Comic(t, 7, 5, ""))
	if _, err := r.run(t.Context()); !fault.Is(err, fault.Conflict) {
		t.Errorf("%v", err)
	}
	r.want("analyses", len(r.waiting(task.AnalyzeBook)), 1)
	r.want("sizes", r.pages(), []string{"-", "-"})
}

// A failure of the store keeps the results so far, and leaves the rest for a retry.
func TestStoreThatFails(t *testing.T) {
	t.Parallel()
	r := newRig(t, testkit.Comic(t, 1, 3, ""))
	r.pages()
	var second string
	if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select 'bytes=' || offsets[2] || '-' from page_index").Scan(&second); err != nil {
		t.Fatal(err)
	}
	r.s3.Counter.Meddle(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if strings.HasPrefix(req.Header.Get("Range"), second) {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, req)
	})
	if _, err := r.run(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("%v", err)
	}
	r.s3.Counter.Meddle(nil)
	r.want("page 2", r.pages()[1], "-")
	if _, err := r.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.want("sizes", r.pages(), []string{"60x90", "60x90", "60x90"})
}

// A file that the store lists but does not give is no failure of the store: the task says so, and is not repeated. One
// that proves to be another, as a link does, is analysed.
func TestFileThatIsNotGiven(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status   int
		body     string
		longer   bool // the store shows another size
		says     string
		analyses int
	}{
		{http.StatusForbidden, "<Error><Code>InvalidObjectState</Code></Error>", false, "archived", 0},
		{http.StatusForbidden, "", false, "permissions", 0},
		{http.StatusInternalServerError, "", false, "permissions", 0},
		{http.StatusInternalServerError, "", true, "analysis is queued", 1},
	} {
		r := newRig(t, testkit.Comic(t, 1, 1, ""))
		r.pages()
		if c.longer {
			testkit.WriteFile(t, r.s3.Dir, "books/a", testkit.Comic(t, 7, 5, ""))
		}
		r.s3.Counter.Meddle(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
			if req.Method == http.MethodGet {
				http.Error(w, c.body, c.status)
				return
			}
			next.ServeHTTP(w, req)
		})
		if _, err := r.run(t.Context()); !fault.Is(err, fault.Conflict) || !strings.Contains(fault.From(err).Message, c.says) {
			t.Errorf("%d %s: %v", c.status, c.body, err)
		}
		r.want("analyses", len(r.waiting(task.AnalyzeBook)), c.analyses)
	}
}

// Each run that is told to pause reads one more page.
func TestPause(t *testing.T) {
	t.Parallel()
	r := newRig(t, testkit.Comic(t, 1, 3, ""))
	now := make(chan struct{})
	close(now)
	for i, want := range [][]string{{"60x90", "-", "-"}, {"60x90", "60x90", "-"}, {"60x90", "60x90", "60x90"}} {
		r.pages()
		_, err := r.run(task.WithPause(t.Context(), now))
		if paused := i < 2; (err != nil) != paused {
			t.Fatalf("run %d: %v", i+1, err)
		}
		r.want(fmt.Sprintf("run %d", i+1), r.pages(), want)
		r.DB.Exec(t, "update task set status = 'completed' where status = 'pending'")
	}
}

// Pages of a solid 7z are skipped until there is a page pack.
func TestPagesOfAPack(t *testing.T) {
	t.Parallel()
	r := newRig(t, testkit.SevenZip(t, testkit.File{Name: "1.jpg", Data: testkit.JPEG(t, 300, 450, 1)}, testkit.File{Name: "2.jpg", Data: testkit.JPEG(t, 310, 460, 2)}))
	r.pages()
	r.want("tasks without a pack", len(r.waiting(task.MeasurePages)), 0)

	h := task.Held{Tenant: r.One, ID: uuid.New(), Type: task.PackBook, BookID: &r.book, Epoch: 1}
	var b pgx.Batch
	if err := task.Add(&b, task.Spec{ID: h.ID, Type: h.Type, BookID: h.BookID}, &h.ID); err != nil {
		t.Fatal(err)
	}
	if err := r.DB.App.Run(r.In(r.One), &b); err != nil {
		t.Fatal(err)
	}
	r.DB.Exec(t, "update task set status = 'running', lease_epoch = 1 where id = $1", h.ID)
	maker := &pack.Maker{Database: r.DB.App, Content: r.m.Content, Media: r.m.Media, Bucket: r.m.Bucket}
	if _, err := maker.Pack(db.In(t.Context(), h.Scope()), h); err != nil {
		t.Fatal(err)
	}
	r.DB.Exec(t, "update task set status = 'completed' where id = $1", h.ID)
	var key string
	if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select key from page_pack").Scan(&key); err != nil {
		t.Fatal(err)
	}

	// The pack's object is lost: a new one is queued.
	r.DB.Exec(t, "update page_pack set key = $1", key+"x")
	r.pages()
	if _, err := r.run(t.Context()); !fault.Is(err, fault.Conflict) {
		t.Errorf("%v", err)
	}
	r.want("packs", len(r.waiting(task.PackBook)), 1)
	r.DB.Exec(t, "update page_pack set key = $1", key)

	r.pages()
	r.s3.Counter.Reset()
	if _, err := r.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	read := r.s3.Counter.Reset()
	r.want("requests", len(read), 2)
	for _, q := range read {
		if !strings.HasPrefix(q.Path, "/media/") {
			t.Errorf("read %s", q)
		}
	}
	r.want("sizes", r.pages(), []string{"300x450", "310x460"})
}

// Unreadable and missing books, and those of another tenant, are not measured.
func TestBooksThatAreNotMeasured(t *testing.T) {
	t.Parallel()
	r := newRig(t, testkit.Comic(t, 1, 2, ""))
	other := r.User(t, "two", "reader")
	other.Do("GET", "/api/v1/books/"+r.book.String()+"/pages", nil).Want(404)
	for _, change := range []string{"error_type = 'parser'", "analyzed = false", "etag = 'other'"} {
		r.DB.Exec(t, "update book set "+change+" where tenant_id = $1", r.One)
		r.pages()
		r.DB.Exec(t, "update book set error_type = null, analyzed = true, etag = $2 where tenant_id = $1", r.One, r.object.ETag)
	}
	r.want("tasks", len(r.waiting(task.MeasurePages)), 0)
	r.pages()
	r.want("tasks", len(r.waiting(task.MeasurePages)), 1)
}

// The SQL for pages that can be read on their own uses the same methods as package archive.
func TestMethodsOfTheTarget(t *testing.T) {
	t.Parallel()
	r := newRig(t, testkit.Comic(t, 1, 1, ""))
	for _, method := range []uint16{archive.Stored, archive.Deflated, archive.Bare, archive.PDFPage, archive.SevenZip, archive.SolidRAR, archive.PDFPage - 1, archive.SolidRAR + 1} {
		r.DB.Exec(t, "update page_index set methods = array[$2::smallint] where tenant_id = $1", r.One, int16(method))
		r.pages()
		if got, want := len(r.waiting(task.MeasurePages)) == 1, (archive.Entry{Method: method}).Direct(); got != want {
			t.Errorf("method %#x is measured: %t, is direct: %t", method, got, want)
		}
		r.DB.Exec(t, "delete from task where tenant_id = $1", r.One)
	}
}

// A page whose reading panics fails the task, and does not end the worker.
func TestPanic(t *testing.T) {
	t.Parallel()
	r := newRig(t, testkit.Comic(t, 1, 2, ""))
	r.pages()
	r.m.Content = &content.Reader{} // without a store
	if _, err := r.run(t.Context()); !errors.Is(err, fault.ErrPanic) {
		t.Errorf("%v", err)
	}
}
