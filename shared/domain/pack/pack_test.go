package pack_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/analysis"
	"github.com/longbox/longbox/shared/domain/content"
	"github.com/longbox/longbox/shared/domain/pack"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/testkit"
	"github.com/longbox/longbox/shared/testkit/rarpack"
)

// rig is one book of two pages in a solid 7z.
type rig struct {
	t      *testing.T
	db     *testkit.Databases
	s3     *testkit.S3
	media  *blob.Store
	tenant uuid.UUID
	book   uuid.UUID
	object blob.Object
	found  *analysis.Result
	maker  *pack.Maker
	told   int // progress reports of a clean-up
}

func newRig(t *testing.T) *rig {
	t.Helper()
	data, err := os.ReadFile("../../format/sevenz/testdata/lzma2.7z")
	if err != nil {
		t.Fatal(err)
	}
	return newRigOf(t, data)
}

// newRigOf is newRig with another book; its bytes decide the format.
func newRigOf(t *testing.T, data []byte) *rig {
	t.Helper()
	r := &rig{t: t, db: testkit.DB(t), s3: testkit.StartS3(t, "books"), book: uuid.New()}
	var err error
	testkit.WriteFile(t, r.s3.Dir, "books/a.cb7", data)
	for list, err := range r.s3.Store.List(t.Context(), "books", "", "") {
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		r.object = list[0]
	}
	r.media = r.s3.Config.Media()
	reader := &content.Reader{Store: r.s3.Store}
	r.maker = &pack.Maker{Database: r.db.App, Content: reader, Media: r.media, Bucket: "media"}
	if r.found, err = analysis.File(t.Context(), reader, "books", r.object, analysis.Options{}); err != nil {
		t.Fatal(err)
	}
	r.tenant = r.db.Tenant(t, "one")
	library, series := uuid.New(), uuid.New()
	r.exec(`insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2, 'Books', '/books', 'books', '', 'series_volume', 'metadata_first', 'smart')`, r.tenant, library)
	r.exec("insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title) values ($1, $2, $3, 's', 's', 's', 's', 's')", r.tenant, series, library)
	r.exec(`insert into book (tenant_id, id, library_id, series_id, key, size, etag, modified_at, format, title, title_sort, search_title, fingerprint, analyzed)
		values ($1, $2, $3, $4, 'a.cb7', $5, $6, $7, 'cb7', 'a', 'a', 'a', $8, true)`, r.tenant, r.book, library, series, r.object.Size, r.object.ETag, r.object.Modified, r.found.Fingerprint)
	var names, types []string
	var offsets, sizes, crcs []int64
	var methods, zeros []int32
	for _, p := range r.found.Pages {
		names, types, offsets, sizes = append(names, p.Name), append(types, p.MediaType), append(offsets, p.Offset), append(sizes, p.Size)
		crcs, methods, zeros = append(crcs, int64(p.CRC32)), append(methods, int32(int16(p.Method))), append(zeros, 0)
	}
	r.exec(`insert into page_index (tenant_id, book_id, revision, names, types, offsets, lengths, packed, sizes, methods, crcs, widths, heights, file_size, file_etag, file_modified)
		values ($1, $2, 0, $3, $4, $5, $6::int[], $6::int[], $7, $8::int[], $9, $6::int[], $6::int[], $10, $11, $12)`,
		r.tenant, r.book, names, types, offsets, zeros, sizes, methods, crcs, r.object.Size, r.object.ETag, r.object.Modified)
	return r
}

func (r *rig) exec(sql string, args ...any) {
	r.t.Helper()
	r.db.Exec(r.t, sql, args...)
}

// pack runs the task of the book, as a worker does.
func (r *rig) pack() (pack.Result, error) {
	var b pgx.Batch
	var id uuid.UUID
	if err := pack.Queue(&b, r.book, &id); err != nil {
		return pack.Result{}, err
	}
	if err := r.db.App.Run(db.In(context.Background(), db.Tenant(r.tenant)), &b); err != nil {
		return pack.Result{}, err
	}
	r.exec("update task set status = 'running', lease_epoch = 1 where id = $1", id)
	h := task.Held{Tenant: r.tenant, ID: id, Type: task.PackBook, BookID: &r.book, Epoch: 1, Params: json.RawMessage(`{}`)}
	out, err := r.maker.Pack(db.In(context.Background(), h.Scope()), h)
	r.exec("update task set status = 'completed' where id = $1", id)
	if err != nil {
		return pack.Result{}, err
	}
	return out.(pack.Result), nil
}

type packed struct {
	Key     string  `db:"key"`
	Size    int64   `db:"size"`
	ETag    string  `db:"etag"`
	Offsets []int64 `db:"offsets"`
	Sizes   []int64 `db:"sizes"`
	CRCs    []int64 `db:"crcs"`
}

