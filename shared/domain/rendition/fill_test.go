package rendition_test

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/content"
	"github.com/longbox/longbox/shared/domain/rendition"
	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/domain/scan/scanner"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/format/imaging"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/testkit"
)

// rig is a scanned library without covers, and a worker.
type rig struct {
	t       *testing.T
	db      *testkit.Databases
	s3      *testkit.S3
	media   *blob.Store
	tenant  uuid.UUID
	library uuid.UUID
	ids     []uuid.UUID // its books by key
	pausing atomic.Bool // every run of a task must pause at once
	runs    atomic.Int64
	atOnce  int // covers made at once, if not 4
	panics  bool
	reading func(s *scanner.Scanner) func(ctx context.Context, read func() error) error // instead of the scanner's own

	mu     sync.Mutex
	covers []string // in events: entity and id
}

func newRig(t *testing.T, files map[string][]byte) *rig {
	t.Helper()
	r := &rig{t: t, db: testkit.DB(t), s3: testkit.StartS3(t, "books"), library: uuid.New()}
	r.media, r.tenant = r.s3.Config.Media(), r.db.Tenant(t, "one")
	for name, data := range files {
		testkit.WriteFile(t, r.s3.Dir, "books/"+name, data)
	}
	r.exec(`insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2, 'Books', '/books', 'books', '', 'series_volume', 'filename', 'file_order')`, r.tenant, r.library)
	r.do(func(b *pgx.Batch, id *uuid.UUID) error {
		return scan.Start(b, r.library, scan.Params{Mode: scan.Normal}, uuid.Must(uuid.NewV7()), id)
	})
	if err := r.db.Owner.Pool().QueryRow(t.Context(), "select array_agg(id order by key) from book").Scan(&r.ids); err != nil || len(r.stored()) != 0 {
		t.Fatal(err, r.stored())
	}
	return r
}

func (r *rig) exec(sql string, args ...any) {
	r.t.Helper()
	r.db.Exec(r.t, sql, args...)
}

func (r *rig) publish(_ context.Context, _ uuid.UUID, all ...events.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range all {
		if e.Kind != "cover_updated" {
			continue
		}
		var data struct {
			EntityType string    `json:"entity_type"`
			EntityID   uuid.UUID `json:"entity_id"`
			LibraryID  uuid.UUID `json:"library_id"`
		}
		text, err := json.Marshal(e.Data)
		if err == nil {
			err = json.Unmarshal(text, &data)
		}
		if err != nil || data.LibraryID != r.library {
			r.t.Errorf("%s: %v", text, err)
		}
		r.covers = append(r.covers, data.EntityType+" "+data.EntityID.String())
	}
}

// told returns the covers in events since the last call, sorted.
func (r *rig) told() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.covers
	r.covers = nil
	slices.Sort(out)
	return out
}

// runner runs tasks one after the other.
func (r *rig) runner() *task.Runner {
	reader := &content.Reader{Store: r.s3.Store}
	s := &scanner.Scanner{Database: r.db.App, Library: r.s3.Store, Publish: func(context.Context, uuid.UUID, ...events.Event) {}, Parallel: 4, Content: reader}
	f := &rendition.Filler{Maker: &rendition.Maker{Database: r.db.App, Content: reader, Media: r.media, Bucket: "media", Renderer: imaging.New(imaging.Config{})},
		Publish: r.publish, Parallel: cmp.Or(r.atOnce, 4), Timeout: time.Minute, Reading: s.Reading}
	if r.panics {
		f.Renderer = nil
	}
	if r.reading != nil {
		f.Reading = r.reading(s)
	}
	closed := make(chan struct{})
	close(closed)
	watched := func(handle task.Handler) task.Handler {
		return func(ctx context.Context, h task.Held) (any, error) {
			r.runs.Add(1)
			if r.pausing.Load() {
				ctx = task.WithPause(ctx, closed)
			}
			return handle(ctx, h)
		}
	}
	return &task.Runner{System: r.db.System, Publish: func(context.Context, uuid.UUID, ...events.Event) {}, Worker: "test", Slots: 1, Poll: 50 * time.Millisecond,
		ScanEnded: (&scan.Settler{Database: s.Database, Publish: s.Publish}).Ended,
		Handlers:  map[string]task.Handler{task.ScanLibrary: s.Scan, task.AnalyzeBooks: s.AnalyzeBooks, task.BookCovers: watched(f.Books), task.SeriesCovers: watched(f.Series)}}
}

