package page

import (
	"net/http/httptest"
	"testing"
	"time"
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
