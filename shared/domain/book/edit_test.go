package book_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

func TestPeopleChangeBooks(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var told []string
	s := testkit.Serve(t, func(a *httpapi.API, d *db.DB) {
		book.Routes(a, d, func(_ context.Context, _ uuid.UUID, e ...events.Event) {
			mu.Lock()
			defer mu.Unlock()
			for _, one := range e {
				told = append(told, one.Kind)
			}
		}, nil)
	})
	me, reader, stranger := s.User(t, "one", "maintainer"), s.User(t, "one", "reader"), s.User(t, "two", "admin")
	_, ids := series(t, s, s.One, library(t, s, s.One, "comics"), "A", 2)
	one := "/api/v1/books/" + ids[0].String()
	locks := one + "/metadata/locks"

	before := me.Do("GET", one, nil).Want(200).Map()
	if m := me.Do("PATCH", one, `{}`).Want(200).Map(); m["title"] != before["title"] || m["updatedAt"] != before["updatedAt"] || len(told) > 0 {
		t.Errorf("no change: %v, %v, %v", m, before, told)
	}
	m := me.Do("PATCH", one, `{"title":" Ärger ","volume":7,"chapter":null}`).Want(200).Map()
	if m["title"] != "Ärger" || m["volume"] != 7.0 || m["chapter"] != nil || m["number"] != 1.0 {
		t.Errorf("%v", m)
	}
	full := me.Do("GET", one, nil).Want(200).Map()
	meta := full["metadata"].(map[string]any)
	if full["titleSort"] != "Ärger" || meta["title"] != "Ärger" || meta["volume"] != 7.0 {
		t.Errorf("%v %v", full, meta)
	}
	locked := func() (out []string) {
		for name, on := range reader.Do("GET", locks, nil).Want(200).Map() {
			if on == true {
				out = append(out, name)
			}
		}
		slices.Sort(out)
		return out
	}
	if got := fmt.Sprint(locked()); got != "[titleLock volumeLock]" {
		t.Errorf("locks %s", got)
	}
	me.Do("PUT", locks, `{"volume_lock":false,"summaryLock":true,"titleLock":null,"unknownLock":true,"title":"x","page":1}`).Want(200)
	if got := fmt.Sprint(locked()); got != "[summaryLock titleLock]" {
		t.Errorf("locks %s", got)
	}
	n := len(told)
	if me.Do("PUT", locks, `{}`).Want(200); len(told) != n {
		t.Errorf("no change of locks: %v", told[n:])
	}
	for _, body := range []string{`{"title":null}`, `{"title":"  "}`, `{"title":"\u200b"}`, `{"number":-1000000001}`, `{"volume":1.5}`, `{"chapter":"x"}`} {
		me.Do("PATCH", one, body).Want(400)
	}
	me.Do("PUT", locks, `{"titleLock":"yes"}`).Want(400)
	for _, c := range []struct {
		method, path string
		body         any
	}{{"PATCH", one, `{"title":"x"}`}, {"PUT", locks, `{"titleLock":true}`}} {
		reader.Do(c.method, c.path, c.body).Want(403)
		s.Anonymous(t, "one").Do(c.method, c.path, c.body).Want(401)
		stranger.Do(c.method, c.path, c.body).Want(404)
	}
	stranger.Do("GET", locks, nil).Want(404)
	gone := "/api/v1/books/" + ids[1].String()
	exec(t, s, "update book set deleted_at = now() where id = $1", ids[1])
	for _, c := range [][3]string{{"PATCH", "", `{"title":"x"}`}, {"PATCH", "/metadata", `{"summary":"x"}`}, {"PUT", "/metadata", `{}`}, {"GET", "/metadata/locks"},
		{"PUT", "/metadata/locks", `{"titleLock":true}`}} {
		me.Do(c[0], gone+c[1], c[2]).Want(404)
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(told, []string{"book_updated", "book_updated"}) { // the change and the locks
		t.Errorf("events %v", told)
	}
}

// A worker writes the book and then its metadata: locking a field in between must wait, or the two would differ
// permanently.
func TestLockWaitsForAWorker(t *testing.T) {
	t.Parallel()
	s, me, paths := editing(t, 1)
	me.Do("PATCH", paths[0]+"/metadata", `{"volume":1}`).Want(200)
	me.Do("PUT", paths[0]+"/metadata/locks", `{"volumeLock":false}`).Want(200)
	worker, err := s.DB.Owner.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = worker.Rollback(t.Context()) }()
	const locked = "(select 'volumeLock' = any(locks) from book_metadata)"
	if _, err := worker.Exec(t.Context(), "update book set volume = 9 where not "+locked); err != nil {
		t.Fatal(err)
	}
	done := make(chan *testkit.Response, 1)
	go func() { done <- me.Do("PUT", paths[0]+"/metadata/locks", `{"volumeLock":true}`) }()
	s.DB.AwaitLock(t)
	if _, err := worker.Exec(t.Context(), `update book_metadata set metadata = metadata || '{"volume": 9}' where not `+locked); err != nil {
		t.Fatal(err)
	}
	if err := worker.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	(<-done).Want(200)
	if m := me.Do("GET", paths[0], nil).Want(200).Map(); m["volume"] != 9.0 || m["metadata"].(map[string]any)["volume"] != 9.0 {
		t.Errorf("volume %v, by the metadata %v", m["volume"], m["metadata"].(map[string]any)["volume"])
	}
}

