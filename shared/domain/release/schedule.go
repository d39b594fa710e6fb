package release

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

// due is a source that is due, or whose schedule a scheduler sees for the first time.
type due struct {
	Tenant uuid.UUID  `db:"tenant_id"`
	ID     uuid.UUID  `db:"id"`
	Cron   string     `db:"cron"`
	Zone   string     `db:"zone"`
	Of     string     `db:"of"`
	Met    bool       `db:"met"`
	Next   *time.Time `db:"next_at"`
}

// Due queues the polls of the due sources of every tenant, by their own schedule or that of the setting, and returns
// their number. A schedule is in the tenant's time zone and counts from when a scheduler first sees it; polls missed
// while none ran are made once. Concurrent calls are safe: the next time is set in the transaction that queues the
// poll.
func Due(ctx context.Context, system *db.DB, now time.Time) (int, error) {
	started, err := schedule.Each(ctx, system, "release sources that are due", func(s due) (bool, error) {
		ok, err := s.queue(ctx, system, now)
		if err != nil {
			err = fmt.Errorf("release source %s of tenant %s: %w", s.ID, s.Tenant, err)
		}
		return ok, err
	}, `select x.tenant_id, x.id, x.cron, x.zone, x.of, x.next_at, x.next_at is not null and x.next_of = x.of as met from (
		  select s.*, coalesce(s.cron_schedule, d.value, $2) as cron, coalesce(z.value, '') as zone, concat_ws(' ', coalesce(s.cron_schedule, d.value, $2), z.value) as of
		  from release_source s join tenant t on t.id = s.tenant_id and t.status = 'active'
		  left join setting d on d.tenant_id = s.tenant_id and d.key = $3 left join setting z on z.tenant_id = s.tenant_id and z.key = $4
		  where s.enabled) x
		where x.cron <> '' and (x.next_at is null or x.next_of is distinct from x.of or x.next_at <= $1)
		order by x.next_at nulls last, x.id limit 1000`, now, setting.Default(setting.ReleaseCron), setting.ReleaseCron, setting.SchedulerZone)
	if started > 0 {
		slog.Info("polls of release sources queued", "count", started)
	}
	return started, err
}

// queue computes when the source is next due, and queues its poll unless it is new to the scheduler.
func (s due) queue(ctx context.Context, system *db.DB, now time.Time) (started bool, err error) {
	times, err := cronexpr.Parse(s.Cron, s.Zone)
	if err != nil {
		return false, err
	}
	err = system.Tx(db.In(ctx, db.Tenant(s.Tenant)), func(ctx context.Context, tx pgx.Tx) error {
		// A poll locks its task before its source: so must this.
		if err := task.Lock(ctx, tx, pollKey(s.ID)); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `update release_source set next_at = $3, next_of = $4
			where tenant_id = app.tenant() and id = $1 and enabled and next_at is not distinct from $2`, s.ID, s.Next, times.Next(now), s.Of)
		if err != nil || tag.RowsAffected() == 0 || !s.Met {
			return err // another scheduler was first, or it was not due
		}
		started, err = schedule.Add(func(b *pgx.Batch, fresh uuid.UUID, id *uuid.UUID) error { return queuePoll(b, s.ID, fresh, id) }).In(ctx, tx)
		return err
	})
	return started && err == nil, err
}
