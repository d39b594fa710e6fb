package ingest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/ingest"
	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/domain/scan/scanner"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/testkit"
)

// rig is a writable bucket, and everything that makes books from it.
type rig struct {
	t      *testing.T
	db     *testkit.Databases
	s3     *testkit.S3
	tenant uuid.UUID
	ingest *ingest.Ingest
	scan   *scanner.Scanner

	mu     sync.Mutex
	events []events.Event
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, db: testkit.DB(t), s3: testkit.StartS3(t, "books")}
	r.tenant = r.db.Tenant(t, "one")
	r.scan = r.scanner(r.s3.Store)
	r.ingest = &ingest.Ingest{System: r.db.System, Scanner: r.scan}
	return r
}

func (r *rig) scanner(store *blob.Store) *scanner.Scanner {
	return &scanner.Scanner{Database: r.db.App, Library: store, Publish: r.publish, Parallel: 8}
}

func (r *rig) publish(_ context.Context, _ uuid.UUID, e ...events.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e...)
}

// library adds a library for a folder of the bucket.
func (r *rig) library(tenant uuid.UUID, prefix, numbers string) uuid.UUID {
	r.t.Helper()
	id := uuid.New()
	r.exec(`insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2, $3, 's3://books/' || $4, 'books', $4, 'series_volume', 'metadata_first', $5)`, tenant, id, id.String(), prefix, numbers)
	return id
}

func (r *rig) exec(sql string, args ...any) {
	r.t.Helper()
	r.db.Exec(r.t, sql, args...)
}

func (r *rig) put(key string, seed, pages int) {
	r.t.Helper()
	if err := r.s3.Store.Put(r.t.Context(), "books", key, "application/zip", testkit.Comic(r.t, seed, pages, "")); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) remove(key string) {
	r.t.Helper()
	if err := r.s3.Store.Delete(r.t.Context(), "books", key); err != nil {
		r.t.Fatal(err)
	}
}

// say sends notifications, one per object.
func (r *rig) say(event string, keys ...string) {
	r.t.Helper()
	for _, key := range keys {
		if err := r.ingest.Objects(r.t.Context(), json.RawMessage(records(record(event, "books", url.QueryEscape(key))))); err != nil {
			r.t.Fatalf("%s of %s: %v", event, key, err)
		}
	}
}

const created, removed = "ObjectCreated:Put", "ObjectRemoved:Delete"

// work runs a worker until the test ends.
func (r *rig) work() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	runner := &task.Runner{System: r.db.System, Publish: r.publish, Worker: "test", Slots: 3, Poll: 100 * time.Millisecond, ScanEnded: (&scan.Settler{Database: r.db.App, Publish: r.publish}).Ended,
		Handlers: map[string]task.Handler{task.ScanLibrary: func(ctx context.Context, h task.Held) (any, error) { return r.scan.Scan(ctx, h) },
			task.AnalyzeBooks: r.scan.AnalyzeBooks}}
	go func() {
		defer close(done)
		if err := runner.Run(ctx); err != nil {
			r.t.Error(err)
		}
	}()
	r.t.Cleanup(func() { cancel(); <-done })
}

// idle waits until nothing is pending or about to be: a scan that missed files is followed by another.
func (r *rig) idle() {
	r.t.Helper()
	testkit.Eventually(r.t, 30*time.Second, func() bool {
		return r.count(`select (select count(*) from task where status in ('pending', 'running')) + (select count(*) from scan s where s.files_gone > 0
			and not exists (select from scan n where n.library_id = s.library_id and n.id > s.id))`) == 0
	})
	for _, failure := range rows[string](r, "select last_error from task where last_error is not null") {
		r.t.Errorf("a task failed: %s", failure)
	}
}

func (r *rig) startScan(library uuid.UUID) {
	r.t.Helper()
	var b pgx.Batch
	var id uuid.UUID
	if err := scan.Start(&b, library, scan.Params{Mode: scan.Normal}, uuid.Must(uuid.NewV7()), &id); err != nil {
		r.t.Fatal(err)
	}
	if err := r.db.App.Run(db.In(context.Background(), db.Tenant(r.tenant)), &b); err != nil {
		r.t.Fatal(err)
	}
}

func rows[T any](r *rig, sql string, args ...any) []T {
	r.t.Helper()
	found, err := r.db.Owner.Pool().Query(context.Background(), sql, args...)
	if err != nil {
		r.t.Fatal(err)
	}
	out, err := pgx.CollectRows(found, pgx.RowTo[T])
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

func (r *rig) count(sql string, args ...any) int64 {
	r.t.Helper()
	return rows[int64](r, sql, args...)[0]
}

// state returns the visible content of a library, and its counters.
func (r *rig) state(library uuid.UUID) []string {
	r.t.Helper()
	return rows[string](r, `
		select 'book|' || b.key || '|' || b.title || '|' || b.page_count || '|' || coalesce(b.number, -1) || '|' || b.fingerprint || '|' || b.size || '|' ||
		  b.etag || '|' || b.analyzed || '|' || coalesce(b.error_message, '') || '|' || s.path || '|' || coalesce(array_length(p.names, 1), -1)
		from book b join series s on s.tenant_id = b.tenant_id and s.id = b.series_id
		left join page_index p on p.tenant_id = b.tenant_id and p.book_id = b.id where b.library_id = $1 and b.deleted_at is null
		union all select 'series|' || path || '|' || title || '|' || book_count || '|' || file_size || '|' || page_count from series where library_id = $1 and book_count > 0
		union all select 'count|' || books || '|' || bytes || '|' || pages from library_count where library_id = $1
		order by 1`, library)
}

// gate is a proxy in front of the store that can delay responses.
type gate struct {
	store *blob.Store
	mu    sync.Mutex
	holds func(*http.Request) bool
	held  chan struct{}
	open  chan struct{}
}

func newGate(r *rig) *gate {
	target, err := url.Parse(r.s3.Config.LibraryEndpoint)
	if err != nil {
		r.t.Fatal(err)
	}
	g := &gate{}
	proxy := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(target); p.Out.Host = p.In.Host },
		ModifyResponse: func(res *http.Response) error {
			g.mu.Lock()
			holds, held, open := g.holds, g.held, g.open
			if holds == nil || !holds(res.Request) {
				g.mu.Unlock()
				return nil
			}
			g.holds = nil // one only
			g.mu.Unlock()
			body, err := io.ReadAll(res.Body) // the store's state at this moment
			if err != nil {
				return err
			}
			res.Body = io.NopCloser(bytes.NewReader(body))
			close(held)
			<-open
			return nil
		}}
	srv := httptest.NewServer(proxy)
	r.t.Cleanup(srv.Close)
	cfg := r.s3.Config
	cfg.LibraryEndpoint = srv.URL
	g.store = cfg.Library()
	return g
}

// hold delays the next response to a matching request: held is closed when it has arrived, release lets it pass.
func (g *gate) hold(such func(*http.Request) bool) (held <-chan struct{}, release func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holds, g.held, g.open = such, make(chan struct{}), make(chan struct{})
	return g.held, sync.OnceFunc(func() { close(g.open) })
}
