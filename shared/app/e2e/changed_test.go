package e2e_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longbox/longbox/migrations"
	"github.com/longbox/longbox/shared/testkit"
)

// A file that is corrected with the same images keeps its book. What it shows now has other ETags than before, or
// clients and the CDN would go on showing what they have.

// imageBook returns an EPUB of three images in this order, which also gives it its size: a file that is written anew in
// the same second is recognised by that.
func imageBook(t *testing.T, images [][]byte, order ...int) []byte {
	t.Helper()
	manifest, spine := "", ""
	files := []testkit.File{{Name: "mimetype", Data: []byte("application/epub+zip")}, {Name: "META-INF/container.xml", Data: []byte(
		`<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>`)}}
	for i, image := range images {
		manifest += fmt.Sprintf(`<item id="i%d" href="%d.jpg" media-type="image/jpeg"/>`, i+1, i+1)
		files = append(files, testkit.File{Name: fmt.Sprintf("%d.jpg", i+1), Data: image})
	}
	for _, i := range order {
		spine += fmt.Sprintf(`<itemref idref="i%d"/>`, i)
	}
	return testkit.Zip(t, append(files, testkit.File{Name: "book.opf", Data: []byte(`<package version="3.0"><metadata>` + fmt.Sprintf("<title>%0*d</title>", order[0], order[0]) +
		`<meta property="rendition:layout">pre-paginated</meta></metadata><manifest>` + manifest + `</manifest><spine>` + spine + `</spine></package>`)})...)
}

func TestPagesInAnotherOrder(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin := s.as("admin")
	images := [][]byte{testkit.JPEG(t, 60, 90, 1), testkit.JPEG(t, 60, 90, 2), testkit.JPEG(t, 60, 90, 3)}
	testkit.WriteFile(t, s.folder, "S/A.epub", imageBook(t, images, 1, 2, 3))
	library := s.library(admin, "Books", "")
	s.scan(admin, library)
	page := "/api/v1/books/" + s.books(admin)["S/A.epub"].ID.String() + "/pages/1"
	before := s.fetch(t, admin, "GET", page).want(t, 200)
	testkit.WriteFile(t, s.folder, "S/A.epub", imageBook(t, images, 3, 1, 2))
	s.scan(admin, library)
	if now := s.fetch(t, admin, "GET", page, "If-None-Match", before.Header.Get("ETag")).want(t, 200); !bytes.Equal(now.Body, images[2]) {
		t.Error("page 1 is another picture")
	}
	// What older programs stored is computed anew when the schema is brought up to date.
	stored := func() (print string) {
		t.Helper()
		if err := s.DB.Owner.Pool().QueryRow(t.Context(), "select fingerprint from book").Scan(&print); err != nil {
			t.Fatal(err)
		}
		return print
	}
	want := stored()
	s.DB.Exec(t, "update book set fingerprint = 'by name'")
	file, err := migrations.FS.ReadFile("00093_spine.sql")
	if err != nil {
		t.Fatal(err)
	}
	up, _, _ := strings.Cut(string(file), "-- +goose Down")
	s.DB.Exec(t, up)
	if got := stored(); got != want {
		t.Errorf("the migration computes %s, want %s", got, want)
	}
}

func TestAnotherPageIsTheCover(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin := s.as("admin")
	testkit.WriteFile(t, s.folder, "S/A 1.cbz", testkit.Comic(t, 1, 3, ""))
	library := s.library(admin, "Books", "")
	s.scan(admin, library)
	cover := "/api/v1/books/" + s.books(admin)["S/A 1.cbz"].ID.String() + "/thumbnail"
	shown := s.fetch(t, admin, "GET", cover).want(t, 200)
	for _, n := range []int{1, 2} {
		testkit.WriteFile(t, s.folder, "S/A 1.cbz", testkit.Comic(t, 1, 3, fmt.Sprintf(`<Count>%0*d</Count><Pages><Page Image="%d" Type="FrontCover"/></Pages>`, n, n, n)))
		s.scan(admin, library)
		if stored := s.covers(); len(stored) != n+1 {
			t.Errorf("page %d: stored are %v", n+1, stored)
		}
		now := s.fetch(t, admin, "GET", cover, "If-None-Match", shown.Header.Get("ETag")).want(t, 200)
		if bytes.Equal(now.Body, shown.Body) {
			t.Errorf("page %d: the same cover", n+1)
		}
		s.fetch(t, admin, "GET", cover, "If-None-Match", now.Header.Get("ETag")).want(t, 304)
		shown = now
	}
	if stored := s.covers(); len(stored) != 3 {
		t.Errorf("stored after the requests: %v", stored)
	}
	s.round(time.Now().Add(48 * time.Hour)) // removes what nothing shows
	if stored := s.covers(); len(stored) != 1 {
		t.Errorf("after two days: %v", stored)
	}
	s.s3.Counter.Reset()
	s.fetch(t, admin, "GET", cover).want(t, 200)
	if inLibrary, _ := buckets(s.s3.Counter.Reset()); inLibrary != 0 {
		t.Errorf("the cover is made again, with %d requests to the library", inLibrary)
	}
}
