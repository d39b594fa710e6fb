package ratelimit

import (
	"sync"
	"time"
)

// Local holds token buckets in memory, for limits that must work while Redis does not answer. The zero value is ready.
// It is safe for concurrent use.
type Local struct {
	mu   sync.Mutex
	full kept // when each bucket that is not full will be
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
		l.full.keep(b.Key, at, now)
	}
	return judge([]Bucket{b}, []int{0}, []time.Duration{left}, pass)
}
