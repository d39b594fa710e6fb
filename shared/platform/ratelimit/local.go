package ratelimit

import (
	"maps"
	"sync"
	"time"
)

// maxLocal limits the stored buckets. Full buckets are not stored.
const maxLocal = 10_000

// Local holds token buckets in memory, for limits that must work while Redis does not answer. The zero value is ready.
// It is safe for concurrent use.
type Local struct {
	mu   sync.Mutex
	full map[string]time.Time // when each bucket will be full again
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
	if l.full == nil || len(l.full) >= maxLocal { // with so many clients, each has few tries
		l.full = map[string]time.Time{}
	}
	l.full[key] = at
}
