package deaf

import (
	"errors"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Limit has the kernel end the connections that a listener accepts when their peer takes nothing for After: nobody
// waits for it, neither in the program nor, where bytes go from one socket to another, in the kernel. Little is kept
// there for a peer that takes what it is sent slowly. It is the Control of a net.ListenConfig.
func Limit(_, _ string, c syscall.RawConn) error { return limit(c, After) }

func limit(c syscall.RawConn, after time.Duration) error {
	var late, much error
	err := c.Control(func(fd uintptr) {
		late = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(after.Milliseconds()))
		much = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsent)
	})
	return errors.Join(err, late, much)
}

// Near has the kernel keep little of what another program on this machine sends faster than it is read. Connections to
// elsewhere are left alone: long lines need more. It is the Control of a net.Dialer.
func Near(_, address string, c syscall.RawConn) error {
	if at, err := netip.ParseAddrPort(address); err != nil || !at.Addr().IsLoopback() {
		return nil
	}
	var refused error
	err := c.Control(func(fd uintptr) { refused = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, received) })
	return errors.Join(err, refused)
}
