package ratelimit

import (
	"maps"
	"sync"
	"time"
)

// maxLocal bounds the buckets that are remembered; one that is full is not.
const maxLocal = 10_000

// Local is token buckets in the memory of this process, for what must be limited also while Redis does not answer. The
// zero value is ready, and safe for concurrent use.
type Local struct {
	mu   sync.Mutex
	full map[string]time.Time // when each will be full again
}

// Take takes a token from the bucket unless it is empty.
func (l *Local) Take(b Bucket) Result { return l.take(b, time.Now()) }

func (l *Local) take(b Bucket, now time.Time) Result {
	pass := Result{Allowed: true, Limit: max(b.Burst, 0), Remaining: max(b.Burst, 0)}
	if !b.limits() {
		return pass
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.full[b.Key]
	if at.Before(now) {
		at = now
	}
	at = at.Add(b.token())
	left := now.Add(b.fill()).Sub(at)
	if left >= 0 {
		l.keep(b.Key, at, now)
	}
	return judge([]Bucket{b}, []int{0}, []time.Duration{left}, pass)
}

func (l *Local) keep(key string, at, now time.Time) {
	if len(l.full) >= maxLocal {
		maps.DeleteFunc(l.full, func(_ string, full time.Time) bool { return !full.After(now) })
	}
	if l.full == nil || len(l.full) >= maxLocal { // of so many clients at a time, each has few tries
		l.full = map[string]time.Time{}
	}
	l.full[key] = at
}
