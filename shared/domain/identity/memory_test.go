package identity

import (
	"crypto/sha256"
	"fmt"
	"testing"
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
