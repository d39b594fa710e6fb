package e2e_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/testkit"
)

const novelNav = `<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops"><body><nav epub:type="toc"><ol>
	<li><a href="text/eins%20ä.xhtml">One</a><ol><li><a href="text/eins%20ä.xhtml#p2">Part</a></li></ol></li><li><a href="text/two.xhtml">Two</a></li></ol></nav></body></html>`

// novel returns an EPUB with everything that an EPUB can have: deflated and stored files, a name that must be escaped,
// a table of contents.
func novel(t *testing.T) (file []byte, within map[string][]byte) {
	t.Helper()
	within = map[string][]byte{
		"OPS/nav.xhtml":         []byte(novelNav),
		"OPS/text/eins ä.xhtml": []byte("<html xmlns='http://www.w3.org/1999/xhtml'><body>" + strings.Repeat("word ", 20000) + "<script>alert(1)</script></body></html>"),
		"OPS/text/two.xhtml":    []byte("<html xmlns='http://www.w3.org/1999/xhtml'><body>two</body></html>"),
		"OPS/style.css":         []byte("p { margin: 0 }"),
		"OPS/empty.css":         {},
		"OPS/Picture.jpg":       testkit.JPEG(t, 3, 200, 300),
	}
	files := []testkit.File{{Name: "mimetype", Data: []byte("application/epub+zip")}, {Name: "META-INF/container.xml", Deflate: true, Data: []byte(
		`<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="OPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>`)},
		{Name: "OPS/book.opf", Deflate: true, Data: []byte(`<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
			<dc:title>A Novel</dc:title><dc:creator>Ann Author</dc:creator><dc:language>ja</dc:language><dc:identifier>urn:isbn:9780306406157</dc:identifier><dc:date>2012-05</dc:date></metadata>
			<manifest><item id="n" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/><item id="a" href="text/eins%20ä.xhtml" media-type="application/xhtml+xml"/>
			<item id="b" href="text/two.xhtml" media-type="application/xhtml+xml"/><item id="s" href="style.css" media-type="text/css"/><item id="e" href="empty.css" media-type="text/css"/>
			<item id="p" href="Picture.jpg" media-type="image/jpeg"/></manifest><spine page-progression-direction="rtl"><itemref idref="a"/><itemref idref="b"/></spine></package>`)}}
	for name, data := range within {
		files = append(files, testkit.File{Name: name, Data: data, Deflate: !strings.HasSuffix(name, ".jpg")})
	}
	return testkit.Zip(t, files...), within
}

type webpubLink struct {
	Title, Rel, Href, Type string
	Width, Height          int
	Children               []webpubLink
}

type webpub struct {
	Context  string `json:"@context"`
	Metadata struct {
		ConformsTo, Title, Identifier, Language, Published, ReadingProgression string
		Author                                                                 []string
		NumberOfPages                                                          int
		BelongsTo                                                              struct{ Series []struct{ Name string } }
		Presentation                                                           struct{ Layout string }
	}
	Links, Images, ReadingOrder, Resources, TOC, Landmarks, PageList []webpubLink
}

