package progress_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/testkit"
)

// The list costs as much as the caller has read, not as much as the library holds.
func TestPlans(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	me := s.User(t, "one", "reader")
	_, series := s.Crowd(t, s.One, me.ID)
	for _, sql := range []string{
		`insert into reading_session (tenant_id, account_id, id, book_id, pass, kind, device_id, started_at, ended_at, page, recorded_at)
		 select tenant_id, account_id, gen_random_uuid(), book_id, 1, 'progress', 'd', updated_at, updated_at, 1, updated_at from progress`,
		"insert into completion (tenant_id, id, account_id, book_id, started_at, completed_at) select tenant_id, id, account_id, book_id, updated_at, updated_at from progress",
		`insert into page_index (tenant_id, book_id, revision, names, types, offsets, lengths, packed, sizes, methods, crcs, widths, heights, file_size, file_etag, file_modified)
		 select tenant_id, id, 1, '{a}', '{image/png}', '{0}', '{1}', '{1}', '{1}', '{0}', '{0}', '{0}', '{0}', 1, '', now() from book`,
		"vacuum analyze",
	} {
		if _, err := s.DB.Owner.Pool().Exec(context.Background(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for i, sql := range append(progress.Writes, progress.WritesBy...) {
		for n := 1; n <= 100; n *= 100 {
			var ids []uuid.UUID
			for len(ids) < n {
				ids = append(ids, uuid.New())
			}
			args := []any{ids, "device"}[:1+i/len(progress.Writes)]
			if scanned, plan := s.ScansAfter(t, me, progress.Hashing, sql, args...); len(scanned) > 0 {
				t.Errorf("%s of %d ids reads all of %v: %s", sql, n, scanned, plan)
			}
		}
	}
	one := []uuid.UUID{uuid.New()}
	if scanned, plan := s.Scans(t, me, progress.RecordSQL, one, one, []string{"progress"}, []string{"d"}, []*string{nil}, []time.Time{{}}, []time.Time{{}},
		[]*int32{nil}, []*float64{nil}, []*int64{nil}, []*int32{nil}, []*string{nil}); len(scanned) > 0 {
		t.Errorf("recording reads all of %v: %s", scanned, plan)
	}
	for _, q := range []struct {
		sql  string
		args []any
	}{{progress.ListSQL, []any{50, 0}}, {progress.ListSQL, []any{500, 500}}, {progress.CountSQL, nil},
		{progress.BookHistory, []any{one[0], 500}}, {progress.SeriesHistory, []any{series, 500}},
		{progress.ForgetBook, []any{one[0]}}, {progress.ForgetSeries, []any{series}}} {
		if scanned, plan := s.Scans(t, me, q.sql, q.args...); len(scanned) > 0 {
			t.Errorf("%s reads all of %v: %s", q.sql, scanned, plan)
		}
	}
}
