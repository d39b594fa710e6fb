package httpapi_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/platform/httpapi"
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
		if got := httpapi.AcceptsGzip(r); got != c.want {
			t.Errorf("%q: %t", c.headers, got)
		}
	}
}

// Large text responses are compressed for clients that accept it; everything else is unchanged.
func TestGzip(t *testing.T) {
	t.Parallel()
	long := `{"data":[` + strings.Repeat(`{"id":"0190aaaa"},`, 200) + `{}]}`
	for _, c := range []struct {
		name, takes, kind, body string
		status                  int
		header                  http.Header
		want                    bool
		tag                     string
	}{
		{"a list", "gzip, br", "application/json", long, 200, nil, true, ""},
		{"a list with a parameter", "gzip", "application/json; charset=utf-8", long, 200, nil, true, ""},
		{"a feed", "gzip", "application/atom+xml;profile=opds-catalog", long, 200, nil, true, ""},
		{"an error", "gzip", "application/json", long, 422, nil, true, ""},
		{"tagged", "gzip", "application/json", long, 200, http.Header{"Etag": {`"a"`}, "Content-Length": {"3650"}}, true, `W/"a"`},
		{"tagged weakly", "gzip", "application/json", long, 200, http.Header{"Etag": {`W/"a"`}}, true, `W/"a"`},
		{"nobody takes it", "br, gzip;q=0", "application/json", long, 200, http.Header{"Etag": {`"a"`}}, false, `"a"`},
		{"short", "gzip", "application/json", long[:1400], 200, nil, false, ""},
		{"a picture", "gzip", "image/jpeg", long, 200, nil, false, ""},
		{"compressed before", "gzip", "text/css", long, 200, http.Header{"Content-Encoding": {"br"}}, false, ""},
		{"a part", "gzip", "text/css", long, 206, http.Header{"Content-Range": {"bytes 0-3649/9000"}}, false, ""},
		{"nothing", "gzip", "", "", 304, http.Header{"Etag": {`"a"`}}, false, `"a"`},
		{"no status", "gzip", "application/json", long, 0, nil, true, ""},
		{"no answer", "gzip", "", "", 0, nil, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			handler := httpapi.Gzip(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for k, v := range c.header {
					w.Header()[k] = v
				}
				if c.kind != "" {
					w.Header().Set("Content-Type", c.kind)
				}
				if c.status != 0 {
					w.WriteHeader(c.status)
					w.WriteHeader(500) // too late
				}
				for part := range slices.Chunk([]byte(c.body), 1000) {
					if _, err := w.Write(part); err != nil {
						t.Error(err)
					}
				}
			}))
			r := httptest.NewRequest("GET", "/", nil)
			r.Header.Set("Accept-Encoding", c.takes)
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			h, body := w.Result().Header, w.Body.Bytes()
			if got := h.Get("Content-Encoding") == "gzip"; got != c.want {
				t.Fatalf("compressed: %t, with %v", got, h)
			}
			if c.want {
				if len(body) > len(c.body)/4 || h.Get("Vary") != "Accept-Encoding" || h.Get("Content-Length") != "" {
					t.Errorf("%d of %d bytes, %v", len(body), len(c.body), h)
				}
				z, err := gzip.NewReader(w.Body)
				if err != nil {
					t.Fatal(err)
				}
				if body, err = io.ReadAll(z); err != nil {
					t.Fatal(err)
				}
			}
			if string(body) != c.body || w.Code != max(c.status, 200) || h.Get("ETag") != c.tag {
				t.Errorf("%d, %d bytes of %d, %v", w.Code, len(body), len(c.body), h)
			}
		})
	}
}
