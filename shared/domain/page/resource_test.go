package page

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"hash/crc32"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/longbox/longbox/shared/domain/content"
	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/format/epub"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/testkit"
)

// The type of an entry is detected from its bytes for a picture, from its name for the rest; browsers display nothing
// else.
func TestTypesOfResources(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, seen, want string }{
		{"a.xhtml", "", "application/xhtml+xml"}, {"A.HTML", "", "application/xhtml+xml"}, {"s.css", "", "text/css"}, {"a.svg", "image/svg+xml", "image/svg+xml"},
		{"f.woff2", "", "font/woff2"}, {"toc.ncx", "", "application/x-dtbncx+xml"}, {"p.jpg", "image/png", "image/png"}, {"p.jpg", "", "image/jpeg"},
		{"p.bin", "image/webp", "image/webp"}, {"book.pdf", "application/pdf", "application/octet-stream"}, {"x", "image/svg+xml", "application/octet-stream"},
		{"x.exe", "", "application/octet-stream"},
	} {
		if got := resourceType(c.name, c.seen); got != c.want {
			t.Errorf("%s with the bytes of %q is %q, want %q", c.name, c.seen, got, c.want)
		}
	}
}

// A table of contents with long texts takes more of the cache.
func TestLinesOfContents(t *testing.T) {
	t.Parallel()
	c := &epub.Contents{Spine: make([]epub.Item, 2), Resources: make([]epub.Item, 3), TOC: []epub.Place{{Title: "One", Places: []epub.Place{{Title: "Two", Anchor: "a"}}}}}
	if n := lines(c); n != 7 {
		t.Errorf("%d lines", n)
	}
	c.TOC[0].Places[0] = epub.Place{Title: strings.Repeat("x", 60_000), Anchor: strings.Repeat("x", 40_000)}
	if n := lines(c); n != 507 {
		t.Errorf("%d lines with long texts", n)
	}
}

// memory serves one file in ranges, as a store does.
func memory(t *testing.T, file []byte) (*Server, *Index) {
	t.Helper()
	return asked(t, file, func() {})
}

// asked is memory with a callback per request.
func asked(t *testing.T, file []byte, each func()) (*Server, *Index) {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "reader")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		each()
		w.Header().Set("ETag", `"v1"`)
		http.ServeContent(w, r, "", time.Unix(1000, 0), bytes.NewReader(file))
	}))
	t.Cleanup(store.Close)
	s := NewServer(Server{Finder: NewFinder(nil), Content: &content.Reader{Store: blob.Config{LibraryEndpoint: store.URL, Region: "us-east-1", PathStyle: true}.Library()}})
	return s, &Index{Key: "S/a.epub", Bucket: "books", Format: "EPUB", Size: int64(len(file)), ETag: `"v1"`, Modified: time.Unix(1000, 0)}
}

// A damaged entry fails the request if that is known before the response starts. The client inflates what is sent
// compressed.
func TestDamagedResources(t *testing.T) {
	good := strings.Repeat("word ", 1000)
	file := testkit.Zip(t, testkit.File{Name: "a.xhtml", Data: []byte(good), Deflate: true}, testkit.File{Name: "b.css", Data: []byte("p {}"), Deflate: true})
	file[30+len("a.xhtml")] ^= 0xff // the first byte of the deflated data
	s, i := memory(t, file)
	for _, c := range []struct {
		name, encoding string
		want           int
	}{{"a.xhtml", "identity", 422}, {"b.css", "identity", 200}, {"b.css", "gzip", 200}, {"B.CSS", "gzip", 200}, {"none", "gzip", 404}} {
		r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
		r.Header.Set("Accept-Encoding", c.encoding)
		err := s.Resource(w, r, i, c.name)
		got := w.Code
		if err != nil {
			got = fault.From(err).Code.Status()
		}
		if got != c.want || (got == 200) != (w.Body.Len() > 0) {
			t.Errorf("%s, %s: %d of %d bytes, %v; want %d", c.name, c.encoding, got, w.Body.Len(), err, c.want)
		}
	}
}

// Whatever a book contains, a browser that opens it runs no script, loads nothing from elsewhere, and shows no frame.
func TestHostileResources(t *testing.T) {
	files := []testkit.File{
		{Name: "script.xhtml", Data: []byte(`<html xmlns="http://www.w3.org/1999/xhtml"><script>alert(1)</script><body onload="alert(2)"/></html>`), Deflate: true},
		{Name: "link.xhtml", Data: []byte(`<html xmlns="http://www.w3.org/1999/xhtml"><a href="javascript:alert(1)">x</a></html>`)},
		{Name: "frame.xhtml", Data: []byte(`<html xmlns="http://www.w3.org/1999/xhtml"><iframe src="script.xhtml"/><object data="script.svg"/></html>`)},
		{Name: "remote.html", Data: []byte(`<html><img src="https://elsewhere.example/a.png"></html>`)},
		{Name: "script.svg", Data: []byte(`<svg xmlns="http://www.w3.org/2000/svg"><script href="script.js"/></svg>`)},
		{Name: "script.js", Data: []byte("alert(1)")},
		{Name: "named.jpg", Data: []byte("<html><script>alert(1)</script></html>")},
		{Name: "empty.xhtml"},
	}
	s, i := memory(t, testkit.Zip(t, files...))
	for _, f := range files {
		for _, method := range []string{"GET", "HEAD"} {
			w := httptest.NewRecorder()
			if err := s.Resource(w, httptest.NewRequest(method, "/", nil), i, f.Name); err != nil {
				t.Errorf("%s %s: %v", method, f.Name, err)
			}
			policy := strings.Split(w.Header().Get("Content-Security-Policy"), "; ")
			for _, want := range []string{"sandbox", "default-src 'self' data:", "script-src 'none'", "object-src 'none'", "frame-src 'none'"} {
				if !slices.Contains(policy, want) {
					t.Errorf("%s %s: %q lacks %s", method, f.Name, policy, want)
				}
			}
		}
	}
}

