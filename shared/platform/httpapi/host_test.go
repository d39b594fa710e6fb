package httpapi

import (
	"net/http"
	"strings"
	"testing"
)

// What is looked up and remembered for any Host that a client may send is no longer than a name can be.
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
