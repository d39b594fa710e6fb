package scanner_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/testkit"
)

// opf is a package document as calibre writes it beside a book.
func opf(title, more string) []byte {
	return []byte(`<?xml version="1.0"?><package version="2.0"><metadata><dc:title>` + title + `</dc:title>` + more + `</metadata></package>`)
}

func (r *rig) remove(name string) {
	r.t.Helper()
	if err := os.Remove(filepath.Join(r.folder, name)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) one(sql string) string {
	r.t.Helper()
	return strings.Join(values[string](r, sql), "\n")
}

const bookTexts = `select concat_ws('|', b.title, b.number, m.metadata->>'publisher', m.metadata->>'summary', m.metadata->>'imprint', m.metadata->'authors'->0->>'name')
	from book b join book_metadata m on m.book_id = b.id where b.tenant_id = app.tenant() order by b.key`

// A package document beside a book speaks before its file, field by field, from the scan that finds it to the one that
// finds it gone; one that did not change is not read again.
func TestPackageDocumentOverrides(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	testkit.WriteFile(t, r.folder, "A/T (1)/T - A.cbz", testkit.Comic(t, 1, 2, `<Title>Inside</Title><Number>9</Number><Publisher>P</Publisher><Imprint>I</Imprint><Writer>W</Writer>`))
	r.scanned("normal")
	const inside = "Inside|9|P|I|W"
	if got := r.one(bookTexts); got != inside {
		t.Fatalf("before: %s", got)
	}
	testkit.WriteFile(t, r.folder, "A/T (1)/metadata.opf", opf("Beside", `<dc:publisher>Q</dc:publisher><dc:creator>C</dc:creator>
		<meta name="calibre:series" content="S"/><meta name="calibre:series_index" content="2.5"/>`))
	r.scanned("normal")
	if got := r.one(bookTexts); got != "Beside|2.5|Q|I|C" {
		t.Errorf("with metadata.opf: %s", got)
	}
	r.s3.Counter.Reset()
	r.scanned("normal")
	if gets := testkit.Objects(r.s3.Counter.Reset(), "GET"); len(gets) > 0 {
		t.Errorf("nothing changed, but %v was read", gets)
	}
	if _, err := r.db.Owner.Pool().Exec(t.Context(), "update book_metadata set locks = '{summaryLock}'"); err != nil {
		t.Fatal(err)
	}
	testkit.WriteFile(t, r.folder, "A/T (1)/metadata.opf", opf("Changed", `<dc:publisher>R</dc:publisher><dc:description>Locked out</dc:description>`))
	r.scanned("normal")
	if got := r.one(bookTexts); got != "Changed|9|R|I|W" {
		t.Errorf("changed: %s", got)
	}
	r.remove("A/T (1)/metadata.opf")
	r.scanned("normal")
	if got := r.one(bookTexts); got != inside {
		t.Errorf("gone: %s", got)
	}
	if n := values[int](r, "select count(*) from sidecar where tenant_id = app.tenant()"); n[0] != 0 {
		t.Errorf("%d sidecars are left", n[0])
	}
}

// The document of a single book counts more than that of its folder; both speak of the books of their folder only.
func TestPackageDocumentOfOneBook(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i, name := range []string{"S/a.cbz", "S/a.more.cbz", "S/b.cbz", "S/deeper/c.cbz"} {
		testkit.WriteFile(t, r.folder, name, testkit.Comic(t, i+1, 2, ""))
	}
	testkit.WriteFile(t, r.folder, "S/metadata.opf", opf("Folder", ""))
	testkit.WriteFile(t, r.folder, "S/a.opf", opf("Own", ""))
	r.scanned("normal")
	if got := values[string](r, "select title from book where tenant_id = app.tenant() order by key"); !slices.Equal(got, []string{"Own", "Folder", "Folder", "c"}) {
		t.Errorf("titles %q", got)
	}
	r.remove("S/a.opf")
	r.scanned("normal")
	if got := values[string](r, "select title from book where tenant_id = app.tenant() order by key"); !slices.Equal(got, []string{"Folder", "Folder", "Folder", "c"}) {
		t.Errorf("titles %q", got)
	}
}

// What the document of a single book does not say, or does not say any more, that of its folder does: a field comes
// from the first that has it.
func TestPackageDocumentsOfBookAndFolder(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	testkit.WriteFile(t, r.folder, "S/a.cbz", testkit.Comic(t, 1, 2, `<Title>Inside</Title><Publisher>P</Publisher><Imprint>I</Imprint>`))
	testkit.WriteFile(t, r.folder, "S/metadata.opf", opf("Folder", `<dc:publisher>Q</dc:publisher><meta name="calibre:title_sort" content="Folder, The"/>`))
	testkit.WriteFile(t, r.folder, "S/a.opf", opf("Own", ""))
	for _, c := range []struct {
		change func()
		want   string
	}{
		{func() {}, "Own|1|Q|I"},
		{func() {
			testkit.WriteFile(t, r.folder, "S/metadata.opf", opf("Folder", "<dc:publisher>Changed</dc:publisher>"))
		}, "Own|1|Changed|I"},
		{func() { testkit.WriteFile(t, r.folder, "S/a.opf", []byte("<package")) }, "Folder|1|Changed|I"},
		{func() { testkit.WriteFile(t, r.folder, "S/a.opf", opf("Own", "<dc:publisher>R</dc:publisher>")) }, "Own|1|R|I"},
		{func() { r.remove("S/metadata.opf") }, "Own|1|R|I"},
		{func() { r.remove("S/a.opf") }, "Inside|1|P|I"},
	} {
		c.change()
		r.scanned("normal")
		if got := r.one(bookTexts); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
		if sort := r.one("select coalesce(metadata->>'titleSort', '') from book_metadata where tenant_id = app.tenant()"); sort != "" {
			t.Errorf("sorted by %q, which is said of another title", sort)
		}
	}
	r.s3.Counter.Reset()
	r.scanned("normal")
	if gets := testkit.Objects(r.s3.Counter.Reset(), "GET"); len(gets) > 0 {
		t.Errorf("nothing changed, but %v was read", gets)
	}
}

// calibre's from_metadata takes the series from the document, and readOpfMetadata turns it off.
func TestCalibreReadsPackageDocuments(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		`{"seriesMode": "from_metadata"}`:                           "Mistborn|Beside",
		`{"seriesMode": "from_metadata", "readOpfMetadata": false}`: "Title|Inside",
	} {
		r := newRig(t)
		r.choose("calibre", config, "metadata_first", "", "file_order")
		testkit.WriteFile(t, r.folder, "A/Title (1)/x.cbz", testkit.Comic(t, 1, 2, `<Title>Inside</Title>`))
		testkit.WriteFile(t, r.folder, "A/Title (1)/metadata.opf", opf("Beside", `<meta name="calibre:series" content="Mistborn"/>`))
		r.scanned("normal")
		got := r.one(`select s.title || '|' || b.title from book b join series s on s.id = b.series_id where b.tenant_id = app.tenant()`)
		if got != want {
			t.Errorf("%s: %s, want %s", config, got, want)
		}
	}
}

