package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/app"
	"github.com/longbox/longbox/shared/app/scheduler"
	"github.com/longbox/longbox/shared/app/worker"
	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/queue"
	"github.com/longbox/longbox/shared/testkit"
	"github.com/longbox/longbox/shared/testkit/bound"
	"github.com/longbox/longbox/shared/testkit/sqs"
)

// TestMain runs the test program as a worker of its own where a test asks for one to kill.
func TestMain(m *testing.M) {
	slog.SetLogLoggerLevel(slog.LevelError + 1) // failures are provoked all the time
	if spec := os.Getenv("WORKER_TEST_CONFIG"); spec != "" {
		bound.Child()
		var c worker.Config
		err := json.Unmarshal([]byte(spec), &c)
		if err == nil {
			var w *worker.Worker
			if w, _, err = worker.New(c); err == nil {
				err = w.Run(context.Background())
			}
		}
		panic(err) // it is killed before it ends
	}
	os.Exit(m.Run())
}

// rig is an installation with queues, whose tenants each have a folder of books.
type rig struct {
	t      testing.TB
	db     *testkit.Databases
	s3     *testkit.S3
	sqs    *sqs.Server
	config worker.Config
}

// newRig has the queues "tasks" and, for messages received five times, "dead". With embedded it has none.
func newRig(t testing.TB, embedded bool) *rig {
	t.Helper()
	r := &rig{t: t, db: testkit.DB(t), s3: testkit.StartS3(t, "books"), sqs: sqs.Start(t)}
	r.config = worker.Config{
		Config: app.Config{Database: db.Config{URL: r.db.AppURL, MaxConns: 6, Timeout: 20 * time.Second}, Blob: r.s3.Config,
			RedisURL: testkit.RedisURL(t), Queue: queue.Config{Region: "us-east-1", Window: 8, Resend: 2 * time.Second}},
		SystemURL: r.db.SystemURL,
		Slots:     3, Parallel: 4, Timeout: time.Minute, Poll: 100 * time.Millisecond, Lease: time.Second, Margin: time.Second}
	r.config.Queue.DeadURL = r.sqs.Queue("dead", time.Second, "", 0)
	r.config.Queue.TaskURL = r.sqs.Queue("tasks", time.Second, "dead", 5)
	if embedded {
		r.config.Queue = queue.Config{Window: 8, Resend: time.Minute}
	}
	return r
}

func (r *rig) exec(sql string, args ...any) {
	r.t.Helper()
	r.db.Exec(r.t, sql, args...)
}

// owner is a tenant with a library.
type owner struct {
	*rig
	tenant, library uuid.UUID
	folder          string
}

func (r *rig) owner(name string) *owner {
	r.t.Helper()
	o := &owner{rig: r, tenant: r.db.Tenant(r.t, name), library: uuid.New(), folder: r.s3.Dir + "/books/" + name}
	r.exec(`insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2, 'Books', '/books', 'books', $3, 'series_volume', 'metadata_first', 'smart')`, o.tenant, o.library, name+"/")
	return o
}

func (o *owner) fill(series, books int) {
	for s := range series {
		for b := range books {
			info := ""
			if b%3 == 0 {
				info = fmt.Sprintf("<Title>T%d-%d</Title><Publisher>P%d</Publisher>", s, b, s)
			}
			testkit.WriteFile(o.t, o.folder, fmt.Sprintf("S%02d/b%03d.cbz", s, b), testkit.Comic(o.t, s*1000+b, 1, info))
		}
	}
}

func (o *owner) ctx() context.Context { return db.In(context.Background(), db.Tenant(o.tenant)) }

// start queues a scan; its message is sent by whoever dispatches next.
func (o *owner) start() uuid.UUID {
	o.t.Helper()
	var b pgx.Batch
	var id uuid.UUID
	if err := scan.Start(&b, o.library, scan.Params{Mode: scan.Normal}, uuid.Must(uuid.NewV7()), &id); err != nil {
		o.t.Fatal(err)
	}
	if err := o.db.App.Run(o.ctx(), &b); err != nil {
		o.t.Fatal(err)
	}
	return id
}

type result struct {
	Status                                    string
	Total, Processed, Series, Created, Errors int64
	Failure                                   *string
	Settled                                   bool
}

func (o *owner) result(id uuid.UUID) (res result) {
	o.t.Helper()
	err := o.db.Owner.Pool().QueryRow(context.Background(), `select t.status, s.files_total, s.files_processed, s.series_created, s.books_created,
		s.error_count, t.last_error, s.settled from scan s join task t on t.tenant_id = s.tenant_id and t.id = s.id where s.id = $1`, id).
		Scan(&res.Status, &res.Total, &res.Processed, &res.Series, &res.Created, &res.Errors, &res.Failure, &res.Settled)
	if err != nil {
		o.t.Fatal(err)
	}
	return res
}

// ended tells whether the scan has ended and its counters are settled, which another round may do.
func (o *owner) ended(id uuid.UUID) bool {
	res := o.result(id)
	return res.Settled || res.Status == "cancelled"
}

// state is everything that a scan leaves behind, without what differs by chance (ids, times).
func (o *owner) state() []string {
	o.t.Helper()
	rows, err := o.db.Owner.Pool().Query(context.Background(), `
		select 'book|' || b.key || '|' || b.title || '|' || b.page_count || '|' || coalesce(b.number, -1) || '|' || b.fingerprint || '|' ||
		  b.analyzed || '|' || coalesce(b.error_message, '') || '|' || s.path || '|' || coalesce(m.metadata::text, '') || '|' || coalesce(array_length(p.names, 1), -1) || '|' || (b.deleted_at is not null)
		from book b join series s on s.tenant_id = b.tenant_id and s.id = b.series_id
		left join book_metadata m on m.tenant_id = b.tenant_id and m.book_id = b.id
		left join page_index p on p.tenant_id = b.tenant_id and p.book_id = b.id where b.tenant_id = $1
		union all select 'series|' || path || '|' || title || '|' || book_count || '|' || file_size || '|' || page_count || '|' || coalesce(publisher, '') from series where tenant_id = $1
		union all select 'count|' || books || '|' || series || '|' || bytes || '|' || pages from library_count where tenant_id = $1
		order by 1`, o.tenant)
	if err != nil {
		o.t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		o.t.Fatal(err)
	}
	return all
}

// worker makes a worker that is closed at the end of the test.
func (r *rig) worker() *worker.Worker {
	r.t.Helper()
	w, base, err := worker.New(r.config)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(base.Close)
	return w
}

// work runs a worker, and rounds of the scheduler, until stop.
func (r *rig) work(n int) (stop func()) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for range n {
		w := r.worker()
		all.Go(func() {
			if err := w.Run(ctx); err != nil {
				r.t.Error(err)
			}
		})
	}
	s, base, err := scheduler.New(scheduler.Config{Config: r.config.Config, SystemURL: r.config.SystemURL, Every: time.Second})
	if err != nil {
		r.t.Fatal(err)
	}
	all.Go(func() {
		defer base.Close()
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			if err := s.Round(ctx, time.Now()); err != nil && ctx.Err() == nil {
				r.t.Error(err)
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	return func() { cancel(); all.Wait() }
}
