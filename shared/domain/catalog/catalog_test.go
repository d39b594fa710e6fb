package catalog_test

import (
	"encoding/xml"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/catalog"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/testkit"
)

// shelf is a library with a series of three books: a comic, an e-book, and one whose file is gone.
type shelf struct {
	library, series uuid.UUID
	books           []uuid.UUID
}

func newShelf(t testing.TB, s *testkit.Server, tenant uuid.UUID, title string) shelf {
	t.Helper()
	sh := shelf{uuid.New(), uuid.New(), []uuid.UUID{uuid.New(), uuid.New(), uuid.New()}}
	s.DB.Exec(t, `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2, 'Comics', '/' || $2::uuid, 'b', '', 'series_volume', 'filename', 'file_order')`, tenant, sh.library)
	s.DB.Exec(t, `insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title, summary)
		values ($1, $2, $3, $4, $4, $4, $4, lower($4), 'Of a rabbit & a <b>hat</b>')`, tenant, sh.series, sh.library, title)
	s.DB.Exec(t, `insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, fingerprint, title, title_sort, search_title, number,
		  page_count, analyzed, created_at, deleted_at)
		select $1, u.id, $2, $3, u.n || '.cbz', 1000 * u.n, now(), case when u.n = 2 then 'epub' else 'cbz' end, 'f' || u.n, $4 || ' ' || u.n, $4 || ' ' || u.n,
		  lower($4 || ' ' || u.n), u.n, 3, true, now() + u.n * interval '1 minute', case when u.n = 3 then now() end
		from unnest($5::uuid[]) with ordinality as u(id, n)`, tenant, sh.library, sh.series, title, sh.books)
	s.DB.Exec(t, `insert into book_metadata (tenant_id, book_id, metadata) values ($1, $2,
		'{"summary": "]]> & \"more\"", "publisher": "Fox", "languageIso": "de", "authors": [{"name": "Ann O''Nym", "role": "writer"}, {"name": "Bo", "role": "inker"}, {"name": "Ann O''Nym", "role": "penciller"}]}')`, tenant, sh.books[0])
	s.DB.Exec(t, `insert into page_index (tenant_id, book_id, revision, names, types, offsets, lengths, packed, sizes, methods, crcs, widths, heights,
		  file_size, file_etag, file_modified)
		select $1, $2, 1, '{1.jpg,2.png,3.webp}', '{image/jpeg,image/png,image/webp}', n, n, n, n, '{0,0,0}', n, '{0,0,0}', '{0,0,0}', 1, '', now()
		from (select '{1,2,3}'::bigint[] as n) x`, tenant, sh.books[0])
	return sh
}

// atom is the part of a feed that the tests read.
type atom struct {
	ID      string     `xml:"id"`
	Title   string     `xml:"title"`
	Updated string     `xml:"updated"`
	Author  string     `xml:"author>name"`
	Total   string     `xml:"http://a9.com/-/spec/opensearch/1.1/ totalResults"`
	Size    string     `xml:"http://a9.com/-/spec/opensearch/1.1/ itemsPerPage"`
	Start   string     `xml:"http://a9.com/-/spec/opensearch/1.1/ startIndex"`
	Links   []atomLink `xml:"http://www.w3.org/2005/Atom link"`
	Entries []struct {
		Title     string     `xml:"title"`
		ID        string     `xml:"id"`
		Content   string     `xml:"content"`
		Authors   []string   `xml:"author>name"`
		Publisher string     `xml:"http://purl.org/dc/elements/1.1/ publisher"`
		Language  string     `xml:"http://purl.org/dc/elements/1.1/ language"`
		Links     []atomLink `xml:"http://www.w3.org/2005/Atom link"`
	} `xml:"http://www.w3.org/2005/Atom entry"`
}

