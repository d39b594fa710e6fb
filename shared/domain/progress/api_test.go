package progress_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/testkit"
)

// shelf is a library with one series of n books of ten pages each.
func shelf(t *testing.T, s *testkit.Server, n int) (series uuid.UUID, books []uuid.UUID) {
	t.Helper()
	exec := func(sql string, args ...any) {
		t.Helper()
		s.DB.Exec(t, sql, args...)
	}
	library, series := uuid.New(), uuid.New()
	exec(`insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2, $3, '/b', 'b', '', 'series_volume', 'filename', 'file_order')`, s.One, library, library.String())
	exec(`insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title)
		values ($1, $2, $3, 's', 's', 's', 's', 's')`, s.One, series, library)
	for i := range n {
		id := uuid.New()
		books = append(books, id)
		exec(`insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title, number, page_count, analyzed)
			values ($1, $2, $3, $4, $5, 1, now(), 'cbz', $5, $5, $5, $6, 10, true)`, s.One, id, library, series, fmt.Sprintf("s/%d.cbz", i+1), i+1)
		exec(`insert into page_index (tenant_id, book_id, revision, names, types, offsets, lengths, packed, sizes, methods, crcs, widths, heights, file_size, file_etag, file_modified)
			values ($1, $2, 1, '{a}', '{image/png}', '{0}', '{1}', '{1}', '{1}', '{0}', '{0}', '{0}', '{0}', 1, '', now())`, s.One, id)
	}
	return series, books
}

func completions(t *testing.T, s *testkit.Server, book uuid.UUID) (n int) {
	t.Helper()
	if err := s.DB.Owner.Pool().QueryRow(context.Background(), "select count(*) from completion where book_id = $1", book).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestOneBook(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	_, books := shelf(t, s, 1)
	me := s.User(t, "one", "reader")
	path := "/api/v1/books/" + books[0].String() + "/progress"

	if res := me.Do("GET", path, nil).Want(204); len(res.Body) != 0 {
		t.Errorf("204 with a body: %s", res.Body)
	}
	first := me.Do("PUT", path, `{"current_page":3}`).Want(200).Map()
	if first["currentPage"] != 3.0 || first["completed"] != false || first["progressPercentage"] != 0.3 ||
		first["userId"] != me.ID.String() || first["bookId"] != books[0].String() || first["completedAt"] != nil {
		t.Errorf("first page: %v", first)
	}
	if v, ok := first["completedAt"]; !ok || v != nil || !strings.HasSuffix(first["startedAt"].(string), "Z") {
		t.Errorf("null or UTC: %v", first)
	}
	if got := me.Do("GET", path, nil).Want(200).Map(); got["id"] != first["id"] || got["currentPage"] != 3.0 {
		t.Errorf("stored: %v", got)
	}
	s.User(t, "one", "reader").Do("GET", path, nil).Want(204) // not another user's

	steps := []struct {
		body string
		done bool
		logs int
	}{
		{`{"currentPage":9}`, false, 0},
		{`{"currentPage":10}`, true, 1},
		{`{"currentPage":10,"completed":true}`, true, 1},
		{`{"currentPage":10}`, true, 1},
		{`{"currentPage":2}`, false, 1}, // turning back and forth is no second reading
		{`{"currentPage":4,"progress_percentage":0.98}`, true, 1},
		{`{"currentPage":10,"is_completed":false}`, false, 1}, // as sent
		{`{"currentPage":4,"progressPercentage":1,"completed":false}`, false, 1},
		{`{"current_page":5,"is_completed":true}`, true, 1},
		{`{"currentPage":0}`, false, 1},
	}
	for _, step := range steps {
		got := me.Do("PUT", path, step.body).Want(200).Map()
		if got["completed"] != step.done || (got["completedAt"] != nil) != step.done || completions(t, s, books[0]) != step.logs {
			t.Errorf("%s: %v with %d completions, want %v with %d", step.body, got, completions(t, s, books[0]), step.done, step.logs)
		}
	}
	if got := me.Do("PUT", path, `{"currentPage":11}`).Want(200).Map(); got["currentPage"] != 10.0 || got["completed"] != true {
		t.Errorf("beyond the last page: %v", got)
	}
	for _, body := range []string{`{"currentPage":1.0}`, `{"currentPage":1e0}`} {
		if m := me.Do("PUT", path, body).Want(400).Map(); !strings.Contains(m["message"].(string), "without a point") {
			t.Errorf("%s: %v", body, m)
		}
	}
	me.Do("DELETE", path, nil).Want(204)
	me.Do("GET", path, nil).Want(204)
	if n := completions(t, s, books[0]); n != 1 {
		t.Errorf("clearing progress left %d completions, want 1", n)
	}
	read := me.Do("POST", "/api/v1/books/"+books[0].String()+"/read", nil).Want(200).Map()
	if read["currentPage"] != 10.0 || read["completed"] != true || read["progressPercentage"] != 1.0 {
		t.Errorf("read: %v", read)
	}
	if n := completions(t, s, books[0]); n != 2 {
		t.Errorf("read again after it was unread: %d completions, want 2", n)
	}
	me.Do("POST", "/api/v1/books/"+books[0].String()+"/unread", nil).Want(204)
	me.Do("GET", path, nil).Want(204)
}

func TestRestartedPassHasItsOwnStart(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	_, books := shelf(t, s, 1)
	me := s.User(t, "one", "reader")
	path := "/api/v1/books/" + books[0].String() + "/progress"
	start := func(body string) time.Time {
		var p struct{ StartedAt time.Time }
		me.Do("PUT", path, body).Want(200).JSON(&p)
		return p.StartedAt
	}
	first := start(`{"currentPage":1}`)
	if got := start(`{"currentPage":10}`); !got.Equal(first) {
		t.Errorf("completing moved the start from %s to %s", first, got)
	}
	if got := start(`{"currentPage":1}`); !got.Equal(first) {
		t.Errorf("turning back moved the start from %s to %s", first, got)
	}
	me.Do("DELETE", path, nil).Want(204)
	if got := start(`{"currentPage":1}`); !got.After(first) {
		t.Errorf("the second pass started at %s, the first at %s", got, first)
	}
}

func TestCompletedOnceUnderRaces(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	series, books := shelf(t, s, 3)
	me := s.User(t, "one", "reader")
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			if i%3 == 0 {
				if _, err := progress.ReadSeries(callerContext(me), s.DB.App, series); err != nil {
					t.Error(err)
				}
				return
			}
			if r := me.Do("PUT", "/api/v1/books/"+books[i%3].String()+"/progress", `{"currentPage":10}`); r.Status != 200 {
				t.Errorf("status %d: %s", r.Status, r.Body)
			}
		})
	}
	wg.Wait()
	for _, b := range books {
		if n := completions(t, s, b); n != 1 {
			t.Errorf("%d completions, want 1", n)
		}
	}
}