func (r *rig) row() *packed {
	r.t.Helper()
	p, err := db.Get[packed](db.In(context.Background(), db.Tenant(r.tenant)), r.db.App, "select key, size, etag, offsets, sizes, crcs from page_pack where tenant_id = app.tenant()")
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

func TestPagesOfAPackAreRanges(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	res, err := r.pack()
	if err != nil || res.Pages != 2 {
		t.Fatalf("%+v, %v", res, err)
	}
	p := r.row()
	body, o, err := r.media.Get(t.Context(), "media", p.Key)
	if err != nil || o.Size != p.Size || res.Bytes != p.Size {
		t.Fatalf("%+v, %+v, %v", o, p, err)
	}
	if whole, err := io.ReadAll(body); err != nil || !bytes.HasPrefix(whole, []byte("PK\x03\x04")) {
		t.Errorf("%d bytes, %v", len(whole), err)
	}
	body.Close()
	for i, page := range r.found.Pages {
		data, err := r.media.ReadRange(t.Context(), "media", blob.Object{Key: p.Key, Size: p.Size, ETag: p.ETag}, p.Offsets[i], p.Sizes[i])
		if err != nil || crc32.ChecksumIEEE(data) != page.CRC32 || int64(page.CRC32) != p.CRCs[i] || string(data[:2]) != "BM" {
			t.Errorf("page %d: %d bytes, %v", i+1, len(data), err)
		}
	}
	// A second run does nothing.
	if res, err := r.pack(); err != nil || res.Pages != 0 {
		t.Errorf("again: %+v, %v", res, err)
	}
}

// If the bucket was emptied, or contains another object, the row alone is no pack.
func TestLostPackIsMadeAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, lose := range map[string]func(key string) error{
		"gone":    func(key string) error { return r.media.Delete(t.Context(), "media", key) },
		"another": func(key string) error { return r.media.Put(t.Context(), "media", key, "application/zip", []byte("PK")) },
	} {
		if res, err := r.pack(); err != nil || res.Pages != 2 {
			t.Fatalf("%s: %+v, %v", name, res, err)
		}
		if err := lose(r.row().Key); err != nil {
			t.Fatal(err)
		}
		r.s3.Counter.Meddle(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
			if req.Method == http.MethodPut && r.row() != nil {
				t.Errorf("%s: readers go to the lost pack while the new one is made", name)
			}
			next.ServeHTTP(w, req)
		})
		if res, err := r.pack(); err != nil || res.Pages != 2 {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
		r.s3.Counter.Meddle(nil)
		p := r.row()
		data, err := r.media.ReadRange(t.Context(), "media", blob.Object{Key: p.Key, Size: p.Size, ETag: p.ETag}, p.Offsets[1], p.Sizes[1])
		if err != nil || crc32.ChecksumIEEE(data) != r.found.Pages[1].CRC32 {
			t.Errorf("%s: %d bytes, %v", name, len(data), err)
		}
		r.exec("delete from page_pack")
	}
}

// TestSolidRAR packs pages that need the previous ones: the first page needs none and stays in the book.
func TestSolidRAR(t *testing.T) {
	t.Parallel()
	var pages []rarpack.File
	for i := range 4 { // the last repeats the first one with another ending
		pages = append(pages, rarpack.File{Name: fmt.Sprintf("%d.jpg", i+1), Data: append(testkit.JPEG(t, 300, 450, i%3), byte(i))})
	}
	data, err := rarpack.Archive(rarpack.Options{Solid: true}, pages...)
	if err != nil {
		t.Fatal(err)
	}
	r := newRigOf(t, data)
	res, err := r.pack()
	if err != nil || res.Pages != 3 {
		t.Fatalf("%+v, %v", res, err)
	}
	p := r.row()
	if p.Offsets[0] != -1 {
		t.Errorf("the first page stands in the pack too: %v", p.Offsets)
	}
	for i, page := range pages[1:] {
		got, err := r.media.ReadRange(t.Context(), "media", blob.Object{Key: p.Key, Size: p.Size, ETag: p.ETag}, p.Offsets[i+1], p.Sizes[i+1])
		if err != nil || !bytes.Equal(got, page.Data) {
			t.Errorf("%s: %d bytes, %v", page.Name, len(got), err)
		}
	}
}

// A file that a solid archive stores once, under two names, yields two pages of the pack.
func TestFileOfTwoNames(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec(`update page_index set names[2] = names[1], types[2] = types[1], offsets[2] = offsets[1], sizes[2] = sizes[1], methods[2] = methods[1], crcs[2] = crcs[1]`)
	res, err := r.pack()
	if err != nil || res.Pages != 2 {
		t.Fatalf("%+v, %v", res, err)
	}
	p := r.row()
	for i := range 2 {
		got, err := r.media.ReadRange(t.Context(), "media", blob.Object{Key: p.Key, Size: p.Size, ETag: p.ETag}, p.Offsets[i], p.Sizes[i])
		if err != nil || crc32.ChecksumIEEE(got) != r.found.Pages[0].CRC32 {
			t.Errorf("page %d: %d bytes, %v", i+1, len(got), err)
		}
	}
}

