package page

import (
	"strings"
	"testing"
)

// What stands in the archive of a series is a plain name everywhere, of each file another one.
func TestNamesInTheArchiveOfASeries(t *testing.T) {
	t.Parallel()
	taken := map[string]bool{}
	for _, one := range [][2]string{{"a.cbz", "a.cbz"}, {"A.cbz", "A (2).cbz"}, {`..\..\a.cbz`, ".._.._a.cbz"}, {"new\nline\x7f.cbz", "new_line_.cbz"},
		{"new_line_.cbz", "new_line_ (2).cbz"}, {"é #1? 100%.cbz", "é #1? 100%.cbz"}} {
		if got := name(one[0], taken); got != one[1] {
			t.Errorf("%q is called %q, want %q", one[0], got, one[1])
		}
	}
}

func TestNameOfTheArchiveOfASeries(t *testing.T) {
	t.Parallel()
	for title, want := range map[string]string{
		"Fate/stay night":        "Fate_stay night",
		`a\b`:                    "a_b",
		strings.Repeat("é", 200): strings.Repeat("é", 120),
	} {
		if got := fileName(title); got != want {
			t.Errorf("%s: %s, want %s", title, got, want)
		}
	}
}
