package blob

import (
	"net/http"
	"testing"

	"golang.org/x/sys/unix"
)

// The kernel buffers little more of a book from a local store than is read: its memory is shared by all connections.
// The connection is not reused.
func TestWireKeepsLittle(t *testing.T) {
	t.Parallel()
	url, _, _ := served(t, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Length", r.URL.Path[1:])
		rw.WriteHeader(http.StatusOK)
	})
	w := newWire()
	for path, little := range map[string]bool{"/4194304": false, "/4194305": true} {
		res, err := fetch(t, w, t.Context(), url+path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		raw, err := res.Body.(*body).conn.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var kept int
		if failed := raw.Control(func(fd uintptr) { kept, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF) }); failed != nil || err != nil {
			t.Fatal(failed, err)
		}
		if ours := kept >= 256<<10 && kept <= 512<<10; ours != little || res.Close != little {
			t.Errorf("%s: the kernel keeps %d bytes, and the connection ends: %t", path, kept, res.Close)
		}
	}
}
