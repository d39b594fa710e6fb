package oidc

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/longbox/longbox/shared/platform/fault"
)

// pause is how long a failed provider is not asked again; meanwhile nobody waits for it.
const pause = 30 * time.Second

// away says that a provider did not respond properly, and until when it is not asked again.
type away struct {
	error
	until time.Time
}

// Unwrap returns the provider's error.
func (a *away) Unwrap() error { return a.error }

// turns lets one request at a time ask a provider; concurrent ones wait for its result. After a failure, requests fail
// immediately for a while.
type turns struct {
	flight singleflight.Group

	mu     sync.Mutex
	failed map[source]*away
}

// take runs ask, or waits for a running one. That goes on if the request that started it ends, so that no other request
// fails because of the cancellation.
func (t *turns) take(ctx context.Context, key source, ask func(ctx context.Context) error) error {
	if err := t.recent(key); err != nil {
		return err
	}
	asking := context.WithoutCancel(ctx)
	done := t.flight.DoChan(key.tenant.String()+" "+key.issuer, fault.Guarded(func() (any, error) {
		if err := t.recent(key); err != nil { // of the previous call
			return nil, err
		}
		limited, cancel := context.WithTimeout(asking, whole)
		defer cancel()
		return nil, t.noted(key, ask(limited))
	}))
	select {
	case got := <-done:
		return got.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// recent returns a recent failure, if there is one.
func (t *turns) recent(key source) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a := t.failed[key]; a != nil && time.Now().Before(a.until) {
		return a
	}
	return nil
}

// noted records a failure for a while.
func (t *turns) noted(key source, err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.failed, key)
	if err == nil {
		return nil
	}
	if t.failed == nil || len(t.failed) >= maxKnown {
		t.failed = map[source]*away{}
	}
	a := &away{err, time.Now().Add(pause)}
	t.failed[key] = a
	return a
}
