package db

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/uuid"
)

// Of two connections, a tenant with many requests gets only one as soon as another tenant asks.
func TestTurnsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loud, quiet := uuid.New(), uuid.New()
		turns := newTurns(2)
		var order []uuid.UUID
		var mu sync.Mutex
		ask := func(tenant uuid.UUID) {
			go func() {
				if err := turns.take(t.Context(), holder{tenant: tenant}); err != nil {
					t.Error(err)
				}
				mu.Lock()
				order = append(order, tenant)
				mu.Unlock()
			}()
			synctest.Wait()
		}
		for range 5 {
			ask(loud)
		}
		ask(quiet)
		ask(quiet)
		for _, who := range []uuid.UUID{loud, loud, quiet, loud} { // one after the other ends
			turns.give(holder{tenant: who})
			synctest.Wait()
		}
		if want := []uuid.UUID{loud, loud, quiet, loud, quiet, loud}; !slices.Equal(order, want) {
			t.Errorf("%v, want %v", order, want)
		}
		turns.give(holder{tenant: quiet})
		turns.give(holder{tenant: loud})
		synctest.Wait()
		turns.give(holder{tenant: loud})
		if turns.free != 2 || len(turns.held)+len(turns.users) != 0 || len(turns.waiting) != 0 {
			t.Errorf("%+v", turns)
		}
	})
}

// A single tenant may use all connections. Once another one has asked, a tenant gets a quarter of them, even if the
// others are idle.
func TestTurnsAreKeptForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loud, quiet := uuid.New(), uuid.New()
		turns := newTurns(8)
		has := func(tenant uuid.UUID, want int) {
			t.Helper()
			synctest.Wait()
			turns.mu.Lock()
			defer turns.mu.Unlock()
			if turns.held[tenant] != want {
				t.Errorf("%d connections, want %d", turns.held[tenant], want)
			}
		}
		ask := func(tenant uuid.UUID) {
			go func() {
				if err := turns.take(t.Context(), holder{tenant: tenant}); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		for range 10 {
			ask(loud)
		}
		has(loud, 8)
		ask(quiet) // waits: there is none
		turns.give(holder{tenant: loud})
		has(quiet, 1)
		for range 5 {
			turns.give(holder{tenant: loud})
		}
		has(loud, 2) // and two more wait
		turns.give(holder{tenant: quiet})
		has(loud, 2)
		for range 2 {
			ask(quiet)
		}
		has(quiet, 2)
		for range 2 {
			turns.give(holder{tenant: loud})
			has(loud, 2)
		}
		for range 2 {
			turns.give(holder{tenant: loud})
			turns.give(holder{tenant: quiet})
		}
		if turns.free != 8 || len(turns.held)+len(turns.users) != 0 || len(turns.waiting) != 0 {
			t.Errorf("%+v", turns)
		}
	})
}

// The look-up of a host's tenant, which enters none, does not count as a second tenant.
func TestTurnsOfNobody(t *testing.T) {
	turns, tenant := newTurns(8), uuid.New()
	for _, who := range []uuid.UUID{uuid.Nil, tenant, uuid.Nil, tenant} {
		if err := turns.take(t.Context(), holder{tenant: who}); err != nil {
			t.Fatal(err)
		}
		turns.give(holder{tenant: who})
	}
	if turns.most != 8 {
		t.Errorf("a tenant alone has %d of 8 connections", turns.most)
	}
	if err := turns.take(t.Context(), holder{tenant: uuid.New()}); err != nil || turns.most != 2 {
		t.Errorf("of two tenants each has %d of 8 connections; %v", turns.most, err)
	}
}

// An account gets half of its tenant's connections, even if the rest are free. One with many requests waits behind the
// first of another one.
func TestTurnsOfAccounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tenant := uuid.New()
		loud, quiet, nobody := holder{tenant, uuid.New()}, holder{tenant, uuid.New()}, holder{tenant: tenant}
		turns := newTurns(4)
		ask := func(by holder) {
			go func() {
				if err := turns.take(t.Context(), by); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		has := func(by holder, want int) {
			t.Helper()
			synctest.Wait()
			turns.mu.Lock()
			defer turns.mu.Unlock()
			if turns.users[by] != want {
				t.Errorf("%d connections, want %d", turns.users[by], want)
			}
		}
		for range 5 {
			ask(loud)
		}
		has(loud, 2)
		for range 2 {
			ask(nobody)
		}
		has(nobody, 2) // work for nobody gets all that are free
		ask(quiet)
		turns.give(loud)
		has(quiet, 1)
		has(loud, 1) // and three more wait
		turns.give(nobody)
		has(loud, 2)
		for range 2 {
			turns.give(loud)
			has(loud, 2)
		}
		for _, by := range []holder{loud, loud, quiet, nobody} {
			turns.give(by)
		}
		if turns.free != 4 || len(turns.held)+len(turns.users) != 0 || len(turns.waiting) != 0 {
			t.Errorf("%+v", turns)
		}
	})
}

// A caller who gives up loses no turn, neither while waiting nor when the turn comes at the same moment.
func TestTurnsOfThoseWhoLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns, tenant := newTurns(1), uuid.New()
		for i := range 200 {
			if err := turns.take(t.Context(), holder{tenant: tenant}); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			left := make(chan error)
			go func() { left <- turns.take(ctx, holder{tenant: tenant}) }()
			synctest.Wait()
			turns.mu.Lock() // the waiter sees all that follows at once
			cancel()
			together := i%2 == 0
			if together {
				turns.next(holder{tenant: tenant})
			}
			turns.mu.Unlock()
			err := <-left
			if !together && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if !together || err == nil {
				turns.give(holder{tenant: tenant})
			}
			if turns.free != 1 || len(turns.held)+len(turns.users) != 0 || len(turns.waiting) != 0 {
				t.Fatalf("round %d: %+v", i, turns)
			}
		}
	})
}
