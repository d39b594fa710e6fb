package testkit

import (
	"net"
	"strconv"
	"syscall"
	"testing"
)

// Address is a TCP address of the loopback interface ("127.0.0.1:40123") that a test may listen on, stop and listen on
// again until it ends. A port that nothing listens on is otherwise taken, sooner or later, by some connection of this
// machine to elsewhere; this one is held by a socket that is bound to it and never listens.
func Address(t testing.TB) string {
	t.Helper()
	held, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(held) })
	// Both this socket and net.Listen's allow the other one.
	if err := syscall.SetsockoptInt(held, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Bind(held, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(held)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(at.(*syscall.SockaddrInet4).Port))
}
