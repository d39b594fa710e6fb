package webpub

import (
	"testing"

	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/format/epub"
)

// Long documents have many positions, a fixed-layout page one, and a book of any size a limited number.
func TestPlaces(t *testing.T) {
	t.Parallel()
	document := func(packed int64, fixed bool) epub.Item {
		return epub.Item{Entry: archive.Entry{CompressedSize: packed}, PrePaginated: fixed}
	}
	huge := make([]epub.Item, 10)
	for n := range huge {
		huge[n] = document(1<<30, false)
	}
	for name, c := range map[string]struct {
		spine []epub.Item
		least int
		most  int
	}{
		"nothing":              {nil, 0, 0},
		"an empty document":    {[]epub.Item{document(0, false)}, 1, 1},
		"one of a kilobyte":    {[]epub.Item{document(1024, false)}, 1, 1},
		"one of a byte more":   {[]epub.Item{document(1025, false)}, 2, 2},
		"a page of a comic":    {[]epub.Item{document(90_000, true)}, 1, 1},
		"several":              {[]epub.Item{document(3000, false), document(500, false), document(90_000, true)}, 5, 5},
		"one of ten gigabytes": {huge, maxPositions, maxPositions + len(huge)},
	} {
		step, total := stepOf(c.spine), 0
		for _, it := range c.spine {
			total += placesOf(it, step)
		}
		if total < c.least || total > c.most {
			t.Errorf("%s: %d places, want %d to %d", name, total, c.least, c.most)
		}
	}
}

// A partially known date becomes a full one: apps such as Komelia refuse a manifest with another.
func TestPublished(t *testing.T) {
	t.Parallel()
	n := func(n int32) *int32 { return &n }
	for _, c := range []struct {
		row  row
		want string
	}{
		{row{}, ""}, {row{Month: n(5)}, ""}, {row{Year: n(2012)}, "2012-01-01"}, {row{Year: n(812), Day: n(3)}, "0812-01-01"}, {row{Year: n(2012), Month: n(5)}, "2012-05-01"},
		{row{Year: n(2012), Month: n(5), Day: n(9)}, "2012-05-09"}, {row{Year: n(2023), Month: n(2), Day: n(30)}, "2023-02-01"}, {row{Year: n(12012)}, ""},
	} {
		if got := c.row.published(); got != c.want {
			t.Errorf("%v %v %v: %q, want %q", c.row.Year, c.row.Month, c.row.Day, got, c.want)
		}
	}
}

func TestPeople(t *testing.T) {
	t.Parallel()
	r := row{Authors: []author{{"A", "writer"}, {"B", ""}, {"C", "inker"}, {"D", "author"}}}
	if got := r.by("author", "co_author", "writer"); len(got) != 3 || got[0] != "A" || got[1] != "B" || got[2] != "D" {
		t.Errorf("authors: %v", got)
	}
	if got := r.by("inker"); len(got) != 1 || got[0] != "C" {
		t.Errorf("inkers: %v", got)
	}
}
