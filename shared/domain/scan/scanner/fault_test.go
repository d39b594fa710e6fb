package scanner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/domain/scan/scanner"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/testkit"
	"github.com/longbox/longbox/shared/testkit/bound"
)

// TestMain runs the test program as a separate worker process if a test needs one to kill.
func TestMain(m *testing.M) {
	if spec := os.Getenv("SCAN_TEST_WORKER"); spec != "" {
		bound.Child()
		workerProcess(spec)
		return
	}
	os.Exit(m.Run())
}

type workerSpec struct {
	App, System string
	Blob        blob.Config
	Kills       int
	Lease       time.Duration
}

const shortLease = 700 * time.Millisecond

func workerProcess(spec string) {
	var w workerSpec
	if err := json.Unmarshal([]byte(spec), &w); err != nil {
		panic(err)
	}
	open := func(u string) *db.DB {
		d, err := db.Open(db.Config{URL: u, MaxConns: 6, Timeout: 20 * time.Second})
		if err != nil {
			panic(err)
		}
		return d
	}
	publish := func(context.Context, uuid.UUID, ...events.Event) {}
	s := &scanner.Scanner{Database: open(w.App), Library: w.Blob.Library(), Publish: publish, Parallel: 4, Cover: killedBy, Kills: w.Kills}
	r := &task.Runner{System: open(w.System), Publish: publish, Worker: fmt.Sprint(os.Getpid()), Slots: 3, Poll: 100 * time.Millisecond, Lease: w.Lease,
		ScanEnded: ended(s), Handlers: map[string]task.Handler{task.ScanLibrary: s.Scan, task.AnalyzeBooks: s.AnalyzeBooks, task.PurgeDeleted: s.Purge}}
	if err := r.Run(context.Background()); err != nil {
		panic(err)
	}
}

// deadly at the end of an image kills the worker of a test, like an out-of-memory kill.
const deadly = "ends whoever reads it"

func killedBy(_ context.Context, _, _ uuid.UUID, _ []byte, _ string, _, _ int, image []byte) (string, error) {
	if bytes.HasSuffix(image, []byte(deadly)) {
		if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
			return "", err
		}
		select {} // until the kill takes effect
	}
	return "", nil
}

// rescue gives back the tasks of dead workers, as the scheduler does, until stop is called.
func (r *rig) rescue() (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				if _, err := task.Rescue(context.Background(), r.db.System, nil); err != nil {
					r.t.Error(err)
				}
			}
		}
	}()
	return func() { close(end); <-ended }
}

// settle settles a scan whose worker died after its end, as the scheduler does.
func (r *rig) settle(id uuid.UUID) {
	r.t.Helper()
	s := &scan.Settler{Database: r.db.App, Publish: r.publish}
	if err := s.Settle(context.Background(), r.tenant, id); err != nil {
		r.t.Fatal(err)
	}
}

// worker starts a process to kill, or one that dies.
func (r *rig) worker(kills int, lease time.Duration) *exec.Cmd {
	r.t.Helper()
	spec, err := json.Marshal(workerSpec{r.db.AppURL, r.db.SystemURL, r.s3.Config, kills, lease})
	if err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SCAN_TEST_WORKER="+string(spec))
	if err := errors.Join(bound.Parent(cmd), cmd.Start()); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = cmd.Process.Kill() }) // where the test has not
	return cmd
}

// lives waits until a worker has had work for so long. true: all had ended before.
func (r *rig) lives(cmd *exec.Cmd, long time.Duration, ended func() bool) bool {
	r.t.Helper()
	works, over := false, time.Now().Add(stuck)
	for time.Now().Before(over) {
		if ended() {
			return true
		}
		if !works && values[bool](r, "select exists (select from task where tenant_id = app.tenant() and status = 'running' and locked_by = $1)", fmt.Sprint(cmd.Process.Pid))[0] {
			works, over = true, time.Now().Add(long)
		}
		<-time.After(20 * time.Millisecond)
	}
	if !works {
		r.t.Fatal("a worker found no work")
	}
	return false
}

