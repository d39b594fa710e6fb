package db

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/google/uuid"
)

// turns shares the connections of a pool fairly among tenants, and those of a tenant among its accounts. A free
// connection goes to the waiting tenant that has the fewest, and there to the account that has the fewest, however many
// requests another one queues. Once a second tenant has asked, none gets more than a quarter of the connections: a new
// tenant finds one free, and the server is not fully busy. An account gets at most half of its tenant's, rounded up, so
// that one with slow requests leaves room for the others. Work on behalf of nobody has only the limit of its tenant.
type turns struct {
	mu      sync.Mutex
	free    int
	most    int // limit per tenant
	shared  int // limit per tenant once there are several
	first   uuid.UUID
	held    map[uuid.UUID]int // by tenant
	users   map[holder]int
	waiting []*waiter // in order of arrival; while a connection is free, all waiters are at a limit
}

// holder is the account of a tenant that a connection is for; uuid.Nil is nobody.
type holder struct{ tenant, account uuid.UUID }

type waiter struct {
	holder
	turn chan struct{} // closed when the waiter gets its turn
}

func newTurns(n int) *turns {
	return &turns{free: n, most: n, shared: max(1, n/4), held: map[uuid.UUID]int{}, users: map[holder]int{}}
}

// take waits for a turn. Without an error, the caller must return it with give.
func (t *turns) take(ctx context.Context, by holder) error {
	t.mu.Lock()
	switch { // requests without a tenant, such as the lookup of a host name, count for none
	case by.tenant == uuid.Nil, by.tenant == t.first:
	case t.first == uuid.Nil:
		t.first = by.tenant
	default:
		t.most = t.shared
	}
	if t.free > 0 && t.may(by) {
		t.hold(by)
		t.mu.Unlock()
		return nil
	}
	w := &waiter{by, make(chan struct{})}
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
		t.next(by)
	}
	return ctx.Err()
}

// give returns a holder's turn.
func (t *turns) give(by holder) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next(by)
}

// may reports whether the holder is below its limits.
func (t *turns) may(by holder) bool {
	return t.held[by.tenant] < t.most && (by.account == uuid.Nil || t.users[by] < (t.most+1)/2)
}

func (t *turns) hold(by holder) {
	t.free--
	t.held[by.tenant]++
	t.users[by]++
}

func (t *turns) next(from holder) {
	t.free++
	if t.held[from.tenant]--; t.held[from.tenant] == 0 {
		delete(t.held, from.tenant)
	}
	if t.users[from]--; t.users[from] == 0 {
		delete(t.users, from)
	}
	var first *waiter
	for _, w := range t.waiting {
		if t.may(w.holder) && (first == nil || t.less(w.holder, first.holder)) {
			first = w
		}
	}
	if first == nil {
		return
	}
	t.waiting = slices.DeleteFunc(t.waiting, func(w *waiter) bool { return w == first })
	t.hold(first.holder)
	close(first.turn)
}

// less reports whether a's tenant has fewer connections than b's or, if they have as many, a itself fewer than b.
func (t *turns) less(a, b holder) bool {
	return cmp.Or(cmp.Compare(t.held[a.tenant], t.held[b.tenant]), cmp.Compare(t.users[a], t.users[b])) < 0
}
