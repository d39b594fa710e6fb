package relay

import "syscall"

const tcpUserTimeout = 0x12

// setUserTimeout lets the kernel end a connection whose peer has acknowledged nothing for 45 s: a
// vanished client would otherwise be kept for a quarter of an hour.
func setUserTimeout(fd int) error {
	return syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, tcpUserTimeout, 45_000)
}
