package ingest

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// longest is how long one piece of work may take; its notifications come again then.
const longest = time.Minute

// maxTogether bounds how many objects are worked on together.
const maxTogether = 1000

// gather takes together what arrives while earlier objects are being worked on: a folder of uploads is one message
// an object, and each alone would be a transaction of its own.
type gather struct {
	mu      sync.Mutex
	working bool
	waiting *together
}

// together is one piece of work for several callers.
type together struct {
	objects []Object
	done    chan struct{}
	failed  map[Object]error
}

// worker works on objects and says with which it failed.
type worker func(ctx context.Context, objects []Object) (failed map[Object]error)

// do has work done on the objects, perhaps together with those of other callers, and says how that ended for its own.
// A caller whose context ends no longer waits.
func (g *gather) do(ctx context.Context, objects []Object, work worker) error {
	g.mu.Lock()
	if g.waiting == nil || len(g.waiting.objects)+len(objects) > maxTogether {
		if g.waiting != nil { // full: on its own, beside the others
			g.mu.Unlock()
			return of(objects, guarded(ctx, objects, work))
		}
		g.waiting = &together{done: make(chan struct{})}
	}
	mine := g.waiting
	mine.objects = append(mine.objects, objects...)
	if !g.working {
		g.working = true
		// Whoever began may give up; the others' work goes on.
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

// guarded bounds the time of the work, and its panics to its own objects.
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
