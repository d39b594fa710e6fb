package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/app/scheduler"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/testkit"
)

// taskState is a task as the interface shows it.
type taskState struct {
	ID               uuid.UUID
	TaskType, Status string
	Progress         struct{ Current, Total int64 }
	Result           json.RawMessage
}

// finished runs the worker until the task started by a command has ended.
func (s *system) finished(c *testkit.Client, started *testkit.Response) (got taskState) {
	s.t.Helper()
	stop := s.work()
	defer stop()
	return s.ended(c, started.Want(200).Map()["taskId"])
}

// ended waits for the end of a task.
func (s *system) ended(c *testkit.Client, id any) (got taskState) {
	s.t.Helper()
	testkit.Eventually(s.t, time.Minute, func() bool {
		c.Do("GET", fmt.Sprint("/api/v1/tasks/", id), nil).Want(200).JSON(&got)
		return got.Status != "pending" && got.Status != "running"
	})
	return got
}

// covers returns the keys of tenant one's covers.
func (s *system) covers() (keys []string) {
	s.t.Helper()
	for page, err := range s.s3.Config.Media().List(context.Background(), "media", s.One.String()+"/cover/", "") {
		if err != nil {
			s.t.Fatal(err)
		}
		for _, o := range page {
			keys = append(keys, o.Key)
		}
	}
	return keys
}

// loseCovers deletes tenant one's covers from the media bucket.
func (s *system) loseCovers() {
	s.t.Helper()
	for _, key := range s.covers() {
		if err := s.s3.Config.Media().Delete(context.Background(), "media", key); err != nil {
			s.t.Fatal(err)
		}
	}
}

// round runs one round of the scheduler.
func (s *system) round(now time.Time) {
	s.t.Helper()
	r, base, err := scheduler.New(scheduler.Config{Config: s.config.Config, SystemURL: s.system, Every: time.Second})
	if err != nil {
		s.t.Fatal(err)
	}
	defer base.Close()
	if err := r.Round(context.Background(), now); err != nil {
		s.t.Error(err)
	}
}

// If a worker is killed while it stores a page pack, the part that it stored is removed later.
func TestHalfAPackIsForgotten(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	media, ctx := s.s3.Config.Media(), context.Background()
	id, err := media.BeginParts(ctx, "media", "pack/half", "application/zip")
	if err != nil {
		t.Fatal(err)
	}
	s.round(time.Now())
	if _, err := media.Parts(ctx, "media", "pack/half", id); err != nil {
		t.Errorf("an upload that may be under way is given up: %v", err)
	}
	s.round(time.Now().Add(72 * time.Hour))
	if _, err := media.Parts(ctx, "media", "pack/half", id); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("an upload that was begun three days ago is still there: %v", err)
	}
}