// The folder's author gives way to those of the book, who have names to sort by and roles; an edit does not.
func TestCalibreAuthors(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.choose("calibre", "", "metadata_first", "", "file_order")
	testkit.WriteFile(t, r.folder, "Ann Lee/None (1)/x.cbz", testkit.Comic(t, 1, 2, ""))
	for i, title := range []string{"Edited (2)", "Own (3)"} {
		testkit.WriteFile(t, r.folder, "Ann Lee/"+title+"/x.cbz", testkit.Comic(t, i+2, 2, ""))
	}
	r.scanned("normal")
	if _, err := r.db.Owner.Pool().Exec(t.Context(), `update series set authors = '[{"name": "Somebody", "role": "writer"}]', locks = '{authorsJsonLock}' where path like '%Edited%'`); err != nil {
		t.Fatal(err)
	}
	for _, title := range []string{"Edited (2)", "Own (3)"} {
		testkit.WriteFile(t, r.folder, "Ann Lee/"+title+"/metadata.opf", opf("T", `<dc:creator opf:file-as="Lee, Ann" opf:role="aut" xmlns:opf="http://www.idpf.org/2007/opf">Ann Lee</dc:creator>`))
	}
	r.scanned("normal")
	const authors = `select authors::text from series where tenant_id = app.tenant() order by path`
	want := []string{`[{"name": "Somebody", "role": "writer"}]`, `[{"name": "Ann Lee", "role": "writer"}]`, `[{"name": "Ann Lee", "role": "writer", "sortName": "Lee, Ann"}]`}
	if got := values[string](r, authors); !slices.Equal(got, want) {
		t.Errorf("authors\n%q, want\n%q", got, want)
	}
}

