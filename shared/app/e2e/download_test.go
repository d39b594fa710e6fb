package e2e_test

import (
	"archive/zip"
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/testkit"
)

// A series is downloaded as one archive of its books' files, in order.
func TestSeriesIsDownloaded(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin := s.as("admin")
	want := map[string][]byte{"Saga 1.cbz": testkit.Comic(t, 1, 2, ""), "Saga 2.cbz": testkit.Comic(t, 3, 3, ""), "Saga 2 (2).cbz": testkit.Comic(t, 2, 3, "")}
	testkit.WriteFile(t, s.folder, "Saga/Saga 1.cbz", want["Saga 1.cbz"])
	testkit.WriteFile(t, s.folder, "Saga/Saga 2.cbz", want["Saga 2 (2).cbz"])
	testkit.WriteFile(t, s.folder, "Saga/again/Saga 2.cbz", want["Saga 2.cbz"])
	s.scan(admin, s.library(admin, "Books", ""))
	series := s.books(admin)["Saga/Saga 1.cbz"].SeriesID
	s.exec("update book set series_id = $1", series) // whatever series the inner folder has become
	at := "/api/v1/series/" + series.String() + "/download"
	r := admin.Do("GET", at, nil).Want(200)
	if r.Header.Get("Content-Type") != "application/zip" || !strings.Contains(r.Header.Get("Content-Disposition"), "Saga.zip") {
		t.Errorf("%v", r.Header)
	}
	archive, err := zip.NewReader(bytes.NewReader(r.Body), int64(len(r.Body)))
	if err != nil || len(archive.File) != 3 || archive.File[0].Name != "Saga 1.cbz" {
		t.Fatalf("%v, %v", archive, err)
	}
	for _, f := range archive.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(in); err != nil || f.Method != zip.Store || !bytes.Equal(got, want[f.Name]) {
			t.Errorf("%s: %d bytes, %v", f.Name, len(got), err)
		}
	}
	if r := admin.Do("HEAD", at, nil).Want(200); len(r.Body) != 0 {
		t.Errorf("HEAD has %d bytes", len(r.Body))
	}
	admin.Do("GET", "/api/v1/series/"+uuid.NewString()+"/download", nil).Want(404)
	s.exec("update book set deleted_at = now()")
	admin.Do("GET", at, nil).Want(404)
}
