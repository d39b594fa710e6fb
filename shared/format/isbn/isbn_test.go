package isbn_test

import (
	"slices"
	"testing"

	"github.com/longbox/longbox/shared/format/isbn"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		value string
		named bool
		want  string
	}{
		{"978-0-7653-5038-1", false, "9780765350381"}, {"urn:isbn:9780765350381", false, "9780765350381"}, {"978\u20110\u20107653 50381", false, "9780765350381"},
		{"080442957X", true, "080442957X"}, {"080442957X", false, ""}, {"ISBN 0-8044-2957-x", false, "080442957X"}, {"9780765350382", true, ""},
		{"ISBN-13 978-0-7653-5038-1", false, "9780765350381"}, {"ISBN-10 0-8044-2957-X", false, "080442957X"}, {"ISBN13: 9780765350381", false, "9780765350381"},
		{"ISBN (13) 9780765350381", false, "9780765350381"}, {"isbn : 0-8044-2957-x", false, "080442957X"}, {"eISBN: 978-0-7653-5038-1", false, "9780765350381"},
		{"978\u20130\u20137653\u20135038\u20131", false, "9780765350381"}, {"ISBN\u00a0978\u00a00765350381", false, "9780765350381"}, {"ISBN 1032315571", false, "1032315571"},
		{"1234567890123", true, ""}, {"", true, ""}, {"978076535038", true, ""}, {"08044X957X", true, ""}, {"080442957:", true, ""}, {"9780765350060", true, "9780765350060"}, {"978076535006:", true, ""},
	} {
		if got := isbn.Parse(c.value, c.named); got != c.want {
			t.Errorf("Parse(%q, %v) = %q, want %q", c.value, c.named, got, c.want)
		}
	}
}

func TestWrong(t *testing.T) {
	for value, want := range map[string]bool{
		"9780765350381": false, "978-0-7653-5038-2": true, "9780765350X81": false, "080442957X": false, "0804429570": true, "080442957x": false,
		"ISBN 9780765350382": true, "urn:isbn:12": true, "ISBN 9780765350381": false,
		"759606089246": false, "759606089247": true, // a UPC
		"4910026721116": false, "4910026721112": true, // an EAN of a magazine
		"75960608924600111": false, "75960608924611": false, "0317-8471": false, // a UPC with a supplement, an ISSN
		"": false, "none": false, "B00ABCDEFG": false,
	} {
		if got := isbn.Wrong(value); got != want {
			t.Errorf("Wrong(%q) = %v", value, got)
		}
	}
}

func TestNamed(t *testing.T) {
	for value, want := range map[string]bool{"urn:isbn:1": true, " isbn 1": true, "ISBN-13: 1": true, "9780765350381": false, "urn:uuid:1": false, "": false} {
		if got := isbn.Named(value); got != want {
			t.Errorf("Named(%q) = %v", value, got)
		}
	}
}

func TestFind(t *testing.T) {
	for text, want := range map[string][]string{
		"Second edition, ISBN 0-8044-2957-X, e-book 978-0-7653-5038-1 (again 9780765350381)": {"080442957X", "9780765350381"},
		"phone 0804429570, order 97807653503810":                                             nil,
		"ISBN-13: 9780765350381.":                                                            {"9780765350381"},
		"ISBN-13 978-0-7653-5038-1, ISBN-10 0-8044-2957-X":                                   {"9780765350381", "080442957X"},
		"ISBN : 978–0–7653–5038–1 (ISBN 10: 0-8044-2957-X)":                                  {"9780765350381", "080442957X"},
		"": nil,
	} {
		if got := isbn.Find(text); !slices.Equal(got, want) {
			t.Errorf("Find(%q) = %q, want %q", text, got, want)
		}
	}
}