// killedAtWork fails the test unless some task was begun again.
func (r *rig) killedAtWork(kills int) {
	r.t.Helper()
	again := values[int64](r, "select coalesce(sum(attempts - 1), 0)::bigint from task where tenant_id = app.tenant() and attempts > 1")[0]
	if again == 0 {
		r.t.Errorf("of %d workers none was killed at work", kills)
	}
	r.t.Logf("%d kills, tasks were begun again %d times", kills, again)
}

// Files that end the worker are found, one by one, and recorded after the second time; the scan goes on to its end,
// and no other book suffers.
func TestFilesThatKillTheWorker(t *testing.T) {
	r := newRig(t)
	for i := range 150 {
		testkit.WriteFile(t, r.folder, fmt.Sprintf("S%d/%03d.cbz", i/75, i), testkit.Comic(t, i, 1, ""))
	}
	for _, key := range []string{"S0/020.cbz", "S0/021.cbz"} {
		testkit.WriteFile(t, r.folder, key, testkit.Zip(t, testkit.File{Name: "1.jpg", Data: append(testkit.JPEG(t, 60, 90, 1), deadly...)}))
	}
	stop := r.rescue()
	defer stop()
	r.exec("alter table task alter column max_attempts set default 100") // the scan itself is not suspected
	id := r.start("normal")
	deaths := 0
	running := func() bool {
		status := r.result(id).Status
		return status == task.Pending || status == task.Running
	}
	for running() {
		if deaths > 20 {
			t.Fatal("workers die for ever")
		}
		cmd := r.worker(0, time.Minute) // a slow machine loses no lease
		died := make(chan error, 1)
		go func() { died <- cmd.Wait() }()
		alive := true
		for alive && running() {
			select {
			case <-died:
				deaths++
				alive = false
				// Its leases have expired.
				r.exec("update task set lease_until = now() where status = 'running' and lease_until is not null")
			case <-time.After(50 * time.Millisecond):
			}
		}
		if alive {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			<-died
		}
	}
	r.settle(id)
	res := r.result(id)
	if res.Status != "completed" || res.Created != 150 || res.Processed != 150 || res.Errors != 2 {
		t.Errorf("after %d deaths: %+v, %q", deaths, res, values[string](r, "select type || status || coalesce(last_error, '') from task where tenant_id = app.tenant()"))
	}
	if got, want := values[string](r, "select key || ' ' || error_type from book where tenant_id = app.tenant() and error_type is not null order by key"),
		[]string{"S0/020.cbz killed", "S0/021.cbz killed"}; !slices.Equal(got, want) {
		t.Errorf("errors %q, want %q", got, want)
	}
	if n := values[int64](r, "select count(*) from book where tenant_id = app.tenant() and analyzed"); n[0] != 148 {
		t.Errorf("%d books are analysed", n[0])
	}
	t.Logf("%d deaths", deaths)
}

// A worker that dies while listing leaves the same books to two tasks; the error of a book counts once.
func TestTwoTasksTellAProblemOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	testkit.WriteFile(t, r.folder, "S/broken.cbz", []byte("no archive"))
	testkit.WriteFile(t, r.folder, "S/good.cbz", testkit.Comic(t, 1, 1, ""))
	id := r.start("normal")
	r.until("not exists (select from task where tenant_id = app.tenant() and status in ('pending', 'running'))")
	r.exec(`insert into task select (jsonb_populate_record(t, jsonb_build_object('id', gen_random_uuid(), 'status', 'pending',
		'params', t.params || '{"force": true}', 'completed_at', null, 'done', false, 'queued_at', null, 'lease_until', null))).* from task t where t.type = 'analyze_books'`)
	r.until("not exists (select from task where tenant_id = app.tenant() and status in ('pending', 'running'))")
	if n := values[int64](r, "select count(*) from task where tenant_id = app.tenant() and type = 'analyze_books' and status = 'completed'"); n[0] != 2 {
		t.Fatalf("%d tasks", n[0])
	}
	if res := r.result(id); res.Errors != 1 || len(res.Texts) != 1 || res.Processed != 2 {
		t.Errorf("%+v", res)
	}
}

