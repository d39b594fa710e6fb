package page

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// turnLasts is how long a page has the store to itself and two or so others at most: one that takes longer has a slow
// reader, or is large.
const turnLasts = 10 * time.Millisecond

// turns lets pages out of a store on this machine a few at a time, in the order in which they were asked for. Both
// share its processors: many pages at once are all of them sent last, a few after the other are sent by half of that
// time.
type turns chan struct{}

// newTurns has one page asked for, one on its way to here and one on its way out for each processor that is used.
func newTurns() turns { return make(turns, 1+2*runtime.GOMAXPROCS(0)) }

// take waits for a turn, which ends with give, or after turnLasts.
func (t turns) take(ctx context.Context) (give func(), err error) {
	select {
	case t <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	end := sync.OnceFunc(func() { <-t })
	over := time.AfterFunc(turnLasts, end)
	return func() { over.Stop(); end() }, nil
}