// A reader of e-books reads an EPUB by its manifest, and a reader of comics reads a CBZ page by page.
func TestWebPublications(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	s.exec("insert into setting (tenant_id, key, value) values ($1, 'komga_api.prefix', 'komga')", s.One)
	admin, reader := s.as("admin"), s.as("reader")
	file, within := novel(t)
	testkit.WriteFile(t, s.folder, "Saga/Novel.epub", file)
	testkit.WriteFile(t, s.folder, "Manga/Comic 1.cbz", testkit.Comic(t, 1, 3, "<Manga>YesAndRightToLeft</Manga>"))
	testkit.WriteFile(t, s.folder, "Saga/Broken.epub", testkit.Zip(t, testkit.File{Name: "mimetype", Data: []byte("application/epub+zip")}))
	s.scan(admin, s.library(admin, "Books", ""))
	books := s.books(admin)
	at := func(name string) string { return "/komga/api/v1/books/" + books[name].ID.String() }
	one := at("Saga/Novel.epub")

	// fetch requests an address of the manifest.
	fetch := func(c *testkit.Client, href string) *testkit.Response {
		u, err := url.Parse(href)
		if err != nil || u.Host == "" || !strings.HasPrefix(u.Path, "/komga/api/v1/books/") {
			t.Fatalf("address %q: %v", href, err)
		}
		return c.Do("GET", u.EscapedPath(), nil)
	}
	s.s3.Counter.Reset()
	for n, name := range []string{"style.css", "text/two.xhtml", "Picture.jpg"} {
		reader.Do("GET", one+"/resource/OPS/"+name, nil).Want(200)
		most := 1
		if n == 0 {
			most = 2 // the archive's directory is cached from then on
		}
		s.checkCost(t, name, most, most)
	}
	var m webpub
	r := reader.Do("GET", one+"/manifest", nil).Want(200)
	r.JSON(&m)
	if kind := r.Header.Get("Content-Type"); kind != "application/webpub+json" || m.Metadata.ConformsTo != "https://readium.org/webpub-manifest/profiles/epub" {
		t.Errorf("%s: %s", kind, r.Body)
	}
	if d := m.Metadata; d.Title != "A Novel" || d.Identifier != "urn:isbn:9780306406157" || d.Language != "ja" || d.Published != "2012-05-01" || d.ReadingProgression != "rtl" ||
		fmt.Sprint(d.Author) != "[Ann Author]" || d.Presentation.Layout != "reflowable" || len(d.BelongsTo.Series) != 1 || d.BelongsTo.Series[0].Name != "Saga" {
		t.Errorf("metadata: %s", r.Body)
	}
	if !bytes.Equal(reader.Do("GET", one+"/manifest/epub", nil).Want(200).Body, r.Body) {
		t.Error("the manifest of an EPUB is another than that of the book")
	}
	if len(m.ReadingOrder) != 2 || len(m.Resources) != 4 || len(m.TOC) != 2 || len(m.TOC[0].Children) != 1 || !strings.HasSuffix(m.TOC[0].Children[0].Href, "/eins%20%C3%A4.xhtml#p2") {
		t.Fatalf("manifest: %s", r.Body)
	}
	for _, l := range m.Links {
		fetch(reader, l.Href).Want(200)
	}
	if got := fetch(reader, m.Images[0].Href).Want(200).Header.Get("Content-Type"); got != "image/jpeg" {
		t.Errorf("the cover is %s", got)
	}
	for _, l := range append(m.ReadingOrder, m.Resources...) {
		_, name, _ := strings.Cut(l.Href, "/resource/")
		name, err := url.PathUnescape(name)
		if err != nil {
			t.Fatal(err)
		}
		got := fetch(reader, l.Href).Want(200)
		if want, ok := within[name]; !ok || !bytes.Equal(got.Body, want) || got.Header.Get("Content-Type") != l.Type {
			t.Errorf("%s: %d bytes as %s, want %d as %s", name, len(got.Body), got.Header.Get("Content-Type"), len(want), l.Type)
		}
		if h := got.Header; h.Get("Cache-Control") != "private, max-age=86400" || h.Get("Content-Security-Policy") != "sandbox; default-src 'self' data:; style-src 'self' 'unsafe-inline'; script-src 'none'; object-src 'none'; frame-src 'none'" || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", name, h)
		}
		delete(within, name)
	}
	if len(within) > 0 {
		t.Errorf("not in the manifest: %d files", len(within))
	}

	// Content that a browser already has is not sent again, and compressed text is sent compressed.
	first := one + "/resource/OPS/text/eins%20%C3%A4.xhtml"
	with := func(name, value string) *testkit.Client {
		c := *reader
		c.Header = c.Header.Clone()
		c.Header.Set(name, value)
		return &c
	}
	plain := with("Accept-Encoding", "identity").Do("GET", first, nil).Want(200)
	s.s3.Counter.Reset()
	with("If-None-Match", plain.Header.Get("ETag")).Do("GET", first, nil).Want(304)
	s.checkCost(t, "what was not sent again", 0, 0)
	packed := with("Accept-Encoding", "gzip").Do("GET", first, nil).Want(200)
	z, err := gzip.NewReader(bytes.NewReader(packed.Body))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(z); err != nil || !bytes.Equal(text, plain.Body) || len(packed.Body)*10 > len(text) || packed.Header.Get("ETag") == plain.Header.Get("ETag") {
		t.Errorf("packed: %d bytes of %d, %v", len(packed.Body), len(text), err)
	}
	if h := with("Accept-Encoding", "identity").Do("HEAD", first, nil).Want(200); len(h.Body) > 0 || h.Header.Get("ETag") != plain.Header.Get("ETag") {
		t.Errorf("HEAD: %v", h.Header)
	}
	reader.Do("GET", one+"/resource/ops/picture.JPG", nil).Want(200) // books do not always use the same case
	for _, none := range []string{"/resource/OPS/none.css", "/resource/OPS", "/resource/../OPS/style.css", "/resource/%2e%2e/x", "/resource/"} {
		reader.Do("GET", one+none, nil).Want(404)
	}

	// Positions.
	var list struct {
		Total     int
		Positions []struct {
			Href, Type string
			Locations  struct {
				Position                      int
				Progression, TotalProgression float64
			}
		}
	}
	reader.Do("GET", one+"/positions", nil).Want(200).JSON(&list)
	if n := len(list.Positions); n < 2 || list.Total != n || list.Positions[0].Href != m.ReadingOrder[0].Href || list.Positions[n-1].Href != m.ReadingOrder[1].Href ||
		list.Positions[n-1].Locations.Position != n || list.Positions[0].Locations.TotalProgression != 0 || list.Positions[n-1].Locations.Progression != 0 {
		t.Errorf("positions: %+v", list)
	}

	// A comic, by its pages.
	comic := at("Manga/Comic 1.cbz")
	var pages webpub
	r = reader.Do("GET", comic+"/manifest", nil).Want(200)
	r.JSON(&pages)
	if r.Header.Get("Content-Type") != "application/divina+json" || len(pages.ReadingOrder) != 3 || pages.Metadata.NumberOfPages != 3 || pages.Metadata.ReadingProgression != "rtl" ||
		pages.ReadingOrder[0].Width == 0 || pages.ReadingOrder[0].Type != "image/jpeg" || pages.Resources == nil || pages.TOC == nil {
		t.Errorf("of pages: %s", r.Body)
	}
	if !bytes.Equal(fetch(reader, pages.ReadingOrder[2].Href).Want(200).Body, reader.Do("GET", pageURL(books["Manga/Comic 1.cbz"], 3), nil).Want(200).Body) {
		t.Error("the third page is another")
	}
	reader.Do("GET", comic+"/positions", nil).Want(200).JSON(&list)
	if list.Total != 3 || list.Positions[2].Href != pages.ReadingOrder[2].Href {
		t.Errorf("positions of pages: %+v", list)
	}
	// Both are read in the direction that their record says: of the file, unless that of the series is locked.
	for _, c := range []struct{ file, locks, comic, novel string }{{"'rtl'", "{}", "rtl", "rtl"}, {"'rtl'", "{readingDirection}", "ltr", "ltr"},
		{"null", "{}", "ltr", "rtl"}, {"null", "{readingDirection}", "ltr", "ltr"}} { // null: not analysed yet
		s.exec("update series set reading_direction = 'ltr', locks = $1", c.locks)
		s.exec("update book set reading_direction = " + c.file)
		var pages, m webpub
		reader.Do("GET", comic+"/manifest/divina", nil).Want(200).JSON(&pages)
		reader.Do("GET", one+"/manifest/epub", nil).Want(200).JSON(&m)
		if pages.Metadata.ReadingProgression != c.comic || m.Metadata.ReadingProgression != c.novel {
			t.Errorf("%+v: the comic is read %s, the novel %s", c, pages.Metadata.ReadingProgression, m.Metadata.ReadingProgression)
		}
	}

	for path, why := range map[string]string{comic + "/manifest/epub": "not an EPUB", comic + "/resource/1.jpg": "not an EPUB", one + "/manifest/divina": "no pages",
		at("Saga/Broken.epub") + "/manifest": "container.xml", at("Saga/Broken.epub") + "/resource/mimetype": "container.xml", at("Saga/Broken.epub") + "/positions": "container.xml"} {
		if got := reader.Do("GET", path, nil).Want(404).Map()["message"]; !strings.Contains(fmt.Sprint(got), why) {
			t.Errorf("%s: %v", path, got)
		}
	}
	for _, path := range []string{"/manifest", "/manifest/epub", "/positions", "/resource/OPS/style.css"} {
		s.Anonymous(t, "one").Do("GET", one+path, nil).Want(401)
		s.User(t, "two", "admin").Do("GET", one+path, nil).Want(404)
		reader.Do("GET", "/other"+strings.TrimPrefix(one, "/komga")+path, nil).Want(404)
		reader.Do("GET", strings.TrimPrefix(one, "/komga")+path, nil).Want(404)
	}
	// Another tenant's prefix, and a book that sharing tags hide.
	s.exec("insert into setting (tenant_id, key, value) values ($1, 'komga_api.prefix', 'komga')", s.Two)
	s.User(t, "two", "admin").Do("GET", one+"/resource/OPS/style.css", nil).Want(404)
	s.exec("insert into sharing_tag (tenant_id, id, name) values ($1, '00000000-0000-0000-0000-0000000000a1', 'for some')", s.One)
	s.exec("insert into series_sharing_tag (tenant_id, series_id, sharing_tag_id) select tenant_id, series_id, '00000000-0000-0000-0000-0000000000a1' from book where id = $1", books["Saga/Novel.epub"].ID)
	limited := s.as("reader")
	s.exec("insert into sharing_grant (tenant_id, id, sharing_tag_id, account_id, mode) values ($1, gen_random_uuid(), '00000000-0000-0000-0000-0000000000a1', $2, 'deny')", s.One, limited.ID)
	for _, path := range []string{"/manifest", "/positions", "/resource/OPS/style.css"} {
		admin.Do("GET", one+path, nil).Want(200)
		limited.Do("GET", one+path, nil).Want(404)
	}
}
