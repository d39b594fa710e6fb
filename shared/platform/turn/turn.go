// Package turn shares work that costs much fairly among tenants: each has a few turns at once, however many it asks
// for, so that a queue behind them, which is everybody's, never holds more of one tenant.
package turn

import (
	"cmp"
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/fault"
)

// maxWaiting is how many pieces of work of one tenant may wait for their turn.
const maxWaiting = 64

// Turns are the turns of all tenants.
type Turns struct {
	AtOnce int // of one tenant; zero: as many as there are processors

	mu sync.Mutex
	of map[uuid.UUID]*turn
}

// turn is of one tenant, while it works.
type turn struct {
	free chan struct{}
	here int // that work or wait
}

// Take waits for the tenant's turn; give ends it. Too many that wait already are Unavailable.
func (t *Turns) Take(ctx context.Context, tenant uuid.UUID) (give func(), err error) {
	t.mu.Lock()
	own := t.of[tenant]
	if own == nil {
		own = &turn{free: make(chan struct{}, cmp.Or(t.AtOnce, runtime.GOMAXPROCS(0)))}
		if t.of == nil {
			t.of = map[uuid.UUID]*turn{}
		}
		t.of[tenant] = own
	}
	if own.here >= cap(own.free)+maxWaiting {
		t.mu.Unlock()
		return nil, fault.New(fault.Unavailable, "Too many pages are being prepared; try again shortly").After(time.Second)
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

func (t *Turns) leave(tenant uuid.UUID, own *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own.here--; own.here == 0 {
		delete(t.of, tenant)
	}
}
