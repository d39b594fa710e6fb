package worker

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/queue"
)

// Run works until ctx ends, then gives back unfinished tasks. It takes messages from the configured queues, or tasks
// from the table.
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

// firstSweep and nextSweep are the delays before a worker's first and later removals of leftover plugin folders.
const (
	firstSweep = time.Minute
	nextSweep  = time.Hour
)

// sweeps removes the folders of deleted plugins periodically, until ctx ends. Tasks do not wait for it.
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
			slog.Error("cannot remove all folders of deleted plugins; will try again", "error", fault.Line(err.Error()))
		}
		if n > 0 {
			slog.Info("removed folders of deleted plugins", "count", n)
		}
		timer.Reset(nextSweep)
	}
}

// poll receives as many messages as there are free slots, and processes them.
func (w *Worker) poll(ctx context.Context, q *queue.Queue, n int, dead bool) {
	free := make(chan struct{}, n)
	var working sync.WaitGroup
	defer working.Wait()
	for ctx.Err() == nil {
		select {
		case free <- struct{}{}:
			<-free // only this loop takes slots
		case <-ctx.Done():
			return
		}
		messages, err := q.Receive(ctx, cap(free)-len(free), 20*time.Second, w.Lease)
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
				_ = w.message(ctx, q, m, dead) // it is logged
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
