package e2e_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/testkit"
)

type pageInfo struct {
	PageNumber    int
	FileName      string
	FileSize      int64
	Width, Height *int
	MediaType     string
}

func (s *system) pages(c *testkit.Client, b book) []pageInfo {
	s.t.Helper()
	var p list[pageInfo]
	c.Do("GET", "/api/v1/books/"+b.ID.String()+"/pages?pageSize=500", nil).Want(200).JSON(&p)
	if int(p.Total) != len(p.Data) || len(p.Data) != b.PageCount {
		s.t.Errorf("%s: %d pages listed, total %d, the book has %d", b.Path, len(p.Data), p.Total, b.PageCount)
	}
	return p.Data
}

func pageURL(b book, n int) string {
	return "/api/v1/books/" + b.ID.String() + "/pages/" + strconv.Itoa(n)
}

// TestIndexOfAnotherVersion changes a book's file and records that, but does not analyse the book again. The positions
// of the pages in the old file must not be used for the new one.
func TestIndexOfAnotherVersion(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin := s.as("admin")
	testkit.WriteFile(t, s.folder, "S/a 1.cbz", testkit.Comic(t, 1, 3, ""))
	s.scan(admin, s.library(admin, "Books", ""))
	b := s.books(admin)["S/a 1.cbz"]
	s.fetch(t, admin, "GET", pageURL(b, 1)).want(t, 200)
	testkit.WriteFile(t, s.folder, "S/a 1.cbz", testkit.Comic(t, 7, 5, "<Title>Another</Title>"))
	info, err := os.Stat(filepath.Join(s.folder, "S/a 1.cbz"))
	if err != nil {
		t.Fatal(err)
	}
	s.exec("update book set size = $2, modified_at = $3, analyzed = false, revision = revision + 1 where id = $1", b.ID, info.Size(), info.ModTime().Truncate(time.Second))
	reader := s.as("reader") // for whom nothing is cached
	for n := 1; n <= 3; n++ {
		if a := s.fetch(t, reader, "GET", pageURL(b, n)); a.Status != 404 && a.Status != 409 {
			t.Errorf("page %d: status %d", n, a.Status)
		}
	}
}

func TestPagesOfEveryArchive(t *testing.T) {
	t.Parallel()
	pagesOfEveryArchive(t, newSystem(t, links{}))
}

// The same behind a pooler in transaction mode, where every transaction may get another connection.
func TestBehindPgbouncer(t *testing.T) {
	t.Parallel()
	// The callers below share three connections. The test is about what they see, not about how long they wait.
	s := newSystem(t, links{database: func(u string) string { return testkit.Pooler(t, u, 3) }, timeout: 30 * time.Second})
	pagesOfEveryArchive(t, s)
	admin, reader := s.as("admin"), s.as("reader")
	for path, b := range s.books(reader) {
		id := "/api/v1/books/" + b.ID.String()
		reader.Do("PUT", id+"/progress", map[string]int{"currentPage": 1}).Want(200)
		for _, get := range []string{id, id + "/progress", id + "/thumbnail", id + "/file", "/api/v1/series/" + b.SeriesID.String(),
			"/api/v1/series/" + b.SeriesID.String() + "/books", "/api/v1/progress", "/api/v1/books/in-progress", "/api/v1/user/preferences"} {
			if r := reader.Do("GET", get, nil); r.Status != 200 {
				t.Errorf("%s: GET %s: status %d: %.200s", path, get, r.Status, r.Body)
			}
		}
	}
	// Many concurrent callers, each of whom must see only their own tenant and progress.
	other := s.User(t, "two", "admin")
	var wg sync.WaitGroup
	for i := range 90 {
		wg.Go(func() {
			client, want := []*testkit.Client{reader, admin, other}[i%3], []int64{10, 0, 0}[i%3]
			var got list[book]
			r := s.fetch(t, client, "GET", "/api/v1/books/in-progress")
			if err := json.Unmarshal(r.Body, &got); err != nil || r.Status != 200 || got.Total != want {
				t.Errorf("caller %d: status %d, total %d, want %d: %v", i%3, r.Status, got.Total, want, err)
			}
		})
	}
	wg.Wait()
}

