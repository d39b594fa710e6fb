package front

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/longbox/longbox/shared/platform/deaf"
)

// The front does not wait forever for a client that reads nothing, when the function may have given up the client long
// ago.
func TestDeafClientsAreCutOff(t *testing.T) {
	t.Parallel()
	f, err := Listen("127.0.0.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c, err := f.listener.(*net.TCPListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var millis int
	if failed := c.Control(func(fd uintptr) { millis, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT) }); failed != nil || err != nil {
		t.Fatal(failed, err)
	}
	if got := time.Duration(millis) * time.Millisecond; got != deaf.After {
		t.Errorf("it waits for %v, want %v", got, deaf.After)
	}
}

// If a client reads a response slowly, the rest waits in the function: the front and the kernel buffer only little of
// it.
func TestLittleWaitsForSlowClients(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	backend := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			n, _ := w.Write(make([]byte, 32<<10))
			sent.Add(int64(n))
		}
	}))
	backend.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if err := c.(*net.TCPConn).SetWriteBuffer(64 << 10); err != nil {
			t.Error(err)
		}
		return ctx
	}
	backend.Start()
	defer backend.Close()
	f, err := Listen("127.0.0.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	address := backend.Listener.Addr().String()
	f.Open(Targets{API: address, Media: address, Relay: address}, 0, quiet)
	client, err := net.Dial("tcp", f.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.(*net.TCPConn).SetReadBuffer(64 << 10); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(client, "GET /api/v1/books/1/file HTTP/1.1\r\nHost: x\r\n\r\n")
	if _, err := io.CopyN(io.Discard, client, 4<<20); err != nil { // The kernel sees a fast reader.
		t.Fatal(err)
	}
	const most = 2 << 20
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for before := int64(-1); sent.Load() != before; <-look.C { // until nothing more is sent
		before = sent.Load()
	}
	if waits := sent.Load() - 4<<20; waits > most {
		t.Errorf("%d bytes wait for a client that does not read them, want at most %d", waits, most)
	}
}
