package relay

import "syscall"

const tcpUserTimeout = 0x12

// setUserTimeout makes the kernel close a connection whose peer has acknowledged nothing for 45 s. Otherwise a vanished
// client would stay for a quarter of an hour.
func setUserTimeout(fd int) error {
	return syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, tcpUserTimeout, 45_000)
}
