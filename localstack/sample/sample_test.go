package sample

import (
	"archive/zip"
	"encoding/xml"
	"image/jpeg"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestWriteMakesReadableBooks(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "sample")
	if err := Write(dir); err != nil {
		t.Fatal(err)
	}
	books, err := filepath.Glob(filepath.Join(dir, "*", "*.cbz"))
	if err != nil {
		t.Fatal(err)
	}
	if len(books) != 5 {
		t.Fatalf("got %d books, want 5: %q", len(books), books)
	}
	for _, book := range books {
		z, err := zip.OpenReader(book)
		if err != nil {
			t.Fatalf("%s: %v", book, err)
		}
		pages := checkPages(t, z)
		info := readInfo(t, z)
		if info.PageCount != pages || info.Series == "" || info.Number < 1 {
			t.Errorf("%s: ComicInfo %+v does not fit its %d pages", book, info, pages)
		}
		if err := z.Close(); err != nil {
			t.Error(err)
		}
	}
}

// checkPages decodes every page and returns their number.
func checkPages(t *testing.T, z *zip.ReadCloser) int {
	t.Helper()
	pages := 0
	for _, f := range z.File {
		if filepath.Ext(f.Name) != ".jpg" {
			continue
		}
		pages++
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		img, err := jpeg.Decode(r)
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		if b := img.Bounds(); b.Dx() != width || b.Dy() != height {
			t.Errorf("%s is %v", f.Name, b)
		}
	}
	return pages
}

func readInfo(t *testing.T, z *zip.ReadCloser) (info comicInfo) {
	t.Helper()
	f, err := z.Open("ComicInfo.xml")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	raw, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal(raw, &info); err != nil {
		t.Fatal(err)
	}
	return info
}

func TestWriteLeavesWhatIsThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := Write(dir); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 0 {
		t.Errorf("an existing folder was filled with %v", left)
	}
}