// slow is a client that reads nothing until it is released.
type slow struct {
	*httptest.ResponseRecorder
	comes, released chan struct{}
}

func (s slow) Write(p []byte) (int, error) {
	s.comes <- struct{}{}
	<-s.released
	return s.ResponseRecorder.Write(p)
}

// zstdZip is an archive of one file compressed with Zstandard.
func zstdZip(t *testing.T, name string, data []byte) []byte {
	t.Helper()
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	packed := enc.EncodeAll(data, nil)
	var file bytes.Buffer
	w := zip.NewWriter(&file)
	entry, err := w.CreateRaw(&zip.FileHeader{Name: name, Method: archive.Zstd, CRC32: crc32.ChecksumIEEE(data),
		CompressedSize64: uint64(len(packed)), UncompressedSize64: uint64(len(data))})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := entry.Write(packed); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// Slow clients do not hold a slot for heavy unpacking.
func TestSlowReadersOfWhatIsHeavy(t *testing.T) {
	s, i := memory(t, zstdZip(t, "a.css", []byte(strings.Repeat("word ", 1000))))
	comes, released := make(chan struct{}), make(chan struct{})
	ended := make(chan error)
	const readers = 3 // one more than there are slots
	for range readers {
		go func() {
			ended <- s.Resource(slow{httptest.NewRecorder(), comes, released}, httptest.NewRequest("GET", "/", nil), i, "a.css")
		}()
	}
	for n := range readers {
		select {
		case <-comes:
		case err := <-ended:
			t.Fatal(err)
		case <-time.After(20 * time.Second):
			t.Fatalf("%d of %d readers are served", n, readers)
		}
	}
	close(released)
	for range readers {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// A process caches the directories of books that are being read, up to a limit.
func TestDirectoriesAreRemembered(t *testing.T) {
	many := make([]testkit.File, 300)
	for n := range many {
		many[n] = testkit.File{Name: strconv.Itoa(n)}
	}
	s, i := memory(t, testkit.Zip(t, many...))
	for n := range 400 { // 120,000 entries
		i.BookID[0], i.BookID[1] = byte(n), byte(n>>8)
		if _, err := s.directory(t.Context(), i); err != nil {
			t.Fatal(err)
		}
		if _, known := s.books.known[i.fileTag()]; !known || s.books.entries > maxRemembered || s.books.entries != 300*len(s.books.known) {
			t.Fatalf("book %d: known %v, %d entries of %d books", n, known, s.books.entries, len(s.books.known))
		}
	}
	first := s.books.known[i.fileTag()]
	if again, err := s.directory(t.Context(), i); err != nil || again != first {
		t.Errorf("it is read again: %v", err)
	}
}

// Clients that open a book at the same time share the reads of its directory and package document; the next one uses
// the cache.
func TestReadersShareWhatIsRead(t *testing.T) {
	file := testkit.Zip(t, testkit.File{Name: "META-INF/container.xml", Data: []byte(`<container><rootfiles><rootfile full-path="a.opf"/></rootfiles></container>`)},
		testkit.File{Name: "a.opf", Data: []byte(`<package><metadata/><manifest><item id="n" href="n.xhtml" properties="nav"/></manifest><spine><itemref idref="n"/></spine></package>`)},
		testkit.File{Name: "n.xhtml", Data: []byte(`<html><nav type="toc"><ol><li><a href="n.xhtml">One</a></li></ol></nav></html>`)})
	const readers = 8
	var requests atomic.Int32
	var come sync.WaitGroup
	come.Add(readers)
	s, i := asked(t, file, func() {
		requests.Add(1)
		come.Wait()
	})
	read := func() {
		c, err := s.Contents(httptest.NewRequest("GET", "/", nil), i)
		if err != nil || len(c.Spine) != 1 || len(c.TOC) != 1 {
			t.Errorf("%+v, %v", c, err)
		}
	}
	var wait sync.WaitGroup
	for range readers {
		wait.Go(func() {
			come.Done()
			read()
		})
	}
	wait.Wait()
	read()
	if n := requests.Load(); n != 4 { // directory, container, package document, table of contents
		t.Errorf("%d requests, want 4", n)
	}
	if want := 3 + 1 + 1; s.books.entries != want {
		t.Errorf("%d entries and lines are remembered, want %d", s.books.entries, want)
	}
}

// A client that disconnects does not end the work for others.
func TestWhoLeavesEndsNothing(t *testing.T) {
	comes, goOn := make(chan struct{}), make(chan struct{})
	var requests atomic.Int32
	s, i := asked(t, testkit.Zip(t, testkit.File{Name: "a"}), func() {
		if requests.Add(1) == 1 {
			close(comes)
		}
		<-goOn
	})
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := s.directory(ctx, i)
		left <- err
	}()
	<-comes
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("who left is told %v", err)
	}
	close(goOn)
	if _, err := s.directory(t.Context(), i); err != nil || requests.Load() != 1 {
		t.Errorf("%d requests, %v", requests.Load(), err)
	}
}
