package orphan

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/cover"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

const at = "/api/v1/admin/cleanup-orphans"

// rig is a tenant with two books, one of which has a page pack, and a media bucket, two days later.
type rig struct {
	*testkit.Server
	t       *testing.T
	s3      *testkit.S3
	media   *blob.Store
	cleaner *Cleaner
	stats   *Finder
	series  uuid.UUID
	book    uuid.UUID
	secret  []byte
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, s3: testkit.StartS3(t), series: uuid.New(), book: uuid.New()}
	r.media = r.s3.Config.Media()
	later := func() time.Time { return time.Now().Add(2 * cover.Youngest) }
	r.Server = testkit.Serve(t, func(a *httpapi.API, d *db.DB) {
		r.stats = &Finder{Database: d, Media: r.media, Bucket: r.s3.Config.MediaBucket, now: later}
		Routes(a, d, nil)
		StatsRoutes(a, r.stats)
	})
	r.cleaner = &Cleaner{Finder: Finder{Database: r.DB.App, Media: r.media, Bucket: r.s3.Config.MediaBucket, now: later}, Publish: func(context.Context, uuid.UUID, ...events.Event) {}}
	if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select secret from tenant where id = $1", r.One).Scan(&r.secret); err != nil {
		t.Fatal(err)
	}
	r.DB.Exec(t, `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $1, 'Books', '/books', 'b', '', 'series_volume', 'filename', 'file_order')`, r.One)
	r.DB.Exec(t, "insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title) values ($1, $2, $1, 's', 's', 's', 's', 's')", r.One, r.series)
	r.DB.Exec(t, `insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title, fingerprint)
		values ($1, $2, $1, $3, 'a', 1, now(), 'cbz', 'b', 'b', 'b', 'print')`, r.One, r.book, r.series)
	return r
}

