package ratelimit

import (
	"fmt"
	"testing"
	"time"
)

func TestLocal(t *testing.T) {
	t.Parallel()
	var l Local
	b, now := Bucket{Key: "b", Rate: 0.5, Burst: 3}, time.Now()
	for i := range 3 {
		if res := l.take(b, now); !res.Allowed || res.Limit != 3 || res.Remaining != 2-i {
			t.Errorf("token %d: %+v", i+1, res)
		}
	}
	for range 2 { // to be refused takes nothing
		if res := l.take(b, now.Add(500*time.Millisecond)); res.Allowed || res.RetryAfter != 1500*time.Millisecond || res.Remaining != 0 || res.Limit != 3 {
			t.Errorf("none left: %+v", res)
		}
	}
	if res := l.take(Bucket{Key: "other", Rate: 0.5, Burst: 3}, now); !res.Allowed {
		t.Errorf("another's: %+v", res)
	}
	if res := l.take(b, now.Add(2*time.Second)); !res.Allowed || res.Remaining != 0 {
		t.Errorf("after the time of one: %+v", res)
	}
	if res := l.take(b, now.Add(time.Hour)); !res.Allowed || res.Remaining != 2 {
		t.Errorf("full again: %+v", res)
	}
	if res := l.take(Bucket{Key: "b"}, now); !res.Allowed {
		t.Errorf("one without a limit: %+v", res)
	}
	for i := range 3 * maxKept {
		l.take(Bucket{Key: fmt.Sprint(i), Rate: 0.5, Burst: 3}, now)
		if len(l.full) > maxKept {
			t.Fatalf("%d are remembered", len(l.full))
		}
	}
	// Those that are full make room for others before those that are not.
	l = Local{}
	for i := range maxKept - 1 {
		l.take(Bucket{Key: fmt.Sprint(i), Rate: 0.5, Burst: 3}, now.Add(-time.Hour))
	}
	for range 3 {
		l.take(b, now)
	}
	l.take(Bucket{Key: "one more", Rate: 0.5, Burst: 3}, now)
	if res := l.take(b, now); res.Allowed {
		t.Errorf("none left, of many clients: %+v", res)
	}
}
