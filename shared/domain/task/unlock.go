package task

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// unlock takes a running task from its worker, without counting the attempt; a pending one stays as it is. BadRequest
// if it has ended or only waits for its children, NotFound if there is none. Later writes of the worker are refused:
// they need a running task under the worker's epoch, and the next claim uses another.
func unlock(ctx context.Context, d *db.DB, id uuid.UUID) (*changed, error) {
	var b pgx.Batch
	var found *changed
	db.One(&b, &found, `with old as (
		  select tenant_id, id, status, done from task where tenant_id = app.tenant() and id = $1 for update),
		t as (
		  update task t set `+givenBack+`, queued_at = null, scheduled_for = now()
		  from old where t.tenant_id = old.tenant_id and t.id = old.id and old.status = 'running' and not old.done returning t.*)
		select case when old.status = 'running' and old.done then 'waiting' else old.status end as before, `+afterChange, id)
	b.Queue("select pg_notify($1, '')", Wake)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if found == nil {
		return nil, fault.Missing("Task")
	}
	switch found.Before {
	case Pending, Running:
		return found, nil
	case "waiting":
		return nil, fault.New(fault.BadRequest, "No worker has the task: it waits for its child tasks; unlock or cancel those")
	}
	return nil, fault.New(fault.BadRequest, "The task is %s; only a running task can be unlocked", found.Before)
}