func (r *rig) put(keys ...string) {
	r.t.Helper()
	for _, key := range keys {
		if err := r.media.Put(r.t.Context(), r.s3.Config.MediaBucket, key, "image/jpeg", []byte("12345")); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *rig) stored() (keys []string) {
	r.t.Helper()
	for page, err := range r.media.List(r.t.Context(), r.s3.Config.MediaBucket, "", "") {
		if err != nil {
			r.t.Fatal(err)
		}
		for _, o := range page {
			keys = append(keys, o.Key)
		}
	}
	return keys
}

// packKey returns a key in package pack's format, with or without a row.
func (r *rig) packKey(digit string, named bool) string {
	key := r.One.String() + "/pack/" + digit + digit + "/" + strings.Repeat(digit, 64)
	if named {
		r.DB.Exec(r.t, "insert into page_pack (tenant_id, book_id, fingerprint, key, size, etag, offsets, sizes, crcs) values ($1, $2, 'print', $3, 5, '', '{}', '{}', '{}')", r.One, r.book, key)
	}
	return key
}

// fill stores referenced and unreferenced objects.
func (r *rig) fill() (named, covers, others []string) {
	gone, tenant := uuid.New(), r.One
	named = []string{
		cover.Key(tenant, r.book, r.secret, "print", 400, 85),
		cover.PagesFolder(tenant, r.book, r.secret, "print") + "/1/300x.webp",
		r.packKey("a", true),
		// ignored
		tenant.String() + "/cover/odd", tenant.String() + "/pack/odd", tenant.String() + "/pack/aa/" + strings.Repeat("c", 64), tenant.String() + "/pack/aa/" + strings.Repeat("a", 63),
		"page/" + tenant.String() + "/odd", tenant.String() + "/export/x/1",
		cover.Key(r.Two, gone, r.secret, "print", 400, 85), "page/" + r.Two.String() + "/" + gone.String() + "/m/1/300x.webp",
	}
	covers = []string{cover.Key(tenant, r.book, r.secret, "earlier", 400, 85), cover.Key(tenant, r.book, r.secret, "print", 100, 85), cover.Key(tenant, gone, r.secret, "print", 400, 85)}
	others = []string{r.packKey("b", false), cover.PagesFolder(tenant, r.book, r.secret, "earlier") + "/1/300x.webp", cover.PagesFolder(tenant, gone, r.secret, "print") + "/1/300x.webp"}
	r.put(named...)
	r.put(covers...)
	r.put(others...)
	return named, covers, others
}

// held is the running task.
func (r *rig) held(id uuid.UUID) task.Held {
	r.DB.Exec(r.t, "update task set status = 'running', lease_epoch = 1 where id = $1", id)
	return task.Held{Tenant: r.One, ID: id, Type: task.CleanUpOrphans, Epoch: 1, Params: json.RawMessage(`{}`)}
}

// run runs the next task, as a worker does.
func (r *rig) run(me *testkit.Client) (Cleaned, error) {
	r.t.Helper()
	var s task.Started
	me.Do("POST", at, nil).Want(200).JSON(&s)
	h := r.held(s.TaskID)
	out, err := r.cleaner.Clean(db.In(context.Background(), h.Scope()), h)
	r.DB.Exec(r.t, "update task set status = 'completed' where id = $1", s.TaskID)
	if err != nil {
		return Cleaned{}, err
	}
	return out.(Cleaned), nil
}

func TestCountAndClean(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me := r.User(t, "one", "admin")
	named, covers, others := r.fill()
	var s Stats
	me.Do("GET", at+"/stats", nil).Want(200).JSON(&s)
	if s.OrphanedCovers != 3 || s.OrphanedThumbnails != 3 || s.TotalSizeBytes != 30 || s.Files != nil || !s.Complete {
		t.Errorf("%+v", s)
	}
	me.Do("GET", at+"/stats?include_files=true", nil).Want(200).JSON(&s)
	var files []string
	for _, f := range s.Files {
		files = append(files, f.Path)
		if f.SizeBytes != 5 || (f.EntityID == nil) != (f.FileType == packFile) || slices.Contains(covers, f.Path) != (f.FileType == coverFile) {
			t.Errorf("%+v", f)
		}
	}
	if want := slices.Sorted(slices.Values(slices.Concat(covers, others))); !slices.Equal(slices.Sorted(slices.Values(files)), want) {
		t.Errorf("files %v, want %v", files, want)
	}
	told := 0
	r.cleaner.Publish = func(_ context.Context, tenant uuid.UUID, e ...events.Event) {
		if told += len(e); tenant != r.One {
			t.Errorf("told to %s", tenant)
		}
	}
	got, err := r.run(me)
	if seen := 0; told != 3 || r.DB.Owner.Pool().QueryRow(t.Context(), "select progress_current from task where type = $1", task.CleanUpOrphans).Scan(&seen) != nil || seen != 14 {
		t.Errorf("told %d times, the last time of %d", told, seen)
	}
	if err != nil || got.CoversDeleted != 3 || got.ThumbnailsDeleted != 3 || got.BytesFreed != 30 || got.Failures != 0 || got.Errors == nil {
		t.Errorf("%+v, %v", got, err)
	}
	if left, want := r.stored(), slices.Sorted(slices.Values(named)); !slices.Equal(left, want) {
		t.Errorf("left are\n%s\nwant\n%s", strings.Join(left, "\n"), strings.Join(want, "\n"))
	}
	me.Do("GET", at+"/stats?includeFiles=true", nil).Want(200).JSON(&s)
	if s.OrphanedCovers+s.OrphanedThumbnails+s.TotalSizeBytes != 0 || s.Files == nil || !s.Complete {
		t.Errorf("afterwards: %+v", s)
	}
}

// The scheduler deletes page packs without a row, and unused covers, once a day.
func TestSweep(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	named, covers, others := r.fill()
	r.DB.Exec(t, "insert into cover_sweep (tenant_id, due_at) values ($1, 'infinity')", r.Two)
	for _, c := range []struct {
		at   time.Time
		want []string
	}{{time.Now(), slices.Concat(named, covers, others)}, {time.Now().Add(2 * cover.Youngest), append(named, others[1:]...)}} {
		if err := cover.Sweep(t.Context(), r.DB.System, r.media, r.s3.Config.MediaBucket, c.at, Packs); err != nil {
			t.Error(err)
		}
		if left, want := r.stored(), slices.Sorted(slices.Values(c.want)); !slices.Equal(left, want) {
			t.Errorf("left are\n%s\nwant\n%s", strings.Join(left, "\n"), strings.Join(want, "\n"))
		}
	}
}

// An object that was just stored may get its row soon.
func TestYoungStay(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me := r.User(t, "one", "admin")
	r.fill()
	r.stats.now = time.Now
	r.cleaner.now = time.Now
	before := r.stored()
	if got, err := r.run(me); err != nil || got.CoversDeleted+got.ThumbnailsDeleted != 0 || !slices.Equal(r.stored(), before) {
		t.Errorf("%+v, %v", got, err)
	}
	if m := me.Do("GET", at+"/stats", nil).Want(200).Map(); m["totalSizeBytes"] != 0.0 {
		t.Errorf("%v", m)
	}
}

// An object that cannot be deleted is reported, and does not block the others.
func TestStoreRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me := r.User(t, "one", "admin")
	named, _, others := r.fill()
	before := r.stored()
	r.s3.Counter.Meddle(func(w http.ResponseWriter, q *http.Request, next http.Handler) {
		if q.Method == http.MethodPost {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, q)
	})
	if got, err := r.run(me); err == nil || !slices.Equal(r.stored(), before) {
		t.Errorf("nothing can be deleted: %+v, %v", got, err)
	}
	r.s3.Counter.Meddle(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(http.StatusNotImplemented) })
	if got, err := r.run(me); !fault.Is(err, fault.Unavailable) {
		t.Errorf("the store does not answer: %+v, %v", got, err)
	}
	r.s3.Keep(others[0])
	got, err := r.run(me)
	if err != nil || got.Failures != 1 || len(got.Errors) != 1 || got.CoversDeleted+got.ThumbnailsDeleted != 5 || len(r.stored()) != len(named)+1 {
		t.Errorf("%+v, %v", got, err)
	}
}

