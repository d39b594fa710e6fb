package e2e_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/testkit"
)

func TestFile(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin, reader := s.as("admin"), s.as("reader")
	const name = `ハルコ "1" 50% é.cbz`
	data := testkit.Comic(t, 1, 3, "")
	testkit.WriteFile(t, s.folder, "S/"+name, data)
	s.scan(admin, s.library(admin, "Books", ""))
	b, ok := s.books(reader)["S/"+name]
	if !ok {
		t.Fatalf("books: %v", s.books(reader))
	}
	path, n := "/api/v1/books/"+b.ID.String()+"/file", len(data)
	whole := s.fetch(t, reader, "GET", path).want(t, 200)
	tag := whole.Header.Get("ETag")
	h := whole.Header
	if !bytes.Equal(whole.Body, data) || whole.Length != int64(n) || tag == "" || strings.HasPrefix(tag, "W/") || h.Get("Accept-Ranges") != "bytes" ||
		h.Get("Content-Type") != "application/zip" || h.Get("Last-Modified") == "" {
		t.Errorf("whole: %d bytes, %v", len(whole.Body), h)
	}
	d := h.Get("Content-Disposition")
	_, encoded, found := strings.Cut(d, "filename*=UTF-8''")
	if decoded, err := url.PathUnescape(encoded); !found || err != nil || decoded != name || !strings.HasPrefix(d, `attachment; filename="`) {
		t.Errorf("Content-Disposition %q names %q", d, decoded)
	}
	for _, c := range []struct {
		header   string
		from, to int // range of the data; to 0 means 416
		status   int
	}{
		{"bytes=0-0", 0, 1, 206},
		{"bytes=10-19", 10, 20, 206},
		{"bytes=100-", 100, n, 206},
		{"bytes=-7", n - 7, n, 206},
		{fmt.Sprintf("bytes=-%d", n+1000), 0, n, 206},
		{fmt.Sprintf("bytes=50-%d", n+1000), 50, n, 206},
		{fmt.Sprintf("bytes=%d-", n-1), n - 1, n, 206},
		{fmt.Sprintf("bytes=%d-", n), 0, 0, 416},
		{fmt.Sprintf("bytes=%d-%d", n+5, n+9), 0, 0, 416},
		{"bytes=-0", 0, 0, 416},
		{"bytes=5-2", 0, n, 200},
		{"bytes=a-b", 0, n, 200},
		{"bytes=", 0, n, 200},
		{"bytes=-", 0, n, 200},
		{"pages=1-2", 0, n, 200},
		{"bytes=0-1,5-6", 0, n, 200},
		{"bytes=99999999999999999999-", 0, n, 200},
	} {
		s.s3.Counter.Reset()
		a := s.fetch(t, reader, "GET", path, "Range", c.header)
		gets := s.s3.Counter.Reset()
		if a.Status != c.status {
			t.Errorf("%s: status %d, want %d", c.header, a.Status, c.status)
			continue
		}
		if c.status == 416 {
			a.problem(t, 416)
			if got := a.Header.Get("Content-Range"); got != fmt.Sprintf("bytes */%d", n) || len(gets) != 0 || a.Header.Get("Content-Disposition") != "" {
				t.Errorf("%s: Content-Range %q after %v", c.header, got, gets)
			}
			continue
		}
		if !bytes.Equal(a.Body, data[c.from:c.to]) || a.Length != int64(c.to-c.from) {
			t.Errorf("%s: %d bytes, want %d", c.header, len(a.Body), c.to-c.from)
		}
		wantRange := ""
		if c.status == 206 {
			wantRange = fmt.Sprintf("bytes %d-%d/%d", c.from, c.to-1, n)
		}
		if got := a.Header.Get("Content-Range"); got != wantRange {
			t.Errorf("%s: Content-Range %q, want %q", c.header, got, wantRange)
		}
		if len(gets) != 1 || gets[0].Method != "GET" || gets[0].Bytes != int64(c.to-c.from) {
			t.Errorf("%s: S3 saw %v", c.header, gets)
		}
	}
	for _, c := range []struct {
		ifRange string
		status  int
	}{{tag, 206}, {`"stale"`, 200}, {"W/" + tag, 200}, {h.Get("Last-Modified"), 206}, {time.Unix(0, 0).UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT"), 200}, {"nonsense", 200}} {
		a := s.fetch(t, reader, "GET", path, "Range", "bytes=1-3", "If-Range", c.ifRange)
		if a.Status != c.status || (c.status == 200 && !bytes.Equal(a.Body, data)) || (c.status == 206 && !bytes.Equal(a.Body, data[1:4])) {
			t.Errorf("If-Range %s: status %d with %d bytes, want %d", c.ifRange, a.Status, len(a.Body), c.status)
		}
	}
	s.s3.Counter.Reset()
	modified, err := time.Parse(http.TimeFormat, h.Get("Last-Modified"))
	if err != nil {
		t.Fatal(err)
	}
	before, after := modified.Add(-time.Second).Format(http.TimeFormat), modified.Add(time.Second).Format(http.TimeFormat)
	for _, c := range []struct {
		header, value string
		status        int
	}{
		{"If-Modified-Since", h.Get("Last-Modified"), 304},
		{"If-Modified-Since", after, 304},
		{"If-Unmodified-Since", before, 412},
		{"If-Match", `"stale"`, 412},
	} {
		for _, asked := range []string{"", "bytes=1-3"} {
			a := s.fetch(t, reader, "GET", path, c.header, c.value, "Range", asked)
			if c.status == 412 {
				a.problem(t, 412)
				if a.Header.Get("Content-Disposition") != "" {
					t.Errorf("%s %s, Range %q: %v", c.header, c.value, asked, a.Header)
				}
				continue
			}
			if a.Status != c.status || len(a.Body) != 0 || a.Header.Get("ETag") != tag {
				t.Errorf("%s %s, Range %q: status %d, %v", c.header, c.value, asked, a.Status, a.Header)
			}
		}
	}
	for _, match := range []string{tag, `"x", ` + tag, "*", "W/" + tag} {
		if a := s.fetch(t, reader, "GET", path, "If-None-Match", match); a.Status != 304 || len(a.Body) != 0 || a.Header.Get("ETag") != tag {
			t.Errorf("If-None-Match %s: status %d, %v", match, a.Status, a.Header)
		}
	}
	for _, name := range []string{"/book.cbz", "/" + url.PathEscape(name)} { // any name
		if a := s.fetch(t, reader, "GET", path+name); a.Status != 200 || !bytes.Equal(a.Body, data) || a.Header.Get("ETag") != tag || a.Header.Get("Content-Disposition") != d {
			t.Errorf("%s: status %d with %d bytes, %v", name, a.Status, len(a.Body), a.Header)
		}
		if a := s.fetch(t, reader, "GET", path+name, "Range", "bytes=1-3"); a.Status != 206 || !bytes.Equal(a.Body, data[1:4]) {
			t.Errorf("a range of %s: status %d with %d bytes", name, a.Status, len(a.Body))
		}
		s.fetch(t, reader, "HEAD", path+name).want(t, 200)
	}
	s.fetch(t, reader, "GET", path+"/"+strings.Repeat("n", 1001)).problem(t, 400)
	s.s3.Counter.Reset()
	head := s.fetch(t, reader, "HEAD", path).want(t, 200)
	if head.Header.Get("Content-Length") != fmt.Sprint(n) || head.Header.Get("ETag") != tag || head.Header.Get("Content-Disposition") != d || len(head.Body) != 0 {
		t.Errorf("HEAD: %v", head.Header)
	}
	if a := s.fetch(t, reader, "HEAD", path, "Range", "bytes=2-5").want(t, 206); a.Header.Get("Content-Length") != "4" {
		t.Errorf("HEAD of a range: %v", a.Header)
	}
	if all := s.s3.Counter.Reset(); len(all) != 0 {
		t.Errorf("conditional requests and HEAD reached S3: %v", all)
	}
	for _, c := range [][2]string{{"If-None-Match", `"stale"`}, {"If-None-Match", "no tag, " + tag}, {"If-Modified-Since", before}, {"If-Modified-Since", "no date"},
		{"If-Unmodified-Since", after}, {"If-Match", tag}} {
		if a := s.fetch(t, reader, "GET", path, c[0], c[1]); a.Status != 200 || !bytes.Equal(a.Body, data) {
			t.Errorf("%s %s: status %d with %d bytes", c[0], c[1], a.Status, len(a.Body))
		}
		if all := s.s3.Counter.Reset(); len(all) != 1 {
			t.Errorf("%s %s: S3 saw %v", c[0], c[1], all)
		}
	}
}

// A file that changes during a download is never served in parts of two versions.
func TestFileThatChanged(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin := s.as("admin")
	testkit.WriteFile(t, s.folder, "S/a.cbz", testkit.Comic(t, 1, 3, ""))
	s.scan(admin, s.library(admin, "Books", ""))
	b := s.books(admin)["S/a.cbz"]
	s.fetch(t, admin, "GET", pageURL(b, 1)).want(t, 200)
	testkit.WriteFile(t, s.folder, "S/a.cbz", testkit.Comic(t, 2, 5, ""))
	for _, path := range []string{pageURL(b, 1), pageURL(b, 2) + "?width=20", "/api/v1/books/" + b.ID.String() + "/file"} {
		if a := s.fetch(t, admin, "GET", path); a.Status != 409 && a.Status != 404 {
			t.Errorf("%s of a replaced file: status %d", path, a.Status)
		}
	}
}

// A listed file that is a link to elsewhere is reported as a link: no analysis can make it readable.
func TestFileThatIsALink(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin := s.as("admin")
	testkit.WriteFile(t, s.folder, "S/a.cbz", testkit.Comic(t, 1, 3, ""))
	testkit.WriteFile(t, filepath.Dir(s.folder), "elsewhere.bin", testkit.Comic(t, 2, 9, ""))
	if err := os.Symlink(filepath.Join(filepath.Dir(s.folder), "elsewhere.bin"), filepath.Join(s.folder, "S/link.cbz")); err != nil {
		t.Fatal(err)
	}
	s.scan(admin, s.library(admin, "Books", ""))
	b := s.books(admin)["S/link.cbz"]
	for path, status := range map[string]int{pageURL(b, 1): 404, "/api/v1/books/" + b.ID.String() + "/file": 409} {
		if a := s.fetch(t, admin, "GET", path).want(t, status); !strings.Contains(string(a.Body), "it is a link") {
			t.Errorf("%s: %s", path, a.Body)
		}
	}
}
