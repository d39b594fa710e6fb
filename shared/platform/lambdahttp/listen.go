package lambdahttp

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"

	"github.com/longbox/longbox/shared/platform/deaf"
)

// listen is net.Listen with two differences. The kernel closes connections whose client does not read. And connections
// within this machine are not paced: under BBR congestion control, a page of 1.4 MB waits for timers again and again,
// although nothing is congested.
func listen(address string) (net.Listener, error) {
	l := net.ListenConfig{Control: deaf.Limit}
	if at, err := netip.ParseAddrPort(address); err == nil && at.Addr().IsLoopback() {
		l.Control = func(network, address string, c syscall.RawConn) error {
			return errors.Join(deaf.Limit(network, address, c), unpaced(network, address, c))
		}
	}
	return l.Listen(context.Background(), "tcp", address)
}
