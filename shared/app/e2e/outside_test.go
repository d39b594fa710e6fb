package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/testkit"
)

// A symbolic link in a library's folder gives access to nothing outside of it, wherever its path is used.
func TestLinkLeadsNobodyOut(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin := s.as("admin")
	outside := filepath.Join(s.s3.Dir, "outside")
	testkit.WriteFile(t, outside, "Secret/1.cbz", testkit.Comic(t, 1, 2, ""))
	testkit.WriteFile(t, s.folder, "comics/S/1.cbz", testkit.Comic(t, 2, 2, ""))
	link := func(to string) {
		t.Helper()
		if err := os.Symlink(outside, filepath.Join(s.folder, to)); err != nil {
			t.Fatal(err)
		}
	}
	link("comics/escape")
	for _, path := range []string{"/books/comics/escape", "/books/comics/escape/Secret", "s3://books/comics/escape", "s3://books/comics/escape/Secret"} {
		for _, res := range []*testkit.Response{
			admin.Do("GET", "/api/v1/filesystem/browse?path="+path, nil),
			admin.Do("POST", "/api/v1/libraries", map[string]any{"name": "out", "path": path}),
			admin.Do("POST", "/api/v1/libraries/preview-scan", map[string]any{"path": path}),
		} {
			if res.Status != 400 || !strings.Contains(string(res.Body), "symbolic link") {
				t.Errorf("%s: %d %s", path, res.Status, res.Body)
			}
		}
	}
	comics := s.library(admin, "comics", "/comics")
	if got := s.scan(admin, comics); got.Status != "completed" || len(s.books(admin)) != 1 {
		t.Fatalf("%+v, %v", got, s.books(admin))
	}
	scanned := func(query string) {
		t.Helper()
		if got := s.scanOf(admin, comics, query); got.Status != "failed" || !strings.Contains(strings.Join(got.Errors, " "), "symbolic link") {
			t.Errorf("%+v", got)
		}
		if all := s.books(admin); len(all) != 1 || !all["comics/S/1.cbz"].Analyzed {
			t.Errorf("%v", all)
		}
	}
	scanned("?path=escape")
	scanned("?path=escape/Secret")

	// A link in place of a folder that was read does not provide new versions of its books.
	b := s.books(admin)["comics/S/1.cbz"]
	if err := os.Rename(filepath.Join(s.folder, "comics/S"), filepath.Join(s.s3.Dir, "S")); err != nil {
		t.Fatal(err)
	}
	testkit.WriteFile(t, outside, "1.cbz", testkit.Comic(t, 3, 7, ""))
	link("comics/S")
	admin.Do("POST", "/api/v1/books/"+b.ID.String()+"/analyze", nil).Want(200)
	stop := s.work()
	testkit.Eventually(t, time.Minute, func() bool {
		var stats struct{ Pending, Running, Processing int }
		admin.Do("GET", "/api/v1/tasks/stats", nil).Want(200).JSON(&stats)
		return stats.Pending+stats.Running+stats.Processing == 0
	})
	stop()
	if got := s.books(admin)["comics/S/1.cbz"]; got.PageCount == 7 {
		t.Errorf("the other file was read: %+v", got)
	}
	if err := os.Remove(filepath.Join(s.folder, "comics/S")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(s.s3.Dir, "S"), filepath.Join(s.folder, "comics/S")); err != nil {
		t.Fatal(err)
	}
	s.scanOf(admin, comics, "?mode=deep")

	if err := os.Rename(filepath.Join(s.folder, "comics"), filepath.Join(s.s3.Dir, "away")); err != nil {
		t.Fatal(err)
	}
	link("comics")
	scanned("")
}
