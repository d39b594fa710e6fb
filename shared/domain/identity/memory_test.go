package identity

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"
)

// A process caches a limited number of credentials.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	i := New(nil, nil)
	for n := range maxKnown + 1 {
		i.keep(sha256.Sum256(fmt.Append(nil, n)), known{})
	}
	if n := len(i.known); n > maxKnown {
		t.Errorf("%d credentials are remembered", n)
	}
}

// A credential is looked up again after five minutes; after one if others have issued it, who may revoke it. A token is
// not remembered after its end.
func TestMemoryEnds(t *testing.T) {
	t.Parallel()
	i, now := New(nil, nil), time.Now()
	soon, later := now.Add(time.Second), now.Add(time.Hour)
	for _, c := range []struct {
		known
		life time.Duration
	}{
		{known{}, 5 * time.Minute}, {known{ends: later}, 5 * time.Minute}, {known{external: true, ends: later}, time.Minute},
		{known{ends: soon}, time.Second}, {known{external: true, ends: soon}, time.Second},
	} {
		i.keep([sha256.Size]byte{}, c.known)
		passed, expires := time.Since(now), i.known[[sha256.Size]byte{}].expires
		if d := expires.Sub(now); d < c.life || d > c.life+passed {
			t.Errorf("external %v: remembered for %s, want %s", c.external, d, c.life)
		}
	}
}
