package deaf

import (
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The buffer is limited for connections from this machine; others keep the system's default.
func TestNear(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for address, near := range map[string]bool{"127.0.0.1:80": true, "[::1]:80": true, "192.0.2.1:80": false, "nonsense": false} {
		var kept int
		dialer := net.Dialer{Control: func(network, _ string, c syscall.RawConn) error {
			refused := Near(network, address, c)
			if err := c.Control(func(fd uintptr) { kept, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF) }); err != nil {
				t.Error(err)
			}
			return refused
		}}
		c, err := dialer.DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		// The system doubles the size, as far as the size can be chosen.
		if ours := kept >= received && kept <= 2*received; ours != near {
			t.Errorf("%s: %d bytes are kept", address, kept)
		}
	}
}

// Bytes that a peer does not read wait at their sender, not in the kernel.
func TestLittleWaitsForSlowPeers(t *testing.T) {
	t.Parallel()
	config := net.ListenConfig{Control: Limit}
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dialer := net.Dialer{Control: Near}
	peer, err := dialer.DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	if err := accepted.SetWriteDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	n, err := accepted.Write(make([]byte, 16<<20))
	if most := 4 * (unsent + received); err == nil || n > most {
		t.Errorf("%d bytes wait for a peer that reads nothing (%v), want at most %d", n, err, most)
	}
}
