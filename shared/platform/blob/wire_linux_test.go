package blob

import (
	"net/http"
	"testing"

	"golang.org/x/sys/unix"
)

// The kernel takes little more of a store on this machine than is read: its memory is that of every connection.
func TestWireKeepsLittle(t *testing.T) {
	t.Parallel()
	url, _, _ := served(t, func(http.ResponseWriter, *http.Request) {})
	c, err := newWire().take(t.Context(), url[len("http://"):])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var kept int
	if failed := raw.Control(func(fd uintptr) { kept, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF) }); failed != nil || err != nil {
		t.Fatal(failed, err)
	}
	if kept < 256<<10 || kept > 512<<10 {
		t.Errorf("the kernel keeps %d bytes, want 256 to 512 KB", kept)
	}
}