func pagesOfEveryArchive(t *testing.T, s *system) {
	t.Helper()
	admin, reader := s.as("admin"), s.as("reader")
	shapes := archives(t)
	for _, a := range shapes {
		testkit.WriteFile(t, s.folder, a.file, a.bytes)
	}
	if st := s.scan(admin, s.library(admin, "Books", "")); st.Status != "completed" || st.ErrorCount != 0 || st.FilesTotal != int64(len(shapes)) {
		t.Fatalf("scan: %+v", st)
	}
	books := s.books(reader)
	for _, a := range shapes {
		b, ok := books[a.file]
		if !ok || !b.Analyzed || b.PageCount != len(a.pages) {
			t.Errorf("%s: %+v, want %d pages", a.file, b, len(a.pages))
			continue
		}
		for i, info := range s.pages(reader, b) {
			want := a.pages[i]
			if info.PageNumber != i+1 || filepath.Base(info.FileName) != filepath.Base(want.name) || info.FileSize != int64(len(want.data)) || info.MediaType != "image/jpeg" {
				t.Errorf("%s page %d: %+v, want %s of %d bytes", a.file, i+1, info, want.name, len(want.data))
			}
			s.checkPage(t, reader, b, i+1, want)
		}
		s.fetch(t, reader, "GET", pageURL(b, len(a.pages)+1)).problem(t, 404)
		s.fetch(t, reader, "GET", pageURL(b, 0)).problem(t, 400)
	}
}

// checkPage requests a page cold, warm, with and without gzip, and conditionally, and counts the requests to S3.
func (s *system) checkPage(t *testing.T, c *testkit.Client, b book, n int, want page) {
	t.Helper()
	at := fmt.Sprintf("%s page %d", b.Path, n)
	s.s3.Counter.Reset()
	began := time.Now()
	first := s.fetch(t, c, "GET", pageURL(b, n)).want(t, 200)
	s.checkCost(t, at+" cold", 1, once(began))
	if sha256.Sum256(first.Body) != sha256.Sum256(want.data) {
		t.Errorf("%s: %d bytes that are not the %d of %s", at, len(first.Body), len(want.data), want.name)
	}
	if first.Length != int64(len(want.data)) || first.Header.Get("Content-Encoding") != "" || first.Header.Get("Content-Type") != "image/jpeg" {
		t.Errorf("%s: Content-Length %d of %d, headers %v", at, first.Length, len(want.data), first.Header)
	}
	if cc := first.Header.Get("Cache-Control"); !strings.Contains(cc, "private") || !strings.Contains(cc, "immutable") {
		t.Errorf("%s: Cache-Control %q", at, cc)
	}
	began = time.Now()
	zipped := s.fetch(t, c, "GET", pageURL(b, n), "Accept-Encoding", "gzip").want(t, 200)
	s.checkCost(t, at+" gzip", 0, once(began))
	deflated := strings.Contains(b.Path, "deflated") || strings.Contains(b.Path, "natural")
	if got := zipped.Header.Get("Content-Encoding"); (got == "gzip") != deflated {
		t.Errorf("%s: Content-Encoding %q where gzip is accepted", at, got)
	}
	body := zipped.Body
	if deflated {
		r, err := gzip.NewReader(bytes.NewReader(zipped.Body))
		if err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		if body, err = io.ReadAll(r); err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		for _, a := range []answer{first, zipped} {
			if a.Header.Get("Vary") != "Accept-Encoding" {
				t.Errorf("%s: Vary %q", at, a.Header.Get("Vary"))
			}
		}
		if first.Header.Get("ETag") == zipped.Header.Get("ETag") {
			t.Errorf("%s: both forms have the ETag %s", at, first.Header.Get("ETag"))
		}
	}
	if sha256.Sum256(body) != sha256.Sum256(want.data) || zipped.Length != int64(len(zipped.Body)) {
		t.Errorf("%s with gzip: %d bytes that are not %s, Content-Length %d", at, len(body), want.name, zipped.Length)
	}
	for _, enc := range []string{"identity", "gzip"} {
		tag := first.Header.Get("ETag")
		if enc == "gzip" {
			tag = zipped.Header.Get("ETag")
		}
		again := s.fetch(t, c, "GET", pageURL(b, n), "Accept-Encoding", enc, "If-None-Match", `"other", `+tag)
		if again.Status != 304 || len(again.Body) != 0 || again.Header.Get("ETag") != tag {
			t.Errorf("%s, %s: conditional %d, %v", at, enc, again.Status, again.Header)
		}
		head := s.fetch(t, c, "HEAD", pageURL(b, n), "Accept-Encoding", enc).want(t, 200)
		if head.Header.Get("ETag") != tag || len(head.Body) != 0 || head.Header.Get("Content-Length") == "" {
			t.Errorf("%s, %s: HEAD %v", at, enc, head.Header)
		}
		s.checkCost(t, at+" conditional and HEAD", 0, 0)
	}
}

// once returns the number of GETs that a page requested at the given time may cost: one. If Redis may have been late
// (it has 20 ms to count a request), it is two, because the operation is then started again.
func once(began time.Time) int {
	if time.Since(began) < 20*time.Millisecond {
		return 1
	}
	return 2
}

// checkCost fails unless the number of ranged GETs is between least and most, and S3 got no other requests.
func (s *system) checkCost(t *testing.T, what string, least, most int) {
	t.Helper()
	all := s.s3.Counter.Reset()
	gets := testkit.Objects(all, "GET")
	if len(gets) != len(all) || len(gets) < least || len(gets) > most {
		t.Errorf("%s: S3 saw %v, want %d to %d GETs", what, all, least, most)
	}
	for _, g := range gets {
		if g.Range == "" {
			t.Errorf("%s: a GET without a range: %v", what, g)
		}
	}
}

