package db

import (
	"context"
	"slices"
	"sync"

	"github.com/google/uuid"
)

// turns shares the connections of a pool fairly among tenants. A free connection goes to the waiting tenant that has
// the fewest, however many requests another one queues. Once a second tenant has asked, none gets more than a quarter
// of the connections: a new tenant finds one free, and the server is not fully busy.
type turns struct {
	mu      sync.Mutex
	free    int
	most    int // limit per tenant
	shared  int // limit per tenant once there are several
	first   uuid.UUID
	held    map[uuid.UUID]int
	waiting []*waiter // in order of arrival; while a connection is free, the tenants of all waiters are at their limit
}

type waiter struct {
	tenant uuid.UUID
	turn   chan struct{} // closed when the waiter gets its turn
}

func newTurns(n int) *turns {
	return &turns{free: n, most: n, shared: max(1, n/4), held: map[uuid.UUID]int{}}
}

// take waits for a turn. Without an error, the caller must return it with give.
func (t *turns) take(ctx context.Context, tenant uuid.UUID) error {
	t.mu.Lock()
	switch { // requests without a tenant, such as the lookup of a host name, count for none
	case tenant == uuid.Nil, tenant == t.first:
	case t.first == uuid.Nil:
		t.first = tenant
	default:
		t.most = t.shared
	}
	if t.free > 0 && t.held[tenant] < t.most {
		t.free--
		t.held[tenant]++
		t.mu.Unlock()
		return nil
	}
	w := &waiter{tenant, make(chan struct{})}
	t.waiting = append(t.waiting, w)
	t.mu.Unlock()
	select {
	case <-w.turn:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.waiting, w); i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	} else { // the turn came at the same moment
		t.next(tenant)
	}
	return ctx.Err()
}

// give returns a tenant's turn.
func (t *turns) give(tenant uuid.UUID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next(tenant)
}

func (t *turns) next(from uuid.UUID) {
	t.free++
	if t.held[from]--; t.held[from] == 0 {
		delete(t.held, from)
	}
	first := -1
	for i, w := range t.waiting {
		if held := t.held[w.tenant]; held < t.most && (first < 0 || held < t.held[t.waiting[first].tenant]) {
			first = i
		}
	}
	if first < 0 {
		return
	}
	w := t.waiting[first]
	t.waiting = slices.Delete(t.waiting, first, first+1)
	t.free--
	t.held[w.tenant]++
	close(w.turn)
}
