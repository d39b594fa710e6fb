package hops

import (
	"crypto/tls"
	"net/http"
	"testing"
)

// A client is identified by the address that the outermost trusted proxy saw: nothing that it can send itself counts.
func TestClient(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		peer    string
		hops    []string // values of X-Forwarded-For
		proxies int
		want    string
	}{
		{"192.0.2.1:4711", nil, 0, "192.0.2.1"},
		{"[2001:db8::1]:4711", nil, 0, "2001:db8::1"},
		{"192.0.2.1", nil, 0, "192.0.2.1"}, // as gateways tell it
		{"192.0.2.1:4711", []string{"198.51.100.1"}, 0, "192.0.2.1"},
		{"192.0.2.1:4711", []string{"198.51.100.1"}, 1, "198.51.100.1"},
		{"192.0.2.1:4711", []string{"10.0.0.1, 198.51.100.1"}, 1, "198.51.100.1"},
		{"192.0.2.1:4711", []string{"10.0.0.1", "198.51.100.1,198.51.100.2"}, 2, "198.51.100.1"},
		{"192.0.2.1:4711", []string{"10.0.0.1"}, 2, "192.0.2.1"}, // it came past a proxy
		{"192.0.2.1:4711", nil, 1, "192.0.2.1"},
		{"192.0.2.1:4711", []string{"somebody"}, 1, "192.0.2.1"},
		{"192.0.2.1:4711", []string{"2001:DB8:0::1"}, 1, "2001:db8::1"},
		{"192.0.2.1:4711", []string{"198.51.100.1:5678"}, 1, "198.51.100.1"},
		{"192.0.2.1:4711", []string{"[2001:db8::1]:5678"}, 1, "2001:db8::1"},
		{"192.0.2.1:4711", []string{"[2001:db8::1]"}, 1, "2001:db8::1"},
	} {
		r := &http.Request{RemoteAddr: c.peer, Header: http.Header{"X-Forwarded-For": c.hops}}
		if got := Client(r, c.proxies); got != c.want {
			t.Errorf("%s, %q behind %d: %s, want %s", c.peer, c.hops, c.proxies, got, c.want)
		}
	}
}

// The connection, or trusted proxies, tell whether a client used https.
func TestSecure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		trusted int
		said    []string // values of X-Forwarded-Proto
		tls     bool
		want    bool
	}{
		{0, nil, false, false}, {0, nil, true, true}, {0, []string{"https"}, false, false}, {1, nil, false, false}, {1, nil, true, true},
		{1, []string{"https"}, false, true}, {1, []string{"http"}, false, false}, {1, []string{"HTTPS"}, false, true},
		{2, []string{"https"}, false, true}, // said once for all
		{2, []string{"https, http"}, false, true},
		{2, []string{"https", "http"}, false, true},
		{1, []string{"https, http"}, false, false}, // the first is what the client wrote
		{2, []string{"https,http,http"}, false, false},
	} {
		r := &http.Request{Header: http.Header{"X-Forwarded-Proto": c.said}}
		if c.tls {
			r.TLS = &tls.ConnectionState{}
		}
		if got := Secure(r, c.trusted); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
