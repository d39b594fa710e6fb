package ratelimit

import (
	"maps"
	"time"
)

// maxKept limits the buckets of a kept.
const maxKept = 10_000

// kept holds a time for each of some buckets. The zero value is ready.
type kept map[string]time.Time

// keep stores a bucket's time. In a full table, those whose time has passed make room; if there are none, all do.
func (k *kept) keep(bucket string, until, now time.Time) {
	if len(*k) >= maxKept {
		maps.DeleteFunc(*k, func(_ string, until time.Time) bool { return !until.After(now) })
	}
	if *k == nil || len(*k) >= maxKept {
		*k = kept{}
	}
	(*k)[bucket] = until
}
