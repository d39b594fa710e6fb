package e2e_test

import (
	"bytes"
	"testing"

	"github.com/longbox/longbox/shared/testkit"
)

// The cover of a collection is the cover of its first series; the cover of a read list is that of its first book that
// has one.
func TestCoversOfCollections(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	s.exec("insert into setting (tenant_id, key, value) values ($1, 'komga_api.prefix', 'komga')", s.One)
	admin, reader := s.as("admin"), s.as("reader")
	testkit.WriteFile(t, s.folder, "A/a 1.cbz", testkit.Comic(t, 1, 2, ""))
	testkit.WriteFile(t, s.folder, "B/b 1.cbz", testkit.Comic(t, 2, 2, ""))
	s.scan(admin, s.library(admin, "Comics", ""))
	a, b := s.books(admin)["A/a 1.cbz"], s.books(admin)["B/b 1.cbz"]
	cover := func(path string) []byte {
		t.Helper()
		r := reader.Do("GET", path+"/thumbnail", nil).Want(200)
		if got := r.Header.Get("Content-Type"); got != "image/jpeg" {
			t.Errorf("the cover of %s is %s", path, got)
		}
		return r.Body
	}
	ofA, ofB := cover("/api/v1/books/"+a.ID.String()), cover("/api/v1/books/"+b.ID.String())
	if bytes.Equal(ofA, ofB) {
		t.Fatal("two books have the same cover")
	}
	for _, k := range []struct {
		path, members string
		of            object
	}{{"/collections", "/series", object{"seriesIds": []any{b.SeriesID, a.SeriesID}}}, {"/readlists", "/books", object{"bookIds": []any{b.ID, a.ID}}}} {
		var made struct{ ID string }
		admin.Do("POST", "/api/v1"+k.path, object{"name": "Best"}).Want(201).JSON(&made)
		at := "/api/v1" + k.path + "/" + made.ID
		reader.Do("GET", at+"/thumbnail", nil).Want(404)
		admin.Do("POST", at+k.members, k.of).Want(200)
		if !bytes.Equal(cover(at), ofB) || !bytes.Equal(cover("/komga"+at), ofB) {
			t.Errorf("%s: the cover is not that of the first", at)
		}
		whole := s.fetch(t, reader, "GET", at+"/thumbnail").want(t, 200)
		same := s.fetch(t, reader, "GET", at+"/thumbnail", "If-None-Match", whole.Header.Get("ETag")).want(t, 304)
		for _, a := range []answer{whole, same} {
			if got := a.Header.Get("Cache-Control"); got != "private, max-age=60" {
				t.Errorf("%s: %d with Cache-Control %q", at, a.Status, got)
			}
		}
		s.exec("update book set deleted_at = now() where id = $1", b.ID)
		if !bytes.Equal(cover(at), ofA) {
			t.Errorf("%s: the cover is not that of the first that is there", at)
		}
		// Another member may be shown in the meantime although it is not newer.
		for condition, value := range map[string]string{"If-None-Match": "ETag", "If-Modified-Since": "Last-Modified"} {
			if a := s.fetch(t, reader, "GET", at+"/thumbnail", condition, whole.Header.Get(value)); a.Status != 200 || !bytes.Equal(a.Body, ofA) {
				t.Errorf("%s, %s: %d once another is the first that is there", at, condition, a.Status)
			}
		}
		s.exec("update book set deleted_at = null where id = $1", b.ID)
	}
	var automatic struct{ ID string }
	condition := func(title string) object { return object{"title": object{"operator": "is", "value": title}} }
	admin.Do("POST", "/api/v1/collections", object{"name": "Found", "condition": object{"anyOf": []any{condition("B"), condition("A")}}}).Want(201).JSON(&automatic)
	at := "/api/v1/collections/" + automatic.ID
	if !bytes.Equal(cover(at), ofA) || !bytes.Equal(cover("/komga"+at), ofA) {
		t.Errorf("%s: the cover is not that of the first series that meets the condition", at)
	}
	s.exec("update book set deleted_at = now() where id = $1", a.ID)
	if !bytes.Equal(cover(at), ofB) {
		t.Errorf("%s: the cover is not that of the first that is there", at)
	}
	admin.Do("PATCH", at, object{"condition": condition("C")}).Want(200)
	reader.Do("GET", at+"/thumbnail", nil).Want(404)
}

