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

// dispatchTime limits one dispatch: the request that added a task waits for it.
const dispatchTime = 3 * time.Second

// Dispatcher sends the messages of tasks. Each tenant has a window of sent tasks, so that no tenant waits behind
// thousands of tasks of another.
type Dispatcher struct {
	Queue  *queue.Queue
	Window int           // maximum number of sent or running tasks per tenant
	Resend time.Duration // after this time an unclaimed message is sent again
}

// Dispatch fills the tenant's window. Tasks whose messages could not be sent are retried by the next call.
func (d *Dispatcher) Dispatch(ctx context.Context, database *db.DB, tenant uuid.UUID) error {
	ctx, cancel := context.WithTimeout(db.In(context.WithoutCancel(ctx), db.Tenant(tenant)), dispatchTime)
	defer cancel()
	ids, err := db.ListValues[uuid.UUID](ctx, database, "select app.next_to_send($1, $2)", d.Window, d.Resend)
	if err != nil {
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

// To returns an Added that calls Dispatch and logs failures. Without a dispatcher it is nil: the insertion of a task
// wakes the workers.
func (d *Dispatcher) To(database *db.DB) Added {
	if d == nil {
		return nil
	}
	return func(ctx context.Context, tenant uuid.UUID) {
		if err := d.Dispatch(ctx, database, tenant); err != nil {
			slog.Error("cannot send tasks; the scheduler sends them later", "tenant", tenant, "error", err)
		}
	}
}

// All dispatches for every active tenant with pending tasks. The scheduler calls it: it sends what no request has sent,
// and resends lost messages.
func (d *Dispatcher) All(ctx context.Context, system *db.DB) error {
	rows, _ := system.Pool().Query(ctx, "select id from app.waiting_tenants()")
	tenants, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID]) // also returns the error of Query
	if err != nil {
		return fmt.Errorf("find tenants with pending tasks: %w", err)
	}
	failures := make([]error, len(tenants))
	var g errgroup.Group
	g.SetLimit(4)
	for i, id := range tenants {
		g.Go(func() error {
			failures[i] = d.Dispatch(ctx, system, id) // one tenant's failure must not block the tasks of the others
			return nil
		})
	}
	_ = g.Wait() // each function stores its own failure
	return errors.Join(failures...)
}
