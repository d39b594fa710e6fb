package lambdahttp

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/longbox/longbox/shared/platform/deaf"
)

// A client that reads nothing is disconnected, from anywhere.
func TestDeafClientsAreCutOff(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"127.0.0.1:0", ":0", "localhost:0"} {
		l, err := listen(address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		c, err := l.(*net.TCPListener).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var millis int
		if failed := c.Control(func(fd uintptr) { millis, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT) }); failed != nil || err != nil {
			t.Fatal(failed, err)
		}
		if got := time.Duration(millis) * time.Millisecond; got != deaf.After {
			t.Errorf("%s waits for %v, want %v", address, got, deaf.After)
		}
	}
}
