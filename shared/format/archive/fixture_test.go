package archive

import (
	"bytes"
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/longbox/longbox/shared/testkit"
)

// openFile reads a file's directory as from an object store, counting requests.
func openFile(path string) (dir *Directory, f *os.File, requests int, err error) {
	f, err = os.Open(path)
	if err != nil {
		return nil, nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, f, 0, err
	}
	tail := make([]byte, min(info.Size(), TailBytes))
	if _, err := f.ReadAt(tail, info.Size()-int64(len(tail))); err != nil {
		return nil, f, 0, err
	}
	requests = 1
	dir, err = ReadDirectory(tail, info.Size(), Limits{}, func(off, n int64) ([]byte, error) {
		requests++
		b := make([]byte, n)
		_, err := f.ReadAt(b, off)
		return b, err
	})
	return dir, f, requests, err
}

func readPage(f *os.File, e Entry) ([]byte, error) {
	r, err := e.Open(io.NewSectionReader(f, e.Offset, e.Length), Limits{})
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

func TestFixtureBooks(t *testing.T) {
	t.Parallel()
	root := testkit.Fixtures(t)
	for name, want := range map[string]struct {
		pages       int
		first, last string
	}{
		"library/manga/ハルコさんの彼氏/ハルコさんの彼氏 v01 c001.cbz":                                       {6, "01.jpg", "06.jpg"},
		"library/manga/ハルコさんの彼氏/ハルコさんの彼氏 v01 c002.cbz":                                       {6, "07.jpg", "12.jpg"},
		"library/manga/鳥の眼/鳥の眼 001.cbz":                                                      {11, "000.jpg", "010.jpg"},
		"library/manga/Emakimono/Emakimono 10.5.cbz":                                         {22, "4.jpg", "25.jpg"},
		"library/comics/Delcourt/Page Blanche (2012)/Page Blanche #001 (2012) (digital).cbz": {9, "Page Blanche/cover.jpg", "Page Blanche/PageBlanche_Page_008.jpg"},
		"library/comics/Delcourt/Page Blanche (2012)/Page Blanche #002 (2012) (digital).cbz": {4, "PageBlanche_Page_005.jpg", "PageBlanche_Page_008.jpg"},
		"library/comics/Delcourt/Page Blanche (2012)/Page Blanche #010 (2012) (digital).cbz": {3, "PageBlanche_Page_001.jpg", "PageBlanche_Page_003.jpg"},
		"library/comics/Duplicates/Page Blanche copy.cbz":                                    {4, "PageBlanche_Page_005.jpg", "PageBlanche_Page_008.jpg"},
		"archives/zip.zip":                        {1, "komga.png", "komga.png"},
		"archives/zip-bzip2.zip":                  {1, "komga.png", "komga.png"}, // stored, whatever its name says
		"archives/zip-deflate64.zip":              {1, "komga.png", "komga.png"}, // stored, whatever its name says
		"archives/zip-lzma.zip":                   {1, "komga.png", "komga.png"}, // stored, whatever its name says
		"archives/zip-ppmd.zip":                   {1, "komga.png", "komga.png"}, // stored, whatever its name says
		"odd/macos junk.cbz":                      {3, "1.jpg", "10.jpg"},
		"odd/nested chapters.cbz":                 {4, "c1/1.jpg", "c10/1.jpg"},
		"odd/page formats.cbz":                    {6, "1.webp", "6.heic"},
		"odd/prefix data.cbz":                     {2, "1.jpg", "2.jpg"},
		"odd/shift-jis names.cbz":                 {2, "漫画1.jpg", "漫画2.jpg"},
		"odd/streamed zip64 data descriptors.cbz": {3, "1.jpg", "3.jpg"},
		"odd/wrong extension.cbr":                 {2, "1.jpg", "2.jpg"},
		"odd/zip comment.cbz":                     {1, "a.jpg", "a.jpg"},
		"broken/traversal.cbz":                    {4, "abs.jpg", "win.jpg"},
		"broken/bad-comicinfo.cbz":                {1, "1.jpg", "1.jpg"},
		"broken/corrupt-page.cbz":                 {3, "1.jpg", "3.jpg"},
		"broken/huge-dimensions.cbz":              {2, "1.png", "2.jpg"},
		"broken/laughs-comicinfo.cbz":             {1, "1.jpg", "1.jpg"},
		"broken/xxe-comicinfo.cbz":                {1, "1.jpg", "1.jpg"},
	} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			dir, f, requests, err := openFile(filepath.Join(root, filepath.FromSlash(name)))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			pages := Pages(dir.Entries)
			if len(pages) != want.pages || pages[0].Name != want.first || pages[len(pages)-1].Name != want.last {
				t.Fatalf("%d pages, %q; want %d, %q to %q", len(pages), names(pages), want.pages, want.first, want.last)
			}
			if requests != 1 || CheckPages(pages) != nil {
				t.Errorf("%d requests, %v", requests, CheckPages(pages))
			}
			for _, p := range dir.Entries {
				if p.Directory {
					continue
				}
				b, err := readPage(f, p)
				if err != nil || int64(len(b)) != p.Size {
					t.Errorf("%s: %d bytes of %d, %v", p.Name, len(b), p.Size, err)
				}
				if waste := p.Length - p.CompressedSize; waste > 512 {
					t.Errorf("%s: %d bytes requested beside its content", p.Name, waste)
				}
			}
		})
	}
}

