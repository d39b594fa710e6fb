package tenant

import (
	"strconv"
	"testing"
)

// A process caches a limited number of hosts.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	r := NewResolver(nil, Config{})
	for n := range maxHosts + 1 {
		r.keep(strconv.Itoa(n), entry{})
	}
	if n := len(r.hosts); n > maxHosts {
		t.Errorf("%d hosts are remembered", n)
	}
}
