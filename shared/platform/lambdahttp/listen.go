package lambdahttp

import (
	"context"
	"net"
	"net/netip"
)

// listen is net.Listen, but what is sent within this machine is not paced: where the system's congestion control is BBR,
// a page of 1.4 MB waits for its timers again and again, although nothing is congested.
func listen(address string) (net.Listener, error) {
	var l net.ListenConfig
	if at, err := netip.ParseAddrPort(address); err == nil && at.Addr().IsLoopback() {
		l.Control = unpaced
	}
	return l.Listen(context.Background(), "tcp", address)
}