// A read list, and the want-to-read list as one, shows the cover of its first book that has one: a novel without a
// picture and a broken comic have none, unless one is uploaded.
func TestCoverOfTheFirstBook(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	s.exec("insert into setting (tenant_id, key, value) values ($1, 'komga_api.prefix', 'komga')", s.One)
	admin, reader := s.as("admin"), s.as("reader")
	testkit.WriteFile(t, s.folder, "A/Broken 1.cbz", []byte("no comic"))
	testkit.WriteFile(t, s.folder, "A/Novel.epub", ebook(t, 2))
	testkit.WriteFile(t, s.folder, "A/Comic 1.cbz", testkit.Comic(t, 2, 2, ""))
	s.scan(admin, s.library(admin, "Books", ""))
	books := s.books(admin)
	list := "/api/v1/readlists/" + admin.Do("POST", "/api/v1/readlists", object{"name": "Best"}).Want(201).Map()["id"].(string)
	order := []any{books["A/Broken 1.cbz"].ID, books["A/Novel.epub"].ID, books["A/Comic 1.cbz"].ID}
	admin.Do("POST", list+"/books", object{"bookIds": order}).Want(200)
	for _, id := range order {
		reader.Do("POST", "/api/v1/want-to-read", object{"bookId": id}).Want(201)
	}
	show := func(first string) {
		t.Helper()
		want := reader.Do("GET", "/api/v1/books/"+books[first].ID.String()+"/thumbnail", nil).Want(200).Header.Get("ETag")
		for _, path := range []string{list, "/komga" + list, "/komga/api/v1/readlists/want-to-read"} {
			if got := reader.Do("GET", path+"/thumbnail", nil).Want(200).Header.Get("ETag"); got != want || got == "" {
				t.Errorf("%s shows %q, its first book with a cover %q", path, got, want)
			}
		}
	}
	show("A/Comic 1.cbz")
	for _, first := range []string{"A/Novel.epub", "A/Broken 1.cbz"} {
		admin.Do("POST", "/api/v1/books/"+books[first].ID.String()+"/cover", testkit.Form{Member: "file", File: testkit.JPEG(t, 500, 1000, 4)}).Want(201)
		show(first)
	}
}

// A library, a collection and the want-to-read list show the picture that their first series shows, also if it was
// uploaded and no book of the series can be read.
func TestCoverOfTheFirstSeries(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	s.exec("insert into setting (tenant_id, key, value) values ($1, 'komga_api.prefix', 'komga')", s.One)
	admin, reader := s.as("admin"), s.as("reader")
	testkit.WriteFile(t, s.folder, "A/a 1.cbz", []byte("no comic"))
	testkit.WriteFile(t, s.folder, "B/b 1.cbz", testkit.Comic(t, 2, 2, ""))
	library := s.library(admin, "Comics", "")
	s.scan(admin, library)
	a, b := s.books(admin)["A/a 1.cbz"], s.books(admin)["B/b 1.cbz"]
	paths := []string{"/api/v1/libraries/" + library.String(), "/komga/api/v1/collections/want-to-read"}
	for name, more := range map[string]object{"Chosen": {}, "Automatic": {"condition": object{"title": object{"operator": "isNot", "value": "C"}}}} {
		more["name"] = name
		paths = append(paths, "/api/v1/collections/"+admin.Do("POST", "/api/v1/collections", more).Want(201).Map()["id"].(string))
		if name == "Chosen" {
			admin.Do("POST", paths[len(paths)-1]+"/series", object{"seriesIds": []any{a.SeriesID, b.SeriesID}}).Want(200)
		}
	}
	for _, of := range []book{a, b} {
		reader.Do("POST", "/api/v1/want-to-read", object{"seriesId": of.SeriesID}).Want(201)
	}
	show := func(first book) {
		t.Helper()
		want := reader.Do("GET", "/api/v1/series/"+first.SeriesID.String()+"/thumbnail", nil).Want(200).Header.Get("ETag")
		for _, path := range paths {
			if got := reader.Do("GET", path+"/thumbnail", nil).Want(200).Header.Get("ETag"); got != want || got == "" {
				t.Errorf("%s shows %s, its first series with a cover %s", path, got, want)
			}
		}
	}
	show(b)
	admin.Do("POST", "/api/v1/series/"+a.SeriesID.String()+"/cover", testkit.Form{Member: "file", File: testkit.JPEG(t, 500, 1000, 4)}).Want(201)
	show(a)
	admin.Do("DELETE", "/api/v1/series/"+a.SeriesID.String()+"/covers/selected", nil).Want(204)
	show(b)
	admin.Do("POST", "/api/v1/series/"+b.SeriesID.String()+"/cover", testkit.Form{Member: "file", File: testkit.JPEG(t, 300, 1000, 4)}).Want(201)
	show(b)
}
