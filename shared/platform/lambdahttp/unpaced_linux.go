package lambdahttp

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// unpaced sets Reno as congestion control of a listener's connections: every kernel has it, it needs no privileges, and
// it sends at once.
func unpaced(_, _ string, c syscall.RawConn) error {
	var refused error
	err := c.Control(func(fd uintptr) {
		refused = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "reno")
	})
	return errors.Join(err, refused)
}
