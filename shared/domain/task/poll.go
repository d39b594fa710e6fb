package task

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Run claims tasks from their table until ctx ends, then gives back what it holds. Notifications and polling wake it.
func (r *Runner) Run(ctx context.Context) error {
	r.init()
	wake := make(chan struct{}, 1)
	var background, workers sync.WaitGroup
	background.Go(func() { r.listen(ctx, wake) })
	background.Go(func() { r.Beat(ctx) })
	for ctx.Err() == nil {
		if r.fill(ctx, &workers) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
		case <-wake:
		case <-time.After(r.Poll):
		}
	}
	workers.Wait()
	background.Wait()
	return nil
}

// fill waits for a free slot, then claims as many tasks as there are free slots and starts them.
func (r *Runner) fill(ctx context.Context, workers *sync.WaitGroup) int {
	select {
	case r.slots <- struct{}{}:
		<-r.slots
	case <-ctx.Done():
		return 0
	}
	tasks, err := claim(ctx, r.System, r.Worker, r.Lease, cap(r.slots)-len(r.slots))
	if err != nil {
		if ctx.Err() == nil {
			slog.Error("cannot claim tasks; trying again", "error", err)
		}
		return 0
	}
	for _, h := range tasks {
		r.slots <- struct{}{}
		workers.Go(func() {
			defer func() { <-r.slots }()
			if err := r.run(ctx, h); err != nil {
				slog.Error("cannot record the end of a task; its lease expires", "task", h.ID, "tenant", h.Tenant, "error", err)
			}
		})
	}
	return len(tasks)
}

// listen turns notifications into wake-ups, on its own connection; polling covers its failures.
func (r *Runner) listen(ctx context.Context, wake chan<- struct{}) {
	for ctx.Err() == nil {
		err := func() error {
			conn, err := r.System.Pool().Acquire(ctx)
			if err != nil {
				return err
			}
			defer func() { _ = conn.Conn().Close(context.Background()); conn.Release() }() // it goes on listening
			if _, err := conn.Exec(ctx, "listen "+Wake); err != nil {
				return err
			}
			// With ctx, pgx would try to cancel a statement first, and wait.
			defer context.AfterFunc(ctx, func() { _ = conn.Conn().PgConn().Conn().SetReadDeadline(time.Now()) })()
			for {
				if _, err := conn.Conn().WaitForNotification(context.WithoutCancel(ctx)); err != nil {
					return err
				}
				select {
				case wake <- struct{}{}:
				default:
				}
			}
		}()
		if ctx.Err() == nil {
			slog.Warn("cannot listen for new tasks; polling", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(5 * time.Second):
			}
		}
	}
}
