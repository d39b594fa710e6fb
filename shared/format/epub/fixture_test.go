package epub

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/testkit"
)

// openFile opens an EPUB as from an object store and counts the entries read.
func openFile(t *testing.T, path string) (*Publication, int, error) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	tail := make([]byte, min(info.Size(), archive.TailBytes))
	if _, err := f.ReadAt(tail, info.Size()-int64(len(tail))); err != nil {
		t.Fatal(err)
	}
	dir, err := archive.ReadDirectory(tail, info.Size(), archive.Limits{}, nil)
	if err != nil {
		return nil, 0, err
	}
	reads := 0
	pub, err := Open(dir, func(e archive.Entry) ([]byte, error) {
		reads++
		r, err := e.Open(io.NewSectionReader(f, e.Offset, e.Length), archive.Limits{})
		if err != nil {
			return nil, err
		}
		return io.ReadAll(r)
	}, Limits{})
	return pub, reads, err
}

func TestFixtures(t *testing.T) {
	t.Parallel()
	root := testkit.Fixtures(t)
	for _, tt := range []struct {
		name, title, language, direction, cover string
		creator, role                           string
		year, month, day                        int
		fixed                                   bool
		spine, pages, maxReads                  int
	}{
		{"library/books/Arabic/Regime Anticancer.epub", "Le Vrai Régime anti-cancer", "ar", "rtl", "EPUB/Image/cover.jpg", "Pr David Khayat", "aut", 2012, 0, 0, false, 3, 0, 3},
		{"library/books/Boulet/Page Blanche (fixed layout).epub", "Page Blanche", "fr", "", "EPUB/Image/cover.jpg", "Boulet", "aut", 2012, 1, 18, true, 10, 9, 12},
		{"library/books/Cole/The Voyage of Life.epub", "Thomas Cole - The Voyage of Life", "en-US", "", "EPUB/images/portrait.jpg", "Jesse Dylan", "", 0, 0, 0, false, 10, 0, 3},
		{"library/books/Hefty/Hefty Water.epub", "Hefty Water", "en", "", "", "", "", 2012, 3, 29, false, 1, 0, 2},
		{"library/books/Loti/Sous le vent.epub", "Sous le vent", "fr", "", "EPUB/Image/9782709641609_Couv.jpg", "Jean-Bernard Pouy", "aut", 2012, 2, 1, true, 13, 0, 3},
		{"library/books/Ootuya/ハルコさんの彼氏.epub", "ハルコさんの彼氏", "ja-jp", "rtl", "OPS/images/01.jpg", "", "", 0, 0, 0, true, 13, 12, 14},
		{"library/books/Sailing/Israel Sailing.epub", "מפליגים בישראל", "he", "rtl", "OEBPS/israelsailing.jpg", "אורי עידן", "", 2013, 1, 25, false, 12, 0, 3},
		{"library/books/T. S. Eliot/The Waste Land.epub", "The Waste Land", "en-US", "", "EPUB/wasteland-cover.jpg", "T.S. Eliot", "", 2011, 9, 1, false, 1, 0, 2},
		{"library/books/Trees/Trees.epub", "Trees", "en", "", "EPUB/cover.jpg", "", "", 0, 0, 0, false, 3, 0, 3},
		{"library/books/Various/Childrens Literature.epub", "Children's Literature", "en", "", "EPUB/images/cover.png", "Charles Madison Curry", "", 2008, 5, 20, false, 3, 0, 2},
		{"library/books/夏目漱石/草枕.epub", "草枕", "ja-jp", "rtl", "OPS/images/夏目漱石.jpg", "夏目 漱石", "aut", 0, 0, 0, false, 16, 0, 2},
		{"archives/epub3.epub", "zip", "en", "", "cover.jpeg", "", "", 0, 0, 0, false, 2, 2, 4},
	} {
		pub, reads, err := openFile(t, filepath.Join(root, filepath.FromSlash(tt.name)))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		var first Creator
		if len(pub.Creators) > 0 {
			first = pub.Creators[0]
		}
		cover := ""
		if pub.Cover != nil {
			cover = pub.Cover.Name
		}
		t.Logf("%s: %d spine, %d pages, %d reads, cover %q, warnings %q", tt.name, pub.SpineCount, len(pub.Pages), reads, cover, pub.Warnings)
		if pub.Title != tt.title || pub.Language != tt.language || pub.Direction != tt.direction || cover != tt.cover ||
			first.Name != tt.creator || first.Role != tt.role || pub.FixedLayout != tt.fixed ||
			pub.Year != tt.year || pub.Month != tt.month || pub.Day != tt.day {
			t.Errorf("%s: %+v, cover %q", tt.name, pub, cover)
		}
		if pub.SpineCount != tt.spine || len(pub.Pages) != tt.pages || reads > tt.maxReads || len(pub.Spine) != tt.spine {
			t.Errorf("%s: %d of %d spine items, want %d; %d pages, want %d; %d reads, at most %d", tt.name,
				len(pub.Spine), pub.SpineCount, tt.spine, len(pub.Pages), tt.pages, reads, tt.maxReads)
		}
	}
	for name, want := range map[string]archive.Kind{
		"broken/no-opf.epub":        NoPackage,
		"broken/xxe-opf.epub":       archive.Corrupt,
		"archives/zip-as-epub.epub": NoPackage,
	} {
		pub, _, err := openFile(t, filepath.Join(root, name))
		var e *archive.Error
		if pub != nil || !errors.As(err, &e) || e.Kind != want {
			t.Errorf("%s: %v, want kind %q", name, err, want)
		}
		t.Logf("%s: %v", name, err)
	}
}
