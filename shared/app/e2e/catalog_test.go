package e2e_test

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

// With a user name, a password and the address, a catalog reader reaches a page as OPDS and OPDS-PSE describe. The
// place in the book is then known everywhere.
func TestReaderOfCatalogs(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin := s.as("admin")
	testkit.WriteFile(t, s.folder, "Hat & Hare/Hare 1.cbz", testkit.Comic(t, 1, 5, "<Title>Hare One</Title>"))
	s.scan(admin, s.library(admin, "Comics", ""))
	b := s.books(admin)["Hat & Hare/Hare 1.cbz"]

	reader := s.as("reader")
	asked := s.Anonymous(t, "one").Do("GET", "/opds", nil).Want(401)
	if got := asked.Header.Get("WWW-Authenticate"); !strings.HasPrefix(got, "Basic ") {
		t.Fatalf("a reader is not asked for a password, but %q", got)
	}
	basic := *s.Anonymous(t, "one")
	basic.Header = http.Header{"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(reader.Name+":"+testkit.Password))}}
	at := "/opds"
	for _, title := range []string{"Libraries", "Comics", "Hat & Hare"} {
		at = next(t, basic.Do("GET", at, nil).Want(200), title, "subsection").Href
	}
	books := basic.Do("GET", at, nil).Want(200)
	stream := next(t, books, "Hare One", "http://vaemendis.net/opds-pse/stream")
	if stream.Count != 5 || stream.LastRead != 0 {
		t.Fatalf("the pages of a book that was not read: %+v", stream)
	}
	if r := basic.Do("GET", next(t, books, "Hare One", "http://opds-spec.org/image/thumbnail").Href, nil).Want(200); r.Header.Get("Content-Type") != "image/jpeg" {
		t.Errorf("the cover is %s", r.Header.Get("Content-Type"))
	}
	if r := basic.Do("GET", next(t, books, "Hare One", "http://opds-spec.org/acquisition").Href, nil).Want(200); !bytes.HasPrefix(r.Body, []byte("PK")) {
		t.Error("the file is none")
	}

	page := func(n, width string) string {
		return strings.NewReplacer("{pageNumber}", n, "{maxWidth}", width).Replace(stream.Href)
	}
	place := func() (n int) {
		t.Helper()
		r := reader.Do("GET", "/api/v1/books/"+b.ID.String()+"/progress", nil)
		if r.Status == 204 {
			return 0
		}
		return int(r.Want(200).Map()["currentPage"].(float64))
	}
	pause := func() { // a page behind the last one counts only after some seconds
		t.Helper()
		s.exec("update reading_session set recorded_at = recorded_at - interval '1 minute'")
		s.exec("update progress set updated_at = updated_at - interval '1 minute'")
	}
	original := func(n int) []byte { return reader.Do("GET", pageURL(b, n), nil).Want(200).Body }
	if original(1); place() != 0 {
		t.Error("a page of the interface is somebody's place in the book")
	}
	if r := basic.Do("HEAD", page("3", ""), nil).Want(200); place() != 0 || r.Header.Get("Cache-Control") != "private, no-cache" {
		t.Errorf("a page that was only asked about (%s) is page %d", r.Header.Get("Cache-Control"), place())
	}
	for _, c := range []struct {
		path string
		page int
	}{{page("0", ""), 1}, {page("1", "{maxWidth}"), 2}, {page("2", "0"), 3}, {page("4", "wide"), 5}, {"/opds/books/" + b.ID.String() + "/pages/4", 4}} {
		pause()
		r := basic.Do("GET", c.path, nil).Want(200)
		if !bytes.Equal(r.Body, original(c.page)) || place() != c.page || r.Header.Get("Cache-Control") != "private, no-cache" {
			t.Errorf("%s: %d bytes (%s), the place is page %d, want %d", c.path, len(r.Body), r.Header.Get("Cache-Control"), place(), c.page)
		}
	}
	pause()
	if r := basic.Do("GET", page("1", "64"), nil).Want(200); r.Header.Get("Content-Type") != "image/jpeg" || bytes.Equal(r.Body, original(2)) || place() != 2 {
		t.Errorf("a smaller page is %s of %d bytes, the place is page %d", r.Header.Get("Content-Type"), len(r.Body), place())
	}
	if again := next(t, basic.Do("GET", at, nil).Want(200), "Hare One", "http://vaemendis.net/opds-pse/stream"); again.LastRead != 2 {
		t.Errorf("the catalog tells page %d as the place", again.LastRead)
	}
	tag := basic.Do("GET", page("4", ""), nil).Want(200).Header.Get("ETag")
	if basic.Do("GET", page("3", ""), nil).Want(200); place() != 5 { // fetched late, or again
		t.Errorf("the page before the last one has turned the place back to page %d", place())
	}
	pause()
	if basic.Do("GET", page("0", ""), nil).Want(200); place() != 1 {
		t.Errorf("after a pause, going back to page 1 leaves the place at page %d", place())
	}
	known := basic
	known.Header = basic.Header.Clone()
	known.Header.Set("If-None-Match", tag)
	if r := known.Do("GET", page("4", ""), nil).Want(304); place() != 5 || r.Header.Get("Cache-Control") != "private, no-cache" {
		t.Errorf("a page that the reader has already is page %d (%s)", place(), r.Header.Get("Cache-Control"))
	}
	for path, status := range map[string]int{page("5", ""): 404, page("-1", ""): 400, page("x", ""): 400, "/opds/books/" + b.ID.String() + "/pages/0": 400} {
		if basic.Do("GET", path, nil).Want(status); place() != 5 {
			t.Errorf("%s, which is no page, is the place in the book: %d", path, place())
		}
	}

	for _, c := range []struct {
		permissions []string
		path        string
		place       int
	}{{[]string{auth.PagesRead, auth.BooksRead}, page("2", ""), 3}, {[]string{auth.PagesRead}, page("0", ""), 3}} {
		key := *s.Anonymous(t, "one")
		key.Header = http.Header{"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte("api:"+s.Key(t, reader, c.permissions...).Header.Get("X-API-Key")))}}
		if key.Do("GET", c.path, nil).Want(200); place() != c.place {
			t.Errorf("with an API key for %v as the password the place is page %d, want %d", c.permissions, place(), c.place)
		}
	}
	cookie := *s.Anonymous(t, "one")
	cookie.Header = http.Header{"Cookie": {httpapi.SessionCookie + "=" + strings.TrimPrefix(reader.Header.Get("Authorization"), "Bearer ")}}
	if cookie.Do("GET", page("0", ""), nil).Want(401); place() != 3 { // as a picture on a foreign web page
		t.Errorf("somebody else's page has turned the reader's to %d", place())
	}
}

// With a CDN, a page of the catalog is a redirection, and the place in the book is still recorded.
func TestCatalogWithCDN(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{cdn: true})
	admin := s.as("admin")
	testkit.WriteFile(t, s.folder, "S/a 1.cbz", testkit.Comic(t, 1, 3, ""))
	s.scan(admin, s.library(admin, "Books", ""))
	b := s.books(admin)["S/a 1.cbz"]
	r := admin.Do("GET", "/opds/books/"+b.ID.String()+"/pages/stream/1?width=100", nil).Want(302)
	if got := admin.Do("GET", "/api/v1/books/"+b.ID.String()+"/progress", nil).Want(200).Map(); r.Header.Get("Location") == "" || got["currentPage"] != 2.0 ||
		r.Header.Get("Cache-Control") != "private, no-cache" {
		t.Errorf("redirected to %q (%s), progress %+v", r.Header.Get("Location"), r.Header.Get("Cache-Control"), got)
	}
}

type catalogLink struct {
	Rel      string `xml:"rel,attr"`
	Href     string `xml:"href,attr"`
	Count    int    `xml:"http://vaemendis.net/opds-pse/ns count,attr"`
	LastRead int    `xml:"http://vaemendis.net/opds-pse/ns lastRead,attr"`
}

// next returns the link of a feed's entry.
func next(t *testing.T, r *testkit.Response, title, rel string) catalogLink {
	t.Helper()
	var feed struct {
		Entries []struct {
			Title string        `xml:"title"`
			Links []catalogLink `xml:"link"`
		} `xml:"entry"`
	}
	if err := xml.Unmarshal(r.Body, &feed); err != nil {
		t.Fatal(err)
	}
	for _, e := range feed.Entries {
		for _, l := range e.Links {
			if e.Title == title && l.Rel == rel {
				return l
			}
		}
	}
	t.Fatalf("no entry %q with a link %s: %s", title, rel, regexp.MustCompile(`\s+`).ReplaceAll(r.Body, []byte(" ")))
	return catalogLink{}
}
