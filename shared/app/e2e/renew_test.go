package e2e_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/longbox/longbox/shared/testkit"
)

// After a scan has found that a book's file was changed or moved, cached data about it is invalid. Any later request
// gets the current state, and not the former page, "not modified" or an error.
func TestChangedFileIsServedAtOnce(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin, reader := s.as("admin"), s.as("reader")
	for i, name := range []string{"A/S/1.cbz", "A/S/2.cbz", "A/S/3.cbz"} {
		testkit.WriteFile(t, s.folder, name, testkit.Comic(t, i+1, 3, ""))
	}
	library := s.library(admin, "Books", "/A")
	s.scan(admin, library)
	books := s.books(reader)
	path := func(name string) string { return "/api/v1/books/" + books[name].ID.String() }
	get := func(path string, header ...string) answer { return s.fetch(t, reader, "GET", path, header...) }
	const small = "/pages/2?width=50"
	former := map[string]answer{}
	for name := range books {
		for _, p := range []string{"/pages/1", "/pages/2", small, small, "/file"} {
			former[name+p] = get(path(name)+p).want(t, 200)
		}
	}
	for i, name := range []string{"A/S/1.cbz", "A/S/2.cbz"} {
		testkit.WriteFile(t, s.folder, name, testkit.Comic(t, i+11, 3, ""))
	}
	if err := os.Rename(filepath.Join(s.folder, "A/S/3.cbz"), filepath.Join(s.folder, "A/S/4.cbz")); err != nil {
		t.Fatal(err)
	}
	s.scan(admin, library)
	for _, c := range []struct{ book, path string }{{"A/S/1.cbz", "/file"}, {"A/S/2.cbz", small}, {"A/S/2.cbz", "/pages/1"}} {
		was := former[c.book+c.path]
		if now := get(path(c.book)+c.path, "If-None-Match", was.Header.Get("ETag")); now.Status != 200 || bytes.Equal(now.Body, was.Body) {
			t.Errorf("%s of another %s: status %d, the same: %t", c.path, c.book, now.Status, bytes.Equal(now.Body, was.Body))
		}
	}
	if now := get(path("A/S/3.cbz") + "/pages/1"); now.Status != 200 || !bytes.Equal(now.Body, former["A/S/3.cbz/pages/1"].Body) {
		t.Errorf("a page of a renamed file: status %d", now.Status)
	}
	for range 3 { // the second time it is stored
		get(path("A/S/1.cbz")+small).want(t, 200)
	}
	if err := os.Remove(filepath.Join(s.folder, "A/S/1.cbz")); err != nil {
		t.Fatal(err)
	}
	s.scan(admin, library)
	if now := get(path("A/S/1.cbz") + small); now.Status != 404 {
		t.Errorf("a stored picture of a book that is gone: status %d", now.Status)
	}
	delete(books, "A/S/1.cbz")
	if err := os.Rename(filepath.Join(s.folder, "A"), filepath.Join(s.folder, "B")); err != nil {
		t.Fatal(err)
	}
	admin.Do("PATCH", "/api/v1/libraries/"+library.String(), `{"path":"/books/B"}`).Want(200)
	for name := range books {
		if now := get(path(name) + "/pages/1"); now.Status != 200 {
			t.Errorf("a page of %s in a library that is elsewhere: status %d", name, now.Status)
		}
	}
}

// The URL of a page of a changed file works as soon as it is issued, although the function behind the CDN caches the
// former file for some seconds.
func TestChangedFileBehindTheCDN(t *testing.T) {
	t.Parallel()
	s, admin, b := cdnSystem(t)
	paths := []string{pageURL(b, 1), pageURL(b, 2), pageURL(b, 2) + "?width=150"}
	former := map[string]answer{}
	for _, p := range paths {
		former[p] = s.edge(t, "GET", s.location(t, admin, p)).want(t, 200)
	}
	testkit.WriteFile(t, s.folder, "S/a 1.cbz", testkit.Comic(t, 7, 3, ""))
	s.scan(admin, b.LibraryID)
	for _, p := range paths {
		if now := s.edge(t, "GET", s.location(t, admin, p)); now.Status != 200 || bytes.Equal(now.Body, former[p].Body) {
			t.Errorf("%s of another file: status %d, the same: %t", p, now.Status, bytes.Equal(now.Body, former[p].Body))
		}
	}
}
