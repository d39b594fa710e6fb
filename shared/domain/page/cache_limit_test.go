package page

import (
	"testing"

	"github.com/google/uuid"
)

// The cache is limited by pages as well as by books: some books have 20,000 pages.
func TestIndexesOfManyPages(t *testing.T) {
	t.Parallel()
	f := NewFinder(nil)
	large := &Index{Names: make([]string, 20_000)}
	at := func() place { return place{book: uuid.New()} }
	first := at()
	for range 2 * maxPages / 20_000 { // the same one counts once
		f.keep(first, indexed{index: large})
	}
	for range maxPages/20_000 - 1 {
		f.keep(at(), indexed{index: large})
	}
	if len(f.indexes) != maxPages/20_000 || f.pages != maxPages {
		t.Errorf("%d indexes with %d pages, want %d with %d", len(f.indexes), f.pages, maxPages/20_000, maxPages)
	}
	f.drop(first)
	f.keep(at(), indexed{index: large})
	f.keep(at(), indexed{index: large})
	if len(f.indexes) != 1 || f.pages != 20_000 {
		t.Errorf("%d indexes with %d pages beyond the limit, want the last one alone", len(f.indexes), f.pages)
	}
	for range maxEntries + 5 {
		f.keep(at(), indexed{index: &Index{}})
	}
	if len(f.indexes) > maxEntries {
		t.Errorf("%d indexes, want at most %d", len(f.indexes), maxEntries)
	}
}
