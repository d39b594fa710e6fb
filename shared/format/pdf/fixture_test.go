package pdf

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/longbox/longbox/shared/testkit"
)

func TestFixtures(t *testing.T) {
	t.Parallel()
	root := testkit.Fixtures(t)
	for name, want := range map[string]struct{ pages, jpegs int }{
		"library/books/Boulet/Page Blanche.pdf": {5, 5},
		"archives/komga.pdf":                    {1, 0},
		"broken/broken.pdf":                     {0, 0},
	} {
		f, err := os.Open(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		doc, err := Open(t.Context(), f, info.Size(), Limits{})
		if want.pages == 0 {
			if err == nil {
				t.Errorf("%s was read", name)
			}
			t.Log(err)
			continue
		}
		if err != nil || len(doc.Pages) != want.pages {
			t.Fatalf("%s: %+v, %v", name, doc, err)
		}
		jpegs := 0
		for _, p := range doc.Pages {
			if p.JPEG {
				jpegs++
			}
		}
		if jpegs != want.jpegs {
			t.Errorf("%s: %+v", name, doc)
		}
	}
}
