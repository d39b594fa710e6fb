package analysis_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/domain/analysis"
	"github.com/longbox/longbox/shared/domain/content"
	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/testkit"
)

// TestRealWorks analyses every real work, odd file and hostile file if the fixtures exist; other tests cover the same
// paths with generated archives.
func TestRealWorks(t *testing.T) {
	dir := testkit.Fixtures(t)
	s3 := testkit.StartS3(t, "fixtures")
	bucket := filepath.Join(s3.Dir, "fixtures")
	if err := os.CopyFS(filepath.Join(bucket, "all"), os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	books := 0
	prints := map[string]string{} // by the key's suffix
	for page, err := range s3.Store.List(context.Background(), "fixtures", "", "") {
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range page {
			if naming.Format(o.Key) == "" {
				continue
			}
			books++
			s3.Counter.Reset()
			res, err := analysis.File(context.Background(), &content.Reader{Store: s3.Store}, "fixtures", o, analysis.Options{CoverImage: true})
			gets := len(testkit.Objects(s3.Counter.Reset(), "GET"))
			var problem *analysis.Problem
			switch {
			case errors.As(err, &problem):
				t.Logf("%-70s %s: %s (%d GET)", o.Key, problem.Type, problem.Message, gets)
				if ext := strings.ToLower(filepath.Ext(o.Key)); strings.Contains(o.Key, "/library/") && (ext == ".cbz" || ext == ".epub") {
					t.Errorf("%s was not read: %v", o.Key, err)
				}
				if strings.Contains(o.Key, "/odd/") {
					t.Errorf("%s was not read: %v", o.Key, err)
				}
			case err != nil:
				t.Errorf("%s: %v", o.Key, err)
			default:
				prints[filepath.Base(o.Key)] = res.Fingerprint
				t.Logf("%-70s %s %d pages, %d spine, title %q number %v lang %q, %d warnings (%d GET)", o.Key, res.Format, len(res.Pages),
					res.SpineCount, res.Metadata.Title, res.Metadata.Number, res.Metadata.LanguageISO, len(res.Warnings), gets)
				if gets > 3 && res.Format == "cbz" {
					t.Errorf("%s took %d requests", o.Key, gets)
				}
			}
		}
	}
	if books == 0 {
		t.Error("no books found")
	}
	if a, b := prints["Page Blanche #002 (2012) (digital).cbz"], prints["Page Blanche copy.cbz"]; a == "" || a != b {
		t.Errorf("the same pages in two containers have the fingerprints %q and %q", a, b)
	}
}

func TestLinkIsNotFollowed(t *testing.T) {
	s3 := testkit.StartS3(t, "books")
	outside := filepath.Join(s3.Dir, "secret.cbz")
	if err := os.WriteFile(outside, testkit.Comic(t, 1, 2, ""), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(s3.Dir, "books", "link.cbz")); err != nil {
		t.Fatal(err)
	}
	for page, err := range s3.Store.List(context.Background(), "books", "", "") {
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range page {
			_, err := analysis.File(context.Background(), &content.Reader{Store: s3.Store}, "books", o, analysis.Options{})
			if !errors.As(err, new(*analysis.Problem)) {
				t.Errorf("%s: %v", o.Key, err)
			}
		}
	}
}

func TestOneRequestForASmallBook(t *testing.T) {
	s3 := testkit.StartS3(t, "books")
	testkit.WriteFile(t, s3.Dir, "books/a.cbz", testkit.Comic(t, 1, 5, "<Title>T</Title>"))
	list, err := first(s3.Store)
	if err != nil {
		t.Fatal(err)
	}
	s3.Counter.Reset()
	res, err := analysis.File(context.Background(), &content.Reader{Store: s3.Store}, "books", list, analysis.Options{CoverImage: true})
	if err != nil || len(res.Pages) != 5 || res.Metadata.Title != "T" || len(res.CoverImage) == 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	if gets := s3.Counter.Reset(); len(gets) != 1 {
		t.Errorf("requests: %v", gets)
	}
}

// The result for one file does not change when the next files are read into the same buffer.
func TestResultsAreTheirOwn(t *testing.T) {
	book := func(title string, pages int) []byte {
		return testkit.Comic(t, pages, 5, "<Title>"+title+"</Title><Summary>"+strings.Repeat(title, 99)+"</Summary>")
	}
	res := read(t, "a.cbz", book("A", 1))
	before, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		read(t, "b.cbz", book("B", 2+i))
	}
	if after, err := json.Marshal(res); err != nil || string(after) != string(before) {
		t.Errorf("%v\nwas %s\nis  %s", err, before, after)
	}
}

func first(s *blob.Store) (blob.Object, error) {
	for page, err := range s.List(context.Background(), "books", "", "") {
		if err != nil || len(page) == 0 {
			return blob.Object{}, err
		}
		return page[0], nil
	}
	return blob.Object{}, nil
}