// The range of a page contains its stored bytes, at most 512 more, and nothing of other pages.
func TestRangeIsThePageAlone(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin := s.as("admin")
	pages := jpegs(t, 3, "1.jpg", "2.jpg", "3.jpg", "4.jpg")
	testkit.WriteFile(t, s.folder, "S/stored.cbz", testkit.Zip(t, files(false, pages...)...))
	testkit.WriteFile(t, s.folder, "S/exact.cbz", exactZip(t, 0, pages, true))
	s.scan(admin, s.library(admin, "Books", ""))
	books := s.books(admin)
	if len(books) != 2 {
		t.Fatalf("%d books, want 2", len(books))
	}
	for _, b := range books {
		for n, p := range pages {
			s.s3.Counter.Reset()
			s.fetch(t, admin, "GET", pageURL(b, n+1)).want(t, 200)
			gets := s.s3.Counter.Reset()
			if len(gets) != 1 || gets[0].Bytes < int64(len(p.data)) || gets[0].Bytes > int64(len(p.data))+512 {
				t.Errorf("%s page %d of %d bytes cost %v", b.Path, n+1, len(p.data), gets)
			}
		}
	}
}

// A page that is requested before the book is analysed is available as soon as the analysis is done.
func TestPageBeforeAnalysis(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	reader := s.as("reader")
	testkit.WriteFile(t, s.folder, "S/a.cbz", testkit.Comic(t, 1, 3, ""))
	admin := s.as("admin")
	s.scan(admin, s.library(admin, "Books", ""))
	b := s.books(admin)["S/a.cbz"]
	s.exec("update page_index set file_size = file_size + 1") // for another version of the file
	s.fetch(t, reader, "GET", pageURL(b, 2)).problem(t, 404)
	s.exec("update page_index set file_size = file_size - 1")
	s.fetch(t, reader, "GET", pageURL(b, 2)).want(t, 200)
}

// A page is shown until its library is deleted, and no longer, even if it is cached.
func TestDeletedLibrary(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin := s.as("admin")
	testkit.WriteFile(t, s.folder, "S/a 1.cbz", testkit.Zip(t, testkit.File{Name: "1.jpg", Data: testkit.JPEG(t, 90, 120, 1)}))
	admin.Do("POST", "/api/v1/libraries", object{"name": "Missing", "path": "/books/missing"}).Want(400)
	library := s.library(admin, "Books", "")
	s.scan(admin, library)
	b := s.books(admin)["S/a 1.cbz"]
	for range 2 {
		s.fetch(t, admin, "GET", pageURL(b, 1)).want(t, 200)
	}
	admin.Do("DELETE", "/api/v1/libraries/"+library.String(), nil).Want(204)
	s.fetch(t, admin, "GET", pageURL(b, 1)).problem(t, 404)
	s.fetch(t, admin, "GET", pageURL(b, 1)+"?width=150").problem(t, 404)
}

// A page whose content contradicts the archive's directory is never sent completely: a small one is refused, and the
// response of a larger one is aborted.
func TestDamagedPages(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	var files []testkit.File
	sizes := []int{500, 4000, 4096, 5000, 7000, 300_000}
	for i, size := range sizes {
		data := make([]byte, size)
		for j := range data {
			data[j] = byte(j * j >> 3)
		}
		copy(data, "\xff\xd8\xff\xe0\x00\x10JFIF\x00")
		files = append(files, testkit.File{Name: fmt.Sprintf("%d.jpg", i), Data: data, Deflate: true})
	}
	data := testkit.Zip(t, files...)
	for at := 0; ; { // the checksums in the directory
		next := bytes.Index(data[at:], []byte("PK\x01\x02"))
		if next < 0 {
			break
		}
		at += next + 16
		data[at] ^= 0xff
	}
	testkit.WriteFile(t, s.folder, "S/1.cbz", data)
	admin := s.as("admin")
	s.scan(admin, s.library(admin, "Books", ""))
	b := s.books(admin)["S/1.cbz"]
	for i, size := range sizes {
		req, err := http.NewRequest("GET", s.URL+pageURL(b, i+1), nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host, req.Header = admin.Host, admin.Header.Clone()
		res, err := plain.RoundTrip(req)
		if err != nil {
			t.Errorf("%d bytes: no answer: %v", size, err)
			continue
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		switch {
		case size <= 4096 && (res.StatusCode != 422 || err != nil || !strings.Contains(string(body), "checksum")):
			t.Errorf("%d bytes: %d %v %.200s", size, res.StatusCode, err, body)
		case size > 4096 && (res.StatusCode != 200 || err == nil):
			t.Errorf("%d bytes: %d %v, %d came", size, res.StatusCode, err, len(body))
		}
	}
}
