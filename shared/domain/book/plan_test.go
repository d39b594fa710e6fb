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

// No list may read a table from end to end: with 890,000 books that is a second.
func TestPlans(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me := s.User(t, "one", "reader")
	library, series := s.Crowd(t, s.One, me.ID)
	var one uuid.UUID
	if err := s.DB.Owner.Pool().QueryRow(context.Background(), "select id from book where series_id = $1 limit 1", series).Scan(&one); err != nil {
		t.Fatal(err)
	}
	descends := false
	for _, q := range book.Statements(library, series, one) {
		scanned, plan := s.Scans(t, me, q.SQL, q.Args...)
		descends = descends || strings.Contains(plan, "book_number_desc")
		for _, table := range []string{"book", "series", "progress", "book_metadata"} {
			if slices.Contains(scanned, table) {
				t.Errorf("%s reads all of %s: %s", q.Name, table, plan)
			}
		}
	}
	if !descends {
		t.Error("nothing uses book_number_desc")
	}
	if scanned, _ := s.Scans(t, me, "select name from library"); !slices.Contains(scanned, "library") {
		t.Error("the test does not notice a sequential scan")
	}
}