// ended is the state of a task.
type ended struct {
	Status   string
	Progress string
	Result   rendition.CoverCounts
	Errors   []string // the first failures: id and message
	Failure  *string
}

func (r *rig) look(id uuid.UUID) (e ended) {
	r.t.Helper()
	var result []byte
	err := r.db.Owner.Pool().QueryRow(context.Background(), "select status, progress_current || ' of ' || progress_total, last_error, coalesce(result, '{}') from task where id = $1", id).
		Scan(&e.Status, &e.Progress, &e.Failure, &result)
	if err == nil {
		err = json.Unmarshal(result, &e.Result)
	}
	var first struct {
		Errors []struct {
			ID      uuid.UUID
			Message string
		}
	}
	_ = json.Unmarshal(result, &first) // the errors of a scan have another form
	for _, f := range first.Errors {
		e.Errors = append(e.Errors, f.ID.String()+" "+f.Message)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return e
}

func (r *rig) add(add func(b *pgx.Batch, id *uuid.UUID) error) (id uuid.UUID) {
	r.t.Helper()
	var b pgx.Batch
	if err := add(&b, &id); err != nil {
		r.t.Fatal(err)
	}
	if err := r.db.App.Run(db.In(context.Background(), db.Tenant(r.tenant)), &b); err != nil {
		r.t.Fatal(err)
	}
	return id
}

// work runs a worker until the condition holds.
func (r *rig) work(until func() bool) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.runner().Run(ctx) }()
	testkit.Eventually(r.t, time.Minute, until)
	cancel()
	if err := <-done; err != nil {
		r.t.Error(err)
	}
}

// do adds a task and runs it to its end.
func (r *rig) do(add func(b *pgx.Batch, id *uuid.UUID) error) (e ended) {
	r.t.Helper()
	id := r.add(add)
	r.work(func() bool { e = r.look(id); return e.Status != task.Pending && e.Status != task.Running })
	return e
}

func (r *rig) fill(typ string, force bool, of task.Target) ended {
	r.t.Helper()
	return r.do(func(b *pgx.Batch, id *uuid.UUID) error {
		return task.AddFor(b, task.Spec{Type: typ, Params: map[string]any{"force": force}}, of, id)
	})
}

// stored returns the ids that have stored covers.
func (r *rig) stored() (out []string) {
	r.t.Helper()
	for page, err := range r.media.List(context.Background(), "media", r.tenant.String()+"/cover/", "") {
		if err != nil {
			r.t.Fatal(err)
		}
		for _, o := range page {
			out = append(out, strings.Split(o.Key, "/")[2])
		}
	}
	return out
}

// puts returns how many covers were stored since the last call.
func (r *rig) puts() (n int) {
	for _, q := range r.s3.Counter.Reset() {
		if q.Method == http.MethodPut {
			n++
		}
	}
	return n
}

func library(t *testing.T) map[string][]byte {
	files := map[string][]byte{
		"A/broken.cbz":  testkit.Zip(t, testkit.File{Name: "1.jpg", Data: append([]byte("\xff\xd8\xff\xe0"), "no picture at all"...)}),
		"A/nothing.cbz": []byte("no archive at all"),
		"C/cover.jpg":   testkit.JPEG(t, 30, 40, 99),
	}
	for i, name := range []string{"A/1.cbz", "A/2.cbz", "B/1.cbz", "B/2.cbz", "C/1.cbz"} {
		files[name] = testkit.Comic(t, i+1, 1, "")
	}
	return files
}