func TestReflowableHasNoLastPage(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	_, books := shelf(t, s, 1)
	if _, err := s.DB.Owner.Pool().Exec(context.Background(), "delete from page_index; update book set format = 'epub'"); err != nil {
		t.Fatal(err)
	}
	me := s.User(t, "one", "reader")
	path := "/api/v1/books/" + books[0].String() + "/progress"
	got := me.Do("PUT", path, `{"currentPage":200,"progressPercentage":0.4}`).Want(200).Map()
	if got["completed"] != false || got["progressPercentage"] != 0.4 || got["currentPage"] != 200.0 {
		t.Errorf("position beyond the spine: %v", got)
	}
	if got := me.Do("PUT", path, `{"currentPage":10}`).Want(200).Map(); got["completed"] != true || got["progressPercentage"] != 0.4 {
		t.Errorf("last spine item without a percentage: %v", got)
	}
}

func TestSeriesAndLists(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	series, books := shelf(t, s, 3)
	me := s.User(t, "one", "reader")
	ctx := callerContext(me)
	if n, err := progress.ReadSeries(ctx, s.DB.App, series); err != nil || n != 3 {
		t.Fatalf("read: %d, %v", n, err)
	}
	me.Do("PUT", "/api/v1/books/"+books[1].String()+"/progress", `{"currentPage":2}`).Want(200)
	page := me.Do("GET", "/api/v1/progress?pageSize=2", nil).Want(200).Map()
	data := page["data"].([]any)
	if page["total"] != 3.0 || len(data) != 2 || data[0].(map[string]any)["bookId"] != books[1].String() {
		t.Errorf("list: %v", page)
	}
	if n, err := progress.UnreadSeries(ctx, s.DB.App, series); err != nil || n != 3 {
		t.Fatalf("unread: %d, %v", n, err)
	}
	if _, err := progress.ReadSeries(ctx, s.DB.App, uuid.New()); err == nil {
		t.Error("a series that does not exist was marked")
	}
	if got := s.User(t, "one", "reader").Do("GET", "/api/v1/progress", nil).Want(200).Map(); got["total"] != 0.0 {
		t.Errorf("another user sees %v", got)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	_, books := shelf(t, s, 2)
	me := s.User(t, "one", "reader")
	path := "/api/v1/books/" + books[0].String() + "/progress"
	for _, c := range []struct{ body, field string }{
		{`{"currentPage":-1}`, "currentPage"},
		{`{"currentPage":3000000000}`, "currentPage"},
		{`{"currentPage":"3"}`, "currentPage"},
		{`{}`, "currentPage"},
		{`{"currentPage":1,"progressPercentage":1.5}`, "progressPercentage"},
		{`[]`, ""},
	} {
		m := me.Do("PUT", path, c.body).Want(400).Map()
		if m["error"] != "BadRequest" || !strings.Contains(m["message"].(string), c.field) {
			t.Errorf("%s: %v", c.body, m)
		}
	}
	me.Do("GET", path, nil).Want(204) // nothing was stored
	me.Do("PUT", "/api/v1/books/nonsense/progress", `{"currentPage":1}`).Want(400)

	if _, err := s.DB.Owner.Pool().Exec(context.Background(), "update book set deleted_at = now() where id = $1", books[1]); err != nil {
		t.Fatal(err)
	}
	other, lacking := s.User(t, "two", "admin"), s.Key(t, s.User(t, "one", "admin"), auth.ProgressRead, auth.ProgressWrite)
	lacking.Do("GET", "/api/v1/progress", nil).Want(403)
	s.Anonymous(t, "one").Do("GET", "/api/v1/progress", nil).Want(401)
	for _, r := range []struct{ method, path, body string }{
		{"GET", "progress", ""}, {"PUT", "progress", `{"currentPage":1}`}, {"DELETE", "progress", ""},
		{"POST", "read", ""}, {"POST", "unread", ""},
	} {
		var body any
		if r.body != "" {
			body = r.body
		}
		other.Do(r.method, "/api/v1/books/"+books[0].String()+"/"+r.path, body).Want(404)
		lacking.Do(r.method, "/api/v1/books/"+books[0].String()+"/"+r.path, body).Want(403)
		me.Do(r.method, "/api/v1/books/"+books[1].String()+"/"+r.path, body).Want(404)
		me.Do(r.method, "/api/v1/books/"+uuid.NewString()+"/"+r.path, body).Want(404)
		s.Anonymous(t, "one").Do(r.method, "/api/v1/books/"+books[0].String()+"/"+r.path, body).Want(401)
	}
}
