package db

import (
	"context"
	"slices"
	"sync"

	"github.com/google/uuid"
)

// turns gives out the connections of a pool so that tenants have equal parts of them: the next one that comes free goes
// to the tenant that has the fewest, in whatever number another one's requests wait. Once a second tenant has asked,
// none has more than a quarter of them: who comes finds one free, and a server that is not busy with all it can do at
// once.
type turns struct {
	mu      sync.Mutex
	free    int
	most    int // of one tenant
	shared  int // most, once there is more than one
	first   uuid.UUID
	held    map[uuid.UUID]int
	waiting []*waiter // the first came first; while one is free, those who wait have as many as they may
}

type waiter struct {
	tenant uuid.UUID
	turn   chan struct{} // closed when it is there
}

func newTurns(n int) *turns {
	return &turns{free: n, most: n, shared: max(1, n/4), held: map[uuid.UUID]int{}}
}

// take waits for a turn, which must be given back unless there is an error.
func (t *turns) take(ctx context.Context, tenant uuid.UUID) error {
	t.mu.Lock()
	switch { // what is asked for no tenant, as which one answers to a host name, is nobody's
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
	} else { // it came in this very moment
		t.next(tenant)
	}
	return ctx.Err()
}

// give passes a tenant's turn on.
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