func TestBookCoversAreMade(t *testing.T) {
	t.Parallel()
	r := newRig(t, library(t))
	book := func(at int) string { return "book " + r.ids[at].String() }
	var series uuid.UUID
	if err := r.db.Owner.Pool().QueryRow(t.Context(), "select series_id from book where id = $1", r.ids[4]).Scan(&series); err != nil {
		t.Fatal(err)
	}
	// By key: A/1, A/2, A/broken, A/nothing, B/1, B/2, C/1.
	for _, c := range []struct {
		what  string
		force bool
		of    task.Target
		want  rendition.CoverCounts
		told  []string
		puts  int
	}{
		{"one", false, task.OfBook(r.ids[0]), rendition.CoverCounts{Made: 1}, []string{book(0)}, 1},
		{"it is there", false, task.OfBook(r.ids[0]), rendition.CoverCounts{Kept: 1}, nil, 0},
		{"it is made again", true, task.OfBook(r.ids[0]), rendition.CoverCounts{Made: 1}, []string{book(0)}, 1},
		{"some", false, task.OfBooks([]uuid.UUID{r.ids[0], r.ids[6], uuid.New()}), rendition.CoverCounts{Made: 1, Kept: 1}, []string{book(6)}, 1},
		{"none", false, task.OfBooks([]uuid.UUID{uuid.New()}), rendition.CoverCounts{}, nil, 0},
		{"of a series", false, task.OfSeries(series), rendition.CoverCounts{Made: 2}, []string{book(4), book(5)}, 2},
		{"of some series", false, task.OfSeveralSeries([]uuid.UUID{series, uuid.New()}), rendition.CoverCounts{Kept: 2}, nil, 0},
		{"of the library", false, task.OfLibrary(r.library), rendition.CoverCounts{Made: 1, Kept: 4, Failed: 1, Without: 1}, []string{book(1)}, 1},
		{"of all", true, task.OfAll(), rendition.CoverCounts{Made: 5, Failed: 1, Without: 1}, []string{book(0), book(1), book(4), book(5), book(6)}, 5},
	} {
		slices.Sort(c.told)
		r.puts()
		got := r.fill(task.BookCovers, c.force, c.of)
		n := c.want.Made + c.want.Kept + c.want.Failed + c.want.Without
		if got.Status != task.Completed || got.Result != c.want || got.Progress != fmt.Sprintf("%d of %d", n, n) {
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
		if told, puts := r.told(), r.puts(); !slices.Equal(told, c.told) || puts != c.puts {
			t.Errorf("%s: told %v, want %v; %d objects written, want %d", c.what, told, c.told, puts, c.puts)
		}
	}
	if got := r.stored(); len(got) != 5 {
		t.Errorf("stored: %v", got)
	}
}

// A first page without bytes, which in a tar archive is an empty range, is one cover that cannot be made.
func TestCoverOfAnEmptyPage(t *testing.T) {
	t.Parallel()
	var empty bytes.Buffer
	w := tar.NewWriter(&empty)
	for _, name := range []string{"1.jpg", "2.jpg"} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, map[string][]byte{"A/1.cbt": empty.Bytes(), "A/2.cbz": testkit.Comic(t, 1, 1, "")})
	if got := r.fill(task.BookCovers, false, task.OfAll()); got.Status != task.Completed || got.Result != (rendition.CoverCounts{Made: 1, Failed: 1}) {
		t.Errorf("%+v", got)
	}
}

// A book whose cover panics does not end the worker, and does not keep the others from theirs.
func TestCoversThatPanic(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string][]byte{"A/1.cbz": testkit.Comic(t, 1, 1, ""), "A/2.cbz": testkit.Comic(t, 2, 1, "")})
	r.panics = true
	got := r.fill(task.BookCovers, false, task.OfAll())
	if got.Status != task.Completed || got.Result != (rendition.CoverCounts{Failed: 2}) || len(got.Errors) != 2 || !strings.Contains(got.Errors[0], "crashed") {
		t.Errorf("%+v", got)
	}
}

// The cover of a series is that of its first book or of the chosen one, or the picture beside its books.
func TestSeriesCoversAreMade(t *testing.T) {
	t.Parallel()
	r := newRig(t, library(t))
	var series []uuid.UUID
	if err := r.db.Owner.Pool().QueryRow(t.Context(), "select array_agg(id order by name) from series").Scan(&series); err != nil {
		t.Fatal(err)
	}
	r.exec("update series set cover_source = 'book:' || $1 where id = $2", r.ids[5].String(), series[1])
	r.exec("update series set cover_source = 'book:' || $1 where id = $2", r.ids[6].String(), series[0]) // of another series
	r.exec("update book set number = 9 where id = $1", r.ids[0])                                         // no longer the first
	got := r.fill(task.SeriesCovers, false, task.OfLibrary(r.library))
	want := []string{r.ids[1].String(), r.ids[5].String(), series[2].String()}
	slices.Sort(want)
	if stored := r.stored(); got.Result != (rendition.CoverCounts{Made: 3}) || !slices.Equal(stored, want) {
		t.Errorf("%+v, stored %v, want %v", got, stored, want)
	}
	told := []string{"book " + r.ids[1].String(), "book " + r.ids[5].String(), "series " + series[0].String(), "series " + series[1].String(), "series " + series[2].String()}
	slices.Sort(told)
	if got := r.told(); !slices.Equal(got, told) {
		t.Errorf("told %v, want %v", got, told)
	}
	if got := r.fill(task.SeriesCovers, true, task.OfSeries(series[1])); got.Result != (rendition.CoverCounts{Made: 1}) {
		t.Errorf("one again: %+v", got)
	}
	if got := r.fill(task.SeriesCovers, false, task.OfSeveralSeries(series[1:])); got.Result != (rendition.CoverCounts{Kept: 2}) {
		t.Errorf("two: %+v", got)
	}
	if got := r.fill(task.SeriesCovers, false, task.OfAll()); got.Result != (rendition.CoverCounts{Kept: 3}) {
		t.Errorf("all: %+v", got)
	}
}

