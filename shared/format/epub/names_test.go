package epub

import (
	"testing"

	"github.com/longbox/longbox/shared/format/archive"
)

// Entries with percent-encoded names are found by the decoded name, after entries that have that name.
func TestNamesWithPercent(t *testing.T) {
	t.Parallel()
	dir := &archive.Directory{Entries: []archive.Entry{{Name: "a%20b.xhtml"}, {Name: "both%20.xhtml"}, {Name: "both .xhtml"}, {Name: "100%.jpg"},
		{Name: "%E6%BC%AB.jpg"}, {Name: "e%CC%81.jpg"}, {Name: "folder%20", Directory: true}}}
	names := NamesOf(dir)
	for name, want := range map[string]int{"a b.xhtml": 0, "A B.XHTML": 0, "a%20b.xhtml": 0, "both .xhtml": 2, "both%20.xhtml": 1, "100%.jpg": 3, "漫.jpg": 4,
		"é.jpg": 5, "folder ": -1, "100.jpg": -1} {
		if got := names.Find(name); got != want {
			t.Errorf("%q is entry %d, want %d", name, got, want)
		}
	}
	pub, _, err := open(t, Limits{}, withOPF("", `<item id="a" href="a%20b.xhtml" media-type="application/xhtml+xml"/>`, `<spine><itemref idref="a"/></spine>`,
		"OPS/a%20b.xhtml", xhtml("<p>text</p>"))...)
	if err != nil || len(pub.Spine) != 1 || pub.Spine[0].Entry.Name != "OPS/a%20b.xhtml" || len(pub.Warnings) > 0 {
		t.Errorf("%+v, %v", pub, err)
	}
}
