package task

import (
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// A task waits for the children that it has started: open_children counts the unfinished ones. A transaction that adds
// children counts them by one of the functions below. Whatever ends a child decrements the count (app.end_child,
// cancel); Rescue repairs missed decrements.

// QueueChildren counts the children with these ids, as far as this transaction has added them to a task.
func QueueChildren(b *pgx.Batch, parent uuid.UUID, ids []uuid.UUID) {
	b.Queue(`update task set open_children = open_children + (select count(*) from task c where c.tenant_id = app.tenant() and c.id = any($2))
		where tenant_id = app.tenant() and id = $1`, parent, ids)
}

// QueueNewChildren is QueueChildren for an unknown number of children, as with AddEach: it counts all that this
// transaction has added.
func QueueNewChildren(b *pgx.Batch, parent uuid.UUID) {
	b.Queue(`update task set open_children = open_children + (
		  select count(*) from task c where c.tenant_id = app.tenant() and c.parent_id = $1 and c.created_at = now())
		where tenant_id = app.tenant() and id = $1`, parent)
}

// QueueTakeBack cancels the pending children of a task that starts over and will add them again. The task keeps waiting
// for the running ones.
func QueueTakeBack(b *pgx.Batch, parent uuid.UUID) {
	b.Queue("update task set status = 'cancelled', completed_at = now() where tenant_id = app.tenant() and parent_id = $1 and status = 'pending'", parent)
	b.Queue(`update task set open_children = (select count(*) from task c where c.tenant_id = app.tenant() and c.parent_id = $1 and c.status = 'running')
		where tenant_id = app.tenant() and id = $1`, parent)
}
