package page

import (
	"net/http/httptest"
	"testing"
)

func TestAcceptsGzip(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		headers []string
		want    bool
	}{
		{nil, false},
		{[]string{""}, false},
		{[]string{"br"}, false},
		{[]string{"gzip"}, true},
		{[]string{"br, GZIP ; q=0.5"}, true},
		{[]string{"br", "gzip"}, true},
		{[]string{"gzip;q=0"}, false},
		{[]string{"gzip; Q = 0.000"}, false},
		{[]string{"gzip;q=0.0000"}, false},
		{[]string{"gzip;q=0.001"}, true},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header["Accept-Encoding"] = c.headers
		if got := acceptsGzip(r); got != c.want {
			t.Errorf("%q: %t", c.headers, got)
		}
	}
}

func TestNotModified(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		headers []string
		want    bool
	}{
		{nil, false},
		{[]string{`"b"`}, false},
		{[]string{`"a"`}, true},
		{[]string{`W/"a"`}, true},
		{[]string{"*"}, true},
		{[]string{`"b", "a"`}, true},
		{[]string{`"b"`, `"a"`}, true}, // one list in two lines (RFC 9110, 5.3)
	} {
		r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
		r.Header["If-None-Match"] = c.headers
		if got := NotModified(w, r, `"a"`, Immutable); got != c.want || got != (w.Code == 304) {
			t.Errorf("%q: %t, %d", c.headers, got, w.Code)
		}
	}
}
