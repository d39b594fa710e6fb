package task

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
)

// state is a task and the status that it has now.
type state struct {
	Held
	Status string `db:"status"`
}

// finish ends the task and tells the new state of it and of its parent; none when the lease was lost.
func finish(ctx context.Context, system *db.DB, h Held, result json.RawMessage, failure *string, retry *time.Duration) ([]state, error) {
	out, err := end(ctx, system, "app.finish_task($1, $2, $3, $4, $5, $6)", h.Tenant, h.ID, h.Epoch, result, failure, retry)
	if err != nil {
		return nil, fmt.Errorf("finish task %s: %w", h.ID, err)
	}
	return out, nil
}

// fail ends a task that nobody works on, with its reason, and tells the new state of it and of its parent; none when it
// has ended already or a worker has it.
func fail(ctx context.Context, system *db.DB, tenant, id uuid.UUID, reason string) ([]state, error) {
	out, err := end(ctx, system, "app.fail_task($1, $2, $3)", tenant, id, reason)
	if err != nil {
		return nil, fmt.Errorf("fail task %s: %w", id, err)
	}
	return out, nil
}

// end calls the function, whose first argument is the tenant, and reads the tasks that it tells of.
func end(ctx context.Context, system *db.DB, function string, tenant uuid.UUID, args ...any) (out []state, err error) {
	var b pgx.Batch
	db.Tenant(tenant).Enter(&b) // scans are seen by who is in their tenant only
	db.All(&b, &out, "select "+heldColumns+", ended.status from "+function+` ended
		join task t on t.tenant_id = $1 and t.id = ended.id`+countedBy, append([]any{tenant}, args...)...)
	err = system.Pool().SendBatch(ctx, &b).Close()
	return out, err
}

// giveBack makes a task pending again, without counting the attempt; place, where not nil, is where it stopped.
func giveBack(ctx context.Context, system *db.DB, h Held, place json.RawMessage) error {
	_, err := system.Pool().Exec(ctx, `update task set status = 'pending', lease_until = null, locked_by = null, attempts = attempts - 1,
		place = coalesce($4, place) where tenant_id = $1 and id = $2 and lease_epoch = $3 and status = 'running'`,
		h.Tenant, h.ID, h.Epoch, place)
	if err != nil {
		return fmt.Errorf("give back task %s: %w", h.ID, err)
	}
	return nil
}