// state returns everything that a scan leaves behind, except random values (ids, times).
func (r *rig) state() []string {
	return values[string](r, `
		select 'book|' || b.key || '|' || b.title || '|' || b.page_count || '|' || coalesce(b.number, -1) || '|' || b.fingerprint || '|' ||
		  b.analyzed || '|' || coalesce(b.error_message, '') || '|' || s.path || '|' || coalesce(m.metadata::text, '') || '|' || coalesce(array_length(p.names, 1), -1)
		from book b join series s on s.tenant_id = b.tenant_id and s.id = b.series_id
		left join book_metadata m on m.tenant_id = b.tenant_id and m.book_id = b.id
		left join page_index p on p.tenant_id = b.tenant_id and p.book_id = b.id where b.tenant_id = app.tenant()
		union all select 'series|' || path || '|' || title || '|' || book_count || '|' || file_size || '|' || page_count || '|' || coalesce(publisher, '') from series where tenant_id = app.tenant()
		union all select 'count|' || books || '|' || series || '|' || bytes || '|' || pages from library_count where tenant_id = app.tenant()
		order by 1`)
}

func (r *rig) fill(series, books int) {
	for s := range series {
		for b := range books {
			info := ""
			if b%3 == 0 {
				info = fmt.Sprintf("<Title>T%d-%d</Title><Publisher>P%d</Publisher>", s, b, s)
			}
			testkit.WriteFile(r.t, r.folder, fmt.Sprintf("S%02d/b%03d.cbz", s, b), testkit.Comic(r.t, s*1000+b, 2, info))
		}
	}
}

func TestKilledWorkersLeaveTheSameResult(t *testing.T) {
	undisturbed := newRig(t)
	undisturbed.fill(20, 40)
	if res := undisturbed.scan("normal"); res.Status != "completed" {
		t.Fatalf("%+v", res)
	}
	want := undisturbed.state()

	r := newRig(t)
	r.fill(20, 40)
	stop := r.rescue()
	defer stop()
	// Attempts are limited: being killed ten times is not the scan's own fault here.
	if _, err := r.db.Owner.Pool().Exec(context.Background(), "alter table task alter column max_attempts set default 100"); err != nil {
		t.Fatal(err)
	}
	id := r.start("normal")
	kills := 0
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(1, seed))
	for deadline := time.Now().Add(stuck); time.Now().Before(deadline); {
		cmd := r.worker(1000, shortLease) // no file's fault
		life := time.Duration(80+random.IntN(400)) * time.Millisecond
		if kills >= 12 {
			life = stuck // let it finish
		}
		finished := r.lives(cmd, life, func() bool { res := r.result(id); return res.Status != task.Pending && res.Status != task.Running })
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // killed as expected
		if finished {
			break
		}
		kills++
	}
	r.settle(id)
	res := r.result(id)
	if res.Status != "completed" || res.Created != 800 || res.Series != 20 || res.Processed != res.Total || res.Total != 800 {
		t.Fatalf("after %d kills: %+v", kills, res)
	}
	if got := r.state(); !slices.Equal(got, want) {
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Fatalf("after %d kills row %d is\n%s\nwant\n%s", kills, i, got[i], want[i])
			}
		}
		t.Fatalf("after %d kills: %d rows, want %d", kills, len(got), len(want))
	}
	r.killedAtWork(kills)
}

