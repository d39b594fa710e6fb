package progress_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/testkit"
)

// The list costs what the caller has read, not what the library holds.
func TestPlans(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	me := s.User(t, "one", "reader")
	_, series := s.Crowd(t, s.One, me.ID)
	for _, sql := range progress.Marks {
		for n := 1; n <= 100; n *= 100 {
			ids := []uuid.UUID{series}
			for len(ids) < n {
				ids = append(ids, uuid.New())
			}
			if scanned, plan := s.Scans(t, me, sql, ids); len(scanned) > 0 {
				t.Errorf("%s of %d ids reads all of %v: %s", sql, n, scanned, plan)
			}
		}
	}
	for _, q := range []struct {
		sql  string
		args []any
	}{{progress.ListSQL, []any{50, 0}}, {progress.ListSQL, []any{500, 500}}, {progress.CountSQL, nil}} {
		if scanned, plan := s.Scans(t, me, q.sql, q.args...); len(scanned) > 0 {
			t.Errorf("%s reads all of %v: %s", q.sql, scanned, plan)
		}
	}
}
