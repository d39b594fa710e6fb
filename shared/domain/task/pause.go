package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// paused is the error of a handler that stopped because it was told to, or has to wait.
type paused struct {
	place json.RawMessage
	wait  time.Duration
}

func (*paused) Error() string { return "the task is paused and continues later" }

// Paused is the error that a handler returns after Pause told it to stop. The task continues from place (Held.Resume)
// in another run, and no attempt is counted. A handler must make progress in each run.
func Paused(place any) error { return Later(place, 0) }

// Later is Paused with an earliest time for the next run, for services that accept no request before.
func Later(place any, wait time.Duration) error {
	data, err := json.Marshal(place)
	if err != nil {
		return fmt.Errorf("encode checkpoint: %w", err)
	}
	return &paused{data, wait}
}

// Resume decodes the checkpoint into at; at the start it leaves at unchanged.
func (h Held) Resume(at any) error {
	if h.Place == nil {
		return nil
	}
	if err := json.Unmarshal(h.Place, at); err != nil {
		return fmt.Errorf("decode checkpoint: %w", err)
	}
	return nil
}

type pauseKey struct{}

// WithPause gives the handler under ctx a channel that is closed when it should stop.
func WithPause(ctx context.Context, pause <-chan struct{}) context.Context {
	return context.WithValue(ctx, pauseKey{}, pause)
}

// Pause is closed when the handler should store a checkpoint and return Paused: the invocation ends soon, or tasks of
// other tenants wait for this worker. It is nil, which is never ready, if there is no such limit.
func Pause(ctx context.Context) <-chan struct{} {
	pause, _ := ctx.Value(pauseKey{}).(<-chan struct{})
	return pause
}

// MustPause reports whether Pause is closed.
func MustPause(ctx context.Context) bool {
	select {
	case <-Pause(ctx):
		return true
	default:
		return false
	}
}

type endKey struct{}

// WithEnd says when the invocation ends, also to what follows a task, whose context has no deadline of the invocation.
func WithEnd(ctx context.Context, end time.Time) context.Context {
	return context.WithValue(ctx, endKey{}, end)
}

// UntilEnd returns ctx without its own end, limited by the invocation's.
func UntilEnd(ctx context.Context) (context.Context, context.CancelFunc) {
	free := context.WithoutCancel(ctx)
	if end, ok := ctx.Value(endKey{}).(time.Time); ok {
		return context.WithDeadline(free, end)
	}
	return free, func() {}
}

// ErrTime is the cause of a context that ended with the invocation.
var ErrTime = errors.New("the invocation ended before the task stopped")
