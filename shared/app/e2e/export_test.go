package e2e_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/testkit"
)

// A user requests an export, a worker generates it, and the user downloads and deletes it. Then it is no longer in the
// store.
func TestExport(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin, reader := s.as("admin"), s.as("reader")
	testkit.WriteFile(t, s.folder, "Saga/Saga 1.cbz", testkit.Comic(t, 1, 2, "<Title>Eins</Title>"))
	testkit.WriteFile(t, s.folder, "Hare/Hare 1.cbz", testkit.Comic(t, 2, 3, "<Title>Zwei</Title>"))
	s.scan(admin, s.library(admin, "Books", ""))
	read := s.books(reader)["Saga/Saga 1.cbz"]
	reader.Do("POST", "/api/v1/books/"+read.ID.String()+"/read", nil).Want(200)
	type export struct {
		ID, Status    string
		RowCount      int
		FileSizeBytes int
	}
	var e export
	reader.Do("POST", "/api/v1/user/exports/series", object{"format": "csv", "exportType": "books", "bookFields": []string{"readStatus"}}).Want(201).JSON(&e)
	at := "/api/v1/user/exports/series/" + e.ID
	stop := s.work()
	defer func() { stop() }()
	testkit.Eventually(t, time.Minute, func() bool {
		reader.Do("GET", at, nil).Want(200).JSON(&e)
		return e.Status == "completed" || e.Status == "failed"
	})
	r := s.fetch(t, reader, "GET", at+"/download").want(t, 200)
	if e.RowCount != 2 || e.FileSizeBytes != len(r.Body) || strings.Count(string(r.Body), "\r\n") != 3 ||
		!strings.Contains(string(r.Body), `"`+read.ID.String()+`","Eins","Saga","read"`) || !strings.Contains(string(r.Body), `"Zwei","Hare","unread"`) {
		t.Errorf("%+v: %s", e, r.Body)
	}
	admin.Do("GET", at+"/download", nil).Want(404)
	reader.Do("DELETE", at, nil).Want(204)
	s.round(time.Now())
	testkit.Eventually(t, time.Minute, func() bool {
		for page, err := range s.s3.Config.Media().List(context.Background(), s.s3.Config.MediaBucket, s.One.String()+"/export/", "") {
			if err != nil {
				t.Fatal(err)
			}
			if len(page) > 0 {
				return false
			}
		}
		return true
	})
}
