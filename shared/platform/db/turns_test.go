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
				if err := turns.take(t.Context(), tenant); err != nil {
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
			turns.give(who)
			synctest.Wait()
		}
		if want := []uuid.UUID{loud, loud, quiet, loud, quiet, loud}; !slices.Equal(order, want) {
			t.Errorf("%v, want %v", order, want)
		}
		turns.give(quiet)
		turns.give(loud)
		synctest.Wait()
		turns.give(loud)
		if turns.free != 2 || len(turns.held) != 0 || len(turns.waiting) != 0 {
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
				if err := turns.take(t.Context(), tenant); err != nil {
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
		turns.give(loud)
		has(quiet, 1)
		for range 5 {
			turns.give(loud)
		}
		has(loud, 2) // and two more wait
		turns.give(quiet)
		has(loud, 2)
		for range 2 {
			ask(quiet)
		}
		has(quiet, 2)
		for range 2 {
			turns.give(loud)
			has(loud, 2)
		}
		for range 2 {
			turns.give(loud)
			turns.give(quiet)
		}
		if turns.free != 8 || len(turns.held) != 0 || len(turns.waiting) != 0 {
			t.Errorf("%+v", turns)
		}
	})
}

// The look-up of a host's tenant, which enters none, does not count as a second tenant.
func TestTurnsOfNobody(t *testing.T) {
	turns, tenant := newTurns(8), uuid.New()
	for _, who := range []uuid.UUID{uuid.Nil, tenant, uuid.Nil, tenant} {
		if err := turns.take(t.Context(), who); err != nil {
			t.Fatal(err)
		}
		turns.give(who)
	}
	if turns.most != 8 {
		t.Errorf("a tenant alone has %d of 8 connections", turns.most)
	}
	if err := turns.take(t.Context(), uuid.New()); err != nil || turns.most != 2 {
		t.Errorf("of two tenants each has %d of 8 connections; %v", turns.most, err)
	}
}

// A caller who gives up loses no turn, neither while waiting nor when the turn comes at the same moment.
func TestTurnsOfThoseWhoLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns, tenant := newTurns(1), uuid.New()
		for i := range 200 {
			if err := turns.take(t.Context(), tenant); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			left := make(chan error)
			go func() { left <- turns.take(ctx, tenant) }()
			synctest.Wait()
			turns.mu.Lock() // the waiter sees all that follows at once
			cancel()
			together := i%2 == 0
			if together {
				turns.next(tenant)
			}
			turns.mu.Unlock()
			err := <-left
			if !together && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if !together || err == nil {
				turns.give(tenant)
			}
			if turns.free != 1 || len(turns.held) != 0 || len(turns.waiting) != 0 {
				t.Fatalf("round %d: %+v", i, turns)
			}
		}
	})
}
