package catalog

import (
	"encoding/json"
	"encoding/xml"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzFeed writes titles and summaries from files: both formats are readable, and equal.
func FuzzFeed(f *testing.F) {
	for _, seed := range [][2]string{{"Nine", "Of a hare"}, {"]]><script>alert(1)</script>", "<![CDATA[ & &amp; &#0;"}, {"a\x00b\x1f\r\n\t", "\xff\xfe\xed\xa0\x80"},
		{"\u202eevil\u2028", "\ufffe\uffff\U0010ffff"}, {`"'\`, "{{.}} ${x}"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, title, summary string) {
		shown := &feed{name: "search", title: title, site: title, path: "/search", reads: true, found: true,
			series: []series{{Title: title, Summary: &summary}}, books: []publication{{Title: title, Series: title, Summary: &summary, Publisher: &title, Format: "cbz"}}}
		w := httptest.NewRecorder()
		if err := writeAtom(w, shown); err != nil {
			t.Fatal(err)
		}
		var atom struct {
			Title   string `xml:"title"`
			Entries []struct {
				Title   string `xml:"title"`
				Content string `xml:"content"`
			} `xml:"entry"`
		}
		if err := xml.Unmarshal(w.Body.Bytes(), &atom); err != nil {
			t.Fatalf("%v: %q", err, w.Body)
		}
		wantTitle, wantSummary := strings.Map(inXML, title), strings.Map(inXML, summary)
		if len(atom.Entries) != 2 || atom.Title != wantTitle {
			t.Fatalf("%d entries, titled %q, want %q", len(atom.Entries), atom.Title, wantTitle)
		}
		for i, e := range atom.Entries {
			if about := wantSummary; e.Title != wantTitle || e.Content != about && (summary != "" || i == 1) {
				t.Errorf("entry %d: %q, %q, want %q, %q", i, e.Title, e.Content, wantTitle, about)
			}
		}

		w = httptest.NewRecorder()
		if err := writeOPDS2(w, shown); err != nil {
			t.Fatal(err)
		}
		var opds2 opds2Feed
		if err := json.Unmarshal(w.Body.Bytes(), &opds2); err != nil {
			t.Fatalf("%v: %q", err, w.Body)
		}
		if strings.ContainsAny(w.Body.String(), "<>&") {
			t.Errorf("a page that shows it as HTML would run it: %q", w.Body)
		}
		// Invalid UTF-8 becomes U+FFFD.
		whole := func(s string) string { return strings.Map(func(r rune) rune { return r }, s) }
		if got := opds2.Groups[1].Publications[0].Metadata; got.Title != whole(title) || got.About != whole(summary) {
			t.Errorf("%q, %q, want %q, %q", got.Title, got.About, title, summary)
		}
	})
}

// inXML returns the replacement for a character that XML 1.0 does not allow.
func inXML(r rune) rune {
	if r == '\t' || r == '\n' || r == '\r' || r >= 0x20 && r <= 0xd7ff || r >= 0xe000 && r <= 0xfffd || r >= 0x10000 && r <= 0x10ffff {
		return r
	}
	return utf8.RuneError
}
