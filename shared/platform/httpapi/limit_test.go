package httpapi

import "testing"

// Requests of one client count together, whichever of its addresses they come from; those of two clients do not.
func TestNetwork(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1", "2001:db8:0:1:2::3": "2001:db8:0:1::/64",
		"2001:db8:0:2:2::3": "2001:db8:0:2::/64", "fe80::1%eth0": "fe80::/64", "unknown": "unknown"} {
		if got := network(address); got != want {
			t.Errorf("%s: %s", address, got)
		}
	}
}
