package series_test

import (
	"slices"
	"testing"

	"github.com/longbox/longbox/shared/domain/series"
	"github.com/longbox/longbox/shared/testkit"
)

// No list may read a table from end to end, whatever it is sorted by.
func TestPlans(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me := s.User(t, "one", "reader")
	library, _ := s.Crowd(t, s.One, me.ID)
	for _, q := range series.Statements(library) {
		scanned, plan := s.Scans(t, me, q.SQL, q.Args...)
		for _, table := range []string{"book", "series", "progress"} {
			if slices.Contains(scanned, table) {
				t.Errorf("%s reads all of %s: %s", q.Name, table, plan)
			}
		}
	}
}
