package task

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/queue"
)

// dispatchTime bounds one dispatch: a request that added a task waits for it.
const dispatchTime = 3 * time.Second

// Dispatcher sends the messages of tasks, a window of them for each tenant, so that no tenant's tasks wait behind
// thousands of another's.
type Dispatcher struct {
	Queue  *queue.Queue
	Window int           // tasks of a tenant that are sent or running at once
	Resend time.Duration // a message that nobody took is sent again
}

// Dispatch sends what the tenant's window has room for. Tasks whose messages could not be sent are free for the next
// call.
func (d *Dispatcher) Dispatch(ctx context.Context, database *db.DB, tenant uuid.UUID) error {
	ctx, cancel := context.WithTimeout(db.In(context.WithoutCancel(ctx), db.Tenant(tenant)), dispatchTime)
	defer cancel()
	var b pgx.Batch
	var ids []uuid.UUID
	db.Values(&b, &ids, "select app.next_to_send($1, $2)", d.Window, d.Resend)
	if err := database.Run(ctx, &b); err != nil {
		return fmt.Errorf("choose tasks to send: %w", err)
	}
	if len(ids) == 0 {
		return nil
	}
	bodies := make([]string, len(ids))
	for i, id := range ids {
		bodies[i] = message{tenant, id}.String()
	}
	unsent, err := d.Queue.Send(ctx, bodies...)
	if len(unsent) == 0 {
		return err
	}
	failed := make([]uuid.UUID, len(unsent))
	for i, n := range unsent {
		failed[i] = ids[n]
	}
	again, stop := context.WithTimeout(context.WithoutCancel(ctx), dispatchTime)
	defer stop()
	_, undo := db.Exec(again, database, "update task set queued_at = null where tenant_id = app.tenant() and id = any($1) and status = 'pending'", failed)
	return fmt.Errorf("send %d of %d tasks: %w", len(unsent), len(ids), errors.Join(err, undo))
}

// To is Dispatch over one database, as an Added: failures are logged.
func (d *Dispatcher) To(database *db.DB) Added {
	return func(ctx context.Context, tenant uuid.UUID) {
		if err := d.Dispatch(ctx, database, tenant); err != nil {
			slog.Error("tasks were not sent; the scheduler will", "tenant", tenant, "error", err)
		}
	}
}

// All dispatches for every active tenant with pending tasks. The scheduler calls it: it sends what nobody else did, and
// again what was lost.
func (d *Dispatcher) All(ctx context.Context, system *db.DB) error {
	rows, err := system.Pool().Query(ctx, "select id from app.waiting_tenants()")
	if err != nil {
		return fmt.Errorf("find tenants with pending tasks: %w", err)
	}
	tenants, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return fmt.Errorf("find tenants with pending tasks: %w", err)
	}
	failures := make([]error, len(tenants))
	var g errgroup.Group
	g.SetLimit(4)
	for i, id := range tenants {
		g.Go(func() error {
			failures[i] = d.Dispatch(ctx, system, id) // one tenant's failure must not keep the others' tasks
			return nil
		})
	}
	_ = g.Wait() // the functions keep their own failures
	return errors.Join(failures...)
}
