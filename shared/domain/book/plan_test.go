package book_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/testkit"
)

// No list may scan a whole table: with 890,000 books that takes a second.
func TestPlans(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me := s.User(t, "one", "reader")
	library, series := s.Crowd(t, s.One, me.ID)
	var one uuid.UUID
	if err := s.DB.Owner.Pool().QueryRow(context.Background(), "select id from book where series_id = $1 limit 1", series).Scan(&one); err != nil {
		t.Fatal(err)
	}
	var page string
	if err := s.DB.Owner.Pool().QueryRow(t.Context(), "select array_agg(id)::text from (select id from book where tenant_id = $1 limit 100) b", s.One).Scan(&page); err != nil {
		t.Fatal(err)
	}
	exec(t, s, `update book_metadata m set metadata = metadata || jsonb_build_object('year', 1950 + b.nth % 70, 'month', 1 + b.nth % 12)
		from (select id, row_number() over (order by id) as nth from book) b where b.id = m.book_id and b.nth % 3 <> 0`)
	exec(t, s, "vacuum analyze book")
	descends, released := false, false
	for _, q := range book.Statements(library, series, one) {
		scanned, plan := s.Scans(t, me, strings.ReplaceAll(q.SQL, "current_setting('app.page', true)", "'"+page+"'"), q.Args...)
		descends = descends || strings.Contains(plan, "book_number_desc")
		released = released || strings.Contains(plan, "book_release")
		if strings.HasSuffix(q.Name, "by last_read deep") && strings.HasPrefix(q.Name, "books of a library") && !strings.Contains(plan, "hashed SubPlan") {
			t.Errorf("%s looks up the progress of every book before the page: %s", q.Name, plan)
		}
		for _, table := range []string{"book", "series", "progress", "book_metadata"} {
			if slices.Contains(scanned, table) {
				t.Errorf("%s reads all of %s: %s", q.Name, table, plan)
			}
		}
	}
	if !descends {
		t.Error("nothing uses book_number_desc")
	}
	if !released {
		t.Error("nothing uses book_release")
	}
	if scanned, _ := s.Scans(t, me, "select name from library"); !slices.Contains(scanned, "library") {
		t.Error("the test does not notice a sequential scan")
	}
}
