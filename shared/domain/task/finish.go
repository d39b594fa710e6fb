package task

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
)

// state is a task with its current status.
type state struct {
	Held
	Status string `db:"status"`
}

// finish ends the task and returns the new state of it and its parent; none if the lease was lost.
func finish(ctx context.Context, system *db.DB, h Held, result json.RawMessage, failure *string, retry *time.Duration) ([]state, error) {
	out, err := end(ctx, system, "app.finish_task($1, $2, $3, $4, $5, $6) ended", h.Tenant, h.ID, h.Epoch, result, failure, retry)
	if err != nil {
		return nil, fmt.Errorf("finish task %s: %w", h.ID, err)
	}
	return out, nil
}

// fail fails a task that no worker holds, and returns the new state of it and its parent; none if it has ended already
// or a worker holds it. A dead worker's task that has attempts left is Rescue's.
func fail(ctx context.Context, system *db.DB, tenant, id uuid.UUID, reason string) ([]state, error) {
	out, err := end(ctx, system, `task t cross join lateral app.fail_task(t.tenant_id, t.id, $3) ended
		where t.tenant_id = $1 and t.id = $2 and (t.status <> 'running' or t.attempts >= t.max_attempts)`, tenant, id, reason)
	if err != nil {
		return nil, fmt.Errorf("fail task %s: %w", id, err)
	}
	return out, nil
}

// end calls a function, as ended in the clause from, whose first arguments are tenant and task, and reads the tasks
// that it returns. It reads them in a separate statement, since the function may have waited for others that changed
// the parent's count. It may lose a deadlock with a transaction that holds a parent and waits for its child.
func end(ctx context.Context, system *db.DB, from string, tenant, id uuid.UUID, args ...any) ([]state, error) {
	return db.RetryDeadlock(func() (out []state, err error) {
		var b pgx.Batch
		var ended []struct {
			ID     uuid.UUID `db:"id"`
			Status string    `db:"status"`
		}
		var tasks []Held
		db.Tenant(tenant).Enter(&b) // scans are visible only within their tenant
		db.All(&b, &ended, "select ended.id, ended.status from "+from, append([]any{tenant, id}, args...)...)
		db.All(&b, &tasks, "select "+heldColumns+" from task t"+countedBy+` where t.tenant_id = $1
			and t.id in ($2, (select c.parent_id from task c where c.tenant_id = $1 and c.id = $2))`, tenant, id)
		if err := system.Pool().SendBatch(ctx, &b).Close(); err != nil {
			return nil, err
		}
		for _, e := range ended {
			if i := slices.IndexFunc(tasks, func(h Held) bool { return h.ID == e.ID }); i >= 0 {
				out = append(out, state{tasks[i], e.Status})
			}
		}
		return out, nil
	})
}

// givenBack sets a task t, whose worker no longer has it, to pending without counting the attempt.
const givenBack = "status = 'pending', lease_until = null, locked_by = null, attempts = greatest(t.attempts - 1, 0)"

// giveBack makes a task pending again, after wait at the earliest; place, if not nil, is its checkpoint.
func giveBack(ctx context.Context, system *db.DB, h Held, place json.RawMessage, wait time.Duration) error {
	_, err := system.Pool().Exec(ctx, `update task t set `+givenBack+`, place = coalesce($4, place),
		  scheduled_for = case when $5::interval > interval '0' then now() + $5::interval else scheduled_for end
		where tenant_id = $1 and id = $2 and lease_epoch = $3 and status = 'running'`, h.Tenant, h.ID, h.Epoch, place, wait)
	if err != nil {
		return fmt.Errorf("give back task %s: %w", h.ID, err)
	}
	return nil
}

// QueueGiveBack makes all tasks of the tenant that a worker holds pending again, children first, as when a task ends; n
// receives the number. Parents that only wait for their children stay running.
func QueueGiveBack(b *pgx.Batch, n *int64) {
	db.Affected(b, n, `update task t set `+givenBack+`
		from (select id from task where tenant_id = app.tenant() and status = 'running' and not done order by id desc for update) r
		where t.tenant_id = app.tenant() and t.id = r.id`)
}