func TestTwoAtOnceGiveOnePack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var wait sync.WaitGroup
	ids := make([]uuid.UUID, 2)
	for i := range ids {
		wait.Go(func() {
			var b pgx.Batch
			if err := pack.Queue(&b, r.book, &ids[i]); err != nil {
				t.Error(err)
			}
			if err := r.db.App.Run(db.In(context.Background(), db.Tenant(r.tenant)), &b); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if ids[0] != ids[1] {
		t.Errorf("two tasks: %v", ids)
	}
}

// objects returns the keys of the tenant's objects in the media bucket.
func (r *rig) objects() (keys []string) {
	r.t.Helper()
	for list, err := range r.media.List(r.t.Context(), "media", r.tenant.String()+"/", "") {
		if err != nil {
			r.t.Fatal(err)
		}
		for _, o := range list {
			keys = append(keys, o.Key)
		}
	}
	return keys
}

// A pack of new content has a new name; the previous one is deleted.
func TestNewPackReplacesTheOldOne(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if _, err := r.pack(); err != nil {
		t.Fatal(err)
	}
	old := r.row().Key
	r.exec("update book set fingerprint = 'other'")
	if res, err := r.pack(); err != nil || res.Pages != 2 {
		t.Fatalf("%+v, %v", res, err)
	}
	if now := r.row().Key; now == old || !slices.Equal(r.objects(), []string{now}) {
		t.Errorf("%s, then %s; there are %v", old, now, r.objects())
	}
}

// Books with the same content have packs of their own, whose names require the tenant's secret.
func TestNamesOfPacks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	keys := map[string]bool{}
	add := func() {
		t.Helper()
		if res, err := r.pack(); err != nil || res.Pages != 2 {
			t.Fatalf("%+v, %v", res, err)
		}
		keys[r.row().Key] = true
		r.exec("delete from page_pack")
	}
	add()
	r.exec("update tenant set secret = sha256(secret)")
	add()
	twin := uuid.New()
	r.exec(`insert into book (tenant_id, id, library_id, series_id, key, size, etag, modified_at, format, title, title_sort, search_title, fingerprint, analyzed)
		select tenant_id, $1, library_id, series_id, 'twin.cb7', size, etag, modified_at, format, title, title_sort, search_title, fingerprint, true from book`, twin)
	testkit.WriteFile(t, r.s3.Dir, "books/twin.cb7", must(os.ReadFile(r.s3.Dir+"/books/a.cb7")))
	r.exec("update page_index set book_id = $1", twin)
	if err := os.Chtimes(r.s3.Dir+"/books/twin.cb7", r.object.Modified, r.object.Modified); err != nil {
		t.Fatal(err)
	}
	r.book = twin
	add()
	if len(keys) != 3 {
		t.Errorf("names: %v", keys)
	}
}

func must(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}

// A missing book has nothing to pack; a damaged file is reported.
func TestNothingToPack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	file := r.s3.Dir + "/books/a.cb7"
	data := must(os.ReadFile(file))
	for _, c := range []struct {
		what   string
		change func() error
		kind   fault.Code
		says   string
	}{
		{"removed", func() error { r.exec("update book set deleted_at = now()"); return nil }, fault.NotFound, "Book not found"},
		{"not read yet", func() error { r.exec("update book set deleted_at = null, fingerprint = ''"); return nil }, fault.NotFound, "Book not found"},
		{"its file is another", func() error {
			r.exec("update book set fingerprint = $1", r.found.Fingerprint)
			return os.WriteFile(file, append(data, 0), 0o644)
		}, fault.Conflict, "scan the library"},
		{"its file is gone", func() error { return os.Remove(file) }, fault.Conflict, "scan the library"},
	} {
		if err := c.change(); err != nil {
			t.Fatal(err)
		}
		if res, err := r.pack(); !fault.Is(err, c.kind) || !strings.Contains(fault.From(err).Message, c.says) || len(r.objects()) != 0 {
			t.Errorf("%s: %+v, %v", c.what, res, err)
		}
	}
	if _, err := r.maker.Pack(t.Context(), task.Held{}); !fault.Is(err, fault.BadRequest) {
		t.Errorf("a task without a book: %v", err)
	}
}