// A pausing task makes at least one cover per run, continues at its checkpoint, and makes none twice.
func TestCoversArePaused(t *testing.T) {
	t.Parallel()
	r := newRig(t, library(t))
	r.pausing.Store(true)
	r.puts()
	got := r.fill(task.BookCovers, true, task.OfAll())
	if puts, runs := r.puts(), r.runs.Load(); got.Result != (rendition.CoverCounts{Made: 5, Failed: 1, Without: 1}) || got.Progress != "7 of 7" || puts != 5 || runs != 8 {
		t.Errorf("%+v in %d runs, %d objects written", got, runs, puts)
	}
}

// A book that is suspected of killing workers is read after at most one batch of covers.
func TestSuspectIsReadBetweenCovers(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{}
	for i := range 101 {
		files[fmt.Sprintf("A/%03d.cbz", i)] = testkit.Comic(t, i, 1, "")
	}
	r := newRig(t, files)
	analysis := db.In(t.Context(), db.Tenant(r.tenant))
	params, err := json.Marshal(map[string]any{"bookIds": r.ids[:1], "force": true})
	if err != nil {
		t.Fatal(err)
	}
	var order []string // only appended to while nothing else is read
	var suspect sync.WaitGroup
	r.reading = func(s *scanner.Scanner) func(ctx context.Context, read func() error) error {
		s.Cover = func(context.Context, uuid.UUID, uuid.UUID, []byte, string, int, int, []byte) (string, error) {
			order = append(order, "suspect")
			return "", nil
		}
		return func(ctx context.Context, read func() error) error {
			return s.Reading(ctx, func() error {
				if order = append(order, "covers"); len(order) == 1 {
					suspect.Go(func() {
						if _, err := s.AnalyzeBooks(analysis, task.Held{Tenant: r.tenant, ID: uuid.New(), Params: params, Deaths: 1}); err != nil {
							t.Error(err)
						}
					})
					testkit.Eventually(t, time.Minute, func() bool { return waits(s) })
				}
				return read()
			})
		}
	}
	if got := r.fill(task.BookCovers, false, task.OfAll()); got.Result.Made != 101 {
		t.Errorf("%+v", got)
	}
	suspect.Wait()
	if want := []string{"covers", "suspect", "covers", "covers"}; !slices.Equal(order, want) {
		t.Errorf("%q, want %q", order, want)
	}
}

// waits reports whether a suspect waits to be read: others wait behind it.
func waits(s *scanner.Scanner) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	return s.Reading(ctx, func() error { return nil }) != nil
}

// A book whose file is listed but not readable, because of permissions or archiving, does not block the others.
func TestCoversOfFilesThatAreNotGiven(t *testing.T) {
	t.Parallel()
	r := newRig(t, library(t))
	r.exec("alter table task alter max_attempts set default 1")
	r.s3.Counter.Meddle(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		switch {
		case req.Method == http.MethodGet && req.URL.Path == "/books/A/1.cbz":
			http.Error(w, "<Error><Code>InvalidObjectState</Code></Error>", http.StatusForbidden)
		case req.Method == http.MethodGet && req.URL.Path == "/books/B/1.cbz":
			w.WriteHeader(http.StatusInternalServerError)
		default:
			next.ServeHTTP(w, req)
		}
	})
	got := r.fill(task.BookCovers, true, task.OfAll())
	if got.Status != task.Completed || got.Result != (rendition.CoverCounts{Made: 3, Failed: 3, Without: 1}) || len(got.Errors) != 3 {
		t.Fatalf("%+v", got)
	}
	for at, says := range map[int]string{0: "archived", 2: "no cover", 4: "permissions"} { // A/1, A/broken, B/1
		if !slices.ContainsFunc(got.Errors, func(e string) bool { return strings.HasPrefix(e, r.ids[at].String()) && strings.Contains(e, says) }) {
			t.Errorf("%v do not say of %s: %s", got.Errors, r.ids[at], says)
		}
	}
}

