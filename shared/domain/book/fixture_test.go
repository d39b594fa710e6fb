package book_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

func routes(a *httpapi.API, d *db.DB) { book.Routes(a, d, nil, nil) }

func exec(t testing.TB, s *testkit.Server, sql string, args ...any) {
	t.Helper()
	s.DB.Exec(t, sql, args...)
}

func library(t testing.TB, s *testkit.Server, tenant uuid.UUID, name string) uuid.UUID {
	t.Helper()
	id := uuid.New()
	exec(t, s, `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy, default_reading_direction)
		values ($1, $2, $3, '/books/' || $3, 'b', $3, 'series_volume', 'filename', 'file_order', 'ttb')`, tenant, id, name)
	return id
}

// series is a series with n analysed books of ten pages, numbered from 1; it returns their ids in order.
func series(t testing.TB, s *testkit.Server, tenant, library uuid.UUID, name string, n int) (id uuid.UUID, books []uuid.UUID) {
	t.Helper()
	id = uuid.New()
	exec(t, s, `insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title)
		values ($1, $2, $3, $4, $4, $4, $4, lower($4))`, tenant, id, library, name)
	for range n {
		books = append(books, uuid.New())
	}
	exec(t, s, `insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, fingerprint, title, title_sort,
		search_title, number, volume, page_count, analyzed, created_at, updated_at)
		select $1, u.id, $2, $3, $4 || '/' || $4 || ' ' || u.n || '.cbz', 100 * u.n, now(), 'cbz', 'f' || u.n, $4 || ' ' || u.n, $4 || ' ' || u.n,
		  lower($4), u.n, u.n, 10, true, now() + u.n * interval '1 second', now() - u.n * interval '1 second'
		from unnest($5::uuid[]) with ordinality as u(id, n)`, tenant, library, id, name, books)
	return id, books
}

// read sets a user's progress in a book at some minutes ago.
func read(t testing.TB, s *testkit.Server, c *testkit.Client, book uuid.UUID, completed bool, minutes int) {
	t.Helper()
	exec(t, s, `insert into progress (tenant_id, account_id, book_id, id, current_page, completed, completed_at, updated_at)
		values ($1, $2, $3, gen_random_uuid(), 3, $4, case when $4 then now() end, now() - $5 * interval '1 minute')
		on conflict (tenant_id, account_id, book_id) do update set completed = excluded.completed, completed_at = excluded.completed_at, updated_at = excluded.updated_at`,
		c.Tenant, c.ID, book, completed, minutes)
}

// ids returns the ids in a list response in order, and the total.
func ids(t testing.TB, r *testkit.Response) ([]uuid.UUID, int) {
	t.Helper()
	var page struct {
		Data []struct {
			ID   uuid.UUID
			Book struct{ ID uuid.UUID } // in a list of errors
		}
		Total int
	}
	r.Want(200).JSON(&page)
	out := []uuid.UUID{}
	for _, b := range page.Data {
		if b.ID == uuid.Nil {
			b.ID = b.Book.ID
		}
		out = append(out, b.ID)
	}
	return out, page.Total
}

// titles returns the titles in a list response, and the total.
func titles(t testing.TB, r *testkit.Response) ([]string, int) {
	t.Helper()
	var page struct {
		Data []struct {
			Title string `json:"title"`
		} `json:"data"`
		Total int `json:"total"`
	}
	r.Want(200).JSON(&page)
	out := []string{}
	for _, b := range page.Data {
		out = append(out, b.Title)
	}
	return out, page.Total
}
