package ingest

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// longest is the timeout of one batch; its notifications are redelivered then.
const longest = time.Minute

// maxTogether is the maximum number of objects per batch.
const maxTogether = 1000

// gather collects what arrives while earlier objects are processed: a folder of uploads yields one message per object,
// and each would take a transaction of its own.
type gather struct {
	mu      sync.Mutex
	working bool
	waiting *together
}

// together is one batch for several callers.
type together struct {
	objects []Object
	done    chan struct{}
	failed  map[Object]error
}

// worker processes objects and returns the failures.
type worker func(ctx context.Context, objects []Object) (failed map[Object]error)

// do processes the objects, possibly together with those of other callers, and returns the error of its own objects. It
// stops waiting when the caller's context ends.
func (g *gather) do(ctx context.Context, objects []Object, work worker) error {
	g.mu.Lock()
	if g.waiting == nil || len(g.waiting.objects)+len(objects) > maxTogether {
		if g.waiting != nil { // full: runs on its own, in parallel
			g.mu.Unlock()
			return of(objects, guarded(ctx, objects, work))
		}
		g.waiting = &together{done: make(chan struct{})}
	}
	mine := g.waiting
	mine.objects = append(mine.objects, objects...)
	if !g.working {
		g.working = true
		// The first caller may disconnect; the batch goes on.
		go g.run(context.WithoutCancel(ctx), work)
	}
	g.mu.Unlock()
	select {
	case <-mine.done:
		return of(objects, mine.failed)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run works until nothing waits.
func (g *gather) run(ctx context.Context, work worker) {
	for {
		g.mu.Lock()
		next := g.waiting
		g.waiting = nil
		g.working = next != nil
		g.mu.Unlock()
		if next == nil {
			return
		}
		next.failed = guarded(ctx, next.objects, work)
		close(next.done)
	}
}

// guarded adds a timeout to the work, and limits a panic to this batch.
func guarded(ctx context.Context, objects []Object, work worker) (failed map[Object]error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			failed = all(objects, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	return work(ctx, objects)
}

func all(objects []Object, err error) map[Object]error {
	failed := make(map[Object]error, len(objects))
	for _, o := range objects {
		failed[o] = err
	}
	return failed
}

func of(objects []Object, failed map[Object]error) (err error) {
	for _, o := range objects {
		err = errors.Join(err, failed[o])
	}
	return err
}
