package digest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/content"
	"github.com/longbox/longbox/shared/domain/koreader/digest"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/testkit"
)

// rig is a library of small files, and the maker of their digests.
type rig struct {
	*testkit.Server
	t       *testing.T
	s3      *testkit.S3
	library uuid.UUID
	series  uuid.UUID
	files   map[string][]byte
	m       *digest.Maker
}

func newRig(t *testing.T, n int) *rig {
	r := &rig{Server: testkit.Serve(t), t: t, s3: testkit.StartS3(t, "books"), library: uuid.New(), series: uuid.New(), files: map[string][]byte{}}
	r.m = &digest.Maker{Database: r.DB.App, Content: &content.Reader{Store: r.s3.Store}, Publish: func(context.Context, uuid.UUID, ...events.Event) {},
		Parallel: 1, Timeout: time.Minute}
	r.DB.Exec(t, `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2, 'Books', '/books', 'books', '', 'series_volume', 'metadata_first', 'smart')`, r.One, r.library)
	r.DB.Exec(t, "insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title) values ($1, $2, $3, 's', 's', 's', 's', 's')", r.One, r.series, r.library)
	for i := range n {
		name := fmt.Sprintf("%d.cbz", i)
		r.DB.Exec(t, `insert into book (tenant_id, id, library_id, series_id, key, size, etag, modified_at, format, title, title_sort, search_title)
			values ($1, ('00000000-0000-7000-8000-' || lpad($2::integer::text, 12, '0'))::uuid, $3, $4, $5, 0, '', now(), 'cbz', $5, $5, $5)`, r.One, i, r.library, r.series, name)
		r.write(name, bytes.Repeat([]byte{byte(i)}, 2000+i))
	}
	return r
}

// write replaces a file, and updates the book as a scan would.
func (r *rig) write(name string, data []byte) {
	r.t.Helper()
	r.files[name] = data
	testkit.WriteFile(r.t, r.s3.Dir, "books/"+name, data)
	for list, err := range r.s3.Store.List(r.t.Context(), "books", "", "") {
		if err != nil {
			r.t.Fatal(err)
		}
		for _, o := range list {
			r.DB.Exec(r.t, "update book set size = $2, etag = $3, modified_at = $4 where key = $1", o.Key, o.Size, o.ETag, o.Modified)
		}
	}
}

// run runs the task from a checkpoint, and returns the stored checkpoint.
func (r *rig) run(ctx context.Context, place json.RawMessage) (digest.Result, json.RawMessage, error) {
	r.t.Helper()
	h := task.Held{Tenant: r.One, ID: uuid.New(), Type: task.KOReaderDigests, Epoch: 1, Place: place}
	r.DB.Exec(r.t, "insert into task (tenant_id, id, type, status, lease_epoch) values ($1, $2, $3, 'running', 1)", r.One, h.ID, h.Type)
	out, err := r.m.Make(db.In(ctx, h.Scope()), h)
	if e := r.DB.Owner.Pool().QueryRow(r.t.Context(), "select place from task where id = $1", h.ID).Scan(&place); e != nil {
		r.t.Fatal(e)
	}
	got, _ := out.(digest.Result)
	return got, place, err
}

// known returns the files whose digest matches their current content.
func (r *rig) known() (names string) {
	r.t.Helper()
	rows, err := r.DB.Owner.Pool().Query(r.t.Context(), `select b.key, d.digest from koreader_digest d join book b on b.id = d.book_id
		where (d.file_size, d.file_etag, d.file_modified) = (b.size, b.etag, b.modified_at) order by b.key`)
	if err != nil {
		r.t.Fatal(err)
	}
	for rows.Next() {
		var name, digest string
		if err := rows.Scan(&name, &digest); err != nil {
			r.t.Fatal(err)
		}
		if want := partial(bytes.NewReader(r.files[name])); digest != want {
			r.t.Errorf("%s: %s, want %s", name, digest, want)
		}
		names += strings.TrimSuffix(name, ".cbz")
	}
	return names
}

