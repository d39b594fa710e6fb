package schedule

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/format/cronexpr"
	"github.com/longbox/longbox/shared/platform/db"
)

// due is a tenant's schedule that is new or due.
type due struct {
	Tenant uuid.UUID `db:"tenant_id"`
	Cron   string    `db:"value"`
	Zone   string    `db:"zone"`
	Made   string    `db:"made"`
	Known  bool      `db:"known"`
}

// made is what a row of setting_schedule is computed from: the schedule, and the tenant's time zone if set. The row is
// valid while both are unchanged.
const (
	made   = "concat_ws(' ', s.value, z.value)"
	ofZone = " left join setting z on z.tenant_id = s.tenant_id and z.key = '" + setting.SchedulerZone + "' "
)

// Add adds the statement that adds a task with the id fresh; id receives it, or the id of the existing task.
type Add func(b *pgx.Batch, fresh uuid.UUID, id *uuid.UUID) error

// In adds the task in a transaction, and reports whether there was none yet.
func (add Add) In(ctx context.Context, tx pgx.Tx) (bool, error) {
	var b pgx.Batch
	var id uuid.UUID
	fresh := uuid.Must(uuid.NewV7())
	if err := add(&b, fresh, &id); err != nil {
		return false, err
	}
	err := tx.SendBatch(ctx, &b).Close()
	return err == nil && id == fresh, err
}

// Due adds a task for every tenant whose schedule, the setting key, is due, and returns their number. Tenants whose
// setting on (if not "") is false are skipped, and an unfinished task is not duplicated. Concurrent calls are safe: the
// next time is set in the transaction that adds the task.
//
// A schedule is in the tenant's time zone and counts from when a scheduler first sees it, or sees a new zone. Runs
// missed while no scheduler ran, or while the tenant was suspended, are started once; runs missed while the schedule
// was off are not.
func Due(ctx context.Context, system *db.DB, key, on string, now time.Time, add Add) (int, error) {
	_, err := system.Pool().Exec(ctx, `delete from setting_schedule d where d.key = $1 and not exists (
		select from setting s`+ofZone+`where s.tenant_id = d.tenant_id and s.key = d.key and d.cron = `+made+` and not exists (
		  select from setting o where o.tenant_id = s.tenant_id and o.key = $2 and o.value = 'false'))`, key, on)
	if err != nil {
		return 0, fmt.Errorf("delete schedules of %s: %w", key, err)
	}
	return Each(ctx, system, "due schedules of "+key, func(d due) (bool, error) {
		ok, err := d.next(ctx, system, key, now, add)
		if err != nil {
			err = fmt.Errorf("%s of tenant %s: %w", key, d.Tenant, err)
		}
		return ok, err
	}, `select s.tenant_id, s.value, coalesce(z.value, '') as zone, `+made+` as made, d.key is not null as known
		from setting s join tenant t on t.id = s.tenant_id and t.status = 'active'`+ofZone+`
		left join setting_schedule d on d.tenant_id = s.tenant_id and d.key = s.key
		where s.key = $1 and s.value <> '' and (d.key is null or d.next_at <= $3) and not exists (
		  select from setting o where o.tenant_id = s.tenant_id and o.key = $2 and o.value = 'false')
		order by d.next_at nulls last limit 1000`, key, on, now)
}

// Each calls start for each row of a query over all tenants, and returns how many tasks were started. A failure of
// one does not affect the others.
func Each[T any](ctx context.Context, system *db.DB, what string, start func(T) (bool, error), sql string, args ...any) (int, error) {
	rows, err := system.Pool().Query(ctx, sql, args...)
	if err != nil {
		return 0, fmt.Errorf("find %s: %w", what, err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[T])
	if err != nil {
		return 0, fmt.Errorf("find %s: %w", what, err)
	}
	started := 0
	var failures error
	for _, d := range all {
		ok, err := start(d)
		failures = errors.Join(failures, err)
		if ok {
			started++
		}
	}
	return started, failures
}

// next computes when the schedule is next due, and adds the task if it is due now.
func (d due) next(ctx context.Context, system *db.DB, key string, now time.Time, add Add) (started bool, err error) {
	times, err := cronexpr.Parse(d.Cron, d.Zone)
	if err != nil {
		return false, err
	}
	at := times.Next(now)
	err = system.Tx(db.In(ctx, db.Tenant(d.Tenant)), func(ctx context.Context, tx pgx.Tx) error {
		if !d.Known {
			_, err := tx.Exec(ctx, `insert into setting_schedule (tenant_id, key, cron, next_at)
				select tenant_id, key, $3, $4 from setting where tenant_id = app.tenant() and key = $1 and value = $2 on conflict do nothing`, key, d.Cron, d.Made, at)
			return err
		}
		tag, err := tx.Exec(ctx, `update setting_schedule set next_at = $4
			where tenant_id = app.tenant() and key = $1 and cron = $2 and next_at <= $3`, key, d.Made, now, at)
		if err != nil || tag.RowsAffected() == 0 {
			return err // another scheduler was first
		}
		started, err = add.In(ctx, tx)
		return err
	})
	return started && err == nil, err
}

// FollowAgain makes the next call of Changed call follow for the entered tenant once more: for rows that were created
// while the setting was read or changed, and that follow could not see.
func FollowAgain(b *pgx.Batch, key string) {
	b.Queue("delete from setting_schedule where tenant_id = app.tenant() and key = $1", key)
}

// Changed calls follow for every tenant whose setting has changed since the last call, in the transaction that records
// the value. Concurrent calls are safe.
func Changed(ctx context.Context, system *db.DB, key string, follow func(ctx context.Context, tx pgx.Tx, value string) error) error {
	rows, err := system.Pool().Query(ctx, `select s.tenant_id, s.value from setting s
		left join setting_schedule d on d.tenant_id = s.tenant_id and d.key = s.key
		where s.key = $1 and d.cron is distinct from s.value limit 1000`, key)
	if err != nil {
		return fmt.Errorf("find changes of %s: %w", key, err)
	}
	type change struct {
		Tenant uuid.UUID
		Value  string
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[change])
	if err != nil {
		return fmt.Errorf("find changes of %s: %w", key, err)
	}
	var failures error
	for _, c := range all {
		err := system.Tx(db.In(ctx, db.Tenant(c.Tenant)), func(ctx context.Context, tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, `insert into setting_schedule as d (tenant_id, key, cron, next_at)
				select tenant_id, key, value, now() from setting where tenant_id = app.tenant() and key = $1 and value = $2
				on conflict (tenant_id, key) do update set cron = excluded.cron, next_at = now() where d.cron <> excluded.cron`, key, c.Value)
			if err != nil || tag.RowsAffected() == 0 {
				return err // another scheduler was first
			}
			return follow(ctx, tx, c.Value)
		})
		if err != nil {
			failures = errors.Join(failures, fmt.Errorf("%s of tenant %s: %w", key, c.Tenant, err))
		}
	}
	return failures
}
