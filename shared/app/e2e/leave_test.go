package e2e_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/longbox/longbox/shared/testkit"
)

// A reader keeps the place in each book if files are moved to a new library and their old library is deleted before a
// scan has looked at it again. A copy that already existed is a separate book.
func TestDeletedLibraryLeavesWhatHasMoved(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin, reader := s.as("admin"), s.as("reader")
	for i, name := range []string{"Old/S/1.cbz", "Old/S/2.cbz", "Old/S/3.cbz", "New/T/3.cbz"} {
		testkit.WriteFile(t, s.folder, name, testkit.Comic(t, min(i, 2), 3, ""))
	}
	was, now := s.library(admin, "Old", "/Old"), s.library(admin, "New", "/New")
	s.scan(admin, now)
	s.scan(admin, was)
	at := func() map[string]any { // by key: the page that the reader is on
		out := map[string]any{}
		for name, b := range s.books(reader) {
			if r := reader.Do("GET", "/api/v1/books/"+b.ID.String()+"/progress", nil); r.Status == 200 {
				out[name] = r.Map()["currentPage"]
			}
		}
		return out
	}
	before := s.books(reader)
	for i, name := range []string{"Old/S/1.cbz", "Old/S/2.cbz", "Old/S/3.cbz"} {
		reader.Do("PUT", "/api/v1/books/"+before[name].ID.String()+"/progress", object{"currentPage": i + 1}).Want(200)
	}
	if err := os.Rename(filepath.Join(s.folder, "Old/S"), filepath.Join(s.folder, "New/S")); err != nil {
		t.Fatal(err)
	}
	s.scan(admin, now)
	if got, want := at(), (map[string]any{"Old/S/1.cbz": 1.0, "Old/S/2.cbz": 2.0, "Old/S/3.cbz": 3.0}); !reflect.DeepEqual(got, want) {
		t.Errorf("before the library is deleted the reader is at %v, want %v", got, want)
	}
	admin.Do("DELETE", "/api/v1/libraries/"+was.String(), nil).Want(204)
	if got, want := at(), (map[string]any{"New/S/1.cbz": 1.0, "New/S/2.cbz": 2.0, "New/S/3.cbz": 3.0}); !reflect.DeepEqual(got, want) {
		t.Errorf("afterwards at %v, want %v", got, want)
	}
	after := s.books(reader)
	for _, name := range []string{"S/1.cbz", "S/2.cbz", "S/3.cbz"} {
		if after["New/"+name].ID != before["Old/"+name].ID {
			t.Errorf("%s is another book than before", name)
		}
	}
	if len(after) != 4 || after["New/T/3.cbz"].ID != before["New/T/3.cbz"].ID {
		t.Errorf("the copy that was there before is another book, or what was found has stayed beside: %v", after)
	}
}