// A document that cannot be read is a warning on the book.
func TestBrokenPackageDocument(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, document := range map[string]string{"a": "<package", "b": "", "c": `<!DOCTYPE p [<!ENTITY x SYSTEM "file:///etc/passwd">]><package/>`,
		"d": strings.Repeat(" ", 5<<20)} {
		testkit.WriteFile(t, r.folder, name+"/book.cbz", testkit.Comic(t, int(name[0]), 2, ""))
		testkit.WriteFile(t, r.folder, name+"/metadata.opf", []byte(document))
	}
	r.s3.Counter.Reset()
	r.scanned("normal")
	for _, get := range testkit.Objects(r.s3.Counter.Reset(), "GET") {
		if strings.HasSuffix(get.Path, "d/metadata.opf") || strings.HasSuffix(get.Path, "b/metadata.opf") {
			t.Errorf("%s was read", get.Path)
		}
	}
	got := values[string](r, "select warnings[1] from book_metadata m join book b on b.id = m.book_id where b.tenant_id = app.tenant() order by b.key")
	for i, want := range []string{"metadata.opf was not read", "metadata.opf is empty", "DTD", "the limit is"} {
		if len(got) != 4 || !strings.Contains(got[i], want) {
			t.Errorf("warnings %q", got)
			break
		}
	}
}

const seriesTexts = `select concat_ws('|', coalesce(publisher, '-'), coalesce(year::text, '-'), coalesce(summary, '-'), coalesce(status, '-'), coalesce(age_rating::text, '-'),
	coalesce(total_chapter_count::text, '-')) from series where tenant_id = app.tenant() order by path`

// series.json fills what the books leave empty and nobody has locked, and takes it back.
func TestSeriesJSON(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	testkit.WriteFile(t, r.folder, "S/1.cbz", testkit.Comic(t, 1, 2, `<Publisher>Book</Publisher>`))
	testkit.WriteFile(t, r.folder, "S/series.json", []byte(`{"metadata": {"publisher": "Mylar", "year": 2012, "status": "Ended", "description_text": "D", "age_rating": "Teen", "total_issues": 12}}`))
	testkit.WriteFile(t, r.folder, "T/1.cbz", testkit.Comic(t, 2, 2, ""))
	testkit.WriteFile(t, r.folder, "T/series.json", []byte(`{"metadata": {"publisher": "Other"}}`))
	r.scanned("normal")
	if got := r.one(seriesTexts); got != "Book|2012|D|ended|13|12\nOther|-|-|-|-|-" {
		t.Fatalf("filled: %s", got)
	}
	r.scanned("deep")
	if got := r.one(seriesTexts); got != "Book|2012|D|ended|13|12\nOther|-|-|-|-|-" {
		t.Errorf("again: %s", got)
	}
	if _, err := r.db.Owner.Pool().Exec(t.Context(), "update series set locks = '{summary}'"); err != nil {
		t.Fatal(err)
	}
	testkit.WriteFile(t, r.folder, "S/series.json", []byte(`{"metadata": {"year": 2013, "status": "Continuing", "description_text": "E"}}`))
	r.scanned("normal")
	if got := r.one(seriesTexts); got != "Book|2013|D|ongoing|-|-\nOther|-|-|-|-|-" {
		t.Errorf("changed: %s", got)
	}
	r.remove("S/series.json")
	r.remove("T/series.json")
	r.scanned("normal")
	if got := r.one(seriesTexts); got != "Book|-|D|-|-|-\n-|-|-|-|-|-" {
		t.Errorf("gone: %s", got)
	}
	r.exec("update series set locks = '{}' where tenant_id = $1", r.tenant)
	r.scanned("deep")
	if got := r.one(seriesTexts); got != "Book|-|-|-|-|-\n-|-|-|-|-|-" {
		t.Errorf("no longer locked: %s", got)
	}
}

// An age rating that is not known is left out with a warning, as other values are; one that says that there is none
// without.
func TestSeriesDocumentWithAnAgeRatingThatIsNotKnown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i, c := range []struct{ folder, age string }{{"A", "Mature"}, {"B", "Rating Pending"}, {"C", "unknown"}, {"D", "Teen"},
		{"E", "All"}, {"F", "Adult"}} {
		testkit.WriteFile(t, r.folder, c.folder+"/01.cbz", testkit.Comic(t, i, 1, ""))
		testkit.WriteFile(t, r.folder, c.folder+"/series.json", []byte(`{"metadata": {"publisher": "P", "age_rating": "`+c.age+`"}}`))
	}
	r.scanned("normal")
	want := `A: P, ?, series.json: age_rating: "Mature" is neither an age nor an age rating of ComicInfo` + "\nB: P, ?, \nC: P, ?, \nD: P, 13, \nE: P, 0, \nF: P, 18, "
	if got := r.one(`select s.path || ': ' || s.publisher || ', ' || coalesce(s.age_rating::text, '?') || ', ' || coalesce(k.problem, '')
		from series s join sidecar k on k.about = s.path where s.tenant_id = app.tenant() order by s.path`); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Listeners are told which fields a series.json changed, and of none where it is read again and says the same.
