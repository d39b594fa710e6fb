// Package flight lets concurrent requests share one piece of work. Unlike golang.org/x/sync/singleflight, it ends work
// that waits for its turn when nobody waits for the result any more.
package flight

import (
	"context"
	"sync"
	"time"

	"github.com/longbox/longbox/shared/platform/fault"
)

// Group holds the work in progress, by key. The zero value is ready.
type Group[T any] struct {
	mu sync.Mutex
	of map[string]*flight[T]
}

type flight[T any] struct {
	callers int
	begun   bool
	end     context.CancelFunc
	done    chan struct{} // closed after out and err are set
	out     T
	err     error
}

// Do returns the result of work. Concurrent calls with the same key share one call of work, so no caller's end is its
// end: its context carries the values of the first caller's, ends after limit, and ends early only if every caller has
// gone before work has called begin. A panic becomes an error.
func (g *Group[T]) Do(ctx context.Context, key string, limit time.Duration, work func(ctx context.Context, begin func()) (T, error)) (out T, err error) {
	f := g.join(ctx, key, limit, work)
	select {
	case <-f.done:
		return f.out, f.err
	case <-ctx.Done():
		g.leave(key, f)
		return out, ctx.Err()
	}
}

func (g *Group[T]) join(ctx context.Context, key string, limit time.Duration, work func(ctx context.Context, begin func()) (T, error)) *flight[T] {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f := g.of[key]; f != nil {
		f.callers++
		return f
	}
	shared, end := context.WithTimeout(context.WithoutCancel(ctx), limit)
	f := &flight[T]{callers: 1, end: end, done: make(chan struct{})}
	if g.of == nil {
		g.of = map[string]*flight[T]{}
	}
	g.of[key] = f
	go func() {
		defer end()
		f.out, f.err = fault.Guarded(func() (T, error) { return work(shared, func() { g.begin(f) }) })()
		g.mu.Lock()
		defer g.mu.Unlock()
		g.forget(key, f)
		close(f.done)
	}()
	return f
}

func (g *Group[T]) begin(f *flight[T]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f.begun = true
}

func (g *Group[T]) leave(key string, f *flight[T]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f.callers--; f.callers == 0 && !f.begun {
		g.forget(key, f)
		f.end()
	}
}

// forget makes the next call with this key start anew. g.mu must be held.
func (g *Group[T]) forget(key string, f *flight[T]) {
	if g.of[key] == f {
		delete(g.of, key)
	}
}
