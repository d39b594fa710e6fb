package catalog_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/catalog"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/testkit"
)

type opds2 struct {
	Metadata struct {
		Title         string
		Modified      string
		NumberOfItems *int
		ItemsPerPage  int
		CurrentPage   int
	}
	Links        []link
	Navigation   []link
	Publications []struct {
		Metadata struct {
			Type          string `json:"@type"`
			Title         string
			Identifier    string
			Author        []string
			Publisher     string
			Language      string
			Description   string
			NumberOfPages int
			BelongsTo     struct {
				Series struct {
					Name     string
					Position float64
				}
			}
		}
		Links           []link
		Images          []link
		ReadingProgress *struct {
			CurrentPage, TotalPages int
			ProgressPercent         float64
			IsCompleted             bool
			LastReadAt              string
		}
	}
	Groups []opds2
}

type link struct {
	Href, Rel, Type, Title string
	Templated              bool
	Properties             struct{ NumberOfItems int }
}

func read2(t testing.TB, c *testkit.Client, path string) (f opds2) {
	t.Helper()
	r := c.Do("GET", path, nil).Want(200)
	if got := r.Header.Get("Content-Type"); got != "application/opds+json;charset=utf-8" {
		t.Errorf("%s is %s", path, got)
	}
	r.JSON(&f)
	if f.Metadata.Title == "" || f.Metadata.Modified == "" || f.to("self") == "" {
		t.Errorf("%s: %s", path, r.Body)
	}
	return f
}

func (f opds2) to(rel string) string {
	for _, l := range f.Links {
		if l.Rel == rel {
			return l.Href
		}
	}
	return ""
}

