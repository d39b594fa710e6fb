package task

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
)

// rescued is the error that a task shows if its worker has died.
const rescued = "The worker stopped responding while it ran the task"

// orphanSQL ends the children of cancelled tasks. It finds the open children in the index task_open_child.
const orphanSQL = `update task t set status = 'cancelled', completed_at = now(), lease_until = null
	from (select c.tenant_id, c.id from task c join task p on p.tenant_id = c.tenant_id and p.id = c.parent_id
	      where p.status = 'cancelled' and c.status in ('pending', 'running') and c.parent_id is not null for update of c skip locked) orphan
	where t.tenant_id = orphan.tenant_id and t.id = orphan.id`

// Rescue takes back tasks whose worker has died: to pending while attempts are left, else failed. It also ends the
// children of cancelled parents. It returns how many changed. Rows that are locked are left for the next round: waiting
// for them could deadlock. The scheduler calls it.
//
// tell, unless nil, is called with the event of each task that ended, except those children. A worker may have died
// after it stored something and before it published that. So tell is also called once for each of their tenants, with
// an event that makes listeners reload their state, and with no task but the tenant.
func Rescue(ctx context.Context, system *db.DB, tell func(h Held, e events.Event)) (int64, error) {
	silent, err := rescue(ctx, system, tell, `
		update task t set
		  status = case when attempts < max_attempts then 'pending' else 'failed' end,
		  lease_until = null, locked_by = null, done = false, scheduled_for = now(), deaths = deaths + 1, last_error = $1,
		  completed_at = case when attempts < max_attempts then null else now() end
		from (select tenant_id, id from task where status = 'running' and lease_until < now() for update skip locked) silent
		where t.tenant_id = silent.tenant_id and t.id = silent.id returning t.*`, rescued)
	if err != nil {
		return 0, fmt.Errorf("rescue tasks: %w", err)
	}
	lost := map[uuid.UUID]bool{}
	for _, s := range silent {
		log := slog.With("task", s.ID, "type", s.Type, "tenant", s.Tenant, "attempts", s.Attempts, "deaths", s.Deaths)
		if s.Status == Failed {
			log.Error("task failed: its worker stopped responding, and no attempt is left")
		} else {
			log.Warn("task taken back: its worker stopped responding")
		}
		if tell != nil && !lost[s.Tenant] {
			lost[s.Tenant] = true
			tell(Held{Tenant: s.Tenant}, events.Resync("not_sent"))
		}
	}
	orphans, err := system.Pool().Exec(ctx, orphanSQL)
	if err != nil {
		return 0, fmt.Errorf("end children of cancelled tasks: %w", err)
	}
	waited, err := rescue(ctx, system, tell, `
		update task p set open_children = c.open,
		  status = case when p.done and c.open = 0 then 'completed' else p.status end,
		  completed_at = case when p.done and c.open = 0 then now() else p.completed_at end
		from (select p.tenant_id, p.id, c.open
		      from (select p.tenant_id, p.id, p.open_children as seen, count(t.id) filter (where t.status in ('pending', 'running')) as open
		            from task p left join task t on t.tenant_id = p.tenant_id and t.parent_id = p.id
		            where p.status = 'running' and p.open_children > 0 group by 1, 2, 3) c
		      join task p on p.tenant_id = c.tenant_id and p.id = c.id and p.open_children = c.seen -- asked of the locked row again: some may just have been added
		      where c.seen > c.open for update of p skip locked) c
		where p.tenant_id = c.tenant_id and p.id = c.id returning p.*`)
	if err != nil {
		return 0, fmt.Errorf("count children of tasks: %w", err)
	}
	return int64(len(silent)+len(waited)) + orphans.RowsAffected(), nil
}

// rescue runs an update of all tenants' tasks that returns whole rows, and calls tell for those that ended. It does so
// immediately, since a later failure does not undo the update. It returns those that changed.
func rescue(ctx context.Context, system *db.DB, tell func(h Held, e events.Event), update string, args ...any) ([]state, error) {
	rows, _ := system.Pool().Query(ctx, "with t as ("+update+") select "+heldColumns+", t.status from t"+countedBy, args...)
	changed, err := pgx.CollectRows(rows, pgx.RowToStructByName[state]) // also returns the error of Query
	if err != nil {
		return nil, err
	}
	for _, s := range changed {
		if tell == nil || s.Status == Pending || s.Status == Running {
			continue
		}
		var failure *string
		if s.Status == Failed {
			failure = new(rescued)
		}
		tell(s.Held, progressEvent(s.Held, s.Status, failure))
	}
	return changed, nil
}

// deleteStep is the number of ended tasks per delete.
const deleteStep = 5000

// forgetSQL deletes up to $2 tasks that ended before the retention period of their tenant, which is $1 days unless set.
// max(since) bounds the range of the index task_finished.
const forgetSQL = `with kept as materialized (select n.id, now() - interval '1 day' * coalesce(s.value::integer, $1::integer) as since
		from tenant n left join setting s on s.tenant_id = n.id and s.key = '` + setting.TaskRetentionDays + `')
	delete from task where ctid = any(array(select t.ctid from task t join kept k on k.id = t.tenant_id and t.completed_at < k.since
		where t.completed_at < (select max(since) from kept)` + notLast + ` limit $2 for update of t skip locked))`

// Forget deletes tasks that ended before the retention period, in steps, for about the given time; the next call
// continues. It returns their number. The scheduler calls it.
func Forget(ctx context.Context, system *db.DB, within time.Duration) (int64, error) {
	return forget(ctx, system, deleteStep, within)
}

func forget(ctx context.Context, system *db.DB, step int64, within time.Duration) (deleted int64, err error) {
	end := time.Now().Add(within)
	for {
		tag, err := system.Pool().Exec(ctx, forgetSQL, setting.Default(setting.TaskRetentionDays), step)
		if err != nil {
			return deleted, fmt.Errorf("delete old tasks: %w", err)
		}
		deleted += tag.RowsAffected()
		if tag.RowsAffected() < step || time.Now().After(end) {
			return deleted, nil
		}
	}
}
