package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"github.com/longbox/longbox/shared/testkit"
)

// Files write accents in one character or two: the names are the same, and all are found.
func TestNamesInComposedCharacters(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin := s.as("admin")
	long := strings.Repeat("é", 200)
	const info = `<Genre>Comédie, %s</Genre><Tags>Été</Tags><Publisher>Éditions</Publisher><Imprint>Légende</Imprint><Writer>René</Writer>
		<AlternateSeries>Épée</AlternateSeries>`
	for i, form := range []norm.Form{norm.NFC, norm.NFD} {
		testkit.WriteFile(t, s.folder, fmt.Sprintf("S%d/S 1.cbz", i), testkit.Comic(t, i+1, 2, form.String(fmt.Sprintf(info, long))))
	}
	testkit.WriteFile(t, s.folder, "S2/S 1.cbz", testkit.Comic(t, 3, 2, ""))
	testkit.WriteFile(t, s.folder, "S2/S 1.opf", []byte(norm.NFD.String(`<package version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>S 1</dc:title>
		<dc:creator>René</dc:creator><dc:subject>Comédie</dc:subject></metadata></package>`)))
	testkit.WriteFile(t, s.folder, "S2/series.json", []byte(norm.NFD.String(`{"metadata": {"publisher": "Éditions"}}`)))
	library := s.library(admin, "Books", "")
	s.scan(admin, library)
	total := func(method, path string, body any) float64 {
		t.Helper()
		return admin.Do(method, "/api/v1"+path, body).Want(200).Map()["total"].(float64)
	}
	is := func(what string, got, want float64) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	where := func(field, value string) string {
		return fmt.Sprintf(`{"condition": {%q: {"operator": "is", "value": %q}}}`, field, value)
	}
	is("genres", total("GET", "/genres", nil), 2)
	is("tags", total("GET", "/tags", nil), 1)
	is("series of a genre", total("GET", "/series?genres=com%C3%A9die", nil), 3)
	is("series of a long genre", total("GET", "/series?genres="+long, nil), 2)
	is("series of a tag", total("GET", "/series?tags=%C3%89t%C3%A9", nil), 2)
	is("series of a publisher", total("POST", "/series/list", where("publisher", "Éditions")), 3)
	is("series of an author", total("POST", "/series/list", where("author", "René")), 3)
	is("books of an author", total("POST", "/books/list", where("author", "René")), 3)
	stored := func() (out []string) {
		t.Helper()
		if err := s.DB.Owner.Pool().QueryRow(t.Context(), `select array_agg(concat_ws('|', s.xmin::text, publisher, imprint, authors, a.title) order by s.path)
			from series s left join alternate_title a on a.series_id = s.id`).Scan(&out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	before := stored()
	for _, text := range before {
		if !norm.NFC.IsNormalString(text) {
			t.Errorf("stored is %q", text)
		}
	}
	s.scanOf(admin, library, "?mode=deep")
	if after := stored(); !slices.Equal(after[:2], before[:2]) {
		t.Errorf("the series are written again: %q, %q", before, after)
	}
}
