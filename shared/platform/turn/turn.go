// Package turn shares expensive work fairly among tenants, and among the accounts of each. Each has a few concurrent
// turns, however many it requests, so that the shared queue behind them never holds more from one.
package turn

import (
	"cmp"
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"

	"github.com/longbox/longbox/shared/platform/fault"
)

// maxWaiting limits the waiting jobs of one tenant.
const maxWaiting = 64

// remembered is how long a tenant that has asked for a turn counts as present.
const remembered = time.Minute

// Turns holds the turns of all tenants, or of all accounts.
type Turns struct {
	AtOnce int64 // per tenant; zero: the number of CPUs
	Beside int64 // per tenant while others are present, for jobs that begin then; zero: AtOnce

	mu    sync.Mutex
	of    map[uuid.UUID]*turn
	last  uuid.UUID // the tenant that asked last
	until time.Time // when only one tenant counts as present again
}

// turn is the state of one tenant with running jobs.
type turn struct {
	free, beside *semaphore.Weighted
	here         int64 // running or waiting jobs
}

// Take waits for n turns of the tenant; give ends them. It returns Unavailable if too many jobs are waiting. n must not
// exceed AtOnce and Beside.
func (t *Turns) Take(ctx context.Context, tenant uuid.UUID, n int64) (give func(), err error) {
	atOnce := cmp.Or(t.AtOnce, int64(runtime.GOMAXPROCS(0)))
	t.mu.Lock()
	own := t.of[tenant]
	if own == nil {
		own = &turn{free: semaphore.NewWeighted(atOnce), beside: semaphore.NewWeighted(cmp.Or(t.Beside, atOnce))}
		if t.of == nil {
			t.of = map[uuid.UUID]*turn{}
		}
		t.of[tenant] = own
	}
	if own.here >= atOnce+maxWaiting {
		t.mu.Unlock()
		return nil, fault.New(fault.Unavailable, "Too many pages are being prepared; try again shortly").After(time.Second)
	}
	own.here++
	several := t.several(tenant)
	t.mu.Unlock()
	if several {
		if err := own.beside.Acquire(ctx, n); err != nil {
			t.leave(tenant, own)
			return nil, err
		}
	}
	leave := func() {
		if several {
			own.beside.Release(n)
		}
		t.leave(tenant, own)
	}
	if err := own.free.Acquire(ctx, n); err != nil {
		leave()
		return nil, err
	}
	return func() { own.free.Release(n); leave() }, nil
}

// several reports whether several tenants are present, now that this one asks. t.mu must be held.
func (t *Turns) several(tenant uuid.UUID) bool {
	now := time.Now()
	if t.last != tenant && t.last != uuid.Nil {
		t.until = now.Add(remembered)
	}
	t.last = tenant
	return now.Before(t.until)
}

func (t *Turns) leave(tenant uuid.UUID, own *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own.here--; own.here == 0 {
		delete(t.of, tenant)
	}
}
