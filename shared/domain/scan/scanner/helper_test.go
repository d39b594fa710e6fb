package scanner_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/domain/scan/scanner"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/testkit"
)

// rig is a library in a folder, with workers on demand.
type rig struct {
	t       testing.TB
	db      *testkit.Databases
	s3      *testkit.S3
	tenant  uuid.UUID
	library uuid.UUID
	folder  string

	mu     sync.Mutex
	events []events.Event
}

func newRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{t: t, db: testkit.DB(t), s3: testkit.StartS3(t, "books"), library: uuid.New()}
	r.tenant = r.db.Tenant(t, "one")
	r.folder = r.s3.Dir + "/books"
	_, err := r.db.Owner.Pool().Exec(context.Background(), `insert into library
		(tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2, 'Books', '/books', 'books', '', 'series_volume', 'metadata_first', 'smart')`, r.tenant, r.library)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) ctx() context.Context { return db.In(context.Background(), db.Tenant(r.tenant)) }

func (r *rig) publish(_ context.Context, _ uuid.UUID, e ...events.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e...)
}

func (r *rig) runner(slots int) *task.Runner {
	s := &scanner.Scanner{Database: r.db.App, Library: r.s3.Store, Publish: r.publish, Parallel: 8}
	return &task.Runner{System: r.db.System, Publish: r.publish, Worker: "test", Slots: slots, Poll: 200 * time.Millisecond, ScanEnded: ended(s),
		Handlers: map[string]task.Handler{task.ScanLibrary: s.Scan, task.AnalyzeBooks: s.AnalyzeBooks, task.AnalyzeBook: s.AnalyzeBooks, task.AnalyzeSeries: s.AnalyzeSeries, task.PurgeDeleted: s.Purge,
			task.ReprocessTitles: s.ReprocessTitles, task.RenumberSeries: s.RenumberSeries, task.AnalyzeLibrary: s.AnalyzeLibrary}}
}

// ended settles the scans of a worker with this scanner.
func ended(s *scanner.Scanner) func(ctx context.Context, tenant, id uuid.UUID) {
	return (&scan.Settler{Database: s.Database, Publish: s.Publish, Added: s.Added}).Ended
}

// work runs a worker until ctx ends.
func (r *rig) work(ctx context.Context) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := r.runner(3).Run(ctx); err != nil {
			r.t.Error(err)
		}
	}()
	return func() { <-done }
}

func (r *rig) start(mode string) uuid.UUID { return r.startWith(scan.Params{Mode: mode}) }

func (r *rig) startWith(p scan.Params) uuid.UUID {
	r.t.Helper()
	var b pgx.Batch
	var id uuid.UUID
	if err := scan.Start(&b, r.library, p, uuid.Must(uuid.NewV7()), &id); err != nil {
		r.t.Fatal(err)
	}
	if err := r.db.App.Run(r.ctx(), &b); err != nil {
		r.t.Fatal(err)
	}
	return id
}

// take runs one task once, but not those that follow.
func (r *rig) take(id uuid.UUID) {
	r.t.Helper()
	if err := r.runner(1).Take(context.Background(), `{"tenant":"`+r.tenant.String()+`","task":"`+id.String()+`"}`); err != nil {
		r.t.Fatal(err)
	}
}

// listed runs a scan until it has listed everything, but none of its tasks has run.
func (r *rig) listed() uuid.UUID {
	r.t.Helper()
	id := r.start("normal")
	r.take(id)
	return id
}

// idle runs a worker until no task is left.
func (r *rig) idle() {
	r.t.Helper()
	r.until("not exists (select from task where tenant_id = app.tenant() and status in ('pending', 'running'))")
}

// result is the state of a scan.
type result struct {
	Status    string   `db:"status"`
	Total     int64    `db:"files_total"`
	Processed int64    `db:"files_processed"`
	Series    int64    `db:"series_created"`
	Created   int64    `db:"books_created"`
	Updated   int64    `db:"books_updated"`
	Deleted   int64    `db:"books_deleted"`
	Restored  int64    `db:"books_restored"`
	Moved     int64    `db:"books_moved"`
	Held      int64    `db:"removals_held"`
	Errors    int64    `db:"error_count"`
	Texts     []string `db:"errors"`
	Failure   *string  `db:"last_error"`
}

func (r *rig) result(id uuid.UUID) result {
	r.t.Helper()
	s, err := db.Get[result](r.ctx(), r.db.App, `select t.status, s.files_total, s.files_processed, s.series_created, s.books_created,
		s.books_updated, s.books_deleted, s.books_restored, s.books_moved, s.removals_held, s.error_count, s.errors, t.last_error
		from scan s join task t on t.tenant_id = s.tenant_id and t.id = s.id where s.tenant_id = app.tenant() and s.id = $1`, id)
	if err != nil || s == nil {
		r.t.Fatalf("scan %s: %v %v", id, s, err)
	}
	return *s
}

// scan runs a scan to its end.
func (r *rig) scan(mode string) result { return r.scanWith(scan.Params{Mode: mode}) }

func (r *rig) scanWith(p scan.Params) result {
	r.t.Helper()
	id := r.startWith(p)
	ctx, cancel := context.WithCancel(context.Background())
	wait := r.work(ctx)
	defer wait()
	defer cancel()
	return r.await(id)
}

// scanBy is scan with the test's own scanner.
func (r *rig) scanBy(s *scanner.Scanner) result {
	r.t.Helper()
	runner := &task.Runner{System: r.db.System, Publish: r.publish, Worker: "test", Slots: 2, Poll: 50 * time.Millisecond, ScanEnded: ended(s),
		Handlers: map[string]task.Handler{task.ScanLibrary: s.Scan, task.AnalyzeBooks: s.AnalyzeBooks}}
	ctx, cancel := context.WithCancel(r.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- runner.Run(ctx) }()
	res := r.await(r.start("normal"))
	cancel()
	if err := <-ended; err != nil {
		r.t.Error(err)
	}
	return res
}

// stuck is the timeout for waiting: no machine is that busy.
const stuck = 3 * time.Minute

func (r *rig) await(id uuid.UUID) result {
	r.t.Helper()
	var res result
	testkit.Eventually(r.t, stuck, func() bool {
		res = r.result(id)
		return res.Status != task.Pending && res.Status != task.Running
	})
	return res
}

func values[T any](r *rig, sql string, args ...any) []T {
	r.t.Helper()
	var b pgx.Batch
	var out []T
	db.Values(&b, &out, sql, args...)
	if err := r.db.App.Run(r.ctx(), &b); err != nil {
		r.t.Fatal(err)
	}
	return out
}

// until runs a worker until an SQL condition is true.
func (r *rig) until(condition string, args ...any) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	wait := r.work(ctx)
	defer wait()
	defer cancel()
	testkit.Eventually(r.t, 2*time.Minute, func() bool {
		return values[bool](r, "select "+condition, args...)[0]
	})
}
