package e2e_test

import (
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/testkit"
)

// Every operation that takes numbers refuses extreme ones or does not find them. None causes an internal error.
func TestExtremeNumbers(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin := s.as("admin")
	testkit.WriteFile(t, s.folder, "S/a 1.cbz", testkit.Comic(t, 1, 3, ""))
	s.scan(admin, s.library(admin, "Books", ""))
	b := s.books(admin)["S/a 1.cbz"]
	for _, path := range []string{"/books", "/books/in-progress", "/books/on-deck", "/books/recently-added", "/books/recently-read",
		"/series", "/series/in-progress", "/series/recently-added", "/series/recently-updated", "/series/" + b.SeriesID.String() + "/books",
		"/libraries", "/progress/currently-reading", "/tasks", "/scans/active", "/users", "/user/preferences", "/api-keys",
		"/admin/settings", "/admin/settings/scanner.batch_size/history"} {
		for _, page := range []string{"9223372036854775807", "2432902008176640000", "18446744073709551616", "9007199254740992", "0", "-1"} {
			if a := s.fetch(t, admin, "GET", "/api/v1"+path+"?pageSize=500&page="+page); a.Status != 400 || !strings.Contains(string(a.Body), "page") {
				t.Errorf("%s, page %s: %d %.200s", path, page, a.Status, a.Body)
			}
		}
		for _, query := range []string{"?page=9007199254740991&pageSize=9223372036854775807", "?page=9007199254740991"} {
			if a := s.fetch(t, admin, "GET", "/api/v1"+path+query); a.Status != 200 || !strings.Contains(string(a.Body), `"data":[]`) {
				t.Errorf("%s%s: %d %.200s", path, query, a.Status, a.Body)
			}
		}
	}
	// Counted from 0. The first time, the book is not cached yet.
	for _, page := range []string{"2147483647", "2147483648", "3"} {
		s.fetch(t, admin, "GET", "/opds/books/"+b.ID.String()+"/pages/stream/"+page).problem(t, 404)
	}
	pages := "/api/v1/books/" + b.ID.String() + "/pages/"
	for page, status := range map[string]int{"4": 404, "2147483647": 404, "2147483648": 404, "2432902008176639999": 404, "18446744073709551616": 404,
		"0": 400, "-1": 400, "-9223372036854775809": 400, "x": 400, "1e3": 400} {
		for range 2 { // the second time the book is cached
			s.fetch(t, admin, "GET", pages+page).problem(t, status)
		}
	}
	if a := s.fetch(t, admin, "GET", "/api/v1/books/"+b.ID.String()+"/progress"); a.Status != 204 || a.Header.Get("Content-Type") != "" {
		t.Errorf("no progress: %d, Content-Type %q", a.Status, a.Header.Get("Content-Type"))
	}
}
