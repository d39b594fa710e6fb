package e2e_test

import (
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/testkit"
)

// An uploaded picture is shown for the book, and wherever the book's cover is shown. It stays when the file is replaced
// by another, until it is removed. It is rendered once.
func TestCoverOfABook(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	s.exec("insert into setting (tenant_id, key, value) values ($1, 'komga_api.prefix', 'komga')", s.One)
	admin, reader := s.as("admin"), s.as("reader")
	comic := func(width, n int) []byte {
		return testkit.Zip(t, testkit.File{Name: "1.jpg", Data: testkit.JPEG(t, width, 1200, n)})
	}
	testkit.WriteFile(t, s.folder, "S/a 1.cbz", comic(900, 1))
	testkit.WriteFile(t, s.folder, "S/a 2.cbz", comic(600, 2))
	testkit.WriteFile(t, s.folder, "S/a 3.cbz", []byte("no comic"))
	library := s.library(admin, "Books", "")
	s.scan(admin, library)
	b, broken := s.books(admin)["S/a 1.cbz"], s.books(admin)["S/a 3.cbz"]
	one := "/api/v1/books/" + b.ID.String()
	paths := []string{one, "/api/v1/series/" + b.SeriesID.String(), "/api/v1/libraries/" + library.String()}
	for path, body := range map[string]object{"collections": {"seriesIds": []any{b.SeriesID}}, "readlists": {"bookIds": []any{b.ID}}} {
		var made struct{ ID string }
		admin.Do("POST", "/api/v1/"+path, object{"name": "Best"}).Want(201).JSON(&made)
		at := "/api/v1/" + path + "/" + made.ID
		admin.Do("POST", at+map[string]string{"collections": "/series", "readlists": "/books"}[path], body).Want(200)
		paths = append(paths, at)
	}
	for _, at := range []string{"series", "books"} {
		reader.Do("POST", "/api/v1/want-to-read", map[string]object{"series": {"seriesId": b.SeriesID}, "books": {"bookId": b.ID}}[at]).Want(201)
	}
	shows := func(what string, width int) {
		t.Helper()
		tags := map[string]bool{}
		for _, path := range append([]string{"/komga/api/v1/collections/want-to-read", "/komga/api/v1/readlists/want-to-read", "/komga" + one}, paths...) {
			r := reader.Do("GET", path+"/thumbnail", nil).Want(200)
			if w, h, format := size(t, r.Body); w != width || h != 400 || format != "jpeg" {
				t.Errorf("%s: %s: %d x %d %s", what, path, w, h, format)
			}
			tags[r.Header.Get("ETag")] = true
		}
		if len(tags) != 1 {
			t.Errorf("%s: tags %v", what, tags)
		}
	}
	shows("the file's", 300)
	upload := func(path string, width int) {
		t.Helper()
		admin.Do("POST", path+"/cover", testkit.Form{Member: "file", File: testkit.JPEG(t, width, 1000, 4)}).Want(201)
	}
	upload(one, 500)
	before := len(s.covers())
	shows("uploaded", 200)
	if n := len(s.covers()) - before; n != 1 {
		t.Errorf("one cover is stored as %d objects", n)
	}
	feed := string(reader.Do("GET", "/opds/series/"+b.SeriesID.String(), nil).Want(200).Body)
	if !strings.Contains(feed, one+"/thumbnail") {
		t.Errorf("the catalog shows another cover: %s", feed)
	}
	testkit.WriteFile(t, s.folder, "S/a 1.cbz", comic(1200, 3))
	s.scan(admin, library)
	shows("the file was replaced", 200)
	if got := s.finished(admin, admin.Do("POST", one+"/thumbnail/generate", object{"force": true})); !sameJSON(got.Result, `{"made": 1, "kept": 0, "failed": 0, "without": 0}`) {
		t.Errorf("made again: %+v %s", got, got.Result)
	}
	shows("made again", 200)
	admin.Do("DELETE", one+"/covers/selected", nil).Want(204)
	shows("reset", 400)
	upload(one, 250)
	admin.Do("PATCH", paths[1]+"/cover/source", object{"source": "book:" + b.ID.String()}).Want(200)
	shows("chosen by the series", 100)
	s.exec("update book set deleted_at = now() where id = $1", b.ID)
	if w, _, _ := size(t, reader.Do("GET", paths[1]+"/thumbnail", nil).Want(200).Body); w != 200 {
		t.Errorf("the chosen book is gone, its cover of width %d is not", w)
	}
	s.exec("update book set deleted_at = null where id = $1", b.ID)

	// A book that cannot be read shows its uploaded picture.
	at := "/api/v1/books/" + broken.ID.String()
	if r := reader.Do("GET", at+"/thumbnail", nil).Want(200); r.Header.Get("Content-Type") != "image/svg+xml" {
		t.Errorf("a broken book shows %s", r.Header.Get("Content-Type"))
	}
	upload(at, 500)
	if r := reader.Do("GET", at+"/thumbnail", nil).Want(200); r.Header.Get("Content-Type") != "image/jpeg" {
		t.Errorf("a broken book shows %s", r.Header.Get("Content-Type"))
	}

	// The list of someone who wants nothing does not show what others want.
	other := s.as("reader")
	for _, kind := range []string{"collections", "readlists"} {
		r := other.Do("GET", "/komga/api/v1/"+kind+"/want-to-read/thumbnail", nil).Want(200)
		if got := r.Header.Get("Content-Type"); got != "image/svg+xml" {
			t.Errorf("the empty list in %s shows %s", kind, got)
		}
	}
}

// The CDN's origin renders the picture of a book, and also the cover that was shown before.
func TestCoverOfABookAtTheCDN(t *testing.T) {
	t.Parallel()
	s, admin, b := cdnSystem(t)
	path := "/api/v1/books/" + b.ID.String()
	before := s.location(t, admin, path+"/thumbnail")
	admin.Do("POST", path+"/cover", testkit.Form{Member: "file", File: testkit.JPEG(t, 300, 600, 4)}).Want(201)
	to := s.location(t, admin, path+"/thumbnail")
	s.loseCovers()
	for at, width := range map[string]int{to: 200, before: 300} {
		if w, h, format := size(t, s.edge(t, "GET", at).want(t, 200).Body); w != width || h != 400 || format != "jpeg" {
			t.Errorf("%d x %d %s at %s", w, h, format, at)
		}
	}
	admin.Do("DELETE", path+"/covers/selected", nil).Want(204)
	if again := s.location(t, admin, path+"/thumbnail"); cdnPath(again) != cdnPath(before) {
		t.Errorf("at %s after the reset, before at %s", again, before)
	}
}
