package plugin

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/plug"
)

// Limits of retries: how often a task retries a plugin that is rate limited or because of concurrent changes, and how
// long it waits for the plugin's own rate limit, which many tasks share.
const (
	mostRefusals = 10
	mostWaiting  = 7 * 24 * time.Hour
	longestWait  = 10 * time.Minute
	grace        = 8 * time.Second // for a pending response, when others want the worker
)

// retries records in a task's checkpoint how it has waited for a plugin.
type retries struct {
	Since    time.Time `json:"since"`    // when it began to wait
	Waits    int       `json:"waits"`    // for the rate limit
	Refusals int       `json:"refusals"` // by the plugin, by concurrent changes, or by yielding the worker
}

// again is exactly, with jitter for the rate limit, so that the tasks that share it do not continue all at once.
func (r *retries) again(err error, left bool, codes ...fault.Code) (wait time.Duration, ok bool) {
	before := r.Waits
	wait, ok = r.exactly(err, left, codes...)
	if r.Waits > before {
		wait = min(2*wait, longestWait)
		wait = wait/2 + rand.N(wait)
	}
	return wait, ok
}

// exactly reports whether a task continues later after an error, and the wait until then: a limited time for the
// plugin's own rate limit, and a limited number of times after a fault with one of the codes, or if others want the
// worker (left).
func (r *retries) exactly(err error, left bool, codes ...fault.Code) (wait time.Duration, ok bool) {
	limited, isLimit := errors.AsType[*limit](err)
	f, isFault := errors.AsType[*fault.Error](err)
	switch {
	case isLimit:
		if r.Waits == 0 {
			r.Since = time.Now()
		}
		r.Waits++
		wait = time.Duration(limited.wait) * time.Second << min(r.Waits-1, 10)
		return min(wait, longestWait), time.Since(r.Since) <= mostWaiting
	case err == nil || r.Refusals >= mostRefusals:
		return 0, false
	case left:
		r.Refusals++
		return 0, true
	case isFault && slices.Contains(codes, f.Code):
		r.Refusals++
		return max(f.RetryAfter, 10*time.Second) * time.Duration(r.Refusals), true
	}
	return 0, false
}

// patience returns a context for requests to plugins in a task: it ends a while after the task should pause.
func patience(ctx context.Context) (asking context.Context, cancel context.CancelFunc) {
	asking, cancel = context.WithCancel(ctx)
	go func() {
		select {
		case <-task.Pause(ctx):
			wait := grace
			if end, ok := ctx.Deadline(); ok { // end of the invocation; earlier than the timeout that the plugin would get
				wait = min(wait, time.Until(end)-plug.Margin-time.Second)
			}
			time.AfterFunc(wait, cancel)
		case <-asking.Done():
		}
	}()
	return asking, cancel
}

// interrupted reports whether an error is due to the end of asking, because others want the worker.
func interrupted(ctx, asking context.Context, err error) bool {
	return err != nil && asking.Err() != nil && ctx.Err() == nil
}