// A store that does not give the file, or a page that is not drawn: the task says what to do, and is only repeated if
// that may help. Failures of the media bucket say nothing about the book.
func TestBookThatIsNotGiven(t *testing.T) {
	t.Parallel()
	answer := func(bucket string, status int, body string, methods ...string) func(*rig) {
		return func(r *rig) {
			r.s3.Counter.Meddle(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
				if strings.HasPrefix(req.URL.Path, "/"+bucket+"/") && slices.Contains(methods, req.Method) {
					http.Error(w, body, status)
					return
				}
				next.ServeHTTP(w, req)
			})
		}
	}
	drawn := func(r *rig, data []byte, err error) {
		r.maker.Content.Draw = func(context.Context, io.ReaderAt, int64, int) ([]byte, error) { return data, err }
		r.exec("update page_index set sizes = '{0,0}', offsets = '{0,1}', methods = array_fill($1::smallint, '{2}')", int32(archive.PDFPage)-1<<16)
	}
	for name, c := range map[string]struct {
		meddle func(r *rig)
		kind   fault.Code
		says   string // empty: nothing
	}{
		"archived":             {answer("books", 403, "<Error><Code>InvalidObjectState</Code></Error>", "GET"), fault.Conflict, "archived"},
		"denied":               {answer("books", 403, "", "GET"), fault.Conflict, "permissions"},
		"listed, but not open": {answer("books", 500, "", "GET"), fault.Conflict, "permissions"},
		"away":                 {answer("books", 500, "", "GET", "HEAD"), fault.Unavailable, "not reachable"},
		"not drawn":            {func(r *rig) { drawn(r, nil, &archive.Undrawn{Err: errors.New("busy")}) }, fault.Unavailable, "drawn"},
		"not stored": {func(r *rig) {
			drawn(r, make([]byte, 20<<20), nil)
			answer("media", 403, "", "POST")(r)
		}, fault.Conflict, "media bucket refuses access"},
		"not stored at once":           {answer("media", 403, "", "PUT"), fault.Conflict, "media bucket refuses access"},
		"no media bucket":              {answer("media", 404, "", "PUT"), fault.Unavailable, "media bucket does not exist"},
		"media bucket does not work":   {answer("media", 500, "", "PUT"), fault.Unavailable, "media bucket is not reachable"},
		"not stored, nobody knows why": {answer("media", 400, "", "PUT"), fault.Unavailable, "media bucket cannot be written"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			c.meddle(r)
			_, err := r.pack()
			var said fault.Error
			if e := new(fault.Error); errors.As(err, &e) {
				said = *e
			}
			if err == nil || said.Code != c.kind || !strings.Contains(said.Message, c.says) || (said.Message == "") != (c.says == "") {
				t.Errorf("%+v, %v", said, err)
			}
		})
	}
}

// Changes between storing the object and writing its row.
func TestPackThatCannotBeNamed(t *testing.T) {
	t.Parallel()
	row := func(r *rig, key string) {
		r.exec(`insert into page_pack (tenant_id, book_id, fingerprint, key, size, etag, offsets, sizes, crcs)
			values ($1, $2, $3, $4, 1, '', '{}', '{}', '{}')`, r.tenant, r.book, r.found.Fingerprint, key)
	}
	for name, c := range map[string]struct {
		meanwhile func(r *rig, key string)
		lost      bool // the lease is lost, and with it the error
		stays     bool // the object is kept
	}{
		"the book has other content": {meanwhile: func(r *rig, _ string) { r.exec("update book set fingerprint = 'other'") }},
		"the book is gone":           {meanwhile: func(r *rig, _ string) { r.exec("delete from book") }},
		"the task is gone":           {meanwhile: func(r *rig, _ string) { r.exec("update task set lease_epoch = 2") }, lost: true},
		"another worker has made the same pack": {meanwhile: func(r *rig, key string) {
			r.exec("update task set lease_epoch = 2")
			row(r, key)
		}, lost: true, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.s3.Counter.Meddle(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
				next.ServeHTTP(w, req)
				if key, ok := strings.CutPrefix(req.URL.Path, "/media/"); ok && req.Method == http.MethodPut {
					c.meanwhile(r, key)
				}
			})
			res, err := r.pack()
			r.s3.Counter.Meddle(nil)
			if res.Pages != 0 || db.LeaseLost(err) != c.lost || (err != nil) != c.lost {
				t.Errorf("%+v, %v", res, err)
			}
			if left := r.objects(); (len(left) == 1) != c.stays || len(left) > 1 {
				t.Errorf("there are %v", left)
			}
		})
	}
}