// A worker that has lost its lease deletes nothing more; one that is told to pause continues at its checkpoint.
func TestStopAndGoOn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me := r.User(t, "one", "admin")
	named, _, _ := r.fill()
	var s task.Started
	me.Do("POST", at, nil).Want(200).JSON(&s)
	h := r.held(s.TaskID)
	r.DB.Exec(t, "update task set lease_epoch = 2 where id = $1", s.TaskID)
	before := r.stored()
	if out, err := r.cleaner.Clean(db.In(t.Context(), h.Scope()), h); !db.LeaseLost(err) || !slices.Equal(r.stored(), before) {
		t.Errorf("without the task: %v, %v", out, err)
	}
	h.Epoch = 2
	closed := make(chan struct{})
	close(closed)
	var last any
	for runs := 1; ; runs++ {
		out, err := r.cleaner.Clean(db.In(task.WithPause(t.Context(), closed), h.Scope()), h)
		if err == nil {
			last = out
			if runs != 4 { // once per kind
				t.Errorf("%d runs", runs)
			}
			break
		}
		if runs > 10 || errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select place from task where id = $1", s.TaskID).Scan(&h.Place); err != nil {
			t.Fatal(err)
		}
	}
	if got := last.(Cleaned); got.CoversDeleted != 3 || got.ThumbnailsDeleted != 3 || got.BytesFreed != 30 || len(r.stored()) != len(named) {
		t.Errorf("%+v", got)
	}
}

// A request waits for the clean-up and returns its result; if that takes too long, the result so far.
func TestDelete(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me := r.User(t, "one", "admin")
	r.fill()
	answer := make(chan Answer, 1)
	go func() {
		var a Answer
		me.Do("DELETE", at, nil).JSON(&a)
		answer <- a
	}()
	var id uuid.UUID
	testkit.Eventually(t, time.Minute, func() bool {
		return r.DB.Owner.Pool().QueryRow(t.Context(), "select id from task where status = 'pending'").Scan(&id) == nil
	})
	h := r.held(id)
	out, err := r.cleaner.Clean(db.In(t.Context(), h.Scope()), h)
	if err != nil {
		t.Fatal(err)
	}
	result, _ := json.Marshal(out)
	r.DB.Exec(t, "update task set status = 'completed', completed_at = now(), result = $2 where id = $1", id, result)
	if a := <-answer; !a.Complete || a.TaskID != id || a.CoversDeleted != 3 || a.ThumbnailsDeleted != 3 || a.BytesFreed != 30 {
		t.Errorf("%+v", a)
	}
	// This task has no worker; the one that started it has died.
	var s task.Started
	me.Do("POST", at, nil).Want(200).JSON(&s)
	r.DB.Exec(t, `update task set place = '{"coversDeleted":2,"errors":["no"],"kind":1,"after":"x","seen":9}', last_error = 'the worker died' where id = $1`, s.TaskID)
	var a Answer
	me.Do("DELETE", at, nil).Want(200).JSON(&a)
	if a.Complete || a.TaskID != s.TaskID || a.CoversDeleted != 2 || !slices.Equal(a.Errors, []string{"no", "the worker died"}) {
		t.Errorf("%+v", a)
	}
}

// A request counts for a limited time, and says if the result is incomplete.
func TestCountEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me := r.User(t, "one", "admin")
	r.fill()
	r.stats.within = time.Nanosecond
	if m := me.Do("GET", at+"/stats", nil).Want(200).Map(); m["complete"] != false || m["orphanedCovers"] != 3.0 || m["orphanedThumbnails"] != 0.0 {
		t.Errorf("%v", m)
	}
	r.s3.Counter.Meddle(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(503) })
	me.Do("GET", at+"/stats", nil).Want(503)
	me.Do("GET", at+"/stats?includeFiles=maybe", nil).Want(400)
	// A user from whom something is hidden would see it as unreferenced: such a user may not ask.
	limited, tag := r.User(t, "one", "admin"), uuid.New()
	r.DB.Exec(t, "insert into sharing_tag (tenant_id, id, name) values ($1, $2, 'for some')", r.One, tag)
	r.DB.Exec(t, "insert into sharing_grant (tenant_id, id, sharing_tag_id, account_id, mode) values ($1, gen_random_uuid(), $2, $3, 'allow')", r.One, tag, limited.ID)
	for _, c := range []*testkit.Client{limited, r.User(t, "one", "maintainer")} {
		c.Do("GET", at+"/stats", nil).Want(403)
		c.Do("DELETE", at, nil).Want(403)
		c.Do("POST", at, nil).Want(403)
	}
}
