package export

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/schedule"
	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/format/cronexpr"
	"github.com/longbox/longbox/shared/platform/db"
)

// due is a tenant whose clean-up is due, whose schedule changed, or whose exports were deleted.
type due struct {
	Tenant    uuid.UUID `db:"tenant_id"`
	Cron      string    `db:"cron"`
	Zone      string    `db:"zone"`
	Made      string    `db:"made"`
	Next      time.Time `db:"next_at"`
	Deletions int64     `db:"deletions"`
	Asked     int64     `db:"asked"`
	Again     bool      `db:"again"` // a clean-up was added long ago, and files of deleted exports may still be there
}

// retryAfter is how long after a clean-up was added another one is, if its task may have failed.
const retryAfter = 15 * time.Minute

// never is the due time of a disabled schedule.
var never = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// Due queues the clean-up of exports for every tenant that has had some: by the schedule in the settings and, even if
// that is off, after exports were deleted, since their files still exist, until a clean-up has deleted them. It returns
// the number. Unlike schedule.Due it includes tenants with the default schedule. Concurrent calls are safe.
func Due(ctx context.Context, system *db.DB, now time.Time) (int, error) {
	started, err := schedule.Each(ctx, system, "tenants with exports to clean up", func(d due) (bool, error) {
		ok, err := d.next(ctx, system, now)
		if err != nil {
			err = fmt.Errorf("clean-up of exports of tenant %s: %w", d.Tenant, err)
		}
		return ok, err
	}, `select x.tenant_id, x.cron, x.zone, x.made, x.next_at, x.deletions, x.asked, x.again from (
		  select c.*, c.deletions > c.cleaned and c.asked_at <= $5 as again, coalesce(s.value, $3) as cron, coalesce(z.value, '') as zone
		  from export_cleanup c join tenant t on t.id = c.tenant_id and t.status = 'active'
		  left join setting s on s.tenant_id = c.tenant_id and s.key = $1
		  left join setting z on z.tenant_id = c.tenant_id and z.key = $2) x
		where x.next_at <= $4 or x.made <> x.cron || ' in ' || x.zone or x.deletions <> x.asked or x.again order by x.next_at limit 1000`,
		setting.ExportCleanupCron, setting.SchedulerZone, setting.Default(setting.ExportCleanupCron), now, now.Add(-retryAfter))
	if started > 0 {
		slog.Info("export clean-ups queued", "count", started)
	}
	return started, err
}

// next computes when the clean-up is next due, and adds the task if it is due now.
func (d due) next(ctx context.Context, system *db.DB, now time.Time) (started bool, err error) {
	made, at := d.Cron+" in "+d.Zone, never
	if d.Cron != "" {
		times, err := cronexpr.Parse(d.Cron, d.Zone)
		if err != nil {
			return false, err
		}
		at = times.Next(now)
	}
	come := d.Made == made && !d.Next.After(now)
	err = system.Tx(db.In(ctx, db.Tenant(d.Tenant)), func(ctx context.Context, tx pgx.Tx) error {
		// A clean-up locks its task before this row: so must this.
		if err := task.Lock(ctx, tx, task.CleanUpExports); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `update export_cleanup set made = $1, next_at = case when $2 or made <> $1 then $3 else next_at end
			where tenant_id = app.tenant() and made = $4 and next_at = $5 and asked = $6 and (not $7 or asked_at <= $8)`,
			made, come, at, d.Made, d.Next, d.Asked, d.Again, now.Add(-retryAfter))
		if err != nil || tag.RowsAffected() == 0 || !come && d.Deletions == d.Asked && !d.Again {
			return err // another scheduler was first, or only the schedule changed
		}
		add := schedule.Add(func(b *pgx.Batch, fresh uuid.UUID, id *uuid.UUID) error {
			return task.Add(b, task.Spec{ID: fresh, Type: task.CleanUpExports, DedupeKey: task.CleanUpExports}, id)
		})
		if started, err = add.In(ctx, tx); err != nil || !started {
			return err // a running one may have looked already: it is queued again when that has ended
		}
		_, err = tx.Exec(ctx, "update export_cleanup set asked = $1, asked_at = $2 where tenant_id = app.tenant()", d.Deletions, now)
		return err
	})
	return started && err == nil, err
}
