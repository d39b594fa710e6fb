package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// paused is what a handler returns that has stopped because it was told to, or has to wait.
type paused struct {
	place json.RawMessage
	wait  time.Duration
}

func (*paused) Error() string { return "the task stopped at its place, to go on later" }

// Paused is the error that a handler returns when it has stopped because Pause said so: the task goes on from place
// (Held.Resume) in another run, and no attempt is counted. A handler must get further in each run.
func Paused(place any) error { return Later(place, 0) }

// Later is Paused that goes on after a while at the earliest: others who are to be asked take nothing before.
func Later(place any, wait time.Duration) error {
	data, err := json.Marshal(place)
	if err != nil {
		return fmt.Errorf("place of the task: %w", err)
	}
	return &paused{data, wait}
}

// Resume reads the place where the handler stopped; at a start it leaves at as it is.
func (h Held) Resume(at any) error {
	if h.Place == nil {
		return nil
	}
	if err := json.Unmarshal(h.Place, at); err != nil {
		return fmt.Errorf("place of the task: %w", err)
	}
	return nil
}

type pauseKey struct{}

// WithPause lets the handler under ctx know that it should stop when the channel is closed.
func WithPause(ctx context.Context, pause <-chan struct{}) context.Context {
	return context.WithValue(ctx, pauseKey{}, pause)
}

// Pause is closed when the handler should save its place and return Paused: the invocation ends soon, or tasks of
// other tenants wait for this worker. It is nil, which never is ready, where there is no such limit.
func Pause(ctx context.Context) <-chan struct{} {
	pause, _ := ctx.Value(pauseKey{}).(<-chan struct{})
	return pause
}

// MustPause tells whether Pause is closed.
func MustPause(ctx context.Context) bool {
	select {
	case <-Pause(ctx):
		return true
	default:
		return false
	}
}

// ErrTime is the cause of a context that ended because the invocation does.
var ErrTime = errors.New("the invocation's time was over before the task had stopped")