func TestSeriesDescriptionTellsWhatChanged(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	testkit.WriteFile(t, r.folder, "S/1.cbz", testkit.Comic(t, 1, 2, ""))
	r.scanned("normal")
	for _, c := range []struct{ mode, says, want string }{
		{"normal", `{"metadata": {"publisher": "Mylar", "year": 2012}}`, "publisher year"},
		{"deep", `{"metadata": {"publisher": "Mylar", "year": 2012}}`, ""},
		{"normal", `{"metadata": {"publisher": "Mylar", "year": 2013, "status": "Ended"}}`, "status year"},
	} {
		testkit.WriteFile(t, r.folder, "S/series.json", []byte(c.says))
		r.mu.Lock()
		r.events = nil
		r.mu.Unlock()
		r.scanned(c.mode)
		var told []string
		r.mu.Lock()
		for _, e := range r.events {
			var d struct{ Fields []string }
			if data, err := json.Marshal(e.Data); err != nil || json.Unmarshal(data, &d) != nil {
				t.Errorf("%v: %v", e, err)
			} else if e.Kind == "series_updated" {
				told = append(told, d.Fields...)
			}
		}
		r.mu.Unlock()
		if got := strings.Join(told, " "); got != c.want {
			t.Errorf("%s after a %s scan: changed %q, want %q", c.says, c.mode, got, c.want)
		}
	}
}

// A series.json that cannot be read says so and changes nothing else; a picture that is none is no cover.
func TestBrokenSeriesFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	testkit.WriteFile(t, r.folder, "S/1.cbz", testkit.Comic(t, 1, 2, ""))
	testkit.WriteFile(t, r.folder, "S/series.json", []byte(`{"metadata": `))
	testkit.WriteFile(t, r.folder, "S/cover.jpg", []byte("no picture"))
	testkit.WriteFile(t, r.folder, "S/poster.png", testkit.JPEG(t, 20, 30, 1))
	r.scanned("normal")
	got := r.one("select key || ': ' || coalesce(problem, '') || (document is not null) from sidecar where tenant_id = app.tenant() and not pending order by key")
	if want := "S/cover.jpg: cover.jpg is not an image that can be shownfalse\nS/poster.png: true\nS/series.json: series.json was not read: "; !strings.HasPrefix(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// An empty listing takes nothing away.
func TestLostListingKeepsSidecars(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	testkit.WriteFile(t, r.folder, "S/1.cbz", testkit.Comic(t, 1, 2, ""))
	testkit.WriteFile(t, r.folder, "S/series.json", []byte(`{"metadata": {"publisher": "P"}}`))
	r.scanned("normal")
	r.remove("S/1.cbz")
	r.remove("S/series.json")
	if res := r.scan("normal"); res.Status != "failed" {
		t.Fatalf("%+v", res)
	}
	if got := r.one(seriesTexts); got != "P|-|-|-|-|-" {
		t.Errorf("%s", got)
	}
}

// A book that the store did not give when a new package document was taken in is read with it by the next scan, also
// where others have been.
func TestPackageDocumentIsCaughtUpWith(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec("alter table task alter max_attempts set default 1")
	for i, name := range []string{"S/a.cbz", "S/b.cbz", "S/deeper/c.cbz"} {
		testkit.WriteFile(t, r.folder, name, testkit.Comic(t, i+1, 2, ""))
	}
	r.scan("normal")
	r.failing("S/b.cbz")
	testkit.WriteFile(t, r.folder, "S/metadata.opf", opf("Folder", ""))
	if res := r.scan("normal"); res.Status != "completed" || res.Errors != 1 {
		t.Errorf("while the store fails: %+v", res)
	}
	r.failing("nothing")
	if res := r.scan("normal"); res.Status != "completed" || res.Errors != 0 {
		t.Errorf("with the store: %+v", res)
	}
	if got := r.one("select title from book where tenant_id = app.tenant() order by key"); got != "Folder\nFolder\nc" {
		t.Errorf("titles: %q", got)
	}
	r.s3.Counter.Reset()
	r.scan("normal")
	if gets := testkit.Objects(r.s3.Counter.Reset(), "GET"); len(gets) > 0 {
		t.Errorf("nothing is left to do, but %v was read", gets)
	}
}