type atomLink struct {
	Rel          string `xml:"rel,attr"`
	Href         string `xml:"href,attr"`
	Type         string `xml:"type,attr"`
	Count        string `xml:"http://vaemendis.net/opds-pse/ns count,attr"`
	LastRead     string `xml:"http://vaemendis.net/opds-pse/ns lastRead,attr"`
	LastReadDate string `xml:"http://vaemendis.net/opds-pse/ns lastReadDate,attr"`
}

func read(t testing.TB, c *testkit.Client, path, kind string) (a atom) {
	t.Helper()
	r := c.Do("GET", path, nil).Want(200)
	if got, want := r.Header.Get("Content-Type"), "application/atom+xml;profile=opds-catalog;kind="+kind+";charset=utf-8"; got != want {
		t.Errorf("%s is %s, want %s", path, got, want)
	}
	if err := xml.Unmarshal(r.Body, &a); err != nil {
		t.Fatalf("%s: %v: %s", path, err, r.Body)
	}
	if a.ID == "" || a.Title == "" || a.Updated == "" || a.Author == "" {
		t.Errorf("%s lacks what Atom asks for: %+v", path, a)
	}
	return a
}

// links maps rel to the address of each link.
func links(all []atomLink) map[string]string {
	out := map[string]string{}
	for _, l := range all {
		out[l.Rel] = l.Href
	}
	return out
}

func titles(a atom) string {
	var out []string
	for _, e := range a.Entries {
		out = append(out, e.Title)
	}
	return strings.Join(out, ", ")
}

func TestNavigation(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, catalog.Routes)
	me := s.User(t, "one", "reader")
	sh := newShelf(t, s, s.One, "Nine & <Ten>")
	s.DB.Exec(t, "insert into setting (tenant_id, key, value) values ($1, 'application.name', 'My Books')", s.One)

	root := read(t, me, "/opds", "navigation")
	if root.Title != "My Books" || root.Author != "My Books" || titles(root) != "Libraries, Collections, Read lists, Recently added" || root.Total != "" {
		t.Errorf("the root: %+v", root)
	}
	if l := links(root.Links); l["self"] != "/opds" || l["start"] != "/opds" || l["search"] != "/opds/search.xml" || l["up"] != "" {
		t.Errorf("links of the root: %v", l)
	}
	if again := me.Do("GET", "/opds/v1/catalog", nil).Want(200); !strings.Contains(string(again.Body), `href="/opds/libraries"`) {
		t.Errorf("the root under its other name: %s", again.Body)
	}

	libraries := read(t, me, links(root.Entries[0].Links)["subsection"], "navigation")
	if titles(libraries) != "Comics" || libraries.Entries[0].Content != "1 series" || links(libraries.Links)["up"] != "/opds" {
		t.Fatalf("libraries: %+v", libraries)
	}
	l := links(libraries.Entries[0].Links)
	if l["http://opds-spec.org/image"] != "/api/v1/libraries/"+sh.library.String()+"/thumbnail" {
		t.Errorf("the cover of a library: %v", l)
	}
	library := read(t, me, l["subsection"], "navigation")
	if titles(library) != "Nine & <Ten>" || library.Title != "Comics" || library.Total != "1" || library.Entries[0].Content != "Of a rabbit & a <b>hat</b>" ||
		links(library.Links)["up"] != "/opds/libraries" || links(library.Entries[0].Links)["http://opds-spec.org/image/thumbnail"] != "/api/v1/series/"+sh.series.String()+"/thumbnail" {
		t.Errorf("a library: %+v", library)
	}
	series := read(t, me, links(library.Entries[0].Links)["subsection"], "acquisition")
	if titles(series) != "Nine & <Ten> 1, Nine & <Ten> 2" || series.Title != "Nine & <Ten>" || series.Total != "2" || links(series.Links)["up"] != "/opds/libraries/"+sh.library.String() {
		t.Errorf("a series: %+v", series)
	}
	if newest := read(t, me, links(root.Entries[3].Links)["http://opds-spec.org/sort/new"], "acquisition"); titles(newest) != "Nine & <Ten> 2, Nine & <Ten> 1" || newest.Total != "2" {
		t.Errorf("the newest books: %s of %s", titles(newest), newest.Total)
	}
}

