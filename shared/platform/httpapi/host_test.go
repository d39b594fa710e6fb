package httpapi

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Hosts longer than a DNS name are not looked up or cached.
func TestHost(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", maxHost)
	for _, c := range []struct {
		host, forwarded string
		proxies         int
		want            string
	}{
		{"ACME.example.org:8080", "", 0, "acme.example.org"},
		{"acme.example.org.", "", 0, "acme.example.org"},
		{"[2001:db8::1]:8080", "", 0, "2001:db8::1"},
		{"acme.example.org", "evil.example.org", 0, "acme.example.org"},
		{"acme.example.org", "other.example.org", 1, "other.example.org"},
		{"acme.example.org", "other.example.org:8443", 1, "other.example.org"},
		{"acme.example.org", "other.example.org:80@evil.example.org", 1, ""},
		{"acme.example.org", "other.example.org:80, evil.example.org", 1, ""},
		{"acme.example.org", "other.example.org:80/evil", 1, ""},
		{long + ":80", "", 0, long},
		{long + "a:80", "", 0, ""},
		{"acme.example.org", strings.Repeat("a.", 30_000), 1, ""},
	} {
		a := &API{config: Config{TrustedProxies: c.proxies}}
		r := &http.Request{Host: c.host, Header: http.Header{"X-Forwarded-Host": {c.forwarded}}}
		if got := a.host(r); got != c.want {
			t.Errorf("%.40s, %.40s: %.40q, want %.40q", c.host, c.forwarded, got, c.want)
		}
	}
}

// The connection, or a trusted proxy, tells whether a client used https. No response may be sniffed as another type.
func TestSecure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		proxies   int
		forwarded string
		tls, want bool
	}{{0, "", false, false}, {0, "", true, true}, {0, "https", false, false}, {1, "https", false, true}, {1, "http", false, false}} {
		a, got := &API{config: Config{TrustedProxies: c.proxies}}, false
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-Forwarded-Proto", c.forwarded)
		if c.tls {
			r.TLS = &tls.ConnectionState{}
		}
		w := httptest.NewRecorder()
		a.observe(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = Secure(r.Context()) })).ServeHTTP(w, r)
		if got != c.want || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%+v: %v, %v", c, got, w.Header())
		}
	}
}
