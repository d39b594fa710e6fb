package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
)

// trap is an address that counts connections.
type trap struct {
	*httptest.Server
	opened atomic.Int64
}

func newTrap() *trap {
	t := &trap{}
	t.Server = httptest.NewUnstartedServer(http.NotFoundHandler())
	t.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			t.opened.Add(1)
		}
	}
	t.Start()
	return t
}

func (t *trap) count() int { return int(t.opened.Load()) }
