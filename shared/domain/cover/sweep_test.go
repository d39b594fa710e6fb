package cover

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/testkit"
)

// sweepRig is a media bucket with tenants. Its clock continues from when the objects were stored.
type sweepRig struct {
	t     *testing.T
	db    *testkit.Databases
	s3    *testkit.S3
	media *blob.Store
	now   time.Time
}

func newSweepRig(t *testing.T) *sweepRig {
	t.Helper()
	s3 := testkit.StartS3(t)
	return &sweepRig{t: t, db: testkit.DB(t), s3: s3, media: s3.Config.Media(), now: time.Now()}
}

// shelf is a tenant with a library of one series.
type shelf struct {
	*sweepRig
	tenant, series uuid.UUID
	secret         []byte
}

func (r *sweepRig) shelf(name string) shelf {
	r.t.Helper()
	s := shelf{sweepRig: r, tenant: r.db.Tenant(r.t, name)}
	if err := r.db.Owner.Pool().QueryRow(r.t.Context(), "select secret from tenant where id = $1", s.tenant).Scan(&s.secret); err != nil {
		r.t.Fatal(err)
	}
	r.db.Exec(r.t, `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $1, 'Books', '/books', 'b', '', 'series_volume', 'filename', 'file_order')`, s.tenant)
	s.series = s.addSeries("s", nil)
	return s
}

func (s shelf) addSeries(path string, chosen *string) uuid.UUID {
	s.t.Helper()
	id := uuid.New()
	s.db.Exec(s.t, `insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title, cover_source)
		values ($1, $2, $1, $3, $3, $3, $3, $3, $4)`, s.tenant, id, path, chosen)
	return id
}

func (s shelf) addBook(fingerprint string) uuid.UUID {
	s.t.Helper()
	id := uuid.New()
	s.db.Exec(s.t, `insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title, fingerprint)
		values ($1, $2, $1, $3, gen_random_uuid()::text, 1, now(), 'cbz', 'b', 'b', 'b', $4)`, s.tenant, id, s.series, fingerprint)
	return id
}

// addPicture adds a picture beside the books of a series; without a fingerprint it is unread.
func (s shelf) addPicture(path, name, fingerprint string) {
	s.t.Helper()
	s.db.Exec(s.t, `insert into sidecar (tenant_id, library_id, key, kind, about, version, size, modified_at, document)
		values ($1, $1, $2::text || '/' || $3::text, 'cover', $2::text, $1, 1, now(), case when $4 <> '' then jsonb_build_object('fingerprint', $4::text) end)`,
		s.tenant, path, name, fingerprint)
}

// cover returns the key of a cover in the default size.
func (s shelf) cover(of uuid.UUID, fingerprint string) string {
	return Key(s.tenant, of, s.secret, fingerprint, 400, 85)
}

func (r *sweepRig) put(keys ...string) {
	r.t.Helper()
	var g errgroup.Group
	g.SetLimit(16)
	for _, key := range keys {
		g.Go(func() error { return r.media.Put(r.t.Context(), "media", key, "image/jpeg", []byte("picture")) })
	}
	if err := g.Wait(); err != nil {
		r.t.Fatal(err)
	}
}

func (r *sweepRig) stored(prefix string) (keys []string) {
	r.t.Helper()
	for page, err := range r.media.List(r.t.Context(), "media", prefix, "") {
		if err != nil {
			r.t.Fatal(err)
		}
		for _, o := range page {
			keys = append(keys, o.Key)
		}
	}
	return keys
}

