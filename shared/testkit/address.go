package testkit

import (
	"net"
	"strconv"
	"syscall"
	"testing"
)

// Address returns a loopback TCP address ("127.0.0.1:40123") on which a test may listen, stop and listen again until it
// ends. Without a listener, some outgoing connection of the machine would sooner or later take the port. So a socket
// that never listens holds it.
func Address(t testing.TB) string {
	t.Helper()
	held, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(held) })
	// Both this socket and that of net.Listen allow the other one.
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
