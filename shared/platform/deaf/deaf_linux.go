package deaf

import (
	"errors"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Limit makes the kernel close accepted connections whose peer reads nothing for After. So neither the program nor a
// splice in the kernel waits for such a peer. It also limits the buffer for a slow reader. It is the Control of a
// net.ListenConfig.
func Limit(_, _ string, c syscall.RawConn) error { return limit(c, After) }

func limit(c syscall.RawConn, after time.Duration) error {
	var late, much error
	err := c.Control(func(fd uintptr) {
		late = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(after.Milliseconds()))
		much = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsent)
	})
	return errors.Join(err, late, much)
}

// Near limits the kernel's receive buffer for connections to this machine. Remote connections are unchanged: long lines
// need more. It is the Control of a net.Dialer.
func Near(_, address string, c syscall.RawConn) error {
	if at, err := netip.ParseAddrPort(address); err != nil || !at.Addr().IsLoopback() {
		return nil
	}
	var refused error
	err := c.Control(func(fd uintptr) { refused = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, received) })
	return errors.Join(err, refused)
}