// Packs and renditions share one limit.
func TestQuota(t *testing.T) {
	t.Parallel()
	const room = 1_000_000 // much more than the pack needs
	used := func(r *rig, n int) {
		r.exec("insert into rendition_usage (tenant_id, bytes) values ($1, $2) on conflict (tenant_id) do update set bytes = excluded.bytes", r.tenant, n)
	}
	drawn := func(r *rig) { // two pages whose sizes are unknown before
		r.maker.Content.Draw = func(context.Context, io.ReaderAt, int64, int) ([]byte, error) { return make([]byte, 1200), nil }
		r.exec("update page_index set sizes = '{0,0}', offsets = '{0,1}', methods = array_fill($1::smallint, '{2}')", int32(archive.PDFPage)-1<<16)
	}
	for name, c := range map[string]struct {
		limit            int64
		before, uploaded func(r *rig)
		puts             int
	}{
		"too large":                             {limit: 1000},
		"nothing at all":                        {before: drawn},
		"too large, as it turns out on the way": {limit: 1000, before: drawn},
		"too large by the last page":            {limit: 2000, before: drawn, puts: 1},
		"renditions fill it":                    {limit: room, before: func(r *rig) { used(r, room-1000) }},
		"packs fill it, and nobody has measured": {limit: room, before: func(r *rig) {
			r.exec(`insert into page_pack (tenant_id, book_id, fingerprint, key, size, etag, offsets, sizes, crcs)
				values ($1, $2, '', '', $3, '', '{}', '{}', '{}')`, r.tenant, uuid.New(), room-1000)
		}},
		"renditions take it meanwhile": {limit: room, uploaded: func(r *rig) { used(r, room-1000) }, puts: 1},
		"a limit is set meanwhile":     {limit: -1, uploaded: func(r *rig) { r.exec("update tenant set max_rendition_bytes = 1000") }, puts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.exec("update tenant set max_rendition_bytes = nullif($2, -1) where id = $1", r.tenant, c.limit)
			if c.before != nil {
				c.before(r)
			}
			r.s3.Counter.Reset()
			r.s3.Counter.Meddle(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
				next.ServeHTTP(w, req)
				if c.uploaded != nil && req.Method == http.MethodPut {
					c.uploaded(r)
				}
			})
			_, err := r.pack()
			r.s3.Counter.Meddle(nil)
			if !fault.Is(err, fault.Conflict) {
				t.Errorf("%v", err)
			}
			if n := len(testkit.Objects(r.s3.Counter.Reset(), http.MethodPut)); n != c.puts {
				t.Errorf("the pack was stored %d times, want %d", n, c.puts)
			}
			if p := r.row(); p != nil && p.Key != "" || len(r.objects()) != 0 {
				t.Errorf("%+v, %v", p, r.objects())
			}
		})
	}
}

func TestPackIsCounted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec("update tenant set max_rendition_bytes = 1000000 where id = $1", r.tenant)
	r.exec("insert into rendition_usage (tenant_id, bytes) values ($1, 50)", r.tenant)
	res, err := r.pack()
	if err != nil {
		t.Fatal(err)
	}
	var used int64
	row := r.db.Owner.Pool().QueryRow(t.Context(), "select bytes from rendition_usage where tenant_id = $1", r.tenant)
	if err := row.Scan(&used); err != nil || used != 50+res.Bytes {
		t.Errorf("%d bytes are counted after a pack of %d, %v", used, res.Bytes, err)
	}
}

func TestDamagedBookLeavesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	data, err := os.ReadFile(r.s3.Dir + "/books/a.cb7")
	if err != nil {
		t.Fatal(err)
	}
	data[200] ^= 0xff
	if err := os.WriteFile(r.s3.Dir+"/books/a.cb7", data, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(r.s3.Dir+"/books/a.cb7", r.object.Modified, r.object.Modified); err != nil {
		t.Fatal(err)
	}
	if _, err := r.pack(); !fault.Is(err, fault.Conflict) {
		t.Errorf("%v", err)
	}
	for list, err := range r.media.List(t.Context(), "media", r.tenant.String(), "") {
		if err != nil || len(list) != 0 {
			t.Errorf("%v, %v", list, err)
		}
	}
}

// A damaged page is missing from the pack; the other pages are served from it.
func TestDamagedPageIsLeftOut(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec("update page_index set crcs[2] = (crcs[2] + 1) % 4294967296")
	res, err := r.pack()
	if err != nil || res.Pages != len(r.found.Pages)-1 {
		t.Fatalf("%+v of %d, %v", res, len(r.found.Pages), err)
	}
	p := r.row()
	for i, page := range r.found.Pages {
		if (p.Offsets[i] < 0) != (i == 1) {
			t.Fatalf("pages lie at %v", p.Offsets)
		}
		if i == 1 {
			continue
		}
		got, err := r.media.ReadRange(t.Context(), "media", blob.Object{Key: p.Key, Size: p.Size, ETag: p.ETag}, p.Offsets[i], p.Sizes[i])
		if err != nil || crc32.ChecksumIEEE(got) != page.CRC32 {
			t.Errorf("page %d: %d bytes, %v", i+1, len(got), err)
		}
	}
}

