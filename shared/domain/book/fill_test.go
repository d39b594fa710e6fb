package book_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

// The release day follows the metadata, whoever writes it; older books get it in batches.
func TestReleaseDay(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, func(a *httpapi.API, d *db.DB) {
		book.Routes(a, d, func(context.Context, uuid.UUID, ...events.Event) {}, nil)
	})
	me := s.User(t, "one", "admin")
	_, books := series(t, s, s.One, library(t, s, s.One, "comics"), "A", 5)
	series(t, s, s.Two, library(t, s, s.Two, "theirs"), "B", 3)
	exec(t, s, `insert into book_metadata (tenant_id, book_id, metadata) select tenant_id, id, '{"year":2001}' from book`)
	count := func(which string) (n int) {
		t.Helper()
		if err := s.DB.Owner.Pool().QueryRow(t.Context(), "select count(*) from "+which).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	day := func(i int, want string) {
		t.Helper()
		var got string
		if err := s.DB.Owner.Pool().QueryRow(t.Context(), "select coalesce(release_day::text, 'none') from book where id = $1", books[i]).Scan(&got); err != nil || got != want {
			t.Errorf("book %d came out on %s, want %s, %v", i, got, want, err)
		}
	}
	at := func(i int) string { return "/api/v1/books/" + books[i].String() + "/metadata" }
	me.Do("PATCH", at(0), `{"year":1999,"month":12}`).Want(200)
	me.Do("PATCH", at(1), `{"year":null}`).Want(200)
	me.Do("PUT", at(2), `{"title":"No year"}`).Want(200)
	me.Do("PATCH", at(3), `{"month":2,"day":3,"summary":"Told."}`).Want(200)
	all := func() {
		t.Helper()
		for i, want := range []string{"19991201", "none", "none", "20010203", "20010101"} {
			day(i, want)
		}
	}
	all()

	exec(t, s, "update book set release_day = null, updated_at = 'epoch'") // the state before the migration
	exec(t, s, "insert into release_fill (tenant_id) values ($1), ($2)", s.One, s.Two)
	exec(t, s, "update book set release_day = 1 where id = $1", books[1]) // invalid, and repaired
	fill := book.Fill
	fill.AtOnce = 2
	for range 2 { // the second run has nothing to do
		if err := fill.Run(t.Context(), s.DB.System, time.Minute); err != nil {
			t.Fatal(err)
		}
		all()
		if n := count("release_fill"); n != 0 {
			t.Errorf("%d tenants are left", n)
		}
		if n := count("book where updated_at <> 'epoch'"); n != 0 {
			t.Errorf("%d books count as changed", n)
		}
		if n := count("book where release_day = 20010101"); n != 1+3 {
			t.Errorf("%d books of both tenants came out on the first day of 2001, want 4", n)
		}
	}
}