// Somebody locks a sort title while another one, who gives the book a title, waits for the book: the sort title stays.
func TestTitleWaitsForASortTitle(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", "/metadata"} {
		s, me, paths := editing(t, 1)
		other, err := s.DB.Owner.Pool().Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = other.Rollback(context.WithoutCancel(t.Context())) }()
		for _, sql := range []string{"update book set title_sort = 'Own'", `insert into book_metadata as m (tenant_id, book_id, metadata, locks)
			select tenant_id, id, '{"titleSort": "Own"}', '{titleSortLock}' from book
			on conflict (tenant_id, book_id) do update set metadata = m.metadata || excluded.metadata, locks = excluded.locks`} {
			if _, err := other.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		done := make(chan *testkit.Response, 1)
		go func() { done <- me.Do("PATCH", paths[0]+path, `{"title":"New"}`) }()
		s.DB.AwaitLock(t)
		if err := other.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		(<-done).Want(200)
		if m := me.Do("GET", paths[0], nil).Want(200).Map(); m["title"] != "New" || m["titleSort"] != "Own" || m["metadata"].(map[string]any)["titleSort"] != "Own" {
			t.Errorf("%q: %v sorted by %v, by the metadata %v", path, m["title"], m["titleSort"], m["metadata"])
		}
	}
}

// Titles made from series, volume and chapter (series_name) are renewed, too.
func TestNewVolumeRenamesTheBook(t *testing.T) {
	t.Parallel()
	s, me, paths := editing(t, 2)
	for i, c := range []struct {
		strategy, method, path, body string
		tasks                        int // pending ones of the series
	}{
		{"filename", "PATCH", "", `{"volume":5}`, 0}, {"series_name", "PATCH", "", `{"volume":5}`, 0}, {"series_name", "PATCH", "", `{"number":5}`, 0},
		{"series_name", "PATCH", "", `{"chapter":1.5}`, 1}, {"series_name", "PATCH", "/metadata", `{"volume":6}`, 1}, {"series_name", "PUT", "/metadata", `{"volume":6}`, 1},
		{"series_name", "PUT", "/metadata", `{"volume":6}`, 0}, {"series_name", "PUT", "/metadata", `{}`, 1}, {"series_name", "PATCH", "/metadata", `{"summary":"S"}`, 0},
	} {
		exec(t, s, "delete from task")
		exec(t, s, "update library set book_strategy = $1", c.strategy)
		me.Do(c.method, paths[0]+c.path, c.body).Want(200)
		var n int
		if err := s.DB.Owner.Pool().QueryRow(t.Context(), "select count(*) from task t join book b on b.series_id = t.series_id where t.type = 'renumber_series' and b.id::text = right($1, 36)", paths[0]).
			Scan(&n); err != nil || n != c.tasks {
			t.Errorf("%d %s: %d tasks, want %d; %v", i, c.body, n, c.tasks, err)
		}
	}
	me.Do("PATCH", paths[0], `{"volume":1}`).Want(200)
	me.Do("PATCH", paths[1], `{"volume":9}`).Want(200)
	var n int
	if err := s.DB.Owner.Pool().QueryRow(t.Context(), "select count(*) from task").Scan(&n); err != nil || n != 1 {
		t.Errorf("%d tasks wait, want one for both; %v", n, err)
	}
}

// A worker takes the waiting task that renames the books just when a book gets another volume: another task follows.
func TestNewVolumeWhileTheRenamingBegins(t *testing.T) {
	t.Parallel()
	s, me, paths := editing(t, 1)
	exec(t, s, "update library set book_strategy = 'series_name'")
	me.Do("PATCH", paths[0], `{"volume":5}`).Want(200)
	worker, err := s.DB.Owner.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = worker.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := worker.Exec(t.Context(), "update task set status = 'running', started_at = now()"); err != nil {
		t.Fatal(err)
	}
	done := make(chan *testkit.Response, 1)
	go func() { done <- me.Do("PATCH", paths[0], `{"volume":6}`) }()
	s.DB.AwaitLock(t)
	if err := worker.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	(<-done).Want(200)
	var n int
	if err := s.DB.Owner.Pool().QueryRow(t.Context(), "select count(*) from task where status = 'pending' and type = 'renumber_series'").Scan(&n); err != nil || n != 1 {
		t.Errorf("%d tasks wait, %v", n, err)
	}
}
