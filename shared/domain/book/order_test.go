package book_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/testkit"
)

// Orders by data beside the books: series, files, the caller's progress, and release day.
func TestOrders(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me, other := s.User(t, "one", "reader"), s.User(t, "one", "reader")
	comics, manga := library(t, s, s.One, "comics"), library(t, s, s.One, "manga")
	of, b := series(t, s, s.One, comics, "B", 3)
	_, a := series(t, s, s.One, manga, "A", 3)
	theirs := library(t, s, s.Two, "theirs")
	_, foreign := series(t, s, s.Two, theirs, "C", 1)
	name := map[uuid.UUID]string{foreign[0]: "foreign"}
	for i := range 3 {
		name[a[i]], name[b[i]] = fmt.Sprint("a", i+1), fmt.Sprint("b", i+1)
	}
	exec(t, s, "update series set title_sort = 'Z' where title = 'A'")
	exec(t, s, "update book set key = 'Z/' || key where id = $1", b[1])
	exec(t, s, "update book set number = null where id = $1", a[0])
	read(t, s, me, a[2], true, 30)
	read(t, s, me, b[1], false, 20)
	read(t, s, other, b[0], true, 10)
	for id, metadata := range map[uuid.UUID]string{a[0]: `{"year":2001}`, a[1]: `{"year":1999,"month":12,"day":31}`, b[0]: `{"year":2001,"month":1,"day":2}`,
		b[2]: `{"summary":"no date"}`, b[1]: `{"year":"1950"}`, foreign[0]: `{"year":1}`} {
		exec(t, s, "insert into book_metadata (tenant_id, book_id, metadata) select tenant_id, id, $2::jsonb from book where id = $1", id, metadata)
	}
	for path, want := range map[string]string{
		"/books?sort=series":                                         "b1 b2 b3 a2 a3 a1",
		"/books?sort=series,desc":                                    "a3 a2 a1 b3 b2 b1",
		"/books?sort=filename":                                       "a1 a2 a3 b1 b3 b2",
		"/books?sort=filename,desc":                                  "b2 b3 b1 a3 a2 a1",
		"/books?sort=last_read":                                      "a3 b2 a1 a2 b1 b3",
		"/books?sort=read_date,desc":                                 "b2 a3 a1 a2 b1 b3",
		"/books?sort=release_date":                                   "a2 a1 b1 a3 b2 b3",
		"/books?sort=release_date&order=desc":                        "b1 a1 a2 a3 b2 b3",
		"/books?sort=chapter_number,desc&pageSize=1":                 "b3|a3",
		"/books?libraryId=" + manga.String() + "&sort=series":        "a2 a3 a1",
		"/books?libraryId=" + comics.String() + "&sort=release_date": "b1 b2 b3",
		"/libraries/" + comics.String() + "/books?sort=last_read":    "b2 b1 b3",
		"/books?seriesId=" + of.String() + "&sort=series,desc":       "b3 b2 b1",
		"/books?seriesId=" + of.String() + "&sort=release_date":      "b1 b2 b3",
		"/books?seriesId=" + of.String() + "&sort=last_read,desc":    "b2 b1 b3",
	} {
		got, _ := ids(t, me.Do("GET", "/api/v1"+path, nil))
		var names []string
		for _, id := range got {
			names = append(names, name[id])
		}
		if line := strings.Join(names, " "); !slices.Contains(strings.Split(want, "|"), line) {
			t.Errorf("%s: %s, want %s", path, line, want)
		}
	}
}

// In every order each book is on exactly one page, even if several have equal keys.
func TestPagesOfOrders(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me := s.User(t, "one", "reader")
	comics := library(t, s, s.One, "comics")
	var one uuid.UUID
	for i, name := range []string{"Same", "Same", "Same", "Other"} {
		exec(t, s, "update series set path = path || gen_random_uuid() where path = 'Same'")
		exec(t, s, "update book set key = key || gen_random_uuid() where key like 'Same%.cbz'")
		id, books := series(t, s, s.One, comics, name, 4)
		one = id
		exec(t, s, "insert into book_metadata (tenant_id, book_id, metadata) select tenant_id, id, '{\"year\":2000}' from book where id = any($1)", books[:2])
		read(t, s, me, books[i], true, 5)
	}
	exec(t, s, "update book set title_sort = 'same', number = 1, size = 1, page_count = 1, created_at = '2020-01-01', updated_at = '2020-01-01'")
	exec(t, s, "update progress set updated_at = '2020-01-01'")
	for _, scope := range []string{"?", "?libraryId=" + comics.String() + "&", "?seriesId=" + one.String() + "&"} {
		for _, field := range []string{"title", "number", "file_size", "page_count", "created_at", "modified_at", "series", "filename", "last_read", "release_date"} {
			for _, direction := range []string{"asc", "desc"} {
				path := "/api/v1/books" + scope + "sort=" + field + "," + direction
				whole, total := ids(t, me.Do("GET", path, nil))
				var pages []uuid.UUID
				for page := 1; page <= (total+2)/3+1; page++ {
					some, _ := ids(t, me.Do("GET", fmt.Sprintf("%s&pageSize=3&page=%d", path, page), nil))
					pages = append(pages, some...)
				}
				if !slices.Equal(pages, whole) || len(whole) != total {
					t.Errorf("%s: %d of %d books, on pages %d", path, len(whole), total, len(pages))
				}
				for i, id := range whole {
					if slices.Index(whole, id) != i {
						t.Errorf("%s: one book is there twice", path)
					}
				}
			}
		}
	}
}

