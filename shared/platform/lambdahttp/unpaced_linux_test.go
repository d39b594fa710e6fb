package lambdahttp

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// Connections within this machine are not paced; others use the system's congestion control.
func TestUnpaced(t *testing.T) {
	t.Parallel()
	usual := congestion(t, func(address string) (net.Listener, error) { return net.Listen("tcp", address) }, "127.0.0.1:0")
	for address, want := range map[string]string{"127.0.0.1:0": "reno", ":0": usual, "localhost:0": usual} {
		if got := congestion(t, listen, address); got != want {
			t.Errorf("%s sends by %s, want %s", address, got, want)
		}
	}
	if _, err := listen("nonsense"); err == nil {
		t.Error("it listens at an address that is none")
	}
}

func congestion(t *testing.T, listen func(string) (net.Listener, error), address string) (name string) {
	t.Helper()
	l, err := listen(address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := l.(*net.TCPListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if failed := c.Control(func(fd uintptr) { name, err = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION) }); failed != nil || err != nil {
		t.Fatal(failed, err)
	}
	return name
}
