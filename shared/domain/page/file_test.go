package page

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/platform/fault"
)

func TestFileIsOfItsType(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{"cbz": "application/zip", "cbr": "application/x-rar-compressed", "epub": "application/epub+zip",
		"pdf": "application/pdf", "cb7": "application/octet-stream", "cbt": "application/octet-stream"} {
		w := httptest.NewRecorder()
		i := &Index{Key: "S/a." + format, Format: format, Size: 1, Modified: time.Unix(1, 0)}
		if err := (&Server{}).File(w, httptest.NewRequest("HEAD", "/", nil), i); err != nil || w.Code != 200 || w.Header().Get("Content-Type") != want {
			t.Errorf("%s: status %d as %q, want %q; %v", format, w.Code, w.Header().Get("Content-Type"), want, err)
		}
	}
}

// Whether the client has this version, or asks for another, counts before a range that lies outside of it.
func TestFileConditionsBeforeRange(t *testing.T) {
	t.Parallel()
	i := &Index{Key: "S/a.cbz", Format: "cbz", Size: 100, ETag: "x", Modified: time.Unix(1000, 0)}
	for _, c := range []struct {
		header, value, requested string
		want                     int
	}{
		{"If-None-Match", i.fileTag(), "bytes=200-", 304},
		{"If-None-Match", `"another"`, "bytes=200-", 416},
		{"If-Match", `"another"`, "bytes=200-", 412},
		{"If-Match", i.fileTag(), "bytes=200-", 416},
		{"If-Range", `"another"`, "bytes=200-", 200},
		{"Accept", "*/*", "bytes=100-", 416},
		{"Accept", "*/*", "bytes=-0", 416},
		{"Accept", "*/*", "bytes=99-", 206},
	} {
		r, w := httptest.NewRequest("HEAD", "/", nil), httptest.NewRecorder()
		r.Header.Set(c.header, c.value)
		r.Header.Set("Range", c.requested)
		err := (&Server{}).File(w, r, i)
		got := w.Code
		if err != nil {
			got = fault.From(err).Code.Status()
		}
		if got != c.want || (got == 416) != (w.Header().Get("Content-Range") == "bytes */100") {
			t.Errorf("%s: %s with Range %s: %d, want %d; Content-Range %q", c.header, c.value, c.requested, got, c.want, w.Header().Get("Content-Range"))
		}
	}
}