// is compares the objects below a prefix.
func (r *sweepRig) is(prefix string, want ...string) {
	r.t.Helper()
	want = slices.Sorted(slices.Values(want))
	if got := r.stored(prefix); !slices.Equal(got, want) {
		r.t.Errorf("stored are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// after advances the clock and sweeps.
func (r *sweepRig) after(d time.Duration) error {
	r.now = r.now.Add(d)
	return Sweep(r.t.Context(), r.db.System, r.media, "media", r.now)
}

func (r *sweepRig) mustAfter(d time.Duration) {
	r.t.Helper()
	if err := r.after(d); err != nil {
		r.t.Error(err)
	}
}

// lists returns the listings of the bucket since the last call.
func (r *sweepRig) lists() (out []string) {
	for _, q := range r.s3.Counter.Reset() {
		if strings.Contains(q.Query, "list-type=2") {
			out = append(out, q.Query)
		}
	}
	return out
}

var listed = regexp.MustCompile(`(?s)<Contents>.*?</Contents>`)

// inPagesOf makes the store list n keys at a time, and fail after the first page for a tenant.
func (r *sweepRig) inPagesOf(n int, failing uuid.UUID) {
	var mu sync.Mutex
	var keys []string
	r.s3.Counter.Meddle(func(w http.ResponseWriter, q *http.Request, next http.Handler) {
		query := q.URL.Query()
		if query.Get("list-type") == "" {
			next.ServeHTTP(w, q)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		from := 0
		if token := query.Get("continuation-token"); token == "" {
			all := httptest.NewRecorder()
			next.ServeHTTP(all, q)
			keys = listed.FindAllString(all.Body.String(), -1)
		} else if _, err := fmt.Sscan(token, &from); err != nil || strings.HasPrefix(query.Get("prefix"), failing.String()) {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		to := min(from+n, len(keys))
		fmt.Fprintf(w, "<ListBucketResult>%s<IsTruncated>%t</IsTruncated><NextContinuationToken>%d</NextContinuationToken></ListBucketResult>",
			strings.Join(keys[from:to], ""), to < len(keys), to)
	})
}

func TestSweepDeletesWhatNothingShows(t *testing.T) {
	t.Parallel()
	r := newSweepRig(t)
	one := r.shelf("one")
	first := "first_book"
	book, changed, gone, unread := one.addBook("now"), one.addBook("now"), one.addBook("now"), one.addBook("")
	r.db.Exec(t, "update book set deleted_at = now() where id = $1", gone)
	pictured, chosen := one.addSeries("pictured", nil), one.addSeries("chosen", &first)
	one.addPicture("pictured", "cover.jpg", "now")
	one.addPicture("pictured", "poster.jpg", "other")
	one.addPicture("pictured", "folder.jpg", "")
	one.addPicture("chosen", "cover.jpg", "now")
	one.addPicture("purged", "cover.jpg", "now")
	r.db.Exec(t, `insert into series_cover (tenant_id, id, series_id, fingerprint, type, image, size) values ($1, $2, $2, 'uploaded', 'image/gif', 'x', 1)`, one.tenant, chosen)
	r.db.Exec(t, `insert into book_cover (tenant_id, id, book_id, fingerprint, type, image, size) values ($1, $2, $2, 'uploaded', 'image/gif', 'x', 1)`, one.tenant, book)
	keep := []string{one.cover(chosen, "uploaded"), one.cover(book, "uploaded"), one.cover(book, "now"), one.cover(changed, "now"), one.cover(gone, "now"), one.cover(pictured, "now"), one.cover(pictured, "other"),
		one.cover(chosen, "now"), one.tenant.String() + "/pack/ab/abcd", one.tenant.String() + "/cover/what", one.tenant.String() + "/cover/a/b/c",
		one.tenant.String() + "/cover/" + strings.ToUpper(book.String()) + "/b/c"}
	drop := []string{
		one.cover(uuid.New(), "now"), // of a book or series that was purged
		one.cover(changed, "before"), one.cover(gone, "before"), one.cover(pictured, "before"), one.cover(one.series, "now"),
		one.cover(unread, ""),
		Key(one.tenant, book, one.secret, "now", 300, 85), Key(one.tenant, book, one.secret, "now", 400, 80),
		Key(one.tenant, book, []byte(strings.Repeat("x", 32)), "now", 400, 85),
	}
	two := r.shelf("two")
	others := two.addBook("now")
	drop = append(drop, one.cover(others, "now")) // nothing of this tenant's
	untouched := []string{two.cover(others, "now"), two.cover(book, "now"), two.cover(uuid.New(), "now")}
	r.db.Exec(t, "insert into cover_sweep (tenant_id, due_at) values ($1, now() + interval '10 days')", two.tenant)
	r.put(slices.Concat(keep, drop, untouched)...)

	r.mustAfter(23 * time.Hour)
	r.is(one.tenant.String(), slices.Concat(keep, drop)...)
	r.mustAfter(24 * time.Hour)
	r.is(one.tenant.String(), keep...)
	r.is(two.tenant.String(), untouched...)

	r.db.Set(t, one.tenant, "thumbnail.max_dimension", "300")
	r.put(Key(one.tenant, book, one.secret, "now", 300, 85))
	r.mustAfter(24 * time.Hour)
	r.is(one.tenant.String(), append(keep[8:], Key(one.tenant, book, one.secret, "now", 300, 85))...)
}

func TestSweepOnceADay(t *testing.T) {
	t.Parallel()
	r := newSweepRig(t)
	one, two := r.shelf("one"), r.shelf("two")
	r.db.Exec(t, "update tenant set status = 'suspended' where id = $1", one.tenant)
	deleting := r.shelf("deleting")
	r.db.Exec(t, "update tenant set status = 'deleting' where id = $1", deleting.tenant)
	r.now = r.now.Add(2 * Youngest)
	for _, step := range []struct {
		wait  time.Duration
		lists int
	}{{0, 2}, {time.Second, 0}, {23 * time.Hour, 0}, {time.Hour - time.Second, 2}, {240 * time.Hour, 2}} {
		r.put(one.cover(uuid.New(), "now"), two.cover(uuid.New(), "now"), deleting.cover(uuid.New(), "now"))
		r.lists()
		var schedulers errgroup.Group // all at the same time
		r.now = r.now.Add(step.wait)
		for range 4 {
			schedulers.Go(func() error { return Sweep(t.Context(), r.db.System, r.media, "media", r.now) })
		}
		if err := schedulers.Wait(); err != nil {
			t.Error(err)
		}
		if lists := r.lists(); len(lists) != step.lists {
			t.Errorf("after %s %d listings, want %d: %v", step.wait, len(lists), step.lists, lists)
		}
		if left := len(r.stored(one.tenant.String())) + len(r.stored(two.tenant.String())); (left == 0) != (step.lists > 0) {
			t.Errorf("after %s %d are left", step.wait, left)
		}
	}
	if got := len(r.stored(deleting.tenant.String())); got != 5 {
		t.Errorf("of a tenant that is being deleted %d are left", got)
	}
}

// A failed sweep deletes nothing, does not block other tenants, and is retried after an hour.
func TestSweepThatFails(t *testing.T) {
	t.Parallel()
	refuse := func(when func(*http.Request) bool) func(*sweepRig, shelf) func() {
		return func(r *sweepRig, _ shelf) func() {
			r.s3.Counter.Meddle(func(w http.ResponseWriter, q *http.Request, next http.Handler) {
				if when(q) {
					http.Error(w, "no", http.StatusForbidden)
					return
				}
				next.ServeHTTP(w, q)
			})
			return func() { r.s3.Counter.Meddle(nil) }
		}
	}
	for name, c := range map[string]struct {
		fail   func(*sweepRig, shelf) (mend func())
		others bool // the others are swept
	}{
		"the listing": {func(r *sweepRig, s shelf) func() {
			return refuse(func(q *http.Request) bool { return strings.Contains(q.URL.Query().Get("prefix"), s.tenant.String()) })(r, s)
		}, true},
		"the deletion": {refuse(func(q *http.Request) bool { return q.Method == "POST" }), false},
		"what a setting says": {func(r *sweepRig, s shelf) func() {
			r.db.Set(r.t, s.tenant, "thumbnail.max_dimension", "none")
			return func() { r.db.Exec(r.t, "delete from setting") }
		}, true},
		"what books there are": {func(r *sweepRig, _ shelf) func() {
			r.db.Exec(r.t, "alter table book rename to elsewhere")
			return func() { r.db.Exec(r.t, "alter table elsewhere rename to book") }
		}, false},
		"whose turn it is": {func(r *sweepRig, _ shelf) func() {
			r.db.Exec(r.t, "alter table cover_sweep rename to elsewhere")
			return func() { r.db.Exec(r.t, "alter table elsewhere rename to cover_sweep") }
		}, false},
		// Seen by the scheduler, but not by the statement that selects its covers.
		"the tenant": {func(r *sweepRig, _ shelf) func() {
			r.db.Exec(r.t, "alter policy system on tenant using (app.tenant() is null or id not in (select tenant_id from cover_sweep))")
			return func() { r.db.Exec(r.t, "alter policy system on tenant using (true)") }
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newSweepRig(t)
			one, two := r.shelf("one"), r.shelf("two")
			keys := []string{one.cover(one.addBook("now"), "now"), one.cover(uuid.New(), "now")}
			other := two.cover(uuid.New(), "now")
			r.put(append(keys, other)...)
			mend := c.fail(r, one)
			if err := r.after(25 * time.Hour); err == nil {
				t.Error("no failure")
			}
			mend()
			r.is(one.tenant.String(), keys...)
			if left := len(r.stored(two.tenant.String())); (left == 0) != c.others {
				t.Errorf("of the other tenant %d are left", left)
			}
			r.mustAfter(time.Hour)
			r.is("", keys[0])
		})
	}
}

// A cover that cannot be deleted is reported, and does not block later ones.
func TestSweepBehindWhatIsRefused(t *testing.T) {
	t.Parallel()
	r := newSweepRig(t)
	one := r.shelf("one")
	locked := uuid.UUID{1}
	r.put(one.cover(locked, "now"))
	for i := range 1000 { // together more than one page of a listing
		testkit.WriteFile(t, r.s3.Dir, "media/"+one.cover(uuid.UUID{2, byte(i >> 8), byte(i)}, "now"), nil)
	}
	r.s3.Keep(locked.String())
	if err := r.after(25 * time.Hour); err == nil || !strings.Contains(err.Error(), one.cover(locked, "now")) {
		t.Errorf("%v", err)
	}
	r.s3.Counter.Meddle(nil)
	r.is("", one.cover(locked, "now"))
	r.mustAfter(25 * time.Hour)
	r.is("")
}

// A sweep that fails or runs out of time continues where it stopped.
func TestSweepGoesOn(t *testing.T) {
	t.Parallel()
	r := newSweepRig(t)
	one, two := r.shelf("one"), r.shelf("two")
	keys := make([]string, 5)
	for i := range keys {
		keys[i] = one.cover(uuid.New(), "now")
	}
	r.put(append(keys, two.cover(uuid.New(), "now"))...)
	slices.Sort(keys)
	r.now = r.now.Add(25 * time.Hour)
	r.inPagesOf(2, one.tenant)
	if err := r.after(0); err == nil || strings.Contains(err.Error(), two.tenant.String()) {
		t.Errorf("%v", err)
	}
	r.s3.Counter.Meddle(nil)
	r.is("", keys[2:]...)
	r.mustAfter(59 * time.Minute)
	r.is("", keys[2:]...)
	r.inPagesOf(2, uuid.Nil)
	// The tenant that has waited longest comes first; the other one follows when there is time.
	r.db.Exec(t, "update cover_sweep set due_at = now() where tenant_id = $1", two.tenant)
	r.put(two.cover(uuid.New(), "now"))
	r.now = r.now.Add(2 * time.Minute)
	r.lists()
	for i, want := range []struct{ left, lists []string }{
		{keys[2:], []string{two.tenant.String()}},
		{keys[4:], []string{"start-after=" + one.tenant.String()}},
		{keys[4:], []string{"start-after=" + two.tenant.String()}},
		{nil, []string{"start-after=" + one.tenant.String()}},
		{nil, []string{"start-after=" + one.tenant.String()}},
		{nil, nil},
	} {
		if err := sweep(t.Context(), r.db.System, r.media, "media", r.now, 0); err != nil {
			t.Error(err)
		}
		lists := r.lists()
		r.s3.Counter.Meddle(nil)
		if ok := len(lists) == min(1, len(want.lists)); !ok || slices.ContainsFunc(want.lists, func(part string) bool { return !strings.Contains(lists[0], part) }) {
			t.Errorf("%d: listed %v, want %v", i, lists, want.lists)
		}
		r.is("", want.left...)
		r.inPagesOf(2, uuid.Nil)
		r.lists()
		r.now = r.now.Add(time.Second)
	}
	r.mustAfter(24 * time.Hour)
	if lists := r.lists(); len(lists) != 2 || strings.Contains(fmt.Sprint(lists), "start-after=") {
		t.Errorf("the next day: %v", lists)
	}
}

func TestSweepThatIsEnded(t *testing.T) {
	t.Parallel()
	r := newSweepRig(t)
	one := r.shelf("one")
	key := one.cover(uuid.New(), "now")
	r.put(key)
	ctx, cancel := context.WithCancel(t.Context())
	r.s3.Counter.Meddle(func(w http.ResponseWriter, q *http.Request, next http.Handler) {
		next.ServeHTTP(w, q)
		cancel()
	})
	if err := Sweep(ctx, r.db.System, r.media, "media", r.now.Add(25*time.Hour)); err == nil {
		t.Error("no failure")
	}
	r.s3.Counter.Meddle(nil)
	r.is("", key)
}
