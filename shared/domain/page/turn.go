package page

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/longbox/longbox/shared/platform/blob"
)

// turnLasts is the longest time for which a page holds a turn at the store. A page that takes longer has a slow client,
// or is large.
const turnLasts = 10 * time.Millisecond

// turns limits the pages that are read at once from a store on this machine, first come first served. Store and server
// share the processors: if many pages are sent at once, all of them finish late; sent a few at a time, they
// finish in half that time on average.
type turns chan struct{}

// newTurns allows one page being requested and, per usable processor, one page arriving and one being sent.
func newTurns() turns { return make(turns, 1+2*runtime.GOMAXPROCS(0)) }

// take waits for a turn, which ends with give or after turnLasts.
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

// turn waits for a turn if the store is on this machine; give ends it.
func (s *Server) turn(ctx context.Context, store *blob.Store) (give func(), err error) {
	if !store.Near() {
		return func() {}, nil
	}
	return s.turns.take(ctx)
}
