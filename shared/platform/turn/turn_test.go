package turn

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/fault"
)

func TestTurns(t *testing.T) {
	t.Parallel()
	const atOnce = 2
	all := Turns{AtOnce: atOnce}
	loud, quiet := uuid.New(), uuid.New()
	var give []func()
	take := func(tenant uuid.UUID) {
		t.Helper()
		g, err := all.Take(t.Context(), tenant, 1)
		if err != nil {
			t.Fatal(err)
		}
		give = append(give, g)
	}
	for range atOnce {
		take(loud)
	}
	left, leave := context.WithCancel(t.Context())
	leave()
	if _, err := all.Take(left, loud, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("%v: one that has left gets a turn", err)
	}
	take(quiet) // waits for nobody
	waited := make(chan error, maxWaiting)
	for range maxWaiting {
		go func() {
			g, err := all.Take(context.Background(), loud, 1)
			if err == nil {
				g()
			}
			waited <- err
		}()
	}
	here := func() int64 {
		all.mu.Lock()
		defer all.mu.Unlock()
		return all.of[loud].here
	}
	for here() < atOnce+maxWaiting {
		runtime.Gosched()
	}
	var refused *fault.Error
	if _, err := all.Take(t.Context(), loud, 1); !errors.As(err, &refused) || refused.Code != fault.Unavailable || refused.RetryAfter == 0 {
		t.Errorf("%v, want a refusal that says when to try again", err)
	}
	for _, g := range give {
		g()
	}
	for range maxWaiting {
		if err := <-waited; err != nil {
			t.Error(err)
		}
	}
	if len(all.of) != 0 {
		t.Errorf("%d tenants are remembered", len(all.of))
	}
}

// A tenant that is alone has all turns, and leaves some free once another one has asked. This ends when the other one
// is silent for a while.
func TestTurnsBesideOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := Turns{AtOnce: 4, Beside: 1}
		loud, quiet := uuid.New(), uuid.New()
		begun := make(chan func(), 6)
		loudly := func(n int) {
			for range n {
				go func() {
					give, err := all.Take(t.Context(), loud, 1)
					if err != nil {
						t.Error(err)
					}
					begun <- give
				}()
			}
			synctest.Wait()
		}
		end := func() {
			for len(begun) > 0 {
				(<-begun)()
				synctest.Wait()
			}
		}
		loudly(6)
		if len(begun) != 4 {
			t.Errorf("%d jobs at once of a tenant that is alone, want 4", len(begun))
		}
		end()
		give, err := all.Take(t.Context(), quiet, 1)
		if err != nil {
			t.Fatal(err)
		}
		give()
		loudly(6)
		if len(begun) != 1 {
			t.Errorf("%d jobs at once beside another tenant, want 1", len(begun))
		}
		end()
		time.Sleep(remembered)
		loudly(4)
		if len(begun) != 4 {
			t.Errorf("%d jobs at once after the other tenant was silent, want 4", len(begun))
		}
		end()
	})
}

// However many turns one user asks for, another one of the tenant gets the next.
func TestSharesWithinATenant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := Shares{Tenants: Turns{AtOnce: 2}, Accounts: Turns{AtOnce: 2}}
		tenant, loud, quiet := uuid.New(), uuid.New(), uuid.New()
		began, gives := make(chan uuid.UUID, 20), make(chan func(), 20)
		ask := func(account uuid.UUID) {
			give, err := s.Take(t.Context(), tenant, account, 1)
			if err != nil {
				t.Error(err)
			}
			began <- account
			gives <- give
		}
		for range 10 {
			go ask(loud)
		}
		synctest.Wait()
		go ask(quiet)
		synctest.Wait()
		for range 11 {
			(<-gives)()
			synctest.Wait()
		}
		for at := range 11 {
			if <-began == quiet {
				if at > 4 {
					t.Errorf("the quiet user was number %d", at+1)
				}
				return
			}
		}
		t.Error("the quiet user had no turn")
	})
}
