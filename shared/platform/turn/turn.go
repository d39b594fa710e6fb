// Package turn shares expensive work fairly among tenants. Each tenant has a few concurrent turns, however many it
// requests, so that the shared queue behind them never holds more from one tenant.
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

// maxWaiting limits the waiting jobs of one tenant.
const maxWaiting = 64

// Turns holds the turns of all tenants.
type Turns struct {
	AtOnce int // per tenant; zero: the number of CPUs

	mu sync.Mutex
	of map[uuid.UUID]*turn
}

// turn is the state of one tenant with running jobs.
type turn struct {
	free chan struct{}
	here int // running or waiting jobs
}

// Take waits for the tenant's turn; give ends it. It returns Unavailable if too many are waiting.
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
