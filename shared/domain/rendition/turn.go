package rendition

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/fault"
)

// maxTurns is how many renders of one tenant may wait for their turn.
const maxTurns = 64

// turns lets each tenant render as many pictures at once as there are processors: the queue of the Renderer, which is
// everybody's, never holds more of one tenant, however many it asks for.
type turns struct {
	mu sync.Mutex
	of map[uuid.UUID]*turn
}

// turn is of one tenant, while it renders.
type turn struct {
	free chan struct{}
	here int // that render or wait
}

// take waits for the tenant's turn; give ends it. Too many that wait already are Unavailable.
func (t *turns) take(ctx context.Context, tenant uuid.UUID) (give func(), err error) {
	t.mu.Lock()
	own := t.of[tenant]
	if own == nil {
		own = &turn{free: make(chan struct{}, runtime.GOMAXPROCS(0))}
		if t.of == nil {
			t.of = map[uuid.UUID]*turn{}
		}
		t.of[tenant] = own
	}
	if own.here >= cap(own.free)+maxTurns {
		t.mu.Unlock()
		e := fault.New(fault.Unavailable, "Too many pages are being rendered; try again shortly")
		e.RetryAfter = time.Second
		return nil, e
	}
	own.here++
	t.mu.Unlock()
	select {
	case own.free <- struct{}{}:
		return func() { <-own.free; t.leave(tenant, own) }, nil
	case <-ctx.Done():
		t.leave(tenant, own)
		return nil, ctx.Err()
	}
}

func (t *turns) leave(tenant uuid.UUID, own *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own.here--; own.here == 0 {
		delete(t.of, tenant)
	}
}