// ending is the context of an invocation that has so much time left, a Duration.
type ending struct {
	context.Context
	left *atomic.Int64
}

func (e ending) Deadline() (time.Time, bool) {
	return time.Now().Add(time.Duration(e.left.Load())), true
}

// continued is a run of the same pack_book task of a book of drawn pages, in an invocation that has so much time.
func (r *rig) continued(id uuid.UUID, left *atomic.Int64, pause <-chan struct{}) (any, error) {
	h := task.Held{Tenant: r.tenant, ID: id, Type: task.PackBook, BookID: &r.book, Epoch: 1}
	return r.maker.Pack(ending{task.WithPause(db.In(r.t.Context(), h.Scope()), pause), left}, h)
}

// A book is written anew with the same pages while its pack is incomplete: a page that needs no pack any more ends no
// run early.
func TestPackOfAFileWrittenAnew(t *testing.T) {
	t.Parallel()
	closed := make(chan struct{})
	close(closed)
	r := newRig(t)
	r.maker.Turn = 1
	var left atomic.Int64
	left.Store(int64(time.Hour))
	r.maker.Content.Draw = func(_ context.Context, _ io.ReaderAt, _ int64, n int) ([]byte, error) { return []byte("image"), nil }
	r.exec(`update page_index set names = '{1,2,3}', types = array_fill(''::text, '{3}'), sizes = '{0,0,0}', offsets = '{0,1,2}', crcs = '{0,0,0}',
		methods = array_fill($1::smallint, '{3}')`, int32(archive.PDFPage)-1<<16)
	id := uuid.New()
	r.exec("insert into task (tenant_id, id, type, status, lease_epoch) values ($1, $2, 'pack_book', 'running', 1)", r.tenant, id)
	if _, err := r.continued(id, &left, closed); err == nil {
		t.Fatal("the pack is complete after one page")
	}
	r.exec("update page_index set methods[3] = 0")
	if _, err := r.continued(id, &left, closed); err != nil {
		t.Fatal(err)
	}
	if p := r.row(); p.Offsets[0] < 0 || p.Offsets[1] < 0 || p.Offsets[2] != -1 {
		t.Errorf("pages lie at %v", p.Offsets)
	}
}

// A pack that takes longer than an invocation, or than a turn, is made in several: what is drawn is readable, and not
// drawn again.
func TestPackInSeveralRuns(t *testing.T) {
	t.Parallel()
	closed := make(chan struct{})
	close(closed)
	for name, c := range map[string]struct {
		ends  time.Duration // from when a page is drawn to the end of the invocation, which is an hour long
		turn  time.Duration
		pause chan struct{}
		runs  int
	}{
		"the invocations end":         {ends: 50 * time.Second, runs: 3},
		"the invocation is not over":  {ends: 2 * time.Minute, runs: 1},
		"others wait":                 {ends: time.Hour, turn: 1, pause: closed, runs: 3},
		"others wait for a turn":      {ends: time.Hour, turn: time.Hour, pause: closed, runs: 1},
		"in one run, as nobody waits": {ends: time.Hour, turn: 1, runs: 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.maker.Turn = c.turn
			drawn, left := map[int]int{}, atomic.Int64{}
			image := func(n int) []byte { return bytes.Repeat([]byte{byte('a' + n)}, 3<<20) }
			r.maker.Content.Draw = func(_ context.Context, _ io.ReaderAt, _ int64, n int) ([]byte, error) {
				left.Store(int64(c.ends))
				if drawn[n]++; n == 1 {
					return nil, &archive.Error{Msg: "damaged"}
				}
				return image(n), nil
			}
			r.exec(`update page_index set names = '{1,2,3,4}', types = array_fill(''::text, '{4}'), sizes = '{0,0,0,0}', offsets = '{0,1,2,3}', crcs = '{0,0,0,0}',
				methods = array_fill($1::smallint, '{4}')`, int32(archive.PDFPage)-1<<16)
			r.exec("update tenant set max_rendition_bytes = 10000000 where id = $1", r.tenant)
			id := uuid.New()
			r.exec("insert into task (tenant_id, id, type, status, lease_epoch) values ($1, $2, 'pack_book', 'running', 1)", r.tenant, id)
			for run := 1; ; run++ {
				left.Store(int64(time.Hour))
				_, err := r.continued(id, &left, c.pause)
				p := r.row()
				if p == nil || len(r.objects()) != 1 {
					t.Fatalf("run %d: %v, %+v, %v", run, err, p, r.objects())
				}
				for n, offset := range p.Offsets {
					if (offset >= 0) != (drawn[n] > 0 && n != 1) || drawn[n] > 1 {
						t.Errorf("run %d: pages lie at %v, drawn %v", run, p.Offsets, drawn)
					}
					if offset < 0 {
						continue
					}
					got, err := r.media.ReadRange(t.Context(), "media", blob.Object{Key: p.Key, Size: p.Size, ETag: p.ETag}, offset, p.Sizes[n])
					if err != nil || !bytes.Equal(got, image(n)) || crc32.ChecksumIEEE(got) != uint32(p.CRCs[n]) {
						t.Errorf("run %d, page %d: %d bytes, %v", run, n+1, len(got), err)
					}
				}
				if (err == nil) != (run >= c.runs) || run > c.runs {
					t.Fatalf("run %d of %d: %v", run, c.runs, err)
				}
				if err == nil {
					break
				}
			}
			if len(drawn) != 4 {
				t.Errorf("drawn %v", drawn)
			}
			var used int64
			row := r.db.Owner.Pool().QueryRow(t.Context(), "select bytes from rendition_usage where tenant_id = $1", r.tenant)
			if err := row.Scan(&used); err != nil || used != r.row().Size {
				t.Errorf("%d bytes are counted for a pack of %d, %v", used, r.row().Size, err)
			}
			if _, err := r.continued(id, &left, c.pause); err != nil || len(drawn) != 4 {
				t.Errorf("again: drawn %v, %v", drawn, err)
			}
		})
	}
}

