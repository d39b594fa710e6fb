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

// Handler does the work of one type of task and returns its result, to be stored as JSON. Its context is in the task's
// scope (db.Task) and ends when the task is cancelled or the lease is lost. It may run again after it failed half-way,
// so it must be idempotent. When Pause is closed it should stop and return Paused.
type Handler func(ctx context.Context, h Held) (result any, err error)

// Added is called after commit when a tenant has tasks that may be sent to workers. It handles its failures itself: the
// scheduler sends what was not sent.
type Added func(ctx context.Context, tenant uuid.UUID)

// Tell calls a, unless it is nil because no messages are sent.
func (a Added) Tell(ctx context.Context, tenant uuid.UUID) {
	if a != nil {
		a(ctx, tenant)
	}
}

// Runner runs tasks of all tenants, a few at once: those it claims from the table (Run), or those that messages name
// (Take).
type Runner struct {
	System   *db.DB // as the role that sees every tenant's tasks
	Handlers map[string]Handler
	Publish  events.Publish
	Worker   string // name in locked_by
	Slots    int    // tasks at once
	Poll     time.Duration
	Lease    time.Duration // zero: defaultLease
	// Slice is how long a task may run while others wait and every slot is taken; zero means no limit.
	Slice time.Duration
	// Added is called when a task has ended, so that the next one is sent; nil if no messages are sent.
	Added Added
	// ScanEnded is called when a scan has completed or failed, and publishes its end; may be nil.
	ScanEnded func(ctx context.Context, tenant, id uuid.UUID)

	once  sync.Once
	slots chan struct{}
	mu    sync.Mutex
	// By lease: a task that was taken away may be claimed again before its first run has stopped.
	held map[db.Task]*running
}

type running struct {
	Held
	since  time.Time
	cancel context.CancelCauseFunc
	pause  context.CancelFunc
	asked  bool // to pause
}

var errLost = errors.New("the task was cancelled or given to another worker")

// errUnexpected is the error that a failed task shows; the real cause goes only to the log, because other users can see
// the task.
var errUnexpected = fault.New(fault.Internal, "The worker failed unexpectedly; its log has the cause, with the id of the task")

func (r *Runner) init() {
	r.once.Do(func() {
		r.held, r.slots = map[db.Task]*running{}, make(chan struct{}, r.Slots)
		if r.Lease == 0 {
			r.Lease = defaultLease
		}
	})
}

// run runs a claimed task until it ends, pauses or is lost. An error means that this could not be recorded.
func (r *Runner) run(ctx context.Context, h Held) error {
	outer := Pause(ctx)
	pausing, pause := context.WithCancel(context.Background())
	defer pause()
	go func() { // two reasons to pause: the invocation's end, and waiting tenants
		select {
		case <-outer:
			pause()
		case <-pausing.Done():
		}
	}()
	taskCtx, cancel := context.WithCancelCause(WithPause(db.In(ctx, h.Scope()), pausing.Done()))
	defer cancel(nil)
	r.mu.Lock()
	r.held[h.Scope()] = &running{Held: h, since: time.Now(), cancel: cancel, pause: pause}
	r.mu.Unlock()
	started := time.Now()
	log := slog.With("task", h.ID, "type", h.Type, "tenant", h.Tenant)
	log.Info("task started", "attempt", h.Attempts, "deaths", h.Deaths) // a worker that is killed logs no end
	r.Publish(taskCtx, h.Tenant, progressEvent(h, Running, nil))
	result, err := r.call(taskCtx, h)
	r.mu.Lock()
	delete(r.held, h.Scope())
	r.mu.Unlock()

	end, stop := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer stop()
	err = r.record(end, log.With("ms", time.Since(started).Milliseconds()), h, result, err, context.Cause(taskCtx))
	if err == nil {
		r.Added.Tell(end, h.Tenant)
	}
	return err
}

// record writes how the run of a task ended; cause is why its context ended, nil if it did not.
func (r *Runner) record(ctx context.Context, log *slog.Logger, h Held, result any, err, cause error) error {
	var p *paused
	switch {
	case errors.Is(cause, errLost) || db.LeaseLost(err):
		log.Info("task cancelled")
		return r.tellCancelled(ctx, h)
	case errors.As(err, &p):
		log.Info("task paused")
		return giveBack(ctx, r.System, h, p.place, p.wait)
	case err != nil && cause != nil && !errors.Is(cause, ErrTime):
		log.Info("task given back: this worker is stopping")
		return giveBack(ctx, r.System, h, nil, 0) // the attempt does not count
	}
	var data json.RawMessage
	if err == nil {
		if data, err = json.Marshal(result); err != nil {
			err = fmt.Errorf("encode result: %w", err)
		}
	}
	failure, retry := h.outcome(err, cause)
	if err != nil {
		log.Error("task failed", "error", fault.Line(err.Error()), "attempt", h.Attempts)
	}
	states, err := finish(ctx, r.System, h, data, failure, retry)
	if err == nil {
		r.tell(ctx, log, h, states, failure)
	}
	return err
}

// outcome returns what a failed task shows, and the wait until its next attempt; nil if it did not fail, or fails for
// good.
func (h Held) outcome(err, cause error) (failure *string, retry *time.Duration) {
	switch {
	case err == nil:
		return nil, nil
	case errors.Is(cause, ErrTime) && !permanent(err):
		return new("The task ran out of time"), new(time.Duration)
	}
	said := errUnexpected // an internal error may name hosts, paths and statements
	_ = errors.As(err, &said)
	if !permanent(err) {
		retry = new(time.Duration(1<<min(h.Attempts, 6)) * 15 * time.Second)
	}
	return new(fault.Line(said.Message)), retry
}

// tell publishes the end of a task and, if that ended the parent too, of the parent. The end of a scan is published by
// ScanEnded, so that listeners get it once.
func (r *Runner) tell(ctx context.Context, log *slog.Logger, h Held, states []state, failure *string) {
	for _, s := range states {
		ended := s.Status == Completed || s.Status == Failed
		if s.ID == h.ID {
			log.Info("task ended", "status", s.Status)
		}
		switch {
		case ended && s.Type == ScanLibrary && r.ScanEnded != nil:
			r.ScanEnded(ctx, h.Tenant, s.ID)
		case s.ID == h.ID:
			r.Publish(ctx, h.Tenant, progressEvent(s.Held, s.Status, failure))
		case ended:
			r.Publish(ctx, h.Tenant, progressEvent(s.Held, s.Status, nil))
		}
	}
}

// tellCancelled publishes again that a task or its parent was cancelled: listeners may have got this worker's events
// after the first one.
func (r *Runner) tellCancelled(ctx context.Context, h Held) error {
	all, err := cancelled(ctx, r.System, h)
	for i := range all {
		r.Publish(ctx, h.Tenant, all[i].events()...)
	}
	return err
}

func (r *Runner) call(ctx context.Context, h Held) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			slog.Error("panic", "tenant", h.Tenant, "task", h.ID, "error", p, "stack", string(debug.Stack()))
			err = errUnexpected
		}
	}()
	handle, ok := r.Handlers[h.Type]
	if !ok {
		return nil, fault.New(fault.BadRequest, "No worker can run tasks of type %s", h.Type)
	}
	return handle(ctx, h)
}
