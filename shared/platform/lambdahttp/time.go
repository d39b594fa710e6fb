package lambdahttp

import (
	"context"
	"time"
)

// How long before the end of an invocation the handler's context ends, and the answer must be out; of a short
// invocation at most a half and a quarter of what is left.
const (
	workMargin   = time.Second
	answerMargin = 500 * time.Millisecond
)

// How long after may take: next to a request the process is wanted for the next one.
const (
	quickAfter = 250 * time.Millisecond
	longAfter  = 3 * time.Second
)

// workTime is ctx with the end of what a handler may do.
func workTime(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, end.Add(-min(workMargin, time.Until(end)/2)))
}

// answerTime is how long from now the answer must be out; without an end, long.
func answerTime(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return time.Hour
	}
	left := time.Until(end)
	return left - min(answerMargin, left/4)
}

// bounded runs after, also when the invocation's own time is up, but not for long.
func bounded(ctx context.Context, after After, limit time.Duration) {
	if after == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	after(ctx)
}
