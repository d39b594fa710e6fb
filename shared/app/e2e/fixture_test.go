package e2e_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/testkit"
)

// fixtures copies the folders of real works into the system's library.
func (s *system) fixtures(t *testing.T, folders ...string) (files []string) {
	t.Helper()
	root := testkit.Fixtures(t)
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			testkit.WriteFile(t, s.folder, rel, data)
			files = append(files, rel)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func number(n float64) *float64 { return &n }

func TestRealWorks(t *testing.T) {
	testkit.Fixtures(t)
	t.Parallel()
	s := newSystem(t, links{})
	admin := s.as("admin")
	s.fixtures(t, "library", "odd", "broken")
	if st := s.scan(admin, s.library(admin, "Books", "")); st.Status != "completed" {
		t.Fatalf("scan: %+v", st)
	}
	books := s.books(admin)
	for _, want := range []struct {
		path, title, direction, language string
		pages                            int
		number                           *float64
	}{
		{"library/manga/ハルコさんの彼氏/ハルコさんの彼氏 v01 c001.cbz", "第一話", "rtl", "ja", 6, number(1)},
		{"library/manga/ハルコさんの彼氏/ハルコさんの彼氏 v01 c002.cbz", "", "rtl", "ja", 0, number(2)},
		{"library/manga/鳥の眼/鳥の眼 001.cbz", "", "webtoon", "", 11, number(1)},
		{"library/manga/Emakimono/Emakimono 10.5.cbz", "", "", "", 22, number(10.5)},
		{"library/comics/Delcourt/Page Blanche (2012)/Page Blanche #001 (2012) (digital).cbz", "", "", "", 9, number(1)},
		{"library/comics/Delcourt/Page Blanche (2012)/Page Blanche #002 (2012) (digital).cbz", "", "", "", 0, number(2)},
		{"library/comics/Delcourt/Page Blanche (2012)/Page Blanche #010 (2012) (digital).cbz", "", "", "", 0, number(10)},
	} {
		b, ok := books[want.path]
		if !ok {
			t.Errorf("%s: no such book", want.path)
			continue
		}
		if !b.Analyzed || (want.pages > 0 && b.PageCount != want.pages) || (want.title != "" && b.Title != want.title) ||
			(want.direction != "" && b.ReadingDirection != want.direction) {
			t.Errorf("%s: %+v", want.path, b)
		}
		if b.Number == nil || *b.Number != *want.number {
			t.Errorf("%s: number %v, want %v", want.path, b.Number, *want.number)
		}
		if want.language != "" {
			detail := admin.Do("GET", "/api/v1/books/"+b.ID.String(), nil).Want(200)
			if !bytes.Contains(detail.Body, []byte(`"`+want.language+`"`)) {
				t.Errorf("%s: no language %s: %s", want.path, want.language, detail.Body)
			}
		}
	}
	var images, deflated int
	for path, b := range books {
		if !strings.HasSuffix(path, ".cbz") {
			continue
		}
		if strings.HasPrefix(path, "broken/") && b.AnalysisError == "" && b.PageCount == 0 {
			t.Errorf("%s: neither pages nor an error that says why", path)
		}
		if !strings.HasPrefix(path, "broken/") {
			n, d := s.compare(t, admin, b, path)
			images, deflated = images+n, deflated+d
		}
	}
	if images < 60 || deflated < 3 {
		t.Errorf("only %d pages were compared, %d of them deflated", images, deflated)
	}
	for path := range books {
		if strings.Contains(path, "..") || !(strings.HasPrefix(path, "library/") || strings.HasPrefix(path, "odd/") || strings.HasPrefix(path, "broken/")) {
			t.Errorf("a book outside the library: %s", path)
		}
	}
}

// compare requests every page of a book and compares it with the archive's entry of the listed name.
func (s *system) compare(t *testing.T, c *testkit.Client, b book, path string) (pages, deflated int) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(s.folder, filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil { // the standard library mistakes an end record in the comment for the real one
		for _, info := range s.pages(c, b) {
			if a := s.fetch(t, c, "GET", pageURL(b, info.PageNumber)).want(t, 200); len(a.Body) < 100 || !bytes.Contains(data, a.Body) {
				t.Errorf("%s page %d: these bytes are not in the file", path, info.PageNumber)
			}
		}
		return b.PageCount, 0
	}
	// Names may be stored in another encoding: only the content says which entry a page is.
	byContent := map[[32]byte]*zip.File{}
	for name, content := range entries(t, data) {
		for _, f := range r.File {
			if f.Name == name {
				byContent[sha256.Sum256(content)] = f
			}
		}
	}
	infos := s.pages(c, b)
	if len(infos) == 0 {
		t.Errorf("%s: no pages: %s", path, b.AnalysisError)
	}
	for _, info := range infos {
		get := func() (answer, []testkit.Request) {
			s.s3.Counter.Reset()
			return s.fetch(t, c, "GET", pageURL(b, info.PageNumber)).want(t, 200), s.s3.Counter.Reset()
		}
		a, gets := get()
		if len(gets) > 1 { // A worker has just stored sizes of pages, so the request began again from the start.
			a, gets = get()
		}
		f := byContent[sha256.Sum256(a.Body)]
		if f == nil {
			t.Errorf("%s page %d (%s): these bytes are in no entry", path, info.PageNumber, info.FileName)
			continue
		}
		if f.NonUTF8 == false && !strings.HasSuffix(f.Name, filepath.Base(info.FileName)) {
			t.Errorf("%s page %d: %s holds the bytes of %s", path, info.PageNumber, info.FileName, f.Name)
		}
		if len(gets) != 1 || gets[0].Bytes > int64(f.CompressedSize64)+512 {
			t.Errorf("%s page %d: stored in %d bytes, cost %v", path, info.PageNumber, f.CompressedSize64, gets)
		}
		if f.Method == zip.Deflate {
			deflated++
		}
	}
	return len(infos), deflated
}
