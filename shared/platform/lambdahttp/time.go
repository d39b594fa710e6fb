package lambdahttp

import (
	"context"
	"time"
)

// Time between the end of the handler's context, or the response, and the end of the invocation; in a short invocation
// at most a half and a quarter of the time left.
const (
	workMargin   = time.Second
	answerMargin = 500 * time.Millisecond
)

// Time limits of after. After a request it is short, because the process is needed for the next one.
const (
	quickAfter = 250 * time.Millisecond
	longAfter  = 3 * time.Second
)

// workTime returns ctx with the handler's deadline.
func workTime(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, end.Add(-min(workMargin, time.Until(end)/2)))
}

// answerTime returns the time left until the response must be sent; without a deadline it is long.
func answerTime(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return time.Hour
	}
	left := time.Until(end)
	return left - min(answerMargin, left/4)
}

// bounded runs after with its own time limit, even if the invocation's time is up.
func bounded(ctx context.Context, after After, limit time.Duration) {
	if after == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	after(ctx)
}
