package cover_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/cover"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

func routes(a *httpapi.API, d *db.DB) { cover.Routes(a, d, nil, nil) }

// shelf is a library with a series of two books; the file of one is gone.
type shelf struct{ library, series, book, gone uuid.UUID }

func newShelf(t *testing.T, s *testkit.Server, tenant uuid.UUID) shelf {
	t.Helper()
	f := shelf{uuid.New(), uuid.New(), uuid.New(), uuid.New()}
	exec := func(sql string, args ...any) {
		t.Helper()
		s.DB.Exec(t, sql, args...)
	}
	exec(`insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2, 'Books', '/books', 'b', '', 'series_volume', 'filename', 'file_order')`, tenant, f.library)
	exec("insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title) values ($1, $2, $3, 's', 's', 's', 's', 's')", tenant, f.series, f.library)
	exec(`insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title, deleted_at)
		select $1, u.id, $2, $3, u.id::text, 1, now(), 'cbz', 'b', 'b', 'b', case when u.n = 2 then now() end
		from unnest($4::uuid[]) with ordinality as u(id, n)`, tenant, f.library, f.series, []uuid.UUID{f.book, f.gone})
	return f
}

// shown returns the type, params and target of a task.
func shown(t *testing.T, s *testkit.Server, id any) string {
	t.Helper()
	var out string
	if err := s.DB.Owner.Pool().QueryRow(context.Background(), `select concat_ws(' ', type, params::text, 'library ' || library_id, 'series ' || series_id, 'book ' || book_id)
		from task where id = $1 and status = 'pending'`, id).Scan(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTargets(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	admin := s.User(t, "one", "admin")
	f, foreign := newShelf(t, s, s.One), newShelf(t, s, s.Two)
	l, r, b := " library "+f.library.String(), " series "+f.series.String(), " book "+f.book.String()
	books := []uuid.UUID{foreign.book, f.gone, f.book, uuid.New()}
	series := []uuid.UUID{uuid.New(), f.series, foreign.series}
	type body = map[string]any
	const (
		ofBooks  = "generate_thumbnails "
		ofSeries = "generate_series_thumbnails "
	)
	plain, force := `{"force": false}`, `{"force": true}`
	someBooks, someSeries := `{"force": false, "bookIds": ["`+f.book.String()+`"]}`, `{"force": false, "seriesIds": ["`+f.series.String()+`"]}`
	ids := map[any]string{}
	for _, c := range []struct {
		path string
		body any
		want string
	}{
		{"/books/" + f.book.String() + "/thumbnail/generate", nil, ofBooks + plain + l + r + b},
		{"/books/" + f.book.String() + "/thumbnail/generate", body{"force": true}, ofBooks + force + l + r + b},
		{"/series/" + f.series.String() + "/thumbnail/generate", body{}, ofSeries + plain + l + r},
		{"/series/" + f.series.String() + "/thumbnail/generate", body{"force": true}, ofSeries + force + l + r},
		{"/libraries/" + f.library.String() + "/books/thumbnails/generate", nil, ofBooks + plain + l},
		{"/libraries/" + f.library.String() + "/series/thumbnails/generate", nil, ofSeries + plain + l},
		{"/books/thumbnails/generate", nil, ofBooks + plain},
		{"/books/thumbnails/generate", body{"force": true, "bookIds": nil}, ofBooks + force},
		{"/books/thumbnails/generate", body{"bookIds": books, "seriesIds": series, "seriesId": f.series, "libraryId": f.library}, ofBooks + someBooks},
		{"/books/thumbnails/generate", body{"seriesIds": series, "seriesId": f.series, "libraryId": f.library}, ofBooks + someSeries},
		{"/books/thumbnails/generate", body{"series_id": f.series, "libraryId": f.library}, ofBooks + plain + l + r},
		{"/series/thumbnails/generate", nil, ofSeries + plain},
		{"/series/thumbnails/generate", body{"seriesIds": series, "libraryId": f.library}, ofSeries + someSeries},
		{"/series/bulk/thumbnails/generate", body{"seriesIds": series, "force": true}, ofSeries + strings.Replace(someSeries, "false", "true", 1)},
		{"/books/bulk/thumbnails/generate", body{"bookIds": books, "force": true}, ofBooks + strings.Replace(someBooks, "false", "true", 1)},
		{"/series/bulk/thumbnails/books/generate", body{"seriesIds": series, "force": true}, ofBooks + strings.Replace(someSeries, "false", "true", 1)},
		{"/books/bulk/thumbnails/generate", body{"bookIds": []uuid.UUID{foreign.book}}, ofBooks + `{"force": false, "bookIds": []}`},
	} {
		first := admin.Do("POST", "/api/v1"+c.path, c.body).Want(200).Map()
		if got := shown(t, s, first["taskId"]); got != c.want || first["message"] == "" {
			t.Errorf("%s %v: %s, want %s", c.path, c.body, got, c.want)
		}
		if same, ok := ids[first["taskId"]]; ok {
			t.Errorf("%s %v: the task of %s", c.path, c.body, same)
		}
		ids[first["taskId"]] = c.path
		if again := admin.Do("POST", "/api/v1"+c.path, c.body).Want(200).Map(); again["taskId"] != first["taskId"] {
			t.Errorf("%s %v asked twice: %v, %v", c.path, c.body, first, again)
		}
	}
	// The same request by another route, or with ids in another order, yields the same task.
	for _, c := range []struct {
		path string
		body any
	}{
		{"/books/thumbnails/generate", body{"libraryId": f.library}},
		{"/series/thumbnails/generate", body{"libraryId": f.library}},
		{"/books/bulk/thumbnails/generate", body{"bookIds": []uuid.UUID{books[2], books[0], books[3], books[1], books[2]}}},
	} {
		if got := admin.Do("POST", "/api/v1"+c.path, c.body).Want(200).Map(); ids[got["taskId"]] == "" {
			t.Errorf("%s %v is another task", c.path, c.body)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	admin, reader := s.User(t, "one", "admin"), s.User(t, "one", "reader")
	f, foreign := newShelf(t, s, s.One), newShelf(t, s, s.Two)
	many := `[` + strings.Repeat(`"`+uuid.NewString()+`",`, 500) + `"` + uuid.NewString() + `"]`
	for _, c := range []struct{ path, body, field string }{
		{"/books/bulk/thumbnails/generate", `{}`, "bookIds"},
		{"/books/bulk/thumbnails/generate", `{"bookIds":[]}`, "bookIds"},
		{"/books/bulk/thumbnails/generate", `{"bookIds":` + many + `}`, "bookIds"},
		{"/series/bulk/thumbnails/generate", `{"force":true}`, "seriesIds"},
		{"/series/bulk/thumbnails/generate", `{"seriesIds":` + many + `}`, "seriesIds"},
		{"/series/bulk/thumbnails/books/generate", `{"seriesIds":null}`, "seriesIds"},
		{"/books/thumbnails/generate", `{"bookIds":[]}`, "bookIds"},
		{"/books/thumbnails/generate", `{"seriesIds":` + many + `}`, "seriesIds"},
		{"/books/thumbnails/generate", `{"libraryId":"x"}`, "libraryId"},
		{"/series/thumbnails/generate", `{"seriesIds":[]}`, "seriesIds"},
		{"/series/thumbnails/generate", `{"force":"yes"}`, "force"},
		{"/books/" + f.book.String() + "/thumbnail/generate", `{"force":1}`, "force"},
	} {
		m := admin.Do("POST", "/api/v1"+c.path, c.body).Want(400).Map()
		if details, _ := m["details"].([]any); len(details) == 0 || details[0].(map[string]any)["field"] != c.field {
			t.Errorf("%s %.60s: %v", c.path, c.body, m)
		}
	}
	withoutTasks := s.Key(t, admin, auth.BooksWrite, auth.SeriesWrite, auth.LibrariesWrite)
	for _, of := range []shelf{{uuid.New(), uuid.New(), uuid.New(), uuid.New()}, foreign} {
		for path, body := range map[string]any{
			"/books/" + of.book.String() + "/thumbnail/generate":                nil,
			"/series/" + of.series.String() + "/thumbnail/generate":             nil,
			"/libraries/" + of.library.String() + "/books/thumbnails/generate":  nil,
			"/libraries/" + of.library.String() + "/series/thumbnails/generate": nil,
			"/books/thumbnails/generate":                                        map[string]any{"libraryId": of.library},
			"/series/thumbnails/generate":                                       map[string]any{"libraryId": of.library},
		} {
			admin.Do("POST", "/api/v1"+path, body).Want(404)
			reader.Do("POST", "/api/v1"+path, body).Want(403)
			withoutTasks.Do("POST", "/api/v1"+path, body).Want(403)
			s.Anonymous(t, "one").Do("POST", "/api/v1"+path, body).Want(401)
		}
	}
	admin.Do("POST", "/api/v1/books/thumbnails/generate", map[string]any{"seriesId": foreign.series}).Want(404)
	admin.Do("POST", "/api/v1/books/"+f.gone.String()+"/thumbnail/generate", nil).Want(404)
	var n int
	if err := s.DB.Owner.Pool().QueryRow(context.Background(), "select count(*) from task").Scan(&n); err != nil || n != 0 {
		t.Errorf("%d tasks, %v", n, err)
	}
}
