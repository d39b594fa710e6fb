package e2e_test

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"testing"

	"github.com/longbox/longbox/shared/testkit"
)

// A reader made for Komga, with a user name and password, makes the usual requests: from the libraries to the bytes of
// a page, and it reports how far it has read.
func TestReaderForKomga(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin := s.as("admin")
	testkit.WriteFile(t, s.folder, "Hat & Hare/Hare 1.cbz", testkit.Comic(t, 1, 5, "<Title>Hare One</Title><Genre>Fable</Genre>"))
	testkit.WriteFile(t, s.folder, "Hat & Hare/Hare 2.cbz", testkit.Comic(t, 2, 3, ""))
	s.scan(admin, s.library(admin, "Comics", ""))
	b := s.books(admin)["Hat & Hare/Hare 1.cbz"]

	reader := s.as("reader")
	basic := *s.Anonymous(t, "one")
	basic.Header = http.Header{"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(reader.Name+":"+testkit.Password))}}
	const setting = "/api/v1/admin/settings/komga_api.prefix"
	basic.Do("GET", "/komga/api/v1/libraries", nil).Want(404) // off at first
	for _, bad := range []string{"api", "opds", "a/b", "Komga", "ä"} {
		admin.Do("PUT", setting, object{"value": bad}).Want(400)
	}
	admin.Do("PUT", setting, object{"value": "komga"}).Want(200)
	// The next request already uses the setting, in both functions.
	page := "/komga/api/v1/books/" + b.ID.String() + "/pages/"
	if got := basic.Do("GET", page+"1", nil).Want(200); !bytes.Equal(got.Body, reader.Do("GET", pageURL(b, 1), nil).Want(200).Body) {
		t.Error("the page is another")
	}

	type named struct {
		ID, Name string
		Metadata struct {
			Title         string
			Genres        []string
			NumberSort    float64
			TotalElements int
		}
		Media        struct{ PagesCount int }
		ReadProgress *struct {
			Page      int
			Completed bool
		}
	}
	type list struct{ Content []named }
	var libraries []named
	basic.Do("GET", "/komga/api/v1/libraries", nil).Want(200).JSON(&libraries)
	var series, books list
	basic.Do("GET", "/komga/api/v1/series?search=&page=0&deleted=false&sort=metadata.titleSort,asc&library_id="+libraries[0].ID, nil).Want(200).JSON(&series)
	if len(series.Content) != 1 || series.Content[0].Metadata.Title != "Hat & Hare" || len(series.Content[0].Metadata.Genres) != 1 {
		t.Fatalf("series: %+v", series)
	}
	of := "/komga/api/v1/series/" + series.Content[0].ID
	basic.Do("GET", of+"/books?unpaged=true&media_status=READY&deleted=false", nil).Want(200).JSON(&books)
	if len(books.Content) != 2 || books.Content[0].Name != "Hare 1.cbz" || books.Content[0].Media.PagesCount != 5 || books.Content[1].Metadata.NumberSort != 2 {
		t.Fatalf("books: %+v", books)
	}
	var pages []struct {
		Number              int
		FileName, MediaType string
	}
	basic.Do("GET", page[:len(page)-1], nil).Want(200).JSON(&pages)
	if len(pages) != 5 || pages[4].Number != 5 || pages[0].MediaType != "image/jpeg" {
		t.Fatalf("pages: %+v", pages)
	}
	for path, kind := range map[string]string{page + "5": "image/jpeg", page + "4?zero_based=true": "image/jpeg", page + "2?convert=png": "image/png", page + "2/thumbnail": "image/jpeg",
		of + "/thumbnail": "image/jpeg", "/komga/api/v1/books/" + b.ID.String() + "/thumbnail": "image/jpeg", "/komga/api/v1/libraries/" + libraries[0].ID + "/thumbnail": "image/jpeg",
		"/komga/api/v1/books/" + b.ID.String() + "/file": "application/zip", "/komga/api/v1/books/" + b.ID.String() + "/file/Hare.cbz": "application/zip"} {
		r := basic.Do("GET", path, nil).Want(200)
		if got := r.Header.Get("Content-Type"); got != kind || len(r.Body) == 0 {
			t.Errorf("%s is %s of %d bytes, want %s", path, got, len(r.Body), kind)
		}
		s.Anonymous(t, "one").Do("GET", path, nil).Want(401)
		s.as("reader").Do("GET", "/other"+path[len("/komga"):], nil).Want(404)
	}
	if !bytes.Equal(basic.Do("GET", page+"5", nil).Body, basic.Do("GET", page+"4?zero_based=true", nil).Body) {
		t.Error("the last page counted from 0 is another than counted from 1")
	}
	for path, status := range map[string]int{page + "0": 400, page + "6": 404, page + "5?zero_based=true": 404, page + "1?zero_based=maybe": 400, page + "1?convert=gif": 400} {
		basic.Do("GET", path, nil).Want(status)
	}

	one := "/komga/api/v1/books/" + b.ID.String()
	if got := reader.Do("GET", "/api/v1/books/"+b.ID.String()+"/progress", nil); got.Status != 204 {
		t.Errorf("looking at pages is progress: %s", got.Body)
	}
	basic.Do("PATCH", one+"/read-progress", `{"page":5,"completed":true}`).Want(204)
	var read named
	basic.Do("GET", one, nil).Want(200).JSON(&read)
	if p := read.ReadProgress; p == nil || p.Page != 5 || !p.Completed {
		t.Errorf("read: %+v", p)
	}
	if got := reader.Do("GET", "/api/v1/books/"+b.ID.String()+"/progress", nil).Want(200).Map(); got["completed"] != true {
		t.Errorf("the interface says %v", got)
	}
	var deck list
	basic.Do("GET", "/komga/api/v1/books/ondeck", nil).Want(200).JSON(&deck)
	if len(deck.Content) != 1 || deck.Content[0].Name != "Hare 2.cbz" {
		t.Errorf("on deck: %+v", deck)
	}

	admin.Do("PUT", setting, object{"value": ""}).Want(200)
	basic.Do("GET", page+"1", nil).Want(404)
	basic.Do("GET", "/komga/api/v1/libraries", nil).Want(404)
}

// With a CDN, a page and its smaller form are redirections to it.
func TestKomgaWithCDN(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{cdn: true})
	s.exec("insert into setting (tenant_id, key, value) values ($1, 'komga_api.prefix', 'komga')", s.One)
	admin := s.as("admin")
	testkit.WriteFile(t, s.folder, "S/a 1.cbz", testkit.Comic(t, 1, 3, ""))
	s.scan(admin, s.library(admin, "Books", ""))
	at := "/komga/api/v1/books/" + s.books(admin)["S/a 1.cbz"].ID.String()
	for _, path := range []string{"/pages/1", "/pages/1/thumbnail", "/thumbnail"} {
		if r := admin.Do("GET", at+path, nil).Want(302); r.Header.Get("Location") == "" {
			t.Errorf("%s is sent nowhere", path)
		}
	}
}