// After the cancellation every task of the scan has ended, and nothing more is written. A running handler notices
// within two beats of a worker, each of which is a second and a query. The test counts the beats, at the speed of the
// machine.
func TestCancelStopsWithinTwoSeconds(t *testing.T) {
	r := newRig(t)
	r.fill(20, 40)
	runner := r.runner(3)
	analysing, cancelled := make(chan struct{}), make(chan struct{})
	var first sync.Once
	var working sync.WaitGroup
	for kind, do := range runner.Handlers {
		runner.Handlers[kind] = func(ctx context.Context, h task.Held) (any, error) {
			working.Add(1)
			defer working.Done()
			if kind == task.AnalyzeBooks { // the first one begins after everything is cancelled
				first.Do(func() { close(analysing); <-cancelled })
			}
			return do(ctx, h)
		}
	}
	id := r.start("normal")
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- runner.Run(ctx) }()
	select {
	case <-analysing:
	case <-time.After(stuck):
		t.Fatal("no book is analysed")
	}
	if _, err := task.Cancel(r.ctx(), r.db.App, id); err != nil {
		t.Fatal(err)
	}
	before := r.state()
	close(cancelled)
	if n := values[int64](r, "select count(*) from task where tenant_id = app.tenant() and status in ('pending', 'running')"); n[0] != 0 {
		t.Errorf("%d tasks are left", n[0])
	}
	idle := make(chan struct{})
	go func() { defer close(idle); working.Wait() }()
	beat := time.NewTicker(time.Second)
	defer beat.Stop()
	beats := 0
	for quiet := false; !quiet && beats < 60; {
		select {
		case <-idle:
			quiet = true
		case <-beat.C:
			if _, err := task.Rescue(context.Background(), r.db.System, nil); err != nil {
				t.Fatal(err)
			}
			beats++
		}
	}
	if beats > 2 {
		t.Errorf("tasks were worked on for %d beats after the cancel", beats)
	}
	if after := r.state(); !slices.Equal(before, after) {
		t.Error("books changed after the cancel")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if res := r.result(id); res.Status != "cancelled" {
		t.Errorf("%+v", res)
	}
	// The next scan completes what the cancelled one left.
	if res := r.scan("normal"); res.Status != "completed" {
		t.Fatalf("%+v", res)
	}
	if n := values[int64](r, "select count(*) from book where tenant_id = app.tenant() and analyzed"); n[0] != 800 {
		t.Errorf("%d books are analysed", n[0])
	}
}

// Wherever a scan is when it is cancelled, nothing is written from then on, nobody is told of a book, and the next scan
// leaves what an undisturbed one does.
func TestCancelAnywhere(t *testing.T) {
	t.Parallel()
	undisturbed := newRig(t)
	undisturbed.fill(4, 10)
	undisturbed.s3.Counter.Reset()
	if res := undisturbed.scan("normal"); res.Status != "completed" {
		t.Fatalf("%+v", res)
	}
	want, requests := undisturbed.state(), len(undisturbed.s3.Counter.Reset())
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(1, seed))
	for range 5 {
		at := 1 + random.IntN(requests*9/10)
		t.Run(fmt.Sprintf("request %d of %d", at, requests), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.fill(4, 10)
			if r.cancelledAt(at); t.Failed() {
				return
			}
			if res := r.scan("normal"); res.Status != "completed" {
				t.Fatalf("%+v", res)
			}
			same(t, "state", r.state(), want)
		})
	}
}

