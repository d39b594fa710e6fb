package e2e_test

import (
	"testing"
	"time"

	"github.com/longbox/longbox/shared/testkit"
)

// The analysis does not inflate pages, so it knows the size of the cover only. A request for the sizes has the pages
// read. A scan that finds nothing new leaves the sizes as they are.
func TestSizesOfPages(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin, reader := s.as("admin"), s.as("reader")
	testkit.WriteFile(t, s.folder, "S/a 1.cbz", testkit.Zip(t, files(true, jpegs(t, 1, "1.jpg", "2.jpg", "3.jpg", "4.jpg")...)...))
	library := s.library(admin, "Books", "")
	s.scan(admin, library)
	b := s.books(reader)["S/a 1.cbz"]
	known := func() (n int) {
		for i, p := range s.pages(reader, b) {
			if p.Width == nil && p.Height == nil {
				continue
			}
			if n++; p.Width == nil || p.Height == nil || *p.Width != 120+i || *p.Height != 180 {
				t.Errorf("page %d: %v by %v", i+1, p.Width, p.Height)
			}
		}
		return n
	}
	if n := known(); n != 1 {
		t.Errorf("the analysis knows the sizes of %d pages", n)
	}
	stop := s.work()
	testkit.Eventually(t, 30*time.Second, func() bool { return known() == 4 })
	stop()
	s.scan(admin, library)
	if n := known(); n != 4 {
		t.Errorf("after another scan %d sizes are known", n)
	}
	if got := s.finished(admin, admin.Do("POST", "/api/v1/books/"+b.ID.String()+"/analyze", nil)); got.Status != "completed" {
		t.Errorf("analysis: %+v", got)
	}
	if n := known(); n != 4 {
		t.Errorf("after another analysis %d sizes are known", n)
	}
}
