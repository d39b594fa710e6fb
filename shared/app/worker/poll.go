package worker

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/queue"
)

// Run works until ctx ends, then gives back what it holds: on the messages of the queues where they are set, else on
// the tasks of the table.
func (w *Worker) Run(ctx context.Context) error {
	var all sync.WaitGroup
	if w.objects != nil {
		all.Go(func() { w.poll(ctx, w.objects, w.parallel, false) })
	}
	if w.dead != nil {
		all.Go(func() { w.poll(ctx, w.dead, 1, true) })
	}
	all.Go(func() { w.sweeps(ctx) })
	if w.tasks == nil {
		err := w.Runner.Run(ctx)
		all.Wait()
		return err
	}
	all.Go(func() { w.Beat(ctx) })
	w.poll(ctx, w.tasks, w.Slots, false)
	all.Wait()
	return nil
}

// How long after its start a worker removes folders of plugins that are no more, and after how long again.
const (
	firstSweep = time.Minute
	nextSweep  = time.Hour
)

// sweeps removes these folders now and then, until ctx ends. Tasks do not wait for it.
func (w *Worker) sweeps(ctx context.Context) {
	timer := time.NewTimer(firstSweep)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		limited, cancel := context.WithTimeout(ctx, nextSweep/2)
		n, err := w.sweep(limited)
		cancel()
		if err != nil && ctx.Err() == nil {
			slog.Error("folders of plugins that are no more stay for now", "error", fault.Line(err.Error()))
		}
		if n > 0 {
			slog.Info("folders of plugins that are no more are removed", "count", n)
		}
		timer.Reset(nextSweep)
	}
}

// poll receives messages, as many as it can work on at once, and deletes what is done.
func (w *Worker) poll(ctx context.Context, q *queue.Queue, n int, dead bool) {
	free := make(chan struct{}, n)
	var working sync.WaitGroup
	defer working.Wait()
	for ctx.Err() == nil {
		select {
		case free <- struct{}{}:
			<-free // only this loop takes places
		case <-ctx.Done():
			return
		}
		messages, err := q.Receive(ctx, cap(free)-len(free), 20*time.Second, w.visibility())
		if err != nil {
			if ctx.Err() == nil {
				slog.Error("cannot receive messages; will try again", "queue", queue.Name(q.URL()), "error", err)
				wait(ctx, w.Poll)
			}
			continue
		}
		for _, m := range messages {
			free <- struct{}{}
			working.Go(func() {
				defer func() { <-free }()
				if w.message(ctx, q, m, dead) != nil {
					return
				}
				end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
				defer cancel()
				if err := q.Delete(end, m); err != nil {
					slog.Warn("a message that is done was not deleted; it comes again and does nothing", "message", m.ID, "error", err)
				}
			})
		}
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