func TestOPDS2(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, catalog.Routes)
	me, admin := s.User(t, "one", "reader"), s.User(t, "one", "admin")
	sh := newShelf(t, s, s.One, "Nine & <Ten>")
	s.DB.Exec(t, `insert into progress (tenant_id, account_id, book_id, id, current_page, completed, updated_at)
		values ($1, $2, $3, gen_random_uuid(), 2, false, '2026-05-04T03:02:01Z')`, s.One, me.ID, sh.books[0])

	root := read2(t, me, "/opds/v2")
	if len(root.Navigation) != 4 || root.Navigation[0] != (link{Href: "/opds/v2/libraries", Rel: "subsection", Type: "application/opds+json", Title: "Libraries"}) ||
		root.Navigation[3].Rel != "http://opds-spec.org/sort/new" {
		t.Errorf("the root: %+v", root)
	}
	if l := root.Links[2]; l.Href != "/opds/v2/search{?query}" || l.Rel != "search" || !l.Templated {
		t.Errorf("where to search: %+v", l)
	}
	libraries := read2(t, me, root.Navigation[0].Href)
	if len(libraries.Navigation) != 1 || libraries.Navigation[0].Title != "Comics" || libraries.Navigation[0].Properties.NumberOfItems != 1 || libraries.to("up") != "/opds/v2" {
		t.Fatalf("libraries: %+v", libraries)
	}
	library := read2(t, me, libraries.Navigation[0].Href)
	if len(library.Navigation) != 1 || library.Navigation[0].Title != "Nine & <Ten>" || library.Navigation[0].Properties.NumberOfItems != 2 ||
		*library.Metadata.NumberOfItems != 1 || library.Metadata.ItemsPerPage != 50 || library.Metadata.CurrentPage != 1 {
		t.Fatalf("a library: %+v", library)
	}
	series := read2(t, me, library.Navigation[0].Href)
	if len(series.Publications) != 2 || series.to("up") != "/opds/v2/libraries/"+sh.library.String() {
		t.Fatalf("a series: %+v", series)
	}
	p := series.Publications[0]
	if m := p.Metadata; m.Type != "http://schema.org/Book" || m.Title != "Nine & <Ten> 1" || m.Identifier != "urn:uuid:"+sh.books[0].String() || strings.Join(m.Author, ", ") != "Ann O'Nym, Bo" ||
		m.Publisher != "Fox" || m.Language != "de" || m.Description != `]]> & "more"` || m.NumberOfPages != 3 ||
		m.BelongsTo.Series.Name != "Nine & <Ten>" || m.BelongsTo.Series.Position != 1 {
		t.Errorf("what is known of a comic: %+v", m)
	}
	at := "/api/v1/books/" + sh.books[0].String()
	if self := (link{Href: "/opds/v2/books/" + sh.books[0].String(), Rel: "self", Type: "application/opds-publication+json"}); len(p.Links) != 2 || p.Links[0] != self {
		t.Errorf("where a comic is: %+v", p.Links)
	}
	if p.Links[1] != (link{Href: at + "/file/book.cbz", Rel: "http://opds-spec.org/acquisition/open-access", Type: "application/zip"}) ||
		len(p.Images) != 1 || p.Images[0] != (link{Href: at + "/thumbnail", Type: "image/jpeg"}) {
		t.Errorf("links of a comic: %+v, %+v", p.Links, p.Images)
	}
	if r := p.ReadingProgress; r == nil || r.CurrentPage != 2 || r.TotalPages != 3 || r.IsCompleted || r.LastReadAt != "2026-05-04T03:02:01Z" || int(r.ProgressPercent) != 66 {
		t.Errorf("progress: %+v", r)
	}
	if q := series.Publications[1]; q.ReadingProgress != nil || q.Links[1].Type != "application/epub+zip" {
		t.Errorf("a book that was not read: %+v", q)
	}

	r := me.Do("GET", p.Links[0].Href, nil).Want(200)
	var one opds2
	if r.JSON(&one); r.Header.Get("Content-Type") != "application/opds-publication+json;charset=utf-8" || one.Metadata.Title != "Nine & <Ten> 1" || one.to("self") != p.Links[0].Href {
		t.Errorf("a comic alone: %s", r.Body)
	}
	for _, gone := range []string{"/opds/v2/books/" + sh.books[2].String(), "/opds/v2/books/" + uuid.NewString()} {
		me.Do("GET", gone, nil).Want(404)
	}
	s.User(t, "two", "admin").Do("GET", p.Links[0].Href, nil).Want(404)
	me.Do("GET", "/opds/v2/books/x", nil).Want(400)

	part := read2(t, me, "/opds/v2/recent?page=2&pageSize=1")
	if len(part.Publications) != 1 || part.Publications[0].Metadata.Title != "Nine & <Ten> 1" || part.to("first") != "/opds/v2/recent?page=1&pageSize=1" ||
		part.to("prev") != part.to("first") || part.to("next") != "" || part.to("last") != "/opds/v2/recent?page=2&pageSize=1" {
		t.Errorf("the second newest book: %+v", part)
	}

	found := read2(t, me, "/opds/v2/search?query=nine")
	if len(found.Groups) != 2 || found.Groups[0].Metadata.Title != "Series" || len(found.Groups[0].Navigation) != 1 || found.Groups[1].Metadata.Title != "Books" ||
		len(found.Groups[1].Publications) != 2 || *found.Groups[1].Metadata.NumberOfItems != 2 || len(found.Publications) != 0 {
		t.Errorf("found: %+v", found)
	}
	// KOReader shows the books of a group only through its link.
	seriesOnly, booksOnly := read2(t, me, found.Groups[0].to("self")), read2(t, me, found.Groups[1].to("self"))
	if !reflect.DeepEqual(booksOnly.Publications, found.Groups[1].Publications) || len(booksOnly.Groups)+len(booksOnly.Navigation) != 0 ||
		booksOnly.to("self") != found.Groups[1].to("self") || booksOnly.to("self") != "/opds/v2/search/books?query=nine" {
		t.Errorf("found books: %+v", booksOnly)
	}
	if !reflect.DeepEqual(seriesOnly.Navigation, found.Groups[0].Navigation) || len(seriesOnly.Groups)+len(seriesOnly.Publications) != 0 {
		t.Errorf("found series: %+v", seriesOnly)
	}
	if books := read2(t, s.Key(t, admin, auth.BooksRead), "/opds/v2/search?query=nine"); len(books.Groups) != 1 || books.Groups[0].Metadata.Title != "Books" {
		t.Errorf("who may not read series finds %+v", books)
	}
	// A feed has at least one list, even if it is empty (the schema of OPDS 2.0).
	empty := s.User(t, "two", "reader")
	for path, list := range map[string]string{"/opds/v2/libraries": `"navigation":[]`, "/opds/v2/recent": `"publications":[]`, "/opds/v2/search?query=eleven": `"groups":[]`} {
		if r := empty.Do("GET", path, nil).Want(200); !strings.Contains(string(r.Body), list) || strings.Count(string(r.Body), "[]") != 1 {
			t.Errorf("%s where there is nothing: %s", path, r.Body)
		}
	}
}
