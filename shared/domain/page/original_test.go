package page

import (
	"bytes"
	"image"
	"image/png"
	"net/http/httptest"
	"testing"

	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/testkit"
)

// Regardless of a page's name, only pictures are served: scripts in a document would run with our origin.
func TestOnlyPicturesAreShown(t *testing.T) {
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
		t.Fatal(err)
	}
	script := []byte("<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>")
	var files []testkit.File
	for _, deflate := range []bool{false, true} {
		files = append(files, testkit.File{Name: "1.jpg", Data: script, Deflate: deflate}, testkit.File{Name: "2.png", Data: []byte("<html><script>alert(1)</script></html>"), Deflate: deflate},
			testkit.File{Name: "3.html", Data: picture.Bytes(), Deflate: deflate})
	}
	file := testkit.Zip(t, files...)
	s, i := memory(t, file)
	dir, err := archive.ReadDirectory(file, int64(len(file)), s.Content.Limits, nil)
	if err != nil {
		t.Fatal(err)
	}
	i.First, i.Count, i.Fingerprint = 1, len(dir.Entries), "0123456789abcdef0123456789abcdef"
	for _, e := range dir.Entries {
		i.Names, i.Types = append(i.Names, e.Name), append(i.Types, "image/png")
		i.Offsets, i.Lengths, i.Packed, i.Sizes = append(i.Offsets, e.Offset), append(i.Lengths, e.Length), append(i.Packed, e.CompressedSize), append(i.Sizes, e.Size)
		i.Methods, i.CRCs = append(i.Methods, int16(e.Method)), append(i.CRCs, int64(e.CRC32))
	}
	for n := 1; n <= i.Count; n++ {
		for _, encoding := range []string{"identity", "gzip"} {
			r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
			r.Header.Set("Accept-Encoding", encoding)
			err := s.Original(w, r, i, n)
			if n%3 == 0 {
				if err != nil || w.Code != 200 || w.Header().Get("Content-Type") != "image/png" {
					t.Errorf("page %d, %s: %d, %q, %v", n, encoding, w.Code, w.Header().Get("Content-Type"), err)
				}
			} else if !fault.Is(err, fault.Unprocessable) || w.Body.Len() > 0 {
				t.Errorf("page %d, %s: %d bytes of %q are shown, %v", n, encoding, w.Body.Len(), w.Header().Get("Content-Type"), err)
			}
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
		{[]string{`"b"`, `"a"`}, true}, // one list in two lines (RFC 9110, section 5.3)
	} {
		r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
		r.Header["If-None-Match"] = c.headers
		if got := NotModified(w, r, `"a"`, Immutable); got != c.want || got != (w.Code == 304) {
			t.Errorf("%q: %t, %d", c.headers, got, w.Code)
		}
	}
}