func TestPublication(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, catalog.Routes)
	me := s.User(t, "one", "reader")
	sh := newShelf(t, s, s.One, "Nine")
	book := func() (int, atom) {
		a := read(t, me, "/opds/series/"+sh.series.String(), "acquisition")
		return len(a.Entries), a
	}
	_, a := book()
	e := a.Entries[0]
	if e.ID != "urn:uuid:"+sh.books[0].String() || strings.Join(e.Authors, ", ") != "Ann O'Nym, Bo" || e.Publisher != "Fox" || e.Language != "de" || e.Content != `]]> & "more"` {
		t.Errorf("a comic: %+v", e)
	}
	one, two := "/api/v1/books/"+sh.books[0].String(), "/api/v1/books/"+sh.books[1].String()
	want := fmt.Sprint([]atomLink{
		{Rel: "http://opds-spec.org/image", Href: one + "/thumbnail", Type: "image/jpeg"},
		{Rel: "http://opds-spec.org/image/thumbnail", Href: one + "/thumbnail", Type: "image/jpeg"},
		{Rel: "http://opds-spec.org/acquisition", Href: one + "/file/book.cbz", Type: "application/zip"},
		{Rel: "http://vaemendis.net/opds-pse/stream", Href: "/opds/books/" + sh.books[0].String() + "/pages/stream/{pageNumber}?width={maxWidth}", Type: "image/jpeg", Count: "3"},
		// Not subsection: KOReader would take the entry for a folder, and download a page in place of the comic.
		{Rel: "related", Href: "/opds/books/" + sh.books[0].String() + "/pages", Type: "application/atom+xml;profile=opds-catalog;kind=acquisition"}})
	if got := fmt.Sprint(e.Links); got != want {
		t.Errorf("links of a comic:\n%s\nwant\n%s", got, want)
	}
	if l := links(a.Entries[1].Links); l["http://opds-spec.org/acquisition"] != two+"/file/book.epub" || len(l) != 3 {
		t.Errorf("links of a book that is read as a file: %v", l)
	}

	s.DB.Exec(t, `insert into progress (tenant_id, account_id, book_id, id, current_page, completed, updated_at)
		values ($1, $2, $3, gen_random_uuid(), 2, false, '2026-05-04T03:02:01Z')`, s.One, me.ID, sh.books[0])
	_, a = book()
	if l := a.Entries[0].Links[3]; l.LastRead != "2" || l.LastReadDate != "2026-05-04T03:02:01Z" {
		t.Errorf("the place in a comic: %+v", l)
	}
	if other := read(t, s.User(t, "one", "reader"), "/opds/series/"+sh.series.String(), "acquisition"); other.Entries[0].Links[3].LastRead != "" {
		t.Errorf("another user's place: %+v", other.Entries[0].Links[3])
	}
	s.DB.Exec(t, "update progress set current_page = 5") // of an earlier, longer file
	if _, a = book(); a.Entries[0].Links[3].LastRead != "3" {
		t.Errorf("a place beyond the end: %+v", a.Entries[0].Links[3])
	}

	pages := read(t, me, "/opds/books/"+sh.books[0].String()+"/pages", "acquisition")
	if titles(pages) != "Page 1, Page 2, Page 3" || pages.Total != "3" || links(pages.Links)["up"] != "/opds/series/"+sh.series.String() ||
		fmt.Sprint(pages.Entries[1].Links) != "[{http://vaemendis.net/opds-pse/page /opds/books/"+sh.books[0].String()+"/pages/2 image/png   }]" {
		t.Errorf("pages: %+v", pages)
	}
	if second := read(t, me, "/opds/books/"+sh.books[0].String()+"/pages?page=2&pageSize=2", "acquisition"); titles(second) != "Page 3" || links(second.Entries[0].Links)["http://vaemendis.net/opds-pse/page"] != "/opds/books/"+sh.books[0].String()+"/pages/3" {
		t.Errorf("the second page of pages: %+v", second)
	}
	if none := read(t, me, "/opds/books/"+sh.books[1].String()+"/pages", "acquisition"); len(none.Entries) != 0 {
		t.Errorf("pages of a book that is read as a file: %+v", none)
	}
	s.DB.Exec(t, "update book set analyzed = false where id = $1", sh.books[0]) // its file was replaced
	if _, a = book(); len(a.Entries[0].Links) != 3 {
		t.Errorf("links of a comic whose pages are not known yet: %+v", a.Entries[0].Links)
	}
}

