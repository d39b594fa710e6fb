package analysis_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/longbox/longbox/shared/domain/analysis"
	"github.com/longbox/longbox/shared/format/epub"
	"github.com/longbox/longbox/shared/testkit"
)

// sidecar reads a package document with the given metadata.
func sidecar(t *testing.T, metadata string) *analysis.Sidecar {
	t.Helper()
	s, err := analysis.ReadSidecar([]byte("<package><metadata>"+metadata+"</metadata></package>"), "metadata.opf", epub.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The author of a book is its writer, as for a comic. Makers of the file are ignored.
func TestPeople(t *testing.T) {
	for metadata, want := range map[string]string{
		`<dc:creator>A</dc:creator><dc:creator opf:role="aut" opf:file-as="B, X">X B</dc:creator><dc:creator opf:role="marc:relators:ill">C</dc:creator>`: "A writer, X B writer (B, X), C illustrator",
		`<dc:contributor opf:role="bkp">calibre (5.0) [https://calibre-ebook.com]</dc:contributor>`:                                                       "",
		`<dc:creator opf:role="http://id.loc.gov/vocabulary/relators/mfr">A</dc:creator><dc:contributor opf:role="Publisher">B</dc:contributor>`:          "",
		`<dc:creator opf:role="aui">A</dc:creator><dc:contributor>B</dc:contributor><dc:contributor opf:role="aut">C</dc:contributor>`:                    "A contributor, B contributor, C writer",
		`<dc:creator id="a">A</dc:creator><meta refines="#a" property="role">aut</meta><meta refines="#a" property="role">prt</meta>
			<meta refines="#a" property="role">ill</meta><meta refines="#a" property="role">art</meta><dc:contributor opf:role="aut">A</dc:contributor>`: "A writer, A illustrator",
		`<dc:contributor id="a">A</dc:contributor><meta refines="#a" property="role">edt</meta><meta refines="#a" property="role">trl</meta>`:                                  "A editor, A translator",
		`<dc:creator opf:role="pnc">A</dc:creator><dc:creator opf:role="ltr">B</dc:creator><dc:creator opf:role="pen">C</dc:creator><dc:creator opf:role="let">D</dc:creator>`: "A penciller, B letterer, C penciller, D letterer",
		`<dc:creator opf:role="Penciler">A</dc:creator><dc:creator opf:role="colourist">B</dc:creator><dc:creator opf:role="cover artist">C</dc:creator>`:                      "A penciller, B colorist, C cover_artist",
	} {
		s := sidecar(t, metadata)
		var got []string
		for _, a := range s.Metadata.Authors {
			one := a.Name + " " + a.Role
			if a.SortName != nil {
				one += " (" + *a.SortName + ")"
			}
			if got = append(got, one); a.Role == "translator" && s.Metadata.Translator != a.Name {
				t.Errorf("%s: translator %q", metadata, s.Metadata.Translator)
			}
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: %s; want %s", metadata, strings.Join(got, ", "), want)
		}
	}
}

// A file can name as many people and subjects as people can give a book, and no longer ones.
func TestManyPeople(t *testing.T) {
	long := strings.Repeat("é", 600)
	names := func(between string) string {
		list := []string{long}
		for i := range 1000 {
			list = append(list, fmt.Sprintf("N%d", i))
		}
		return strings.Join(list, between)
	}
	opf := sidecar(t, `<dc:creator opf:file-as="`+long+`">`+names("</dc:creator><dc:creator>")+"</dc:creator><dc:subject>"+names(";")+"</dc:subject>")
	for kind, m := range map[string]analysis.Metadata{
		"OPF":           opf.Metadata,
		"ComicInfo.xml": read(t, "a.cbz", testkit.Comic(t, 1, 1, "<Writer>"+names(",")+"</Writer><Penciller>"+names(",")+"</Penciller>")).Metadata,
		"PDF":           read(t, "a.pdf", document("/Author("+names(";")+")/Keywords("+names(";")+")")).Metadata,
	} {
		if len(m.Authors) != 200 || utf8.RuneCountInString(m.Authors[0].Name) != 500 || m.Authors[199].Name != "N198" {
			t.Errorf("%s: %d people", kind, len(m.Authors))
		}
		if s := m.Subjects; kind != "ComicInfo.xml" && (len(s) != 200 || utf8.RuneCountInString(s[0]) != 500 || s[199] != "N198") {
			t.Errorf("%s: %d subjects", kind, len(s))
		}
	}
	if s := opf.Metadata.Authors[0].SortName; utf8.RuneCountInString(*s) != 500 || len(opf.Genres) != 1000 {
		t.Errorf("a name for sorting of %d bytes, %d genres", len(*s), len(opf.Genres))
	}
}

// A tag that names no language is valid, but sets none.
func TestNoLanguage(t *testing.T) {
	for _, c := range []struct {
		metadata, want string
		warnings       int
	}{
		{"<dc:language>und</dc:language>", "", 0}, {"<dc:language>UND-Latn</dc:language>", "", 0}, {"<dc:language>zxx</dc:language>", "", 0},
		{"<dc:language>mul</dc:language><dc:language>fr</dc:language>", "fr", 0}, {"<dc:language>klingonish</dc:language>", "", 1},
		{"<dc:language>mis</dc:language>", "", 0}, {"<dc:language>mus</dc:language>", "mus", 0},
	} {
		if s := sidecar(t, c.metadata); s.Metadata.LanguageISO != c.want || len(s.Warnings) != c.warnings {
			t.Errorf("%s: %q, warnings %q", c.metadata, s.Metadata.LanguageISO, s.Warnings)
		}
	}
}

// A number may be negative, for an issue before the first.
func TestNegativeNumber(t *testing.T) {
	res := read(t, "a.cbz", testkit.Comic(t, 1, 2, "<Number>-1</Number>"))
	if m := res.Metadata; res.Number == nil || *res.Number != -1 || m.Number != "-1" || *m.Chapter != -1 || *m.SeriesPosition != -1 {
		t.Errorf("%v, %+v", res.Number, m)
	}
}

// A book has one link from ComicInfo; further addresses go to the custom metadata.
func TestSeveralAddresses(t *testing.T) {
	for web, want := range map[string]string{
		"https://a.example/1": "https://a.example/1 map[]",
		"https://a.example/1 ftp://x.example https://b.example/2,http://c.example": "https://a.example/1 map[comicinfo:map[web:[https://b.example/2 http://c.example]]]",
	} {
		res := read(t, "a.cbz", testkit.Comic(t, 1, 2, "<Web>"+web+"</Web>"))
		if got := fmt.Sprint(res.Link, " ", res.Metadata.Custom); got != want {
			t.Errorf("%s: %s; want %s", web, got, want)
		}
	}
}

// GTIN is an ISBN, another number or, with a wrong check digit, a warning.
func TestGTIN(t *testing.T) {
	for gtin, want := range map[string]string{
		"978-0-7653-5038-1": `["9780765350381"] {"comicinfo":{"gtin":"978-0-7653-5038-1"}} `,
		"0-8044-2957-X":     `["080442957X"] {"comicinfo":{"gtin":"0-8044-2957-X"}} `,
		"759606089246":      ` {"comicinfo":{"gtin":"759606089246"}} `,
		"978-0-7653-5038-2": ` null GTIN: "978-0-7653-5038-2" is not a valid ISBN or GTIN`,
		"759606089247":      ` null GTIN: "759606089247" is not a valid ISBN or GTIN`,
	} {
		res := read(t, "a.cbz", testkit.Comic(t, 1, 2, "<GTIN>"+gtin+"</GTIN>"))
		custom, err := json.Marshal(res.Metadata.Custom)
		if err != nil {
			t.Fatal(err)
		}
		if got := res.Metadata.ISBNs + " " + string(custom) + " " + strings.Join(res.Warnings, ", "); got != want {
			t.Errorf("%s: %s; want %s", gtin, got, want)
		}
	}
}

// What belongs to a title, series, number or date that a sidecar replaces goes with it; the rest of the file's fields
// stays.
func TestOverride(t *testing.T) {
	const index, collection = `<meta name="calibre:series_index" content="2.5"/>`, `<meta name="calibre:series" content="`
	for metadata, want := range map[string]string{
		`<dc:publisher>Q</dc:publisher>`:   "Inside, Inside sort, Cosmere 7 7 7 7, 2006 7 17, map[epub:map[rating:4 rights:Mine]]",
		`<dc:title>Other</dc:title>`:       "Other, , Cosmere 7 7 7 7, 2006 7 17, map[epub:map[rating:4 rights:Mine]]",
		`<dc:date>2010</dc:date>`:          "Inside, Inside sort, Cosmere 7 7 7 7, 2010 <nil> <nil>, map[epub:map[rating:4 rights:Mine]]",
		`<dc:date>2006</dc:date>`:          "Inside, Inside sort, Cosmere 7 7 7 7, 2006 7 17, map[epub:map[rating:4 rights:Mine]]",
		`<dc:date>2006-08</dc:date>`:       "Inside, Inside sort, Cosmere 7 7 7 7, 2006 8 <nil>, map[epub:map[rating:4 rights:Mine]]",
		`<dc:date>2010-07-18</dc:date>`:    "Inside, Inside sort, Cosmere 7 7 7 7, 2010 7 18, map[epub:map[rating:4 rights:Mine]]",
		collection + `Mistborn"/>`:         "Inside, Inside sort, Mistborn <nil>  <nil> <nil>, 2006 7 17, map[epub:map[rating:4 rights:Mine]]",
		collection + `cosmere"/>`:          "Inside, Inside sort, cosmere 7 7 7 7, 2006 7 17, map[epub:map[rating:4 rights:Mine]]",
		collection + `Mistborn"/>` + index: "Inside, Inside sort, Mistborn 2.5 2.5 2.5 <nil>, 2006 7 17, map[epub:map[rating:4 rights:Mine]]",
		collection + `Cosmere"/>` + index:  "Inside, Inside sort, Cosmere 2.5 2.5 2.5 <nil>, 2006 7 17, map[epub:map[rating:4 rights:Mine]]",
		`<meta name="calibre:series_index" content="7"/>` + collection + `Cosmere"/>`: "Inside, Inside sort, Cosmere 7 7 7 7, 2006 7 17, map[epub:map[rating:4 rights:Mine]]",
		`<dc:rights>Theirs</dc:rights>`:                                               "Inside, Inside sort, Cosmere 7 7 7 7, 2006 7 17, map[epub:map[rating:4 rights:Theirs]]",
	} {
		r := analysis.Result{Number: new(7.0), Metadata: analysis.Metadata{Title: "Inside", TitleSort: "Inside sort", Series: "Cosmere", SeriesPosition: new(7.0), Number: "7", Chapter: new(7.0),
			Year: new(2006), Month: new(7), Day: new(17), Custom: map[string]any{"epub": map[string]any{"rating": 4, "rights": "Mine"}}}}
		r.Override(sidecar(t, metadata))
		m := r.Metadata
		got := fmt.Sprintf("%s, %s, %s %s %s %s %s, %s %s %s, %v", m.Title, m.TitleSort, m.Series, text(m.SeriesPosition), m.Number, text(r.Number), text(m.Chapter), text(m.Year), text(m.Month), text(m.Day), m.Custom)
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", metadata, got, want)
		}
	}
}

// text returns the value of a pointer as text.
func text[T any](v *T) string {
	if v == nil {
		return "<nil>"
	}
	return fmt.Sprint(*v)
}
