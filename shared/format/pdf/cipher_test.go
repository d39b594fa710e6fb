package pdf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/format/archive"
)

// encrypted are one document as qpdf 11.3 encrypts it in each of its ways, by name; password-… need one for reading.
func encrypted(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/*.pdf")
	if err != nil || len(files) != 10 {
		t.Fatalf("%d documents, %v", len(files), err)
	}
	out := map[string][]byte{}
	for _, file := range files {
		if out[filepath.Base(file)], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestEncrypted(t *testing.T) {
	t.Parallel()
	for name, file := range encrypted(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := open(file, Limits{})
			if strings.HasPrefix(name, "password-") {
				if kindOf(err) != archive.Encrypted {
					t.Fatalf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(d.Pages) != 2 || d.Pages[0] != (Page{}) { // the bytes of its picture are no JPEG file
				t.Errorf("pages %+v", d.Pages)
			}
			if d.Info.Title != "Page" || d.Info.Author != "Boulet (B.)" || d.Info.Language != "fr" {
				t.Errorf("info %+v", d.Info)
			}
		})
	}
}