// KOReader cannot read hexadecimal references, with which Go's encoder writes whitespace.
func TestLineBreaks(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, catalog.Routes)
	me := s.User(t, "one", "reader")
	sh := newShelf(t, s, s.One, "Nine")
	const summary = "a\nb\tc\rd &#xA; e"
	s.DB.Exec(t, "update series set summary = $1", summary)
	s.DB.Exec(t, "update book_metadata set metadata = jsonb_build_object('summary', $1::text)", summary)
	for path, kind := range map[string]string{"/opds/libraries/" + sh.library.String(): "navigation", "/opds/series/" + sh.series.String(): "acquisition"} {
		if a := read(t, me, path, kind); a.Entries[0].Content != summary {
			t.Errorf("%s has %q", path, a.Entries[0].Content)
		}
		if body := string(me.Do("GET", path, nil).Want(200).Body); strings.Contains(body, "&#x") {
			t.Errorf("%s has hexadecimal references: %s", path, body)
		}
	}
}

func TestPagesOfFeeds(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, catalog.Routes)
	me := s.User(t, "one", "reader")
	library, series := s.Crowd(t, s.One, me.ID)
	at := "/opds/libraries/" + library.String()
	first := read(t, me, at, "navigation")
	if len(first.Entries) != 50 || first.Total != "1000" || first.Size != "50" || first.Start != "1" {
		t.Fatalf("the first page has %d entries of %s, %s a page, from %s", len(first.Entries), first.Total, first.Size, first.Start)
	}
	if l := links(first.Links); l["self"] != at+"?page=1&pageSize=50" || l["next"] != at+"?page=2&pageSize=50" || l["previous"] != "" {
		t.Errorf("links of the first page: %v", l)
	}
	last := read(t, me, at+"?page=10&pageSize=1000", "navigation")
	if l := links(last.Links); len(last.Entries) != 100 || last.Size != "100" || last.Start != "901" || l["next"] != "" || l["previous"] != at+"?page=9&pageSize=100" {
		t.Errorf("the last page: %d entries, %s a page from %s, %v", len(last.Entries), last.Size, last.Start, l)
	}
	beyond := read(t, me, at+"?page=99", "navigation")
	if l := links(beyond.Links); len(beyond.Entries) != 0 || l["next"] != "" || l["previous"] != at+"?page=20&pageSize=50" {
		t.Errorf("beyond the last page: %d entries, %v", len(beyond.Entries), l)
	}
	if zero := read(t, me, at+"?page=0&pageSize=0", "navigation"); len(zero.Entries) != 50 || titles(zero) != titles(first) {
		t.Errorf("page 0 of size 0 has %d entries", len(zero.Entries))
	}
	if all := read(t, me, "/opds/series/"+series.String(), "acquisition"); len(all.Entries) != 10 || all.Size != "500" {
		t.Errorf("a series: %d books, %s a page", len(all.Entries), all.Size)
	}
	if newest := read(t, me, "/opds/recent?page=2&pageSize=3", "acquisition"); len(newest.Entries) != 3 || links(newest.Links)["next"] != "/opds/recent?page=3&pageSize=3" {
		t.Errorf("the newest books: %d, %v", len(newest.Entries), links(newest.Links))
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, catalog.Routes)
	me, admin := s.User(t, "one", "reader"), s.User(t, "one", "admin")
	newShelf(t, s, s.One, "Nine")
	newShelf(t, s, s.Two, "Nine of the others")

	var document struct {
		Name string `xml:"ShortName"`
		URL  struct {
			Type     string `xml:"type,attr"`
			Template string `xml:"template,attr"`
		} `xml:"Url"`
	}
	r := me.Do("GET", "/opds/search.xml", nil).Want(200)
	if err := xml.Unmarshal(r.Body, &document); err != nil || r.Header.Get("Content-Type") != "application/opensearchdescription+xml;charset=utf-8" ||
		document.Name == "" || document.URL.Template != "/opds/search?q={searchTerms}" || !strings.HasPrefix(document.URL.Type, "application/atom+xml") {
		t.Errorf("how to search: %+v, %v, %s", document, err, r.Body)
	}
	found := read(t, me, "/opds/search?q=N%C3%8DNE", "acquisition")
	if titles(found) != "Nine, Nine 1, Nine 2" || found.Title != "Search: NÍNE" || links(found.Links)["self"] != "/opds/search?q=N%C3%8DNE" {
		t.Errorf("found: %+v", found)
	}
	if nothing := read(t, me, "/opds/search?q=ten", "acquisition"); len(nothing.Entries) != 0 {
		t.Errorf("nothing is called ten, found %s", titles(nothing))
	}
	if books := read(t, s.Key(t, admin, auth.BooksRead), "/opds/search?q=nine", "acquisition"); titles(books) != "Nine 1, Nine 2" {
		t.Errorf("who may not read series finds %s", titles(books))
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, catalog.Routes)
	me, admin, foreign := s.User(t, "one", "reader"), s.User(t, "one", "admin"), s.User(t, "two", "admin")
	sh := newShelf(t, s, s.One, "Nine")
	for path, field := range map[string]string{"/opds/libraries/x": "id", "/opds/series/x": "id", "/opds/books/x/pages": "id", "/opds/recent?page=x": "page",
		"/opds/recent?pageSize=-1": "pageSize", "/opds/recent?page=99999999999": "page", "/opds/search": "q", "/opds/search?q=%20": "q", "/opds/v2/search?q=x": "query",
		"/opds/search?q=" + strings.Repeat("x", 1001): "q", "/opds/search?q=%00": "q", "/opds/v2/search?query=%FF": "query", "/opds/recent?sort=title": "sort"} {
		m := me.Do("GET", path, nil).Want(400).Map()
		if details, _ := m["details"].([]any); len(details) == 0 || details[0].(map[string]any)["field"] != field {
			t.Errorf("%s: %v, want a fault of %s", path, m, field)
		}
	}
	for _, root := range []string{"/opds", "/opds/v2"} {
		for path, permission := range map[string]string{"/libraries/" + sh.library.String(): auth.SeriesRead, "/series/" + sh.series.String(): auth.BooksRead} {
			foreign.Do("GET", root+path, nil).Want(404)
			me.Do("GET", root+path, nil).Want(200)
			s.Key(t, admin, permission).Do("GET", root+path, nil).Want(200)
			s.Key(t, admin, auth.TasksRead).Do("GET", root+path, nil).Want(403)
			me.Do("GET", root+path[:strings.LastIndex(path, "/")+1]+uuid.NewString(), nil).Want(404)
		}
	}
	foreign.Do("GET", "/opds/books/"+sh.books[0].String()+"/pages", nil).Want(404)
	me.Do("GET", "/opds/books/"+sh.books[2].String()+"/pages", nil).Want(404) // its file is gone

	for _, path := range []string{"/opds", "/opds/v2", "/opds/recent"} {
		if got := s.Anonymous(t, "one").Do("GET", path, nil).Want(401).Header.Get("WWW-Authenticate"); got != `Basic realm="Longbox", charset="UTF-8"` {
			t.Errorf("%s asks for a credential with %q", path, got)
		}
	}
	if got := s.Anonymous(t, "one").Do("GET", "/api/v1/books", nil).Want(401).Header.Get("WWW-Authenticate"); got != "" {
		t.Errorf("the interface makes browsers show a dialog: %q", got)
	}
}
