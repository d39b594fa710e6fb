package plugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/schedule"
	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/format/cronexpr"
	"github.com/longbox/longbox/shared/platform/db"
)

// dueJob is a job that is due, or whose due time must be computed.
type dueJob struct {
	Tenant uuid.UUID  `db:"tenant_id"`
	ID     uuid.UUID  `db:"id"`
	Cron   string     `db:"cron_schedule"`
	Zone   string     `db:"zone"`
	Next   *time.Time `db:"next_run_at"`
	Since  time.Time  `db:"updated_at"`
}

// JobsDue starts the due jobs of every active tenant and returns their number; a running job is not started again. A
// schedule counts from when it was set, or from when a scheduler first sees its new time zone. Runs missed while no
// scheduler ran, the tenant was suspended or the library was inactive are started once.
//
// Concurrent calls are safe: the next time is set in the transaction that adds the task.
func JobsDue(ctx context.Context, system *db.DB, now time.Time) (int, error) {
	settled := settleJobs(ctx, system)
	started, failures := schedule.Each(ctx, system, "due jobs", func(d dueJob) (bool, error) {
		ok, err := d.start(ctx, system, now)
		if err != nil {
			err = fmt.Errorf("job %s: %w", d.ID, err)
		}
		if ok {
			slog.Info("job started", "tenant", d.Tenant, "job", d.ID)
		}
		return ok, err
	}, dueSQL, now, setting.SchedulerZone)
	return started, errors.Join(settled, failures)
}

// dueSQL selects the jobs of all tenants that are due at $1, by their index, or whose due time must be computed: those
// without their own time zone when the tenant's changes. (Changing its own time zone resets a job's due time.)
const dueSQL = `with due as materialized (
	  select j.tenant_id, j.id from library_job j where j.enabled and (j.next_run_at is null or j.next_run_at <= $1)
	  union select j.tenant_id, j.id from library_job j left join setting z on z.tenant_id = j.tenant_id and z.key = $2
	    where j.enabled and j.timezone is null and j.next_zone <> coalesce(z.value, ''))
	select j.tenant_id, j.id, j.cron_schedule, coalesce(j.timezone, z.value, '') as zone, j.next_run_at, j.updated_at
	from due d join library_job j on j.tenant_id = d.tenant_id and j.id = d.id
	join tenant o on o.id = j.tenant_id and o.status = 'active' join library l on l.tenant_id = j.tenant_id and l.id = j.library_id and l.is_active
	left join setting z on z.tenant_id = j.tenant_id and z.key = $2
	order by j.next_run_at nulls first limit 1000`

// errSecond says that another scheduler was first.
var errSecond = errors.New("another scheduler handles the job")

// start computes when the job is next due, and starts it if it is due now.
func (d *dueJob) start(ctx context.Context, system *db.DB, now time.Time) (started bool, err error) {
	times, err := cronexpr.Parse(d.Cron, d.Zone)
	if err != nil {
		return false, err
	}
	at := times.Next(now)
	if d.Next == nil && d.Since.Before(now) { // an hourly scheduler must not miss what is due before
		at = times.Next(d.Since)
	}
	err = system.Tx(db.In(ctx, db.Tenant(d.Tenant)), func(ctx context.Context, tx pgx.Tx) error {
		if d.Next != nil && !d.Next.After(now) {
			started, err = schedule.Add(func(b *pgx.Batch, fresh uuid.UUID, id *uuid.UUID) error {
				return queueStart(b, nil, d.ID, fresh, nil, id)
			}).In(ctx, tx)
			if err != nil {
				return err
			}
		}
		tag, err := tx.Exec(ctx, `update library_job set next_run_at = $3, next_zone = $4
			where tenant_id = app.tenant() and id = $1 and enabled and cron_schedule = $5 and (timezone is null or timezone = $4) and next_run_at is not distinct from $2`, d.ID, d.Next, at, d.Zone, d.Cron)
		if err == nil && tag.RowsAffected() == 0 {
			err = errSecond
		}
		return err
	})
	if errors.Is(err, errSecond) {
		return false, nil
	}
	return started && err == nil, err
}

// settleJobs records the end of runs whose workers could not: they were killed, or the task was cancelled. It locks the
// rows in order and skips locked ones, so concurrent calls are safe.
func settleJobs(ctx context.Context, system *db.DB) error {
	_, err := system.Pool().Exec(ctx, `with ended as materialized (
		  select o.tenant_id, o.id, o.task_id, coalesce(t.status, 'cancelled') as status, t.last_error
		  from library_job o left join task t on t.tenant_id = o.tenant_id and t.id = o.task_id
		  where o.last_run_status in ('pending', 'running') and (t.id is null or t.status not in ('pending', 'running'))
		  order by o.tenant_id, o.id limit 5000 for no key update of o skip locked)
		update library_job j set last_run_status = e.status, last_run_message = e.last_error from ended e
		where j.tenant_id = e.tenant_id and j.id = e.id and j.task_id is not distinct from e.task_id and j.last_run_status in ('pending', 'running')`)
	if err != nil {
		return fmt.Errorf("record results of jobs: %w", err)
	}
	return nil
}
