package scanner_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/content"
	"github.com/longbox/longbox/shared/domain/pack"
	"github.com/longbox/longbox/shared/domain/scan/scanner"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/events"
)

// worker returns a worker that takes tasks like a separate process.
func (w *world) worker(name string) *task.Runner {
	reader := &content.Reader{Store: w.s3.Store}
	s := &scanner.Scanner{Database: w.db.App, Library: w.s3.Store, Publish: w.publish, Parallel: 4, Packs: w.style.packs,
		Added: func(context.Context, uuid.UUID) { w.crew.wake() }}
	packs := &pack.Maker{Database: w.db.App, Content: reader, Media: w.s3.Config.Media(), Bucket: "media"}
	return &task.Runner{System: w.db.System, Publish: silent, Worker: name, Slots: 1, ScanEnded: ended(s),
		Handlers: map[string]task.Handler{task.ScanLibrary: s.Scan, task.AnalyzeBooks: s.AnalyzeBooks, task.AnalyzeBook: s.AnalyzeBooks, task.AnalyzeSeries: s.AnalyzeSeries,
			task.PurgeDeleted: s.Purge, task.PackBook: packs.Pack,
			task.RenumberSeries: s.RenumberSeries, task.ReprocessTitles: s.ReprocessTitles}}
}

// moments are the points at which something may happen beside a worker: at each request to the store, and after each
// write.
type moments struct{ then atomic.Pointer[func()] }

func (w *world) publish(context.Context, uuid.UUID, ...events.Event) { w.moment() }

func (w *world) moment() {
	if then := w.moments.then.Load(); then != nil {
		defer func() { // in a goroutine of a worker or the store
			if p := recover(); p != nil && p != (stopped{}) {
				panic(p)
			}
		}()
		(*then)()
	}
}

// meddle runs then at every such moment, until end is called.
func (w *world) meddle(then func()) (end func()) {
	w.moments.then.Store(&then)
	w.s3.Counter.Meddle(func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		w.moment()
		next.ServeHTTP(rw, r)
	})
	return func() {
		w.moments.then.Store(nil)
		w.s3.Counter.Meddle(nil)
	}
}

// amid lets a second worker take tasks during those of the first, from a moment on and that many times; or it takes
// over the first worker's task, once, as if that were dead.
func (w *world) amid(after, times int, over bool) (end func()) {
	second := w.worker("second")
	var n atomic.Int64
	return w.meddle(func() {
		if k := int(n.Add(1)); k < after || k >= after+times || !w.second.TryLock() {
			return
		}
		defer w.second.Unlock()
		some := w.pending()
		if over {
			w.exec("update task set lease_until = now() - interval '1 second' where tenant_id = $1 and status = 'running' and lease_until is not null", w.tenant)
			if _, err := task.Rescue(context.Background(), w.db.System, nil); err != nil {
				w.t.Fatal(err)
			}
			some = slices.DeleteFunc(w.pending(), func(id uuid.UUID) bool { return slices.Contains(some, id) })
		}
		if len(some) > 0 {
			w.takeWith(second, w.rig, some[after%len(some)])
		}
	})
}

// others waits for the second worker, as the first may have ended before it without a lease. It reports whether tasks
// are pending now.
func (w *world) others() bool {
	w.second.Lock()
	defer w.second.Unlock()
	return len(w.pending()) > 0
}

func (w *world) takeWith(runner *task.Runner, r *rig, id uuid.UUID) {
	w.exec("update task set scheduled_for = now() where tenant_id = $1 and id = $2", r.tenant, id)
	if err := runner.Take(context.Background(), fmt.Sprintf(`{"tenant":"%s","task":"%s"}`, r.tenant, id)); err != nil {
		w.t.Fatal(err)
	}
}

// crew is several concurrent workers.
type crew struct {
	mu   sync.Mutex
	cond *sync.Cond
	busy int
}

func newCrew() *crew {
	c := &crew{}
	c.cond = sync.NewCond(&c.mu)
	return c
}

// wake signals that there is work.
func (c *crew) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cond.Broadcast()
}

// together lets several workers run all tasks, and runs others meanwhile.
func (w *world) together(others ...func()) {
	var all sync.WaitGroup
	run := func(f func()) {
		all.Add(1)
		go func() {
			defer all.Done()
			defer func() {
				if p := recover(); p != nil && p != (stopped{}) {
					panic(p)
				}
			}()
			f()
		}()
	}
	for n := range 3 {
		runner := w.worker(fmt.Sprint("crew ", n))
		run(func() { w.crewman(runner, n) })
	}
	for _, f := range others {
		run(f)
	}
	all.Wait()
}

// crewman takes tasks until none are left and nobody may add more.
func (w *world) crewman(runner *task.Runner, n int) {
	c := w.crew
	c.mu.Lock()
	defer c.mu.Unlock()
	deadline := time.Now().Add(stuck)
	for time.Now().Before(deadline) {
		some := w.pending()
		switch {
		case len(some) > 0:
			c.busy++
			c.mu.Unlock()
			func() {
				defer func() { c.mu.Lock(); c.busy--; c.cond.Broadcast() }()
				w.takeWith(runner, w.rig, some[n%len(some)])
			}()
		case c.busy == 0:
			return
		default:
			c.cond.Wait()
		}
	}
	w.t.Errorf("the tasks never end")
}
