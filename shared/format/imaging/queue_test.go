package imaging

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// untilWaiting yields until n callers stand in the queue.
func untilWaiting(q *queue, n int64) {
	for q.waiting.Load() < n {
		runtime.Gosched()
	}
}

func TestQueueServesInOrder(t *testing.T) {
	t.Parallel()
	q := newQueue(100, 10)
	first, err := q.acquire(context.Background(), 100)
	if err != nil {
		t.Fatal(err)
	}
	var (
		mu    sync.Mutex
		order []int
		wg    sync.WaitGroup
	)
	// The large one in front must not be overtaken by small ones behind it.
	for i, need := range []int64{100, 1, 100, 1, 60} {
		wg.Add(1)
		go func() {
			defer wg.Done()
			release, err := q.acquire(context.Background(), need)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			release()
		}()
		untilWaiting(q, int64(i+1))
	}
	first()
	wg.Wait()
	// 3 and 4 fit together, so either may be noted first.
	slices.Sort(order[3:])
	if !slices.Equal(order, []int{0, 1, 2, 3, 4}) {
		t.Errorf("served in order %v", order)
	}
}

func TestQueueRunsAsManyAsFit(t *testing.T) {
	t.Parallel()
	q := newQueue(100, 10)
	var releases []func()
	for range 3 {
		release, err := q.acquire(context.Background(), 30)
		if err != nil {
			t.Fatal(err)
		}
		releases = append(releases, release)
	}
	got := make(chan error)
	go func() {
		release, err := q.acquire(context.Background(), 30)
		if err == nil {
			release()
		}
		got <- err
	}()
	untilWaiting(q, 1) // the fourth does not fit
	releases[1]()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestQueueRefuses(t *testing.T) {
	t.Parallel()
	q := newQueue(100, 1)
	var large *TooLarge
	if _, err := q.acquire(context.Background(), 101); !errors.As(err, &large) || large.Max != 100 {
		t.Errorf("more than the budget: %v", err)
	}
	release, err := q.acquire(context.Background(), 100)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	left := make(chan error)
	go func() {
		_, err := q.acquire(ctx, 100)
		left <- err
	}()
	untilWaiting(q, 1)
	var busy *Busy
	if _, err := q.acquire(context.Background(), 1); !errors.As(err, &busy) || busy.Waiting != 1 {
		t.Errorf("with the queue full: %v", err)
	}
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("after its context ended: %v", err)
	}
	release()
	again, err := q.acquire(context.Background(), 100)
	if err != nil {
		t.Fatalf("the one that left kept memory: %v", err)
	}
	again()
}
