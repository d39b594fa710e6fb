package pack_test

import (
	"context"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/pack"
	"github.com/longbox/longbox/shared/domain/page"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

// reading is a server whose pages want packs.
type reading struct {
	*testkit.Server
	t     *testing.T
	books []uuid.UUID
}

// pages registers an operation of readers, and one of a CDN.
func pages(a *httpapi.API, d *db.DB) {
	for name, permission := range map[string]string{"pages": auth.PagesRead, "cdn": httpapi.Public} {
		w := &pack.Requester{Database: d}
		httpapi.Register(a, httpapi.Op{Method: "GET", Path: "/api/v1/" + name + "/{id}", ID: name, Summary: "Read", Tag: "Pages", Permission: permission, MayBeEmpty: true},
			func(ctx context.Context, in *httpapi.IDInput) (*struct{}, error) {
				w.Want(ctx, &page.Index{BookID: in.ID})
				return nil, nil
			})
	}
}

func newReading(t *testing.T) *reading {
	t.Helper()
	r := &reading{t: t, books: make([]uuid.UUID, 10)}
	for i := range r.books {
		r.books[i] = uuid.New()
	}
	r.Server = testkit.Serve(t, pages)
	return r
}

// packs returns how many packs are unfinished, and how many of them come before analyses.
func (r *reading) packs() (n, soon int) {
	r.t.Helper()
	row := r.DB.Owner.Pool().QueryRow(r.t.Context(), "select count(*), count(*) filter (where priority > $1) from task where type = 'pack_book' and status in ('pending', 'running')",
		task.Priority(task.AnalyzeBook))
	if err := row.Scan(&n, &soon); err != nil {
		r.t.Fatal(err)
	}
	return n, soon
}

func (r *reading) want(n, soon int) {
	r.t.Helper()
	if got, before := r.packs(); got != n || before != soon {
		r.t.Errorf("%d packs, %d of them before analyses; want %d, %d", got, before, n, soon)
	}
}

func read(c *testkit.Client, at string, books ...uuid.UUID) {
	for _, id := range books {
		c.Do("GET", at+id.String(), nil).Want(204)
	}
}

// A reader who opens many books gets few packs, of which one comes before the analyses of the library.
func TestPacksOfAReaderAreLimited(t *testing.T) {
	t.Parallel()
	r := newReading(t)
	const at = "/api/v1/pages/"
	one, other := r.User(t, "one", "reader"), r.User(t, "one", "reader")
	read(one, at, r.books...)
	r.want(4, 1)
	read(other, at, r.books[9])
	r.want(5, 2)
	if low, covers := task.Priority(task.PackBook), task.Priority(task.SeriesCovers); low >= covers {
		t.Errorf("the others come before covers: %d, %d", low, covers)
	}
	cdn := r.Anonymous(t, "one")
	read(cdn, "/api/v1/cdn/", r.books[4:]...)
	r.want(9, 3) // the other reader's, of the last book, included
}

// When the first pack is made, the next request of a book that waits takes its place; a pack that was queued by the
// scan counts as its reader's.
func TestNextPackOfAReader(t *testing.T) {
	t.Parallel()
	r := newReading(t)
	const at = "/api/v1/pages/"
	one := r.User(t, "one", "reader")
	for _, id := range r.books {
		r.DB.Exec(t, "insert into task (tenant_id, id, type, priority, book_id, dedupe_key) values ($1, $2, 'pack_book', $3, $2, 'pack:' || $2::uuid)", r.One, id, task.Priority(task.PackBook))
	}
	read(one, at, r.books...)
	r.want(10, 1)
	r.DB.Exec(t, "update task set status = 'completed' where book_id = $1", r.books[0])
	read(one.At(r.Beside(t, pages)), at, r.books[2])
	r.want(9, 1)
}

// Requests at the same time get no more.
func TestPacksAtOnce(t *testing.T) {
	t.Parallel()
	r := newReading(t)
	one := r.User(t, "one", "reader")
	var wait sync.WaitGroup
	for _, id := range r.books {
		wait.Go(func() { read(one, "/api/v1/pages/", id) })
	}
	wait.Wait()
	r.want(4, 1)
}
