package front

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/longbox/longbox/shared/platform/deaf"
)

// The front does not wait for ever for a client that reads nothing, whose function may long have given it up.
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
