package pdfcache

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

const at = "/api/v1/admin/pdf-cache"

// rig creates a PDF document and a comic, each with a page pack.
func rig(t *testing.T) (*testkit.Server, uuid.UUID) {
	t.Helper()
	s := testkit.Serve(t, func(a *httpapi.API, d *db.DB) { Routes(a, d, Config{Made: "read"}, nil) })
	document := uuid.New()
	s.DB.Exec(t, `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $1, 'Books', '/books', 'b', '', 'series_volume', 'filename', 'file_order')`, s.One)
	s.DB.Exec(t, "insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title) values ($1, $1, $1, 's', 's', 's', 's', 's')", s.One)
	for id, format := range map[uuid.UUID]string{document: "pdf", uuid.New(): "cbr"} {
		s.DB.Exec(t, `insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title)
			values ($1, $2, $1, $1, $2::uuid::text, 1, now(), $3, 'b', 'b', 'b')`, s.One, id, format)
		s.DB.Exec(t, `insert into page_pack (tenant_id, book_id, fingerprint, key, size, etag, offsets, sizes, crcs, created_at)
			values ($1, $2, 'p', $2::uuid::text, 1536, '', '{}', '{}', '{}', now() - interval '40 days')`, s.One, id)
	}
	return s, document
}

func TestWhatThereIs(t *testing.T) {
	t.Parallel()
	s, document := rig(t)
	me, other := s.User(t, "one", "admin"), s.User(t, "two", "admin")
	var got Stats
	me.Do("GET", at, nil).Want(200).JSON(&got)
	p := got.Pages
	if p.BookCount != 1 || p.TotalFiles != 1 || p.TotalSizeBytes != 1536 || p.TotalSizeHuman != "1.5 KB" || p.OldestFileAgeDays == nil || *p.OldestFileAgeDays != 40 ||
		!p.CacheEnabled || p.CacheDir != s.One.String()+"/pack/" || got.Handles.Enabled || got.Handles.Entries == nil {
		t.Errorf("%+v", got)
	}
	if m := other.Do("GET", at+"/stats", nil).Want(200).Map(); m["totalFiles"] != 0.0 || m["oldestFileAgeDays"] != nil || m["totalSizeHuman"] != "0 B" {
		t.Errorf("%v", m)
	}
	if m := me.Do("GET", at+"/handles", nil).Want(200).Map(); len(m) != 10 || m["currentSize"] != 0.0 {
		t.Errorf("%v", m)
	}
	for path, want := range map[string]int{"/handles": 200, "/handles/" + document.String(): 200, "/handles/" + uuid.NewString(): 404, "/handles/x": 400} {
		r := me.Do("DELETE", at+path, nil).Want(want)
		if want == 200 && r.Map()["handlesClosed"] != 0.0 {
			t.Errorf("%s: %v", path, r.Map())
		}
	}
	other.Do("DELETE", at+"/handles/"+document.String(), nil).Want(404)
	for _, c := range [][2]string{{"GET", ""}, {"GET", "/stats"}, {"GET", "/handles"}, {"DELETE", "/handles"}, {"DELETE", "/pages"}, {"DELETE", ""}, {"POST", "/cleanup"}, {"POST", "/pages/cleanup"}} {
		s.User(t, "one", "maintainer").Do(c[0], at+c[1], nil).Want(403)
	}
}

func TestCleanUp(t *testing.T) {
	t.Parallel()
	s, _ := rig(t)
	me := s.User(t, "one", "admin")
	var first, second Started
	me.Do("POST", at+"/pages/cleanup", nil).Want(200).JSON(&first)
	s.DB.Set(t, s.One, "pdf_cache.max_age_days", "0")
	me.Do("POST", at+"/cleanup", nil).Want(200).JSON(&second)
	if first.MaxAgeDays != 30 || second.MaxAgeDays != 0 || first.TaskID != second.TaskID || first.Message == second.Message {
		t.Errorf("%+v, %+v", first, second)
	}
	answer := make(chan Deleted, 1)
	go func() {
		var d Deleted
		me.Do("DELETE", at+"/pages", nil).JSON(&d)
		answer <- d
	}()
	var id uuid.UUID
	testkit.Eventually(t, time.Minute, func() bool {
		return s.DB.Owner.Pool().QueryRow(t.Context(), `select id from task where type = $1 and params = '{"all": true}'`, task.CleanUpPDF).Scan(&id) == nil
	})
	s.DB.Exec(t, `update task set status = 'completed', completed_at = now(), result = '{"filesDeleted":1,"bytesReclaimed":1536}' where id = $1`, id)
	if d := <-answer; !d.Complete || d.TaskID != id || d.FilesDeleted != 1 || d.BytesReclaimed != 1536 || d.BytesReclaimedHuman != "1.5 KB" || d.Error != nil {
		t.Errorf("%+v", d)
	}
	// A failed task returns its error.
	go func() {
		var d Deleted
		me.Do("DELETE", at, nil).JSON(&d)
		answer <- d
	}()
	testkit.Eventually(t, time.Minute, func() bool {
		return s.DB.Owner.Pool().QueryRow(t.Context(), `update task set status = 'failed', completed_at = now(), last_error = 'no store', place = '{"filesDeleted":7,"seen":9}'
			where type = $1 and params = '{"all": true}' and status = 'pending' returning id`, task.CleanUpPDF).Scan(&id) == nil
	})
	if d := <-answer; d.Complete || d.TaskID != id || d.FilesDeleted != 7 || d.Error == nil || *d.Error != "no store" {
		t.Errorf("%+v", d)
	}
}

func TestHuman(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KB", 1536: "1.5 KB", 1<<20 - 1: "1.0 MB", 5 << 30: "5.0 GB", 1<<63 - 1: "8.0 EB"} {
		if got := human(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}