// Of many failures, the result names the first, also across batches and pauses.
func TestFirstCoversThatFail(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{}
	for i := range 12 {
		files[fmt.Sprintf("A/%d.cbz", i)] = testkit.Zip(t, testkit.File{Name: "1.jpg", Data: append([]byte("\xff\xd8\xff\xe0"), byte(i))})
	}
	r := newRig(t, files)
	r.pausing.Store(true)
	slices.SortFunc(r.ids, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }) // the order of the task
	got := r.fill(task.BookCovers, false, task.OfAll())
	if got.Status != task.Completed || got.Result != (rendition.CoverCounts{Failed: 12}) || len(got.Errors) != 10 {
		t.Fatalf("%+v", got)
	}
	for i, e := range got.Errors {
		if !strings.HasPrefix(e, r.ids[i].String()+" no cover: ") {
			t.Errorf("error %d is %q", i, e)
		}
	}
}

// If the store is away, the task retries later and continues; if cancelled, it ends.
func TestCoversOutliveTheStore(t *testing.T) {
	t.Parallel()
	r := newRig(t, library(t))
	var away atomic.Bool
	away.Store(true)
	r.s3.Counter.Meddle(func(w http.ResponseWriter, q *http.Request, next http.Handler) {
		if away.Load() && strings.HasPrefix(q.URL.Path, "/media/") {
			http.Error(w, "away", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, q)
	})
	add := func(b *pgx.Batch, id *uuid.UUID) error {
		return task.AddFor(b, task.Spec{Type: task.BookCovers}, task.OfAll(), id)
	}
	id := r.add(add)
	r.work(func() bool { e := r.look(id); return e.Status == task.Pending && e.Failure != nil })
	if told := r.told(); len(told) != 0 {
		t.Errorf("told %v", told)
	}
	away.Store(false)
	r.exec("update task set scheduled_for = now() where id = $1", id)
	r.work(func() bool { return r.look(id).Status == task.Completed })
	if got := r.look(id); got.Result.Made != 5 {
		t.Errorf("%+v", got)
	}
}

// What was made before the store went away is told: the retry finds these covers, and tells nobody.
func TestCoversBeforeTheStoreIsAway(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string][]byte{"A/1.cbz": testkit.Comic(t, 1, 1, ""), "A/2.cbz": testkit.Comic(t, 2, 1, "")})
	r.atOnce = 1
	slices.SortFunc(r.ids, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }) // the order of the task
	r.exec("alter table task alter max_attempts set default 1")
	r.s3.Counter.Meddle(func(w http.ResponseWriter, q *http.Request, next http.Handler) {
		if strings.HasPrefix(q.URL.Path, "/media/") && strings.Contains(q.URL.Path, r.ids[1].String()) {
			http.Error(w, "away", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, q)
	})
	if got := r.fill(task.BookCovers, false, task.OfAll()); got.Status != task.Failed {
		t.Fatalf("%+v", got)
	}
	if told, want := r.told(), []string{"book " + r.ids[0].String()}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
}

// A cancelled task writes nothing more.
func TestCoversAreCancelled(t *testing.T) {
	t.Parallel()
	r := newRig(t, library(t))
	reached, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	r.s3.Counter.Meddle(func(w http.ResponseWriter, q *http.Request, next http.Handler) {
		if strings.HasPrefix(q.URL.Path, "/media/") && q.Method == http.MethodGet {
			once.Do(func() { close(reached) })
			select {
			case <-release:
			case <-q.Context().Done():
			}
		}
		next.ServeHTTP(w, q)
	})
	id := r.add(func(b *pgx.Batch, id *uuid.UUID) error {
		return task.AddFor(b, task.Spec{Type: task.BookCovers}, task.OfAll(), id)
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.runner().Run(ctx) }()
	<-reached
	if _, err := task.Cancel(db.In(ctx, db.Tenant(r.tenant)), r.db.App, id); err != nil {
		t.Fatal(err)
	}
	// The slot is free again, although the store still does not respond: another task runs.
	next := r.add(func(b *pgx.Batch, id *uuid.UUID) error {
		return task.AddFor(b, task.Spec{Type: task.BookCovers}, task.OfBooks(nil), id)
	})
	testkit.Eventually(t, time.Minute, func() bool { return r.look(next).Status == task.Completed })
	close(release)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := r.look(id); got.Status != task.Cancelled || len(r.stored()) != 0 || len(r.told()) != 0 {
		t.Errorf("%+v, stored %v", got, r.stored())
	}
}