// cancelledAt runs a scan that is cancelled while it waits for the answer to a request to the store.
func (r *rig) cancelledAt(request int) {
	r.t.Helper()
	reached, cancelled := make(chan struct{}), make(chan struct{})
	var asked atomic.Int64
	r.s3.Counter.Meddle(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if asked.Add(1) == int64(request) {
			close(reached)
			<-cancelled
		}
		next.ServeHTTP(w, req)
	})
	defer r.s3.Counter.Meddle(nil)
	// One book at a time: what others had just written when the cancel came might be told behind it.
	s := &scanner.Scanner{Database: r.db.App, Library: r.s3.Store, Publish: r.publish, Parallel: 1}
	var working sync.WaitGroup
	handler := func(do task.Handler) task.Handler {
		return func(ctx context.Context, h task.Held) (any, error) {
			working.Add(1)
			defer working.Done()
			return do(ctx, h)
		}
	}
	runner := &task.Runner{System: r.db.System, Publish: r.publish, Worker: "test", Slots: 1, Poll: 50 * time.Millisecond, ScanEnded: ended(s),
		Handlers: map[string]task.Handler{task.ScanLibrary: handler(s.Scan), task.AnalyzeBooks: handler(s.AnalyzeBooks)}}
	id := r.start("normal")
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	runs := make(chan error, 1)
	go func() { runs <- runner.Run(ctx) }()
	select {
	case <-reached:
	case <-time.After(stuck):
		r.t.Fatalf("only %d requests came", asked.Load())
	}
	_, err := task.Cancel(r.ctx(), r.db.App, id)
	before := r.state()
	r.mu.Lock()
	told := len(r.events)
	r.mu.Unlock()
	close(cancelled)
	if err != nil {
		r.t.Fatal(err)
	}
	idle := make(chan struct{})
	go func() { working.Wait(); close(idle) }()
	select {
	case <-idle:
	case <-time.After(stuck):
		r.t.Fatal("work goes on")
	}
	stop()
	if err := <-runs; err != nil {
		r.t.Error(err)
	}
	if res := r.result(id); res.Status != "cancelled" {
		r.t.Errorf("%+v", res)
	}
	same(r.t, "state after the cancel", r.state(), before)
	for _, e := range r.events[told:] {
		if strings.HasPrefix(e.Kind, "book_") {
			r.t.Errorf("told after the cancel: %+v", e)
		}
	}
}

// A task with which a worker has died is given up like any other while the store does not give one of its files.
func TestUnreadAfterADeath(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	testkit.WriteFile(t, r.folder, "S/1.cbz", testkit.Comic(t, 1, 1, ""))
	testkit.WriteFile(t, r.folder, "S/2.cbz", testkit.Comic(t, 2, 1, ""))
	r.scan("normal")
	r.failing("S/2.cbz")
	id := uuid.New()
	r.exec(`insert into task (tenant_id, id, type, library_id, params, attempts, deaths)
		values ($1, $2, 'analyze_books', $3, '{"keys": ["S/1.cbz", "S/2.cbz"], "force": true}', 1, 1)`, r.tenant, id, r.library)
	for range 3 {
		r.until("exists (select from task where tenant_id = app.tenant() and id = $1 and last_error is not null and (status = 'failed' or scheduled_for > now()))", id)
		r.exec("update task set scheduled_for = now() where id = $1", id)
	}
	if got := values[string](r, "select status from task where tenant_id = app.tenant() and id = $1", id)[0]; got != task.Failed {
		t.Errorf("after three attempts it is %s", got)
	}
}

// After a worker's death, too, an unreadable file does not block later ones.
func TestRefusedAfterADeath(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 4 {
		testkit.WriteFile(t, r.folder, fmt.Sprintf("S/%d.cbz", i), testkit.Comic(t, i, 1, ""))
	}
	r.scan("normal")
	r.exec("update book set analyzed = false, fingerprint = ''")
	r.s3.Counter.Meddle(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if req.URL.Path == "/books/S/1.cbz" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, req)
	})
	id := uuid.New()
	r.exec(`insert into task (tenant_id, id, type, library_id, params, attempts, deaths)
		values ($1, $2, 'analyze_books', $3, '{"keys": ["S/0.cbz", "S/1.cbz", "S/2.cbz", "S/3.cbz"]}', 1, 1)`, r.tenant, id, r.library)
	r.until("exists (select from task where tenant_id = app.tenant() and id = $1 and last_error is not null)", id)
	if got := r.unread(); !slices.Equal(got, []string{"S/1.cbz"}) {
		t.Errorf("%q are not read", got)
	}
	r.s3.Counter.Meddle(nil)
	r.exec("update task set scheduled_for = now() where id = $1", id)
	r.until("exists (select from task where tenant_id = app.tenant() and id = $1 and status = 'completed')", id)
	if got := r.unread(); len(got) > 0 {
		t.Errorf("%q are not read", got)
	}
}