func TestFixtureBrokenBooks(t *testing.T) {
	root := testkit.Fixtures(t)
	for name, want := range map[string]Kind{
		"broken/bomb-zeros.cbz":                 TooLarge,
		"broken/empty.cbz":                      NotArchive,
		"broken/encrypted.cbz":                  Encrypted,
		"broken/encrypted.cb7":                  NotArchive,
		"broken/encrypted.cbr":                  NotArchive,
		"broken/broken.pdf":                     NotArchive,
		"broken/many-entries.cbz":               TooLarge,
		"broken/no-images.cbz":                  NoPages,
		"broken/text.cbz":                       NotArchive,
		"broken/truncated.cbz":                  Truncated,
		"archives/zip-encrypted.zip":            Encrypted,
		"archives/rar5.rar":                     NotArchive,
		"library/books/Boulet/Page Blanche.pdf": NotArchive,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		dir, f, requests, err := openFile(filepath.Join(root, filepath.FromSlash(name)))
		if err == nil {
			err = CheckPages(Pages(dir.Entries))
		}
		runtime.ReadMemStats(&after)
		if f != nil {
			f.Close()
		}
		used := (after.TotalAlloc - before.TotalAlloc) >> 10
		t.Logf("%s: %v (%s, %d KiB)", name, err, kindOf(err), used)
		if kindOf(err) != want || requests > 2 || used > 1024 {
			t.Errorf("%s: kind %q, want %q; %d requests, %d KiB allocated", name, kindOf(err), want, requests, used)
		}
	}
}

func TestFixtureContent(t *testing.T) {
	t.Parallel()
	root := testkit.Fixtures(t)
	same := func(a, b string) (equal bool) {
		var prints []string
		var sums [][]byte
		for _, name := range []string{a, b} {
			dir, f, _, err := openFile(filepath.Join(root, name))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			prints = append(prints, Fingerprint(dir.Entries))
			sum := sha256.New()
			for _, p := range Pages(dir.Entries) {
				page, err := readPage(f, p)
				if err != nil {
					t.Fatal(err)
				}
				sum.Write(page)
			}
			sums = append(sums, sum.Sum(nil))
		}
		if slices.Equal(prints[:1], prints[1:]) != bytes.Equal(sums[0], sums[1]) {
			t.Errorf("fingerprints and contents of %s and %s disagree", a, b)
		}
		return prints[0] == prints[1]
	}
	folder := "library/comics/Delcourt/Page Blanche (2012)/"
	second := folder + "Page Blanche #002 (2012) (digital).cbz"
	if !same(second, "library/comics/Duplicates/Page Blanche copy.cbz") {
		t.Error("the same pages in two containers have two fingerprints")
	}
	if same(second, folder+"Page Blanche #001 (2012) (digital).cbz") {
		t.Error("different books have one fingerprint")
	}
}
