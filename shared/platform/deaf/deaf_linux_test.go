package deaf

import (
	"net"
	"syscall"
	"testing"
	"time"
)

// A peer that reads nothing is disconnected, one that reads slowly is not.
func TestLimit(t *testing.T) {
	t.Parallel()
	const after = 2 * time.Second
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error { return limit(c, after) }}
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dial := func() (peer *net.TCPConn, written chan error) {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		peer = c.(*net.TCPConn)
		accepted, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		written = make(chan error, 1)
		go func() {
			defer accepted.Close()
			for err == nil {
				_, err = accepted.Write(make([]byte, 1<<20))
			}
			written <- err
		}()
		return peer, written
	}
	_, unread := dial()
	slow, read := dial()
	enough := time.After(5 * after)
	for cut := false; ; {
		select {
		case err := <-unread:
			cut = true
			t.Log("who reads nothing:", err)
		case err := <-read:
			t.Fatal("who reads slowly is cut off:", err)
		case <-enough:
			if !cut {
				t.Error("who reads nothing is waited for")
			}
			return
		case <-time.After(50 * time.Millisecond):
			if _, err := slow.Read(make([]byte, 200<<10)); err != nil {
				t.Fatal(err)
			}
		}
	}
}