func TestCoversAreMadeByCommand(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin := s.as("admin")
	for i, name := range []string{"A/A 1.cbz", "A/A 2.cbz", "B/B 1.cbz"} {
		testkit.WriteFile(t, s.folder, name, testkit.Comic(t, i+1, 2, ""))
	}
	library := s.library(admin, "Books", "")
	s.scan(admin, library)
	books := s.books(admin)
	a, b := books["A/A 1.cbz"], books["B/B 1.cbz"]
	all := s.covers()
	if len(all) != 3 {
		t.Fatalf("the scan made %v", all)
	}
	s.loseCovers()
	result := func(made, kept int) string {
		return fmt.Sprintf(`{"kept":%d,"made":%d,"failed":0,"without":0}`, kept, made)
	}
	one := "/api/v1/books/" + a.ID.String() + "/thumbnail"
	of := "/api/v1/libraries/" + library.String()
	for _, c := range []struct {
		what, path string
		body       any
		made, kept int
		covers     int
	}{
		{"of a book", one + "/generate", nil, 1, 0, 1},
		{"it is there", one + "/generate", object{"force": false}, 0, 1, 1},
		{"by force", one + "/generate", object{"force": true}, 1, 0, 1},
		{"of a series", "/api/v1/series/" + b.SeriesID.String() + "/thumbnail/generate", nil, 1, 0, 2},
		{"of the series of the library", of + "/series/thumbnails/generate", nil, 0, 2, 2},
		{"of several books", "/api/v1/books/bulk/thumbnails/generate", object{"bookIds": []any{a.ID, b.ID, uuid.New()}}, 0, 2, 2},
		{"of the books of several series", "/api/v1/series/bulk/thumbnails/books/generate", object{"seriesIds": []any{a.SeriesID}}, 1, 1, 3},
		{"of all", "/api/v1/books/thumbnails/generate", object{"force": true}, 3, 0, 3},
	} {
		got := s.finished(admin, admin.Do("POST", c.path, c.body))
		n := int64(c.made + c.kept)
		if got.Status != "completed" || !sameJSON(got.Result, result(c.made, c.kept)) || got.Progress.Current != n || got.Progress.Total != n || len(s.covers()) != c.covers {
			t.Errorf("%s: %+v %s, covers %d", c.what, got, got.Result, len(s.covers()))
		}
	}
	if again := s.covers(); strings.Join(again, " ") != strings.Join(all, " ") {
		t.Errorf("covers lie at %v, where the scan made them at %v", again, all)
	}
	// The generated covers are the ones shown: nothing is rendered, and nothing is read from the library.
	s.s3.Counter.Reset()
	picture := s.fetch(t, admin, "GET", one).want(t, 200)
	if inLibrary, _ := buckets(s.s3.Counter.Reset()); inLibrary != 0 || picture.Header.Get("Content-Type") != "image/jpeg" {
		t.Errorf("%d requests to the library for %s", inLibrary, picture.Header.Get("Content-Type"))
	}
	// A larger size is another form of each cover.
	admin.Do("PUT", "/api/v1/admin/settings/thumbnail.max_dimension", object{"value": "500"}).Want(200)
	if got := s.finished(admin, admin.Do("POST", of+"/books/thumbnails/generate", nil)); !sameJSON(got.Result, result(3, 0)) {
		t.Errorf("another size: %s", got.Result)
	}
}

func sameJSON(a []byte, b string) bool {
	var x, y map[string]any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal([]byte(b), &y) == nil && fmt.Sprint(x) == fmt.Sprint(y)
}

// With these settings the scheduler generates missing covers, without force, and only once however many rounds there
// are.
func TestCoversAreMadeBySchedule(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin := s.as("admin")
	testkit.WriteFile(t, s.folder, "A/A 1.cbz", testkit.Comic(t, 1, 1, ""))
	testkit.WriteFile(t, s.folder, "A/A 2.cbz", testkit.Comic(t, 2, 1, ""))
	s.scan(admin, s.library(admin, "Books", ""))
	s.loseCovers()
	admin.Do("PUT", "/api/v1/admin/settings/thumbnail.book_cron_schedule", object{"value": "sometimes"}).Want(400)
	for _, step := range []struct {
		key, typ string
		covers   int
	}{{"thumbnail.series_cron_schedule", "generate_series_thumbnails", 1}, {"thumbnail.book_cron_schedule", "generate_thumbnails", 2}} {
		admin.Do("PUT", "/api/v1/admin/settings/"+step.key, object{"value": "0 3 * * *"}).Want(200)
		s.round(time.Now()) // the scheduler sees the new schedule
		var page list[taskState]
		if admin.Do("GET", "/api/v1/tasks?taskType="+step.typ, nil).Want(200).JSON(&page); page.Total != 0 {
			t.Errorf("%s: at once %d tasks", step.key, page.Total)
		}
		for range 3 {
			s.round(time.Now().Add(24 * time.Hour))
		}
		admin.Do("GET", "/api/v1/tasks?taskType="+step.typ, nil).Want(200).JSON(&page)
		if page.Total != 1 {
			t.Fatalf("%s: %d tasks", step.key, page.Total)
		}
		stop := s.work()
		got := s.ended(admin, page.Data[0].ID)
		stop()
		if got.Status != "completed" || len(s.covers()) != step.covers {
			t.Errorf("%s: %+v %s, covers %v", step.key, got, got.Result, s.covers())
		}
	}
}