func (r *rig) is(what, got, want string) {
	r.t.Helper()
	if got != want {
		r.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// A run that is told to pause has stored a book, and the next run continues after it.
func TestPause(t *testing.T) {
	t.Parallel()
	r := newRig(t, 3)
	now := make(chan struct{})
	close(now)
	ctx := task.WithPause(t.Context(), now)
	var place json.RawMessage
	for _, want := range []string{"0", "01", "012"} {
		var err error
		if _, place, err = r.run(ctx, place); err == nil {
			t.Fatal("it did not pause")
		}
		r.is("known", r.known(), want)
	}
	got, _, err := r.run(ctx, place)
	if err != nil || got != (digest.Result{Books: 3}) {
		t.Errorf("the end: %+v, %v", got, err)
	}
}

// An unreadable file does not affect the others, and is retried by the next run; a failure of the store ends the run,
// keeping earlier results.
func TestTrouble(t *testing.T) {
	t.Parallel()
	r := newRig(t, 4)
	refuse := func(name string, status int) {
		r.s3.Counter.Meddle(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
			if strings.HasSuffix(req.URL.Path, name) {
				w.WriteHeader(status)
				return
			}
			next.ServeHTTP(w, req)
		})
	}
	refuse("1.cbz", http.StatusForbidden)
	got, _, err := r.run(t.Context(), nil)
	if err != nil || got != (digest.Result{Books: 3, Failed: 1}) {
		t.Errorf("with a file that is denied: %+v, %v", got, err)
	}
	r.is("known", r.known(), "023")
	r.s3.Counter.Meddle(nil)
	if got, _, err = r.run(t.Context(), nil); err != nil || got != (digest.Result{Books: 1}) {
		t.Errorf("the next run: %+v, %v", got, err)
	}
	r.is("known", r.known(), "0123")
	r.s3.Counter.Reset()
	if got, _, err = r.run(t.Context(), nil); err != nil || got != (digest.Result{}) || len(r.s3.Counter.Reset()) != 0 {
		t.Errorf("with nothing to do: %+v, %v", got, err)
	}
	for _, name := range []string{"0.cbz", "2.cbz", "3.cbz"} { // others under the same names
		r.write(name, bytes.Repeat([]byte("new"), 1500))
	}
	r.is("known", r.known(), "1")
	refuse("2.cbz", http.StatusBadRequest)
	if _, _, err = r.run(t.Context(), nil); err == nil {
		t.Error("trouble of the store is no error")
	}
	r.is("known", r.known(), "01")
	r.s3.Counter.Meddle(nil)
	if got, _, err = r.run(t.Context(), nil); err != nil || got != (digest.Result{Books: 2}) {
		t.Errorf("after that: %+v, %v", got, err)
	}
	r.is("known", r.known(), "0123")
}

// A file that was replaced since the last scan, takes too long, or is gone counts as failed, and the run goes on.
func TestFilesThatFail(t *testing.T) {
	t.Parallel()
	r := newRig(t, 2)
	run := func(what string, want digest.Result) {
		t.Helper()
		if got, _, err := r.run(t.Context(), nil); err != nil || got != want {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	testkit.WriteFile(t, r.s3.Dir, "books/0.cbz", []byte("another"))
	run("replaced", digest.Result{Books: 1, Failed: 1})
	r.m.Timeout = 100 * time.Millisecond
	r.s3.Counter.Meddle(func(_ http.ResponseWriter, req *http.Request, _ http.Handler) { <-req.Context().Done() })
	run("takes too long", digest.Result{Failed: 1})
	r.m.Timeout = time.Minute
	r.s3.Counter.Meddle(nil)
	if err := os.Remove(filepath.Join(r.s3.Dir, "books", "0.cbz")); err != nil {
		t.Fatal(err)
	}
	run("gone", digest.Result{Failed: 1})
}

// A book whose reading panics does not end the worker, and does not keep the others from their digests.
func TestPanic(t *testing.T) {
	t.Parallel()
	r := newRig(t, 2)
	r.m.Content = nil
	if got, _, err := r.run(t.Context(), nil); err != nil || got != (digest.Result{Failed: 2}) {
		t.Errorf("%+v, %v", got, err)
	}
}
