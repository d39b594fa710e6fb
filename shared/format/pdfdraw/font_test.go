package pdfdraw

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A sandbox sees the fonts and no other file of the machine.
func TestFontsAlone(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "truetype"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "truetype", "a.ttf"), []byte("font"), 0o644); err != nil {
		t.Fatal(err)
	}
	f := fontsIn(folder)
	for _, name := range []string{".", "usr", "usr/share", "usr/share/fonts", "usr/share/fonts/truetype"} {
		if info, err := fs.Stat(f, name); err != nil || !info.IsDir() {
			t.Errorf("%s: %v", name, err)
		}
	}
	if b, err := fs.ReadFile(f, "usr/share/fonts/truetype/a.ttf"); string(b) != "font" {
		t.Errorf("the font: %q, %v", b, err)
	}
	for _, name := range []string{"etc/passwd", "usr/share/doc", "usr/s", "truetype/a.ttf", "usr/share/fonts/../doc", "usr/share/fonts-old"} {
		if _, err := fs.Stat(f, name); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
