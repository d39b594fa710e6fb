package task

import (
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// A task waits for the children that it has started: open_children counts the unfinished ones. Whoever adds children
// counts them in the transaction that adds them, by one of the functions below; whatever ends one counts it down
// (app.end_child, cancel); Rescue puts right what a child did not count.

// QueueChildren counts n children that this transaction adds to a task.
func QueueChildren(b *pgx.Batch, parent uuid.UUID, n int) {
	b.Queue("update task set open_children = open_children + $2 where tenant_id = app.tenant() and id = $1", parent, n)
}

// QueueNewChildren is QueueChildren for whoever does not know how many AddEach adds: it counts all that this
// transaction has added.
func QueueNewChildren(b *pgx.Batch, parent uuid.UUID) {
	b.Queue(`update task set open_children = open_children + (
		  select count(*) from task c where c.tenant_id = app.tenant() and c.parent_id = $1 and c.created_at = now())
		where tenant_id = app.tenant() and id = $1`, parent)
}

// QueueTakeBack cancels the children that nobody has begun, for a task that begins anew and adds them again; it goes on
// waiting for those that run.
func QueueTakeBack(b *pgx.Batch, parent uuid.UUID) {
	b.Queue("update task set status = 'cancelled', completed_at = now() where tenant_id = app.tenant() and parent_id = $1 and status = 'pending'", parent)
	b.Queue(`update task set open_children = (select count(*) from task c where c.tenant_id = app.tenant() and c.parent_id = $1 and c.status = 'running')
		where tenant_id = app.tenant() and id = $1`, parent)
}
