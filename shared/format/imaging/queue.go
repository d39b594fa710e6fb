package imaging

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// queue shares a memory budget among renders, in order of arrival.
type queue struct {
	budget     int64
	sem        *semaphore.Weighted
	waiting    atomic.Int64
	maxWaiting int64
}

func newQueue(budget int64, maxWaiting int) *queue {
	return &queue{budget: budget, sem: semaphore.NewWeighted(budget), maxWaiting: int64(maxWaiting)}
}

// acquire waits until need bytes are free and returns the function that releases them. It fails at once with TooLarge
// if they can never be free, or with Busy if too many are waiting, and with the context's error if that ends first.
func (q *queue) acquire(ctx context.Context, need int64) (release func(), err error) {
	if need > q.budget {
		return nil, &TooLarge{"bytes of memory", need, q.budget}
	}
	// TryAcquire never overtakes: it fails while anyone waits.
	if !q.sem.TryAcquire(need) {
		if n := q.waiting.Add(1); n > q.maxWaiting {
			q.waiting.Add(-1)
			return nil, &Busy{int(n - 1)}
		}
		err := q.sem.Acquire(ctx, need)
		q.waiting.Add(-1)
		if err != nil {
			return nil, err
		}
	}
	return func() { q.sem.Release(need) }, nil
}
