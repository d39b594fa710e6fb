package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
)

// Handler does the work of one type of task and returns its result, to be stored as JSON. Its context is in
// the task's scope (db.Task) and ends when the task is cancelled or the lease lost. It may run again after it
// failed half-way, so it must be idempotent.
type Handler func(ctx context.Context, h Held) (result any, err error)

// Publish sends events after commit.
type Publish func(ctx context.Context, tenant uuid.UUID, e ...events.Event)

// Runner claims tasks of all tenants and runs them, a few at once.
type Runner struct {
	System   *db.DB // as the role that sees every tenant's tasks
	Handlers map[string]Handler
	Publish  Publish
	Worker   string // name in locked_by
	Slots    int    // tasks at once
	Poll     time.Duration
	Lease    time.Duration // zero: DefaultLease
	// Ended is told what became of a task and, where its end changed it, of its parent.
	Ended func(ctx context.Context, tenant, id uuid.UUID, status string)

	mu   sync.Mutex
	held map[uuid.UUID]*running
}

type running struct {
	Held
	cancel context.CancelCauseFunc
}

var errLost = errors.New("the task was cancelled or given to another worker")

// Run works until ctx ends, then gives back what it holds. It wakes up by notification and by polling.
func (r *Runner) Run(ctx context.Context) error {
	r.held = map[uuid.UUID]*running{}
	if r.Lease == 0 {
		r.Lease = DefaultLease
	}
	wake := make(chan struct{}, 1)
	var background, workers sync.WaitGroup
	background.Go(func() { r.listen(ctx, wake) })
	background.Go(func() { r.heartbeat(ctx) })
	free := make(chan struct{}, r.Slots)
	for ctx.Err() == nil {
		n := r.fill(ctx, free, &workers)
		if n > 0 {
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

// fill claims as many tasks as there are free slots and starts them; it waits for a slot first.
func (r *Runner) fill(ctx context.Context, slots chan struct{}, workers *sync.WaitGroup) int {
	select {
	case slots <- struct{}{}:
		<-slots
	case <-ctx.Done():
		return 0
	}
	tasks, err := claim(ctx, r.System, r.Worker, r.Lease, cap(slots)-len(slots))
	if err != nil {
		if ctx.Err() == nil {
			slog.Error("cannot claim tasks; will try again", "error", err)
		}
		return 0
	}
	for _, h := range tasks {
		slots <- struct{}{}
		taskCtx, cancel := context.WithCancelCause(db.In(ctx, h.Scope()))
		r.mu.Lock()
		r.held[h.ID] = &running{h, cancel}
		r.mu.Unlock()
		workers.Go(func() {
			defer func() { <-slots }()
			defer cancel(nil)
			r.one(taskCtx, h)
		})
	}
	return len(tasks)
}

func (r *Runner) one(ctx context.Context, h Held) {
	log := slog.With("task", h.ID, "type", h.Type, "tenant", h.Tenant)
	started := time.Now()
	r.Publish(ctx, h.Tenant, progressEvent(h, Running, nil))
	result, err := r.call(ctx, h)
	r.mu.Lock()
	delete(r.held, h.ID)
	r.mu.Unlock()

	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	switch {
	case errors.Is(context.Cause(ctx), errLost) || db.ErrLost(err):
		log.Info("task cancelled", "ms", time.Since(started).Milliseconds())
		return
	case err != nil && ctx.Err() != nil:
		// This worker is stopping: give the task back at once, the attempt does not count.
		if err := giveBack(end, r.System, h); err != nil {
			log.Error("cannot give the task back; its lease will run out", "error", err)
		}
		return
	}
	var data json.RawMessage
	var failure *string
	var retry *time.Duration
	if err == nil {
		if data, err = json.Marshal(result); err != nil {
			err = fmt.Errorf("result: %w", err)
		}
	}
	if err != nil {
		text := fault.From(err).Message
		if fault.Is(err, fault.Internal) || errors.As(err, new(*fault.Error)) == false {
			text = err.Error()
		}
		failure = &text
		if !fault.Is(err, fault.BadRequest) && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Conflict) {
			wait := time.Duration(1<<min(h.Attempts, 6)) * 15 * time.Second
			retry = &wait
		}
		log.Error("task failed", "error", err, "attempt", h.Attempts, "ms", time.Since(started).Milliseconds())
	}
	states, ferr := finish(end, r.System, h, data, failure, retry)
	if ferr != nil {
		log.Error("cannot record the end of the task; its lease will run out", "error", ferr)
		return
	}
	for _, s := range states {
		if s.ID == h.ID {
			log.Info("task ended", "status", s.Status, "ms", time.Since(started).Milliseconds())
			r.Publish(end, h.Tenant, progressEvent(h, s.Status, failure))
		}
		if r.Ended != nil {
			r.Ended(end, h.Tenant, s.ID, s.Status)
		}
	}
}

func (r *Runner) call(ctx context.Context, h Held) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	handle, ok := r.Handlers[h.Type]
	if !ok {
		return nil, fault.New(fault.BadRequest, "No worker knows tasks of type %s", h.Type)
	}
	return handle(ctx, h)
}

func giveBack(ctx context.Context, system *db.DB, h Held) error {
	_, err := system.Pool().Exec(ctx, `update task set status = 'pending', lease_until = null, locked_by = null, attempts = attempts - 1
		where tenant_id = $1 and id = $2 and lease_epoch = $3 and status = 'running'`, h.Tenant, h.ID, h.Epoch)
	return err
}

// heartbeat renews the leases every second and cancels the work on tasks that are no longer held, so that a
// cancelled task stops within two.
func (r *Runner) heartbeat(ctx context.Context) {
	tick := time.NewTicker(min(time.Second, r.Lease/4))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		r.mu.Lock()
		held := make([]Held, 0, len(r.held))
		for _, h := range r.held {
			held = append(held, h.Held)
		}
		r.mu.Unlock()
		if len(held) == 0 {
			continue
		}
		still, err := renew(ctx, r.System, r.Lease, held)
		if err != nil {
			if ctx.Err() == nil {
				slog.Warn("cannot renew leases", "error", err)
			}
			continue
		}
		r.mu.Lock()
		for _, h := range held {
			if run, ok := r.held[h.ID]; ok && !still[h.ID] {
				run.cancel(errLost)
			}
		}
		r.mu.Unlock()
	}
}

// listen turns notifications into wake-ups, on a connection of its own; polling covers its absence.
func (r *Runner) listen(ctx context.Context, wake chan<- struct{}) {
	for ctx.Err() == nil {
		err := func() error {
			conn, err := r.System.Pool().Acquire(ctx)
			if err != nil {
				return err
			}
			defer conn.Release()
			if _, err := conn.Exec(ctx, "listen "+Wake); err != nil {
				return err
			}
			for {
				if _, err := conn.Conn().WaitForNotification(ctx); err != nil {
					return err
				}
				select {
				case wake <- struct{}{}:
				default:
				}
			}
		}()
		if ctx.Err() == nil {
			slog.Warn("no notifications of new tasks; polling", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(5 * time.Second):
			}
		}
	}
}

func progressEvent(h Held, status string, failure *string) events.Event {
	e := events.TaskProgress{TaskID: h.ID, TaskType: h.Type, Status: status, Error: failure, StartedAt: utc(h.Started),
		LibraryID: h.LibraryID, SeriesID: h.SeriesID, BookID: h.BookID}
	if status != Running && status != Pending {
		now := time.Now().UTC()
		e.CompletedAt = &now
	}
	return events.TaskProgressed(e)
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}
