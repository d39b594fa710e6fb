package testkit

import (
	"errors"
	"net"
	"syscall"
	"testing"
)

func TestAnAddressIsHeldWhileNothingListens(t *testing.T) {
	at := Address(t)
	for range 3 {
		if c, err := net.Dial("tcp", at); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("nothing listens, but connecting gives %v, %v", c, err)
		}
		l, err := net.Listen("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		l.Close()
	}
	// Linux takes the ports of outgoing connections from those that no socket is bound to: one that asks for this very
	// port, as an outgoing connection by chance does, is refused.
	here, err := net.ResolveTCPAddr("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d := net.Dialer{LocalAddr: here}
	if c, err := d.Dial("tcp", l.Addr().String()); err == nil {
		c.Close()
		t.Error("another socket was given the port")
	}
}