// While a task waits or runs, a second request returns its id. A cancelled task generates no more covers, and another
// may start.
func TestCoversAreMadeOnceAndCancelled(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin := s.as("admin")
	for i := range 20 {
		testkit.WriteFile(t, s.folder, fmt.Sprintf("A/A %d.cbz", i+1), testkit.Comic(t, i+1, 1, ""))
	}
	s.scan(admin, s.library(admin, "Books", ""))
	s.loseCovers()
	ask := func() any {
		return admin.Do("POST", "/api/v1/books/thumbnails/generate", object{}).Want(200).Map()["taskId"]
	}
	waiting := ask()
	if again := ask(); again != waiting {
		t.Errorf("while it waits: %v, %v", waiting, again)
	}
	reached, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.s3.Counter.Meddle(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodPut && strings.HasPrefix(r.URL.Path, "/media/") {
			once.Do(func() { close(reached) })
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
		next.ServeHTTP(w, r)
	})
	stop := s.work()
	<-reached
	if again := ask(); again != waiting {
		t.Errorf("while it runs: %v, %v", waiting, again)
	}
	admin.Do("POST", fmt.Sprint("/api/v1/tasks/", waiting, "/cancel"), nil).Want(200)
	fresh := ask()
	if fresh == waiting {
		t.Error("a cancelled task is named")
	}
	close(release)
	got := s.ended(admin, fresh)
	stop()
	if got.Status != "completed" || got.Progress.Total != 20 || len(s.covers()) != 20 {
		t.Errorf("%+v %s, covers %d", got, got.Result, len(s.covers()))
	}
	if got := s.ended(admin, waiting); got.Status != "cancelled" {
		t.Errorf("%+v", got)
	}
}

// Through the interface, books of a library and of several series are read again, renumbered and renamed.
func TestReadingAgain(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin := s.as("admin")
	for i, name := range []string{"A (2020)/A 5.cbz", "B/B 7.cbz"} {
		testkit.WriteFile(t, s.folder, name, testkit.Comic(t, i+1, 2, ""))
	}
	library := s.library(admin, "Books", "")
	s.scan(admin, library)
	books := s.books(admin)
	a, b := books["A (2020)/A 5.cbz"], books["B/B 7.cbz"]
	s.exec("update book set page_count = 9")
	if got := s.finished(admin, admin.Do("POST", "/api/v1/libraries/"+library.String()+"/analyze", nil)); got.Status != "completed" || got.Progress.Current != 2 || got.Progress.Total != 2 {
		t.Errorf("library: %+v", got)
	}
	if again := s.books(admin); again["A (2020)/A 5.cbz"].PageCount != 2 || again["B/B 7.cbz"].PageCount != 2 {
		t.Errorf("read again: %+v", again)
	}
	s.exec("update book set page_count = 9, analyzed = false where id = $1", a.ID)
	s.exec("update book set page_count = 9 where id = $1", b.ID)
	if got := admin.Do("POST", "/api/v1/books/bulk/analyze", object{"bookIds": []any{a.ID, b.ID, uuid.New()}}).Want(200).Map(); got["tasksEnqueued"] != 1.0 {
		t.Errorf("new books: %v", got)
	}
	stop := s.work()
	testkit.Eventually(t, time.Minute, func() bool { return s.books(admin)["A (2020)/A 5.cbz"].PageCount == 2 })
	if got := s.books(admin)["B/B 7.cbz"]; got.PageCount != 9 {
		t.Errorf("a book that was analysed: %+v", got)
	}
	if got := admin.Do("POST", "/api/v1/series/bulk/analyze", object{"seriesIds": []any{a.SeriesID, b.SeriesID}, "force": true}).Want(200).Map(); got["tasksEnqueued"] != 2.0 {
		t.Errorf("series: %v", got)
	}
	testkit.Eventually(t, time.Minute, func() bool { return s.books(admin)["B/B 7.cbz"].PageCount == 2 })
	stop()
	admin.Do("PATCH", "/api/v1/libraries/"+library.String(), object{"numberStrategy": "file_order", "titlePreprocessingRules": []any{object{"pattern": ` \(\d+\)$`, "replacement": ""}}}).Want(200)
	both := object{"seriesIds": []any{a.SeriesID, b.SeriesID}}
	if got := s.finished(admin, admin.Do("POST", "/api/v1/series/bulk/renumber", both)); got.Status != "completed" {
		t.Errorf("numbers: %+v", got)
	}
	if again := s.books(admin); *again["A (2020)/A 5.cbz"].Number != 1 || *again["B/B 7.cbz"].Number != 1 {
		t.Errorf("numbered again: %+v", again)
	}
	if got := s.finished(admin, admin.Do("POST", "/api/v1/series/bulk/titles/reprocess", both)); got.Status != "completed" {
		t.Errorf("titles: %+v", got)
	}
	if got := admin.Do("GET", "/api/v1/series/"+a.SeriesID.String(), nil).Want(200).Map(); got["title"] != "A" {
		t.Errorf("series: %v", got["title"])
	}
}