// The rest of a pack whose object was lost between two runs is not made alone.
func TestIncompletePackIsLost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := uuid.New()
	r.exec("insert into task (tenant_id, id, type, status, lease_epoch) values ($1, $2, 'pack_book', 'running', 1)", r.tenant, id)
	r.maker.Turn = 1
	var left atomic.Int64
	left.Store(int64(time.Hour))
	closed := make(chan struct{})
	close(closed)
	if _, err := r.continued(id, &left, closed); err == nil {
		t.Fatal("it is complete")
	}
	if err := r.media.Delete(t.Context(), "media", r.row().Key); err != nil {
		t.Fatal(err)
	}
	if _, err := r.continued(id, &left, nil); err != nil {
		t.Fatal(err)
	}
	if p := r.row(); p.Offsets[0] < 0 || p.Offsets[1] < 0 {
		t.Errorf("pages lie at %v", p.Offsets)
	}
}

func (r *rig) expirer() *pack.Expirer {
	return &pack.Expirer{System: r.db.System, Media: r.media, Bucket: "media"}
}

// A pack that cannot be deleted keeps its row, and does not affect other packs.
func TestExpireBehindWhatIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	key := r.tenant.String() + "/pack/"
	for _, name := range []string{"locked", "other"} {
		testkit.WriteFile(t, r.s3.Dir, "media/"+key+name, []byte("x"))
		r.exec("insert into page_pack (tenant_id, book_id, fingerprint, key, size, etag, offsets, sizes, crcs) values ($1, $2, 'f', $3, 1, '', '{}', '{}', '{}')", r.tenant, uuid.New(), key+name)
	}
	r.s3.Keep("locked")
	var refused *blob.Undeleted
	if n, err := r.expirer().Expire(t.Context(), time.Now()); n != 1 || !errors.As(err, &refused) {
		t.Errorf("%d, %v", n, err)
	}
	if row := r.row(); row == nil || row.Key != key+"locked" {
		t.Errorf("the row %+v", row)
	}
}

// However many packs the store refuses, the others are deleted.
func TestExpireBehindManyThatAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	key := r.tenant.String() + "/pack/"
	for i, name := range []string{"locked1", "locked2", "a", "b", "c"} {
		testkit.WriteFile(t, r.s3.Dir, "media/"+key+name, []byte("x"))
		r.exec("insert into page_pack (tenant_id, book_id, fingerprint, key, size, etag, offsets, sizes, crcs) values ($1, $2, 'f', $3, 1, '', '{}', '{}', '{}')",
			r.tenant, uuid.UUID{byte(i + 1)}, key+name)
	}
	r.s3.Keep("locked")
	if n, err := r.expirer().InSteps(2).Expire(t.Context(), time.Now()); n != 3 || !errors.As(err, new(*blob.Undeleted)) || r.rows() != 2 {
		t.Errorf("%d, %v, %d rows", n, err, r.rows())
	}
}