// A page that is read from the end of its list is the same as from its beginning.
func TestFarPages(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	comics := library(t, s, s.One, "comics")
	for _, name := range []string{"A", "B"} {
		series(t, s, s.One, comics, name, 4)
	}
	series(t, s, s.One, library(t, s, s.One, "other"), "C", 3)
	exec(t, s, "update book set title_sort = 'same', size = 1 where key like '%1.cbz'")
	err := pgx.BeginFunc(t.Context(), s.DB.App.Pool(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "select set_config('app.tenant', $1, true)", s.One.String()); err != nil {
			return err
		}
		page := func(q book.Statement) []uuid.UUID {
			rows, _ := tx.Query(t.Context(), q.SQL, q.Args...)
			ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
			if err != nil {
				t.Fatalf("%s: %v", q.Name, err)
			}
			return ids
		}
		n := 0
		for offset := range 13 {
			near, distant := book.FarPages(comics, 3, offset)
			for i, q := range near {
				want, got := page(q), page(distant[i])
				n += len(want)
				if !slices.Equal(got, want) {
					t.Errorf("%s, from %d: %v, want %v", q.Name, offset, got, want)
				}
			}
		}
		if n < 500 {
			t.Errorf("%d books compared", n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// With full, a list contains the same data as the book's record; without, less.
func TestFullLists(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me, other := s.User(t, "one", "reader"), s.User(t, "one", "reader")
	comics := library(t, s, s.One, "comics")
	_, books := series(t, s, s.One, comics, "A", 3)
	exec(t, s, `insert into book_metadata (tenant_id, book_id, metadata, locks) select tenant_id, id, '{"summary":"sum","year":2012,"authors":[{"name":"W","role":"writer"}]}', '{titleLock}'
		from book where id = any($1)`, books[:2])
	for i, table := range []string{"genre", "tag"} {
		for n := range 2 {
			term := uuid.New()
			exec(t, s, "insert into "+table+" (tenant_id, id, name) values ($1, $2, $3)", s.One, term, fmt.Sprint(table, n))
			exec(t, s, "insert into book_"+table+" (tenant_id, book_id, "+table+"_id) select $1, unnest($2::uuid[]), $3", s.One, books[i:n+1], term)
		}
	}
	read(t, s, me, books[0], true, 3)
	read(t, s, me, books[1], false, 2)
	for _, c := range []*testkit.Client{me, other} {
		exec(t, s, `insert into completion (tenant_id, id, account_id, book_id, started_at, completed_at)
			select $1, gen_random_uuid(), $2, $3, '2024-05-01', '2024-05-01'::date + n from generate_series(1, 2) n`, s.One, c.ID, books[0])
	}
	for _, l := range []struct{ method, path, body string }{{"GET", "/books", ""}, {"GET", "/libraries/" + comics.String() + "/books", ""}, {"POST", "/books/list", `{"fullTextSearch":"a"}`},
		{"GET", "/books/in-progress", ""}, {"GET", "/books/recently-read", ""}, {"GET", "/books/recently-added", ""}, {"GET", "/libraries/" + comics.String() + "/books/recently-added", ""}} {
		var body any
		if l.body != "" {
			body = l.body
		}
		page := me.Do(l.method, "/api/v1"+l.path+"?full=true&sort=last_read&pageSize=500", body).Want(200).Map()
		if page["pageSize"] != 100.0 || page["total"] == 0.0 || int(page["total"].(float64)) != len(page["data"].([]any)) {
			t.Errorf("%s: %v of %v on a page of %v", l.path, len(page["data"].([]any)), page["total"], page["pageSize"])
		}
		for _, entry := range page["data"].([]any) {
			if want := me.Do("GET", "/api/v1/books/"+entry.(map[string]any)["id"].(string), nil).Want(200).Map(); !reflect.DeepEqual(entry, any(want)) {
				t.Errorf("%s: %v, want %v", l.path, entry, want)
			}
		}
		for _, entry := range me.Do(l.method, "/api/v1"+l.path, body).Want(200).Map()["data"].([]any) {
			for _, key := range []string{"metadata", "readCount", "lastCompletedAt", "genres", "tags"} {
				if _, there := entry.(map[string]any)[key]; there {
					t.Errorf("%s: without full there is %s", l.path, key)
				}
			}
		}
	}
	if second := me.Do("GET", "/api/v1/books?full=true&pageSize=2&page=2&sort=release_date", nil).Want(200).Map()["data"].([]any); len(second) != 1 {
		t.Errorf("the second page has %d", len(second))
	}
	me.Do("GET", "/api/v1/books?full=perhaps", nil).Want(400)
	me.Do("GET", "/api/v1/libraries/"+uuid.New().String()+"/books?full=true", nil).Want(404)
}
