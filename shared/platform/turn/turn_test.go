package turn

import (
	"context"
	"errors"
	"runtime"
	"testing"

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
		g, err := all.Take(t.Context(), tenant)
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
	if _, err := all.Take(left, loud); !errors.Is(err, context.Canceled) {
		t.Errorf("%v: one that has left gets a turn", err)
	}
	take(quiet) // waits for nobody
	waited := make(chan error, maxWaiting)
	for range maxWaiting {
		go func() {
			g, err := all.Take(context.Background(), loud)
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
	if _, err := all.Take(t.Context(), loud); !errors.As(err, &refused) || refused.Code != fault.Unavailable || refused.RetryAfter == 0 {
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
