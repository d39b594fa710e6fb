package deaf

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Limit has the kernel end the connections that a listener accepts when their peer takes nothing for After: nobody
// waits for it, neither in the program nor, where bytes go from one socket to another, in the kernel. It is the Control of
// a net.ListenConfig.
func Limit(_, _ string, c syscall.RawConn) error { return limit(c, After) }

func limit(c syscall.RawConn, after time.Duration) error {
	var refused error
	err := c.Control(func(fd uintptr) {
		refused = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(after.Milliseconds()))
	})
	return errors.Join(err, refused)
}