// Each call continues where the time of the last one was up; a day later, a pass begins anew.
func TestExpireGoesOn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	key := r.tenant.String() + "/pack/x"
	testkit.WriteFile(t, r.s3.Dir, "media/"+key, []byte("x"))
	add := func(n byte, key string) { // of that content
		r.exec("insert into page_pack (tenant_id, book_id, fingerprint, key, size, etag, offsets, sizes, crcs) values ($1, $2, $3, $3, 1, '', '{}', '{}', '{}')",
			r.tenant, uuid.UUID{n}, key)
	}
	for n := range byte(3) {
		r.exec(`insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title, fingerprint)
			select tenant_id, $1, library_id, series_id, $2, 1, now(), 'cb7', 'b', 'b', 'b', $2 from book where id = $3`, uuid.UUID{n + 1}, fmt.Sprint("of ", n), r.book)
	}
	add(1, "of 0")
	add(2, "of 1")
	add(3, key)
	now, e := time.Now(), r.expirer().InSteps(1)
	for i, want := range []int{0, 0, 1, 0, 0} {
		if n, err := e.Step(t.Context(), now); n != want || err != nil {
			t.Errorf("call %d: %d, %v; want %d", i+1, n, err, want)
		}
	}
	r.exec("update book set fingerprint = '' where id = $1", uuid.UUID{1})
	for wait, want := range []int{0, 1} {
		now = now.Add(time.Duration(wait) * 24 * time.Hour)
		if n, err := e.Step(t.Context(), now); n != want || err != nil {
			t.Errorf("%d days later: %d, %v; want %d", wait, n, err, want)
		}
	}
}

func TestExpire(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if _, err := r.pack(); err != nil {
		t.Fatal(err)
	}
	key := r.row().Key
	if n, err := r.expirer().Expire(t.Context(), time.Now()); n != 0 || err != nil {
		t.Errorf("of a living book: %d, %v", n, err)
	}
	r.exec("update book set fingerprint = 'other'")
	if n, err := r.expirer().Expire(t.Context(), time.Now()); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, _, err := r.media.Get(t.Context(), "media", key); !errors.Is(err, blob.ErrNotFound) || r.row() != nil {
		t.Errorf("still there: %v", err)
	}
}

// If the store does not respond, or the pack is made again meanwhile, the row stays; one tenant's failure does not
// affect the others.
func TestExpireMeanwhile(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	two := r.db.Tenant(t, "two")
	stale := func(tenant uuid.UUID, name string) {
		key := tenant.String() + "/pack/" + name
		testkit.WriteFile(t, r.s3.Dir, "media/"+key, []byte("x"))
		r.exec("insert into page_pack (tenant_id, book_id, fingerprint, key, size, etag, offsets, sizes, crcs) values ($1, gen_random_uuid(), 'f', $2, 1, '', '{}', '{}', '{}')", tenant, key)
	}
	stale(r.tenant, "a")
	r.s3.Counter.Meddle(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(http.StatusForbidden) })
	if n, err := r.expirer().Expire(t.Context(), time.Now()); n != 0 || err == nil || r.rows() != 1 {
		t.Errorf("the store refuses everything: %d, %v, %d rows", n, err, r.rows())
	}
	for _, tenant := range []uuid.UUID{r.tenant, two} {
		stale(two, tenant.String())
		r.s3.Keep(tenant.String() + "/pack/")
		n, err := r.expirer().Expire(t.Context(), time.Now())
		if n != 1 || !errors.As(err, new(*blob.Undeleted)) {
			t.Errorf("what one tenant's files keep of another's: %d, %v", n, err)
		}
		r.exec("delete from page_pack")
		stale(r.tenant, "b")
	}
	r.s3.Counter.Meddle(func(w http.ResponseWriter, q *http.Request, next http.Handler) {
		next.ServeHTTP(w, q)
		r.exec("update page_pack set key = key || 'new'")
	})
	if n, err := r.expirer().Expire(t.Context(), time.Now()); n != 0 || err != nil || r.rows() != 1 {
		t.Errorf("made anew meanwhile: %d, %v, %d rows", n, err, r.rows())
	}
}

// The sizes of the packs are added up only for a tenant with a limit.
func TestPacksAreAddedUpForALimit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for limit, want := range map[string]bool{"null": false, "1000": true} {
		r.exec("update tenant set max_rendition_bytes = "+limit+" where id = $1", r.tenant)
		tx, err := r.db.Owner.Pool().Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback(context.Background())
		var plan string
		err = tx.QueryRow(t.Context(), "select set_config('app.tenant', $1, true)", r.tenant.String()).Scan(new(string))
		if err == nil {
			err = tx.QueryRow(t.Context(), "explain (analyze, timing off, format json) "+pack.FindBook, r.book).Scan(&plan)
		}
		if err != nil {
			t.Fatal(err)
		}
		of := strings.Index(plan, `"Alias": "o"`)
		if of < 0 {
			t.Fatalf("packs are not added up: %s", plan)
		}
		_, rest, _ := strings.Cut(plan[of:], `"Actual Loops": `)
		if added := !strings.HasPrefix(rest, "0"); added != want {
			t.Errorf("limit %s: added up is %t, want %t: %s", limit, added, want, plan)
		}
	}
}
