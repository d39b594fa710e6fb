package lambdahttp

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// unpaced chooses Reno for the connections of a listener: every kernel has it, every user may, and it sends at once.
func unpaced(_, _ string, c syscall.RawConn) error {
	var refused error
	err := c.Control(func(fd uintptr) {
		refused = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "reno")
	})
	return errors.Join(err, refused)
}
