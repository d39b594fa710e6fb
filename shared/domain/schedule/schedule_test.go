package schedule_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/schedule"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/testkit"
)

// If several schedulers find a schedule due at once, one adds the task.
func TestSeveralSchedulersAddOneTask(t *testing.T) {
	t.Parallel()
	const key = "deduplication.cron_schedule"
	d := testkit.DB(t)
	d.Set(t, d.Tenant(t, "one"), key, "0 3 * * *")
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	var added, started atomic.Int64
	due := func() {
		n, err := schedule.Due(context.Background(), d.System, key, "", now, func(b *pgx.Batch, fresh uuid.UUID, id *uuid.UUID) error {
			added.Add(1)
			db.Value(b, id, "select $1::uuid", fresh)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		started.Add(int64(n))
	}
	due() // it is seen for the first time
	now = now.Add(24 * time.Hour)
	holder, err := d.Owner.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := holder.Exec(t.Context(), "select from setting_schedule for update"); err != nil {
		t.Fatal(err)
	}
	var schedulers sync.WaitGroup
	for range 3 {
		schedulers.Go(due)
	}
	d.AwaitLocks(t, 3)
	if err := holder.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	schedulers.Wait()
	if added.Load() != 1 || started.Load() != 1 {
		t.Errorf("%d tasks added, %d started", added.Load(), started.Load())
	}
}
