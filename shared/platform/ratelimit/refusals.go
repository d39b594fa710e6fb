package ratelimit

import (
	"sync"
	"time"
)

// refusals remembers empty buckets until they hold a token again. Only time fills a bucket, so a request before that is
// refused without Redis: a client far above its limit costs Redis two round trips per token, not one per request. The
// zero value is ready. It is safe for concurrent use.
type refusals struct {
	mu    sync.Mutex
	until kept
}

// wait returns how long each of the limited buckets is still empty, as a negative number like Redis' answer, and
// whether one of them is.
func (r *refusals) wait(buckets []Bucket, limited []int, now time.Time) (left []time.Duration, empty bool) {
	left = make([]time.Duration, len(limited))
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, at := range limited {
		if until := r.until[buckets[at].Key]; until.After(now) {
			left[i], empty = now.Sub(until), true
		}
	}
	return left, empty
}

// learn stores the buckets that Redis says are empty.
func (r *refusals) learn(buckets []Bucket, limited []int, left []time.Duration, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, at := range limited {
		if left[i] < 0 {
			r.until.keep(buckets[at].Key, now.Add(-left[i]), now)
		}
	}
}
