package epub

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/format/archive"
)

const container = `<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="OPS/p.opf" media-type="application/oebps-package+xml"/></rootfiles></container>`

// files is an archive in the making: names and contents in turn.
type files []string

func pack(t testing.TB, f files) (*archive.Directory, []byte) {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(f); i += 2 {
		fw, err := w.Create(f[i])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(fw, f[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	dir, err := archive.ReadDirectory(b.Bytes(), int64(b.Len()), archive.Limits{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return dir, b.Bytes()
}

// reader reads entries out of b and notes their names.
func reader(b []byte, log *[]string) func(archive.Entry) ([]byte, error) {
	return func(e archive.Entry) ([]byte, error) {
		*log = append(*log, e.Name)
		r, err := e.Open(bytes.NewReader(b[e.Offset:e.Offset+e.Length]), archive.Limits{})
		if err != nil {
			return nil, err
		}
		return io.ReadAll(r)
	}
}

func open(t testing.TB, lim Limits, f ...string) (*Publication, []string, error) {
	t.Helper()
	dir, b := pack(t, f)
	var log []string
	pub, err := Open(dir, reader(b, &log), lim)
	return pub, log, err
}

// withOPF writes an OPF of the parts and the container around it.
func withOPF(metadata, manifest, spine string, more ...string) files {
	opf := `<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:opf="http://www.idpf.org/2007/opf">` +
		metadata + `</metadata><manifest>` + manifest + `</manifest>` + spine + `</package>`
	return append(files{"mimetype", "application/epub+zip", "META-INF/container.xml", container, "OPS/p.opf", opf}, more...)
}

func TestMetadataEPUB3(t *testing.T) {
	t.Parallel()
	pub, log, err := open(t, Limits{}, withOPF(`
		<dc:title id="t2">A Sub Title</dc:title><meta refines="#t2" property="title-type">subtitle</meta><meta refines="#t2" property="display-seq">2</meta>
		<dc:title id="t1">The
			Title</dc:title><meta refines="#t1" property="title-type">main</meta><meta refines="#t1" property="display-seq">1</meta><meta refines="#t1" property="file-as">Title, The</meta>
		<dc:creator id="c1">Ann Author</dc:creator><meta refines="#c1" property="role" scheme="marc:relators">AUT</meta><meta refines="#c1" property="file-as">Author, Ann</meta>
		<dc:creator>Somebody</dc:creator><dc:contributor opf:role="trl">Tim Translator</dc:contributor>
		<dc:publisher>House</dc:publisher><dc:language>ja</dc:language><dc:language>en</dc:language>
		<dc:description>&lt;p&gt;First &amp;amp; line&lt;/p&gt;&lt;script&gt;alert(1)&lt;/script&gt;&lt;p&gt;a &lt; b&lt;br/&gt;c&lt;/p&gt;</dc:description>
		<dc:subject>One</dc:subject><dc:subject>Two; One ;Three;</dc:subject><dc:subject>One</dc:subject>
		<dc:date>2012-02-30T00:00:00Z</dc:date>
		<dc:identifier>urn:isbn:978-0-306-40615-7</dc:identifier><dc:identifier opf:scheme="ISBN">0-306-40615-2</dc:identifier>
		<dc:identifier opf:scheme="ISBN">0-306-40615-3</dc:identifier><dc:identifier>9790306406156</dc:identifier><dc:identifier>urn:uuid:x</dc:identifier>
		<meta property="belongs-to-collection" id="s0">A Set</meta><meta refines="#s0" property="collection-type">set</meta>
		<meta property="belongs-to-collection" id="s1">The Series</meta><meta refines="#s1" property="collection-type">series</meta><meta refines="#s1" property="group-position">2.5</meta>
		<meta property="belongs-to-collection" id="s2">A Wider Series</meta><meta refines="#s2" property="collection-type">series</meta><meta refines="#s2" property="group-position">12</meta>
		<meta name="calibre:series" content="Other"/><meta name="calibre:series_index" content="9"/>`,
		`<item id="a" href="a.xhtml" media-type="application/xhtml+xml"/>`, `<spine page-progression-direction="rtl"><itemref idref="a"/></spine>`,
		"OPS/a.xhtml", "<html><body><p>a long text, longer than a page number</p></body></html>")...)
	if err != nil {
		t.Fatal(err)
	}
	spine := pub.Spine
	pub.Spine = nil
	if len(pub.Fingerprint) != 64 || len(spine) != 1 || spine[0].Entry.Name != "OPS/a.xhtml" || !spine[0].Linear {
		t.Errorf("fingerprint %q, spine %+v", pub.Fingerprint, spine)
	}
	pub.Fingerprint = ""
	want := &Publication{
		Version: "3.0", Title: "The Title", TitleSort: "Title, The", Subtitle: "A Sub Title", Titles: []string{"The Title", "A Sub Title"},
		Creators:     []Creator{{"Ann Author", "Author, Ann", "aut"}, {"Somebody", "", ""}},
		Contributors: []Creator{{"Tim Translator", "", "trl"}},
		Publisher:    "House", Language: "ja", Languages: []string{"ja", "en"}, Description: "First & line\na < b\nc",
		Year: 2012, Month: 2, Subjects: []string{"One", "Two", "Three"},
		Identifiers: []Identifier{{"", "urn:isbn:978-0-306-40615-7"}, {"ISBN", "0-306-40615-2"}, {"ISBN", "0-306-40615-3"}, {"", "9790306406156"}, {"", "urn:uuid:x"}},
		ISBNs:       []string{"9780306406157", "0306406152", "9790306406156"}, Series: "The Series", Position: new(2.5),
		Direction: "rtl", SpineCount: 1, Warnings: []string{`OPS/p.opf: "0-306-40615-3" is not a valid ISBN`},
	}
	if !reflect.DeepEqual(pub, want) {
		t.Errorf("got  %+v\nwant %+v", pub, want)
	}
	if !slices.Equal(log, []string{"META-INF/container.xml", "OPS/p.opf"}) {
		t.Errorf("read %q", log)
	}
}

func TestDocuments(t *testing.T) {
	t.Parallel()
	opf := `<package version="3.0"><metadata/><manifest><item id="a" href="a%20b.xhtml"/><item id="gone" href="../gone.xhtml"/><item id="c" href="C.xhtml"/></manifest>
		<spine><itemref idref="c"/><itemref idref="unknown"/><itemref idref="gone"/><itemref idref="a"/><itemref idref="c"/></spine></package>`
	dir, b := pack(t, files{"META-INF/container.xml", container, "OPS/p.opf", opf, "OPS/a b.xhtml", "x", "OPS/c.xhtml", "y"})
	var log []string
	got, err := Documents(dir, reader(b, &log), Limits{})
	if want := []string{"OPS/c.xhtml", "gone.xhtml", "OPS/a b.xhtml", "OPS/c.xhtml"}; err != nil || !slices.Equal(got, want) || len(log) != 2 {
		t.Errorf("documents %q, want %q, read %q, %v", got, want, log, err)
	}
}

// A small package document cannot name a document with a long name so often that it takes all memory.
func TestDocumentsAreBounded(t *testing.T) {
	t.Parallel()
	opf := `<package><metadata/><manifest><item id="a" href="` + strings.Repeat("x", 3000) + `"/></manifest><spine>` + strings.Repeat(`<itemref idref="a"/>`, 1000) + `</spine></package>`
	dir, b := pack(t, files{"META-INF/container.xml", container, "OPS/p.opf", opf})
	var log []string
	if got, err := Documents(dir, reader(b, &log), Limits{}); !errors.Is(err, &archive.Error{Kind: archive.TooLarge}) {
		t.Errorf("%d documents, %v", len(got), err)
	}
}

// soon fails the test if f takes far longer than work that grows with the input.
func soon(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("still busy after a minute")
	}
}

// The texts of a long list are few, in as many elements as they are.
func TestManyTexts(t *testing.T) {
	t.Parallel()
	var metadata strings.Builder
	for n := range 12 {
		metadata.WriteString("<dc:subject>")
		for i := range 300 {
			fmt.Fprintf(&metadata, "s%d; s%d;", 150*n+i, 150*n+i)
		}
		metadata.WriteString("</dc:subject>")
	}
	for i := range 2000 {
		fmt.Fprintf(&metadata, "<dc:language>l%d</dc:language>", i)
	}
	pub, err := ReadPackage([]byte("<package><metadata>"+metadata.String()+"</metadata></package>"), "metadata.opf", Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if s := pub.Subjects; len(s) != mostTexts || s[0] != "s0" || s[mostTexts-1] != fmt.Sprintf("s%d", mostTexts-1) || len(pub.Languages) != mostTexts {
		t.Errorf("%d subjects, %d languages", len(s), len(pub.Languages))
	}
}

func TestMetadataEPUB2(t *testing.T) {
	t.Parallel()
	opf := `<!DOCTYPE package PUBLIC "+//ISBN 0-9673008-1-9//DTD OEB 1.2 Package//EN" "http://openebook.org/dtds/oeb-1.2/oebpkg12.dtd">
<package version="2.0"><metadata><dc-metadata xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:opf="http://www.idpf.org/2007/opf">
<dc:Title>Old &amp; Book</dc:Title><dc:Creator opf:file-as="B, A" opf:role="ill">A B</dc:Creator>
<dc:Date opf:event="modification">2020-01-01</dc:Date><dc:Date opf:event="original-publication">1999-12</dc:Date></dc-metadata>
<x-metadata><meta name="calibre:series" content=" Old  Series "/><meta name="calibre:series_index" content="3.0"/></x-metadata></metadata>
<manifest><item id="x" href="x.html" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="x"/><itemref idref="gone"/></spine></package>`
	pub, _, err := open(t, Limits{}, "META-INF/container.xml", container, "OPS/p.opf", opf, "OPS/x.html", strings.Repeat("text ", 5000))
	if err != nil {
		t.Fatal(err)
	}
	if pub.Title != "Old & Book" || !slices.Equal(pub.Creators, []Creator{{"A B", "B, A", "ill"}}) || pub.Year != 1999 || pub.Month != 12 || pub.Day != 0 ||
		pub.Series != "Old Series" || *pub.Position != 3 || pub.SpineCount != 2 || len(pub.Spine) != 1 || len(pub.Warnings) != 1 {
		t.Errorf("%+v", pub)
	}
}

func TestPeople(t *testing.T) {
	t.Parallel()
	pub, err := ReadPackage([]byte(`<package><metadata>
		<dc:creator id="c0">Last</dc:creator><dc:creator opf:role="aut">Unknown</dc:creator>
		<dc:creator id="c2">Second</dc:creator><meta refines="#c2" property="display-seq">2</meta>
		<meta refines="#c2" property="role">edt</meta><meta refines="#c2" property="role">ART</meta>
		<dc:creator id="c1">First</dc:creator><meta refines="#c1" property="display-seq">1</meta>
		<dc:creator id="c1" opf:role="ill">Same id</dc:creator><meta refines="#c1" property="file-as">1st</meta>
		<dc:contributor id="d2">Other</dc:contributor><meta refines="#d2" property="display-seq">2</meta>
		<dc:contributor id="d1" opf:role="trl">One</dc:contributor><meta refines="#d1" property="display-seq">1</meta>
		<meta refines="#gone" property="role">aut</meta></metadata></package>`), "p.opf", Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if want := []Creator{{"First", "1st", ""}, {"Second", "", "edt"}, {"Second", "", "art"}, {"Last", "", ""}, {"Same id", "", "ill"}}; !slices.Equal(pub.Creators, want) {
		t.Errorf("creators %q, want %q", pub.Creators, want)
	}
	if want := []Creator{{"One", "", "trl"}, {"Other", "", ""}}; !slices.Equal(pub.Contributors, want) {
		t.Errorf("contributors %q, want %q", pub.Contributors, want)
	}
}

// Elements that occur several times in a package document, or are marked as something else.
func TestFirstOfMany(t *testing.T) {
	t.Parallel()
	title := func(id, text, kind string) string {
		return `<dc:title id="` + id + `">` + text + `</dc:title><meta refines="#` + id + `" property="title-type">` + kind + `</meta>`
	}
	series := func(id, name, kind, position string) string {
		return `<meta property="belongs-to-collection" id="` + id + `">` + name + `</meta><meta refines="#` + id + `" property="collection-type">` + kind +
			`</meta><meta refines="#` + id + `" property="group-position">` + position + `</meta>`
	}
	for _, c := range []struct {
		metadata string
		want     Publication
	}{
		{`<dc:publisher>A</dc:publisher><dc:publisher>B</dc:publisher><dc:rights>C</dc:rights><dc:rights>D</dc:rights>` +
			`<dc:description>E</dc:description><dc:description>F</dc:description>`, Publication{Publisher: "A", Rights: "C", Description: "E"}},
		{title("a", "Short", "short") + title("b", "Work", "collection") + title("c", "Plain", "") + title("d", "Main", "main") + title("e", "Other", "main"),
			Publication{Title: "Main", Titles: []string{"Short", "Work", "Plain", "Main", "Other"}}},
		{title("a", "A Plain", "") + `<meta refines="#a" property="file-as">Plain, A</meta>` + title("b", "Main", "main"),
			Publication{Title: "Main", Titles: []string{"A Plain", "Main"}}},
		{`<meta name="calibre:title_sort" content="Plain, A"/>` + title("a", "A Plain", ""),
			Publication{Title: "A Plain", TitleSort: "Plain, A", Titles: []string{"A Plain"}}},
		{title("a", "T", "main") + title("b", "1st", "edition") + title("c", "2nd", "edition") + title("d", "S", "subtitle") + title("e", "Z", "subtitle"),
			Publication{Title: "T", Edition: "1st", Subtitle: "S", Titles: []string{"T", "1st", "2nd", "S", "Z"}}},
		{title("a", "O", "original") + title("b", "T", "main") + `<meta refines="#b" property="alternate-script">P</meta>`,
			Publication{Title: "T", Original: "O", Titles: []string{"O", "T"}}},
		{title("a", "O", "original-title") + title("b", "T", ""), Publication{Title: "T", Original: "O", Titles: []string{"O", "T"}}},
		{title("b", "T", "main") + `<meta refines="#b" property="alternate-script">P</meta>`, Publication{Title: "T", Original: "P", Titles: []string{"T"}}},
		{title("a", "Short", "short") + title("b", "Work", "collection"), Publication{Title: "Short", Titles: []string{"Short", "Work"}}},
		{`<dc:title></dc:title><dc:title>T</dc:title>`, Publication{Title: "T", Titles: []string{"T"}}},
		{`<meta property="calibre:rating">0</meta>`, Publication{Rating: new(0.0)}},
		{`<meta property="calibre:rating">10</meta>`, Publication{Rating: new(10.0)}},
		{`<meta property="calibre:rating">-1</meta><meta property="calibre:rating">x</meta>`, Publication{}},
		{series("a", "Any", "", "1") + series("b", "One", "series", "2") + series("c", "Two", "series", "3"), Publication{Series: "One", Position: new(2.0)}},
		{series("a", "One", "", "1") + series("b", "Two", "", "2"), Publication{Series: "One", Position: new(1.0)}},
		{series("a", "Set", "set", "1"), Publication{}},
		{series("a", "One", "series", "1e9"), Publication{Series: "One", Warnings: []string{`p.opf: position "1e9" in the series is not a number`}}},
		{series("a", "One", "series", "two"), Publication{Series: "One", Warnings: []string{`p.opf: position "two" in the series is not a number`}}},
	} {
		pub, err := ReadPackage([]byte(`<package><metadata>`+c.metadata+`</metadata></package>`), "p.opf", Limits{})
		if err != nil || !reflect.DeepEqual(*pub, c.want) {
			t.Errorf("%s:\n  got  %+v, %v\n  want %+v", c.metadata, pub, err, c.want)
		}
	}
	pub, err := ReadPackage([]byte(`<package><metadata>`+strings.Repeat("<dc:subject>s</dc:subject>", 3)+`<dc:title>T</dc:title></metadata></package>`), "p.opf", Limits{Items: 3})
	if err != nil || pub.Title != "" || len(pub.Warnings) != 1 {
		t.Errorf("more elements than the limit: %+v, %v", pub, err)
	}
}

// An invalid identifier that is marked as an ISBN gives a warning; other identifiers do not.
func TestWrongISBN(t *testing.T) {
	t.Parallel()
	for identifier, warnings := range map[string]int{
		`<dc:identifier opf:scheme="ISBN">9780765350382</dc:identifier>`:                                                    1,
		`<dc:identifier>urn:isbn:9780765350382</dc:identifier>`:                                                             1,
		`<dc:identifier id="i">9780765350382</dc:identifier><meta refines="#i" property="identifier-type">15</meta>`:        1,
		`<dc:identifier opf:scheme="ISBN">9780765350381</dc:identifier><dc:identifier opf:scheme="ISBN"></dc:identifier>`:   0,
		`<dc:identifier>9780765350382</dc:identifier><dc:identifier opf:scheme="calibre">45</dc:identifier>`:                0,
		`<dc:identifier>urn:uuid:9780765350382</dc:identifier><dc:identifier opf:scheme="DOI">10.1/9780765</dc:identifier>`: 0,
	} {
		pub, err := ReadPackage([]byte("<package><metadata>"+identifier+"</metadata></package>"), "p.opf", Limits{})
		if err != nil || len(pub.Warnings) != warnings || warnings > 0 && len(pub.ISBNs) > 0 {
			t.Errorf("%s: %+v, %v; want %d warnings", identifier, pub, err, warnings)
		}
	}
}

// An ISBN may have words before or after it.
func TestISBNWithWords(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{"978-0-306-40615-7 (pbk.)": "9780306406157", "ebook-9780306406157": "9780306406157", "urn:isbn:9780306406157;epub": "9780306406157"} {
		pub, err := ReadPackage([]byte(`<package><metadata><dc:identifier opf:scheme="ISBN">`+value+`</dc:identifier></metadata></package>`), "p.opf", Limits{})
		if err != nil || strings.Join(pub.ISBNs, " ") != want || len(pub.Warnings) > 0 {
			t.Errorf("%q: %+v, %v; want %q", value, pub, err, want)
		}
	}
}

// calibre writes its rating as a meta of EPUB 2 or of EPUB 3.
func TestRating(t *testing.T) {
	t.Parallel()
	for meta, want := range map[string]*float64{
		`<meta name="calibre:rating" content="8.0"/>`:         new(8.0),
		`<meta property="calibre:rating">8</meta>`:            new(8.0),
		`<meta property="calibre:rating">11</meta>`:           nil,
		`<meta property="calibre:author_link_map">{}</meta>8`: nil,
	} {
		pub, err := ReadPackage([]byte(`<package><metadata>`+meta+`</metadata></package>`), "p.opf", Limits{})
		if err != nil || !reflect.DeepEqual(pub.Rating, want) {
			t.Errorf("%s: %+v, %v", meta, pub, err)
		}
	}
}

// Schemes are free words: ISBN-10, ISBN10 and eISBN name ISBNs as well.
func TestSchemesOfISBN(t *testing.T) {
	t.Parallel()
	for scheme, want := range map[string]string{"isbn": "0306406152", "ISBN-10": "0306406152", "ISBN10": "0306406152", "eISBN": "0306406152", "ISSN": "", "": ""} {
		pub, err := ReadPackage([]byte(`<package><metadata><dc:identifier opf:scheme="`+scheme+`">0-306-40615-2</dc:identifier></metadata></package>`), "p.opf", Limits{})
		if err != nil || strings.Join(pub.ISBNs, " ") != want {
			t.Errorf("%q: %+v, %v; want %q", scheme, pub, err, want)
		}
	}
}

func TestDates(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]string{
		"2012": "2012 0 0", "2012-05": "2012 5 0", "2012-05-01": "2012 5 1", " 2012-05-01T22:00:00+02:00": "2012 5 1", "2012-05-01Z": "2012 5 1",
		"2012-05-01+02:00": "2012 5 1", "20120501": "2012 5 1", "2012/5/1": "2012 5 1", "2012.05.01": "2012 5 1", "2012年5月1日": "2012 5 1",
		"1999-2000": "1999 0 0", "2012-13-01": "2012 0 0", "May 2012": "2012 0 0", "01/05/2012": "2012 0 0", "©2012": "2012 0 0",
		"Tue, 01 May 2012 00:00:00 GMT": "2012 0 0", "0101-01-01T00:00:00+00:00": "0 0 0", "12345": "0 0 0", "unknown": "0 0 0",
	} {
		pub, err := ReadPackage([]byte(`<package><metadata><dc:date>`+written+`</dc:date></metadata></package>`), "p.opf", Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(pub.Year, pub.Month, pub.Day); got != want {
			t.Errorf("%q: %s, want %s", written, got, want)
		}
	}
}

// Of several dates, the first usable one of the best kind counts, and it alone.
func TestSeveralDates(t *testing.T) {
	t.Parallel()
	for dates, want := range map[string]string{
		`<dc:date opf:event="publication">2004-06-13</dc:date><dc:date opf:event="publication">2012</dc:date>`:            "2004 6 13",
		`<dc:date opf:event="publication">2012</dc:date><dc:date opf:event="publication">2004-06-13</dc:date>`:            "2012 0 0",
		`<dc:date opf:event="publication">0101-01-01</dc:date><dc:date>2011-02-03</dc:date>`:                              "2011 2 3",
		`<dc:date>0101-01-01</dc:date><dc:date>2011-02-03</dc:date><dc:date>2012</dc:date>`:                               "2011 2 3",
		`<dc:date opf:event="creation">2015-01</dc:date><dc:date opf:event="original-publication">1999</dc:date>`:         "1999 0 0",
		`<dc:date opf:event="modification">2020</dc:date><dc:date opf:event="creation">2015-01</dc:date>`:                 "2015 1 0",
		`<dc:date opf:event="creation">2015</dc:date><dc:date>2011</dc:date><dc:date opf:event="publication">x</dc:date>`: "2011 0 0",
	} {
		pub, err := ReadPackage([]byte(`<package><metadata>`+dates+`</metadata></package>`), "p.opf", Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(pub.Year, pub.Month, pub.Day); got != want {
			t.Errorf("%s: %s, want %s", dates, got, want)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	xxe := `<?xml version="1.0"?><!DOCTYPE package [<!ENTITY e SYSTEM "file:///etc/passwd">]><package/>`
	items := strings.Repeat(`<item id="i" href="h"/>`, 20001)
	for name, tt := range map[string]struct {
		files files
		kind  archive.Kind
	}{
		"no container":      {files{"1.jpg", "x"}, NoPackage},
		"no rootfile":       {files{"META-INF/container.xml", "<container/>"}, NoPackage},
		"no OPF":            {files{"META-INF/container.xml", container}, NoPackage},
		"outside":           {files{"META-INF/container.xml", strings.Replace(container, "OPS/p.opf", "../../etc/passwd", 1)}, NoPackage},
		"remote":            {files{"META-INF/container.xml", strings.Replace(container, "OPS/p.opf", "http://example.org/p.opf", 1)}, NoPackage},
		"empty container":   {files{"META-INF/container.xml", ""}, archive.Corrupt},
		"entities":          {files{"META-INF/container.xml", container, "OPS/p.opf", xxe}, archive.Corrupt},
		"not a package":     {files{"META-INF/container.xml", container, "OPS/p.opf", "<html/>"}, archive.Corrupt},
		"no manifest":       {files{"META-INF/container.xml", container, "OPS/p.opf", "<package/>"}, archive.Corrupt},
		"OPF too large":     {files{"META-INF/container.xml", container, "OPS/p.opf", "<package>" + strings.Repeat(" ", 5<<20)}, archive.TooLarge},
		"OPF too deep":      {files{"META-INF/container.xml", container, "OPS/p.opf", strings.Repeat("<a>", 200)}, archive.TooLarge},
		"no spine":          {withOPF("", `<item id="a" href="a.xhtml"/>`, "", "OPS/a.xhtml", "x"), archive.NoPages},
		"empty spine":       {withOPF("", `<item id="a" href="a.xhtml"/>`, "<spine toc=\"ncx\"> </spine>", "OPS/a.xhtml", "x"), archive.NoPages},
		"OPF cut off":       {files{"META-INF/container.xml", container, "OPS/p.opf", `<package><manifest><item id="a" href="a.xhtml"/></manifest><spi`, "OPS/a.xhtml", "x"}, archive.NoPages},
		"manifest too long": {files{"META-INF/container.xml", container, "OPS/p.opf", "<package><manifest>" + items + "</manifest></package>"}, archive.TooLarge},
	} {
		pub, log, err := open(t, Limits{}, tt.files...)
		var e *archive.Error
		if pub != nil || !errors.As(err, &e) || e.Kind != tt.kind {
			t.Errorf("%s: %v, want kind %q", name, err, tt.kind)
		}
		if name == "OPF too large" && slices.Contains(log, "OPS/p.opf") {
			t.Errorf("%s: it was read", name)
		}
	}
	dir, _ := pack(t, files{"META-INF/container.xml", container})
	broken := errors.New("connection reset")
	var e *archive.Error
	if _, err := Open(dir, func(archive.Entry) ([]byte, error) { return nil, broken }, Limits{}); !errors.Is(err, broken) || errors.As(err, &e) {
		t.Errorf("a failing read gives %v", err)
	}
}

func xhtml(body string) string {
	return `<?xml version="1.0"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"><head><title>A long title of a page</title></head><body>` + body + `</body></html>`
}

// spread gives manifest and spine for n documents p1.xhtml … and images 1.jpg ….
func spread(n int, extra string) (manifest, spine string) {
	for i := 1; i <= n; i++ {
		manifest += fmt.Sprintf(`<item id="p%d" href="Text/p%d.xhtml" media-type="application/xhtml+xml"/><item id="i%d" href="Images/%d.jpg" media-type="image/jpeg"/>`, i, i, i, i)
		spine += fmt.Sprintf(`<itemref idref="p%d"/>`, i)
	}
	return manifest + extra, "<spine>" + spine + "</spine>"
}

const fixed = `<meta property="rendition:layout">pre-paginated</meta>`

func TestPages(t *testing.T) {
	t.Parallel()
	manifest, spine := spread(3, "")
	images := []string{"OPS/Images/1.jpg", "a", "OPS/Images/2.jpg", "b", "OPS/Images/3.jpg", "c"}
	one := func(n int) string {
		return xhtml(fmt.Sprintf(`<div><img src="../Images/%d.jpg" alt="a long text for those who cannot see"/></div>`, n))
	}
	text := "<p>" + strings.Repeat("words ", 20) + "</p>"
	tests := map[string]struct {
		metadata, manifest, spine string
		documents                 [3]string
		want                      []string
		reads                     int
	}{
		"image-only":        {"", manifest, spine, [3]string{one(1), one(2), one(3)}, []string{"1", "2", "3"}, 5},
		"spine order":       {"", manifest, `<spine><itemref idref="p3"/><itemref idref="p1"/><itemref idref="p2"/></spine>`, [3]string{one(1), one(2), one(3)}, []string{"3", "1", "2"}, 5},
		"percent, dots":     {fixed, manifest, spine, [3]string{xhtml(`<img src="./../../OPS/Images/%31.jpg#x"/>`), one(2), one(3)}, []string{"1", "2", "3"}, 5},
		"svg image":         {fixed, manifest, spine, [3]string{xhtml(`<svg xmlns:xlink="x"><desc>no text at all, just words</desc><image xlink:href="../Images/1.jpg"/></svg>`), xhtml(`<svg><image href="../Images/2.jpg"/></svg>`), `<svg xmlns="http://www.w3.org/2000/svg"><image href="../Images/3.jpg"/></svg>`}, []string{"1", "2", "3"}, 5},
		"page numbers":      {"", manifest, spine, [3]string{one(1), xhtml(`<img src="../Images/2.jpg"/><p>- 2 -</p>`), one(3)}, []string{"1", "2", "3"}, 5},
		"images in spine":   {"", manifest, `<spine><itemref idref="i2"/><itemref idref="i1"/></spine>`, [3]string{}, []string{"2", "1"}, 2},
		"one blank":         {fixed, manifest, spine, [3]string{one(1), xhtml(`<div/>`), one(3)}, []string{"1", "3"}, 5},
		"mostly blank":      {fixed, manifest, spine, [3]string{one(1), xhtml(`<div/>`), xhtml(`<div/>`)}, nil, 5},
		"text":              {"", manifest, spine, [3]string{one(1), xhtml(text + text), one(3)}, nil, 3},
		"text and image":    {fixed, manifest, spine, [3]string{one(1), one(2), xhtml(`<img src="../Images/3.jpg"/>` + text)}, nil, 3},
		"two images":        {fixed, manifest, spine, [3]string{one(1), one(2), xhtml(`<img src="../Images/3.jpg"/><img src="../Images/2.jpg"/>`)}, nil, -1},
		"same image twice":  {fixed, manifest, spine, [3]string{one(1), one(2), xhtml(`<img src="../Images/3.jpg"/><img src="../Images/3.jpg"/>`)}, []string{"1", "2", "3"}, 5},
		"remote image":      {fixed, manifest, spine, [3]string{one(1), one(2), xhtml(`<img src="https://example.org/3.jpg"/>`)}, nil, -1},
		"image outside":     {fixed, manifest, spine, [3]string{one(1), one(2), xhtml(`<img src="../../../../etc/3.jpg"/>`)}, nil, -1},
		"video":             {fixed, manifest, spine, [3]string{one(1), one(2), xhtml(`<img src="../Images/3.jpg"/><video src="x"/>`)}, nil, -1},
		"document broken":   {fixed, manifest, spine, [3]string{one(1), one(2), "no XML"}, nil, -1},
		"document with DTD": {fixed, manifest, spine, [3]string{one(1), one(2), `<!DOCTYPE html [<!ENTITY a "b">]><html/>`}, nil, -1},
		"reflowable imprint": {fixed, manifest, `<spine><itemref idref="p1"/><itemref idref="p2"/><itemref idref="p3" properties="rendition:layout-reflowable"/></spine>`,
			[3]string{one(1), one(2), xhtml(text)}, []string{"1", "2"}, 4},
		"non-linear text": {"", manifest, `<spine><itemref idref="p1"/><itemref idref="p2"/><itemref idref="p3" linear="no"/></spine>`,
			[3]string{one(1), one(2), xhtml(text)}, []string{"1", "2"}, 5},
		"table of contents": {"", strings.Replace(manifest, `id="p3"`, `id="p3" properties="nav"`, 1), spine, [3]string{one(1), one(2), xhtml(strings.Repeat(text, 200))}, []string{"1", "2"}, 4},
		"large documents":   {"", manifest, spine, [3]string{one(1), one(2), xhtml(strings.Repeat(text, 200))}, nil, 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := withOPF(tt.metadata, tt.manifest, tt.spine, images...)
			for i, d := range tt.documents {
				f = append(f, fmt.Sprintf("OPS/Text/p%d.xhtml", i+1), d)
			}
			pub, log, err := open(t, Limits{}, f...)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range pub.Pages {
				got = append(got, strings.TrimSuffix(strings.TrimPrefix(p.Name, "OPS/Images/"), ".jpg"))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("pages %q, want %q; warnings %q", got, tt.want, pub.Warnings)
			}
			if tt.reads >= 0 && len(log) != tt.reads {
				t.Errorf("%d reads, want %d: %q", len(log), tt.reads, log)
			}
			if pub.Cover == nil || len(pub.Pages) > 0 && pub.Cover.Name != pub.Pages[0].Name {
				t.Errorf("cover %+v", pub.Cover)
			}
		})
	}
}

// Pages are stored and cached by fingerprint and number: the same images in another order of the spine are other pages.
// In the order of their names they are those of an archive of images.
func TestFingerprintTellsTheOrderOfTheSpine(t *testing.T) {
	t.Parallel()
	manifest, _ := spread(3, "")
	print := func(images string, order ...int) string {
		t.Helper()
		spine := ""
		for _, i := range order {
			spine += fmt.Sprintf(`<itemref idref="i%d"/>`, i)
		}
		f := withOPF(fixed, strings.ReplaceAll(manifest, ".jpg", images), "<spine>"+spine+"</spine>",
			"OPS/Images/1"+images, "a", "OPS/Images/2"+images, "b", "OPS/Images/3"+images, "c")
		pub, _, err := open(t, Limits{}, f...)
		if err != nil || len(pub.Pages) != 3 {
			t.Fatalf("%+v, %v", pub, err)
		}
		return pub.Fingerprint
	}
	comic, _ := pack(t, files{"1.jpg", "a", "2.jpg", "b", "3.jpg", "c"})
	if got, want := print(".jpg", 1, 2, 3), archive.Fingerprint(comic.Entries); got != want {
		t.Errorf("%s in the order of the names, want %s", got, want)
	}
	for _, images := range []string{".jpg", ".image"} { // the manifest tells the type of the latter
		if print(images, 1, 2, 3) == print(images, 3, 1, 2) {
			t.Errorf("images named %s: the same in two orders", images)
		}
	}
}

// A DRM-protected book is reported as such and has its metadata. A book with obfuscated fonts is not protected.
func TestProtection(t *testing.T) {
	t.Parallel()
	const encryption = "META-INF/encryption.xml"
	for name, tt := range map[string]struct {
		files []string
		want  []string // schemes, in this order
	}{
		"fonts":   {[]string{encryption, "<encryption/>", "OPS/f.otf", "x"}, nil},
		"rights":  {[]string{"META-INF/rights.xml", "<rights/>"}, nil},
		"Adobe":   {[]string{encryption, "<encryption/>", "META-INF/rights.xml", "<rights/>"}, []string{"Adobe"}},
		"Apple":   {[]string{encryption, "<encryption/>", "META-INF/sinf.xml", "<x/>"}, []string{"Apple"}},
		"Readium": {[]string{encryption, "<encryption/>", "META-INF/license.lcpl", "{}"}, []string{"Readium"}},
		"all": {[]string{encryption, "<encryption/>", "META-INF/license.lcpl", "{}", "META-INF/sinf.xml", "<x/>", "META-INF/rights.xml", "<rights/>"},
			[]string{"Adobe", "Apple", "Readium"}},
	} {
		f := withOPF("<dc:title>T</dc:title>", `<item id="a" href="a.xhtml" media-type="application/xhtml+xml"/>`, `<spine><itemref idref="a"/></spine>`,
			append(tt.files, "OPS/a.xhtml", "\xa7\x01\x9c no XML")...)
		pub, _, err := open(t, Limits{}, f...)
		named := func(warning, scheme string) bool { return strings.Contains(warning, "the DRM of "+scheme+":") }
		if err != nil || pub.Title != "T" || !slices.EqualFunc(pub.Warnings, tt.want, named) {
			t.Errorf("%s: %+v, %v", name, pub, err)
		}
	}
}

// The spine has the page direction. Before it could, Amazon's guidelines had a meta for it.
func TestDirection(t *testing.T) {
	t.Parallel()
	const item = `<item id="a" href="a.xhtml" media-type="application/xhtml+xml"/>`
	for _, tt := range []struct{ mode, spine, want string }{
		{"horizontal-rl", "", "rtl"}, {"vertical-rl", "", "rtl"}, {"horizontal-lr", "", ""}, {"horizontal-rl", "ltr", "ltr"}, {"", "rtl", "rtl"}, {"", "default", ""},
	} {
		pub, _, err := open(t, Limits{}, withOPF(`<meta name="primary-writing-mode" content="`+tt.mode+`"/>`, item,
			`<spine page-progression-direction="`+tt.spine+`"><itemref idref="a"/></spine>`, "OPS/a.xhtml", xhtml(strings.Repeat("text ", 50)))...)
		if err != nil || pub.Direction != tt.want {
			t.Errorf("%+v: %+v, %v", tt, pub, err)
		}
	}
}

func TestPageLimits(t *testing.T) {
	t.Parallel()
	manifest, spine := spread(3, "")
	f := withOPF(fixed, manifest, spine, "OPS/Images/1.jpg", "a", "OPS/Images/2.jpg", "b", "OPS/Images/3.jpg", "c")
	for i := 1; i <= 3; i++ {
		f = append(f, fmt.Sprintf("OPS/Text/p%d.xhtml", i), xhtml(fmt.Sprintf(`<img src="../Images/%d.jpg"/>`, i)))
	}
	document := int64(len(f[len(f)-1])) // each of the three
	for _, lim := range []Limits{{Documents: 3}, {DocumentBytes: document}, {TotalBytes: 3 * document}} {
		if pub, log, err := open(t, lim, f...); err != nil || len(pub.Pages) != 3 {
			t.Errorf("just within %+v: %d pages, %q, %v", lim, len(pub.Pages), log, err)
		}
	}
	for name, lim := range map[string]Limits{"documents": {Documents: 2}, "document": {DocumentBytes: document - 1}, "total": {TotalBytes: 3*document - 1}} {
		if pub, log, err := open(t, lim, f...); err != nil || len(pub.Pages) != 0 || len(log) != 2 {
			t.Errorf("%s: %+v, %q, %v", name, pub, log, err)
		}
	}
	if pub, _, err := open(t, Limits{TextBytes: 3, Items: 6}, append(withOPF(`<dc:title>Titel</dc:title>`, manifest, spine), f[6:]...)...); err != nil || pub.Title != "Tit" || len(pub.Warnings) == 0 {
		t.Errorf("%+v, %v", pub, err)
	}
	if pub, _, err := open(t, Limits{TextBytes: 5}, withOPF(`<dc:title>Titel</dc:title>`, manifest, spine)...); err != nil || pub.Title != "Titel" {
		t.Errorf("a title just within the limit: %+v, %v", pub, err)
	}
}

func TestCoverOrder(t *testing.T) {
	t.Parallel()
	const spine = `<spine><itemref idref="text"/></spine>`
	guide := func(href string) string {
		return spine + `<guide><reference type="cover" href="` + href + `"/></guide>`
	}
	item := func(id, href, more string) string {
		kind := "image/jpeg"
		if strings.HasSuffix(href, "html") {
			kind = "application/xhtml+xml"
		}
		return fmt.Sprintf(`<item id=%q href=%q media-type=%q %s/>`, id, href, kind, more)
	}
	text := item("text", "text.xhtml", "")
	const page = `<item id="x" href="c.xml" media-type="application/xhtml+xml"/>`
	all := text + item("first", "first.jpg", "") + item("front-Cover", "id.jpg", "") + item("p", "property.jpg", `properties="svg cover-image"`) + item("m", "meta.jpg", "") + item("c", "c.xhtml", "")
	for name, tt := range map[string]struct{ metadata, manifest, rest, want string }{
		"meta":               {`<meta name="cover" content="m"/>`, all, guide("c.xhtml"), "meta.jpg"},
		"meta names a file":  {`<meta name="cover" content="meta.jpg"/>`, all, spine, "meta.jpg"},
		"meta names a page":  {`<meta name="cover" content="c"/>`, all, spine, "guide.jpg"},
		"meta names nothing": {`<meta name="cover" content="x"/>`, all, guide("c.xhtml"), "property.jpg"},
		"property":           {"", all, guide("c.xhtml"), "property.jpg"},
		"guide":              {"", strings.Replace(all, "cover-image", "", 1), guide("c.xhtml#top"), "guide.jpg"},
		"guide, XML":         {"", text + item("first", "first.jpg", "") + page, guide("c.xml"), "guide.jpg"},
		"meta names XML":     {`<meta name="cover" content="c.xml"/>`, text + item("first", "first.jpg", "") + page, spine, "guide.jpg"},
		"id":                 {"", strings.Replace(all, "cover-image", "", 1), spine, "id.jpg"},
		"id of a page":       {"", text + item("first", "first.jpg", "") + item("cover", "c.xhtml", ""), spine, "guide.jpg"},
		"file name":          {"", text + item("first", "first.jpg", "") + item("i9", "art/Cover.jpg", ""), spine, "art/Cover.jpg"},
		"back cover":         {"", text + item("back-cover", "id.jpg", "") + item("the-cover", "meta.jpg", ""), spine, "meta.jpg"},
		"first":              {"", text + item("first", "first.jpg", ""), spine, "first.jpg"},
		"none":               {"", text, spine, ""},
	} {
		pub, _, err := open(t, Limits{}, withOPF(tt.metadata, tt.manifest, tt.rest, "OPS/text.xhtml", xhtml(strings.Repeat("text ", 5000)),
			"OPS/c.xhtml", xhtml(`<img src="guide.jpg"/>`), "OPS/c.xml", xhtml(`<img src="guide.jpg"/>`), "OPS/guide.jpg", "", "OPS/first.jpg", "", "OPS/id.jpg", "", "OPS/property.jpg", "", "OPS/meta.jpg", "", "OPS/art/Cover.jpg", "")...)
		got := ""
		if err == nil && pub.Cover != nil {
			got = strings.TrimPrefix(pub.Cover.Name, "OPS/")
		}
		if got != tt.want || err != nil {
			t.Errorf("%s: %q, %v; want %q", name, got, err, tt.want)
		}
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	for _, tt := range [][3]string{
		{"OPS/p.opf", "a.xhtml", "OPS/a.xhtml"},
		{"OPS/p.opf", "../a.xhtml#x", "a.xhtml"},
		{"OPS/p.opf", "../../../etc/passwd", "etc/passwd"},
		{"OPS/p.opf", "/a.xhtml", "a.xhtml"},
		{"p.opf", "%E6%BC%AB%20x.jpg", "漫 x.jpg"},
		{"p.opf", "100%.jpg", "100%.jpg"},
		{"p.opf", "a%2F..%2F..%2Fb", "b"},
		{"p.opf", "http://example.org/a", ""},
		{"p.opf", "//example.org/a", ""},
		{"p.opf", "data:image/png;base64,x", ""},
		{"p.opf", "javascript:x", ""},
		{"p.opf", "第1話:前.jpg", "第1話:前.jpg"},
		{"p.opf", "", ""},
		{"p.opf", "#x", ""},
	} {
		if got := resolve(tt[0], tt[1]); got != tt[2] {
			t.Errorf("resolve(%q, %q) = %q, want %q", tt[0], tt[1], got, tt[2])
		}
	}
}

func TestPlainText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain text\nsecond line":                       "plain text\nsecond line",
		"<p>a</p><p>b <b>c</b></p>":                     "a\nb c",
		"<DIV>a<BR>b</DIV>":                             "a\nb",
		"1 < 2 and 3 > 2":                               "1 < 2 and 3 > 2",
		"<style>p{}</style>x<!-- y -->z":                "xz",
		"<script>alert(1)":                              "",
		"&lt;b&gt; &eacute;":                            "<b> é",
		"<a href='javascript:x' onclick='y'>link</a>\r": "link",
	} {
		if got := PlainText(in); got != want {
			t.Errorf("PlainText(%q) = %q, want %q", in, got, want)
		}
	}
}

// The file that calibre writes beside a book.
const besides = `<?xml version='1.0' encoding='utf-8'?>
<package xmlns="http://www.idpf.org/2007/opf" unique-identifier="uuid_id" version="2.0">
  <metadata xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:opf="http://www.idpf.org/2007/opf">
    <dc:identifier opf:scheme="calibre" id="calibre_id">45</dc:identifier>
    <dc:identifier opf:scheme="ISBN">9780765350381</dc:identifier>
    <dc:title>The Final Empire</dc:title>
    <dc:creator opf:file-as="Sanderson, Brandon" opf:role="aut">Brandon Sanderson</dc:creator>
    <dc:date>2006-07-17T00:00:00+00:00</dc:date>
    <dc:description>&lt;p&gt;In a world&lt;/p&gt;</dc:description>
    <dc:publisher>Tor</dc:publisher><dc:language>eng</dc:language>
    <dc:subject>Fantasy</dc:subject>
    <meta name="calibre:series" content="Mistborn"/><meta name="calibre:series_index" content="1.0"/>
    <meta name="calibre:title_sort" content="Final Empire, The"/>
  </metadata><guide><reference type="cover" href="cover.jpg"/></guide></package>`

func TestReadPackage(t *testing.T) {
	pub, err := ReadPackage([]byte(besides), "metadata.opf", Limits{})
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(pub.Title, "|", pub.TitleSort, "|", pub.Series, "|", *pub.Position, "|", pub.Creators, "|", pub.ISBNs, "|", pub.Year, pub.Month, pub.Day,
		"|", pub.Publisher, "|", pub.Language, "|", pub.Subjects, "|", pub.Description, "|", pub.Warnings)
	if want := "The Final Empire|Final Empire, The|Mistborn|1|[{Brandon Sanderson Sanderson, Brandon aut}]|[9780765350381]|2006 7 17|Tor|eng|[Fantasy]|In a world|[]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	raw := strings.Replace(besides, "&lt;p&gt;In a world&lt;/p&gt;", "\n<div><p>In a <b>wor</b>ld</p><p>of ash<br/>and mist</p></div>", 1)
	if pub, err = ReadPackage([]byte(raw), "metadata.opf", Limits{}); err != nil || pub.Description != "In a world\nof ash\nand mist" {
		t.Errorf("markup that is not escaped: %q, %v", pub.Description, err)
	}
	for document, kind := range map[string]archive.Kind{
		"":        archive.Corrupt,
		"<html/>": archive.Corrupt,
		"<!DOCTYPE p [<!ENTITY a 'b'>]><package/>": archive.Corrupt,
		strings.Repeat(" ", 4<<20+1):               archive.TooLarge,
	} {
		if pub, err := ReadPackage([]byte(document), "metadata.opf", Limits{}); !errors.Is(err, &archive.Error{Kind: kind}) {
			t.Errorf("%.20q: %+v, %v; want %s", document, pub, err, kind)
		}
	}
}

func FuzzReadPackage(f *testing.F) {
	f.Add([]byte(besides))
	f.Add([]byte(`<package><metadata><dc-metadata><title id="a">T</title></dc-metadata><meta refines="#a" property="file-as">x</meta></metadata></package>`))
	f.Add([]byte(`<package><metadata><subject>` + strings.Repeat("a;b;;c;", 100) + `</subject></metadata></package>`))
	f.Fuzz(func(t *testing.T, document []byte) {
		pub, err := ReadPackage(document, "metadata.opf", Limits{})
		if (pub == nil) == (err == nil) || err != nil && !errors.As(err, new(*archive.Error)) {
			t.Fatalf("%v, %v", pub, err)
		}
	})
}

func FuzzOpen(f *testing.F) {
	manifest, spine := spread(2, "")
	f.Add([]byte(withOPF(fixed+`<dc:title id="t">T</dc:title><meta refines="#t" property="title-type">main</meta><dc:date>2012-01</dc:date>`, manifest, spine)[5]), []byte(xhtml(`<img src="../Images/1.jpg"/>`)))
	f.Add([]byte(`<package><metadata/><manifest><item id="cover" href="1.jpg"/></manifest><spine/><guide><reference type="cover" href="p.xhtml"/></guide></package>`), []byte(`<svg><image href="1.jpg"/></svg>`))
	f.Add([]byte(`<package><metadata/><manifest><item id="a" href="Text/p1.xhtml" media-type="`+strings.Repeat("x", 300)+`" properties="`+strings.Repeat("nav ", 100)+`"/></manifest>
		<spine>`+strings.Repeat(`<itemref idref="a"/>`, 50)+`</spine></package>`), []byte(`<html/>`))
	names := []string{"META-INF/container.xml", "OPS/p.opf", "OPS/Text/p1.xhtml", "OPS/Text/p2.xhtml", "OPS/Images/1.jpg", "OPS/Images/2.jpg"}
	f.Fuzz(func(t *testing.T, opf, document []byte) {
		content := map[string][]byte{names[0]: []byte(container), names[1]: opf, names[2]: document, names[3]: document}
		dir := &archive.Directory{}
		for _, n := range names {
			dir.Entries = append(dir.Entries, archive.Entry{Name: n, Size: int64(len(content[n]))})
		}
		pub, err := Open(dir, func(e archive.Entry) ([]byte, error) { return content[e.Name], nil }, Limits{})
		if (pub == nil) == (err == nil) {
			t.Fatalf("%v, %v", pub, err)
		}
		var e *archive.Error
		if err != nil && !errors.As(err, &e) {
			t.Errorf("untyped error %v", err)
		}
		if pub != nil && (len(pub.Spine) > pub.SpineCount || len(pub.Pages) > pub.SpineCount) {
			t.Errorf("%+v", pub)
		}
	})
}
