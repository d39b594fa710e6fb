package e2e_test

import (
	"archive/zip"
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/testkit"
	"github.com/longbox/longbox/shared/testkit/lambdakit"
)

// A page larger than a buffered answer of Lambda may be, and a book of 300 MB: both are streamed, and what is streamed
// is not held in memory.
func TestLargeBook(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 300 MB")
	}
	t.Parallel()
	s := newSystem(t, links{})
	admin, reader := s.as("admin"), s.as("reader")
	page := append(testkit.JPEG(t, 400, 600, 1), bytes.Repeat([]byte("padding behind the image\n"), 340_000)...) // 8.5 MB
	path := writeLarge(t, s.folder, page)
	if st := s.scan(admin, s.library(admin, "Books", "")); st.Status != "completed" {
		t.Fatalf("scan: %+v", st)
	}
	b := s.books(reader)["S/large.cbz"]
	if a := s.fetch(t, reader, "GET", pageURL(b, 1)).want(t, 200); !bytes.Equal(a.Body, page) {
		t.Errorf("the page of %d bytes arrived as %d", len(page), len(a.Body))
	}
	before := s.mediaMemory(t)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range []int64{1, info.Size() - 50_000_000} {
		if _, err := f.Seek(from, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		want := sha256.New()
		if _, err := io.Copy(want, f); err != nil {
			t.Fatal(err)
		}
		got, n := s.download(t, reader, b, from)
		if n != info.Size()-from || !bytes.Equal(got, want.Sum(nil)) {
			t.Errorf("from byte %d: %d bytes of %d, or others", from, n, info.Size()-from)
		}
	}
	if after := s.mediaMemory(t); after-before > 48 {
		t.Errorf("a download of 300 MB raised the peak of the media function's memory from %d to %d MB", before, after)
	} else {
		t.Logf("peak memory of the media function: %d MB before, %d MB after", before, after)
	}
}

func writeLarge(t *testing.T, folder string, page []byte) string {
	t.Helper()
	path := filepath.Join(folder, "S", "large.cbz")
	testkit.WriteFile(t, folder, "S/large.cbz", nil)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := zip.NewWriter(f)
	block := make([]byte, 1<<20)
	for i := range block {
		block[i] = byte(i * 31 >> 5)
	}
	for i, size := range []int{0, 50, 50, 50, 50, 50, 50} { // MiB behind the image; a page may have 64
		e, err := w.CreateHeader(&zip.FileHeader{Name: fmt.Sprintf("%d.jpg", i+1), Method: zip.Store})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Write(page); err != nil {
			t.Fatal(err)
		}
		for n := range size {
			block[0] = byte(n)
			if _, err := e.Write(block); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// download reads a book's file from a byte on, without keeping it.
func (s *system) download(t *testing.T, c *testkit.Client, b book, from int64) (sum []byte, n int64) {
	t.Helper()
	req, err := http.NewRequest("GET", s.URL+"/api/v1/books/"+b.ID.String()+"/file", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host, req.Header = c.Host, c.Header.Clone()
	req.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
	res, err := plain.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	h := sha256.New()
	n, err = io.Copy(h, res.Body)
	if err != nil || res.StatusCode != 206 {
		t.Fatalf("from byte %d: status %d, %d bytes, then %v", from, res.StatusCode, n, err)
	}
	return h.Sum(nil), n
}

// mediaMemory is the most that a process of the media function ever had resident, in MB; 0 in this process.
func (s *system) mediaMemory(t *testing.T) (mb int) {
	t.Helper()
	front, ok := s.toMedia.(*lambdakit.Front)
	if !ok {
		return 0
	}
	for _, pid := range front.Function.PIDs() {
		f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			var kb int
			if rest, ok := strings.CutPrefix(lines.Text(), "VmHWM:"); ok {
				if _, err := fmt.Sscan(rest, &kb); err != nil {
					t.Fatal(err)
				}
				mb = max(mb, kb>>10)
			}
		}
		f.Close()
	}
	return mb
}
