package worker_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/app/worker"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/testkit"
)

// delayed returns the duration of a scan of ten books while the worker runs tasks of another tenant.
func delayed(t *testing.T, r *rig, handlers map[string]task.Handler, before func()) time.Duration {
	t.Helper()
	small := r.owner("small")
	small.fill(2, 5)
	r.config.Lease, r.config.Slice = 10*time.Second, 2*time.Second
	w := r.worker()
	for name, h := range handlers {
		w.Handlers[name] = h
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	stop := r.work(0)
	before()
	started := time.Now()
	id := small.start()
	testkit.Eventually(t, time.Minute, func() bool { return small.ended(id) })
	took := time.Since(started)
	cancel()
	stop()
	all.Wait()
	if res := small.result(id); res.Status != "completed" || res.Created != 10 {
		t.Errorf("%+v", res)
	}
	return took
}

// A tenant with 100,000 tasks of a quarter of a second delays another's scan of ten books by no more than 10 s.
func TestAnotherTenantsTasksDelayLittle(t *testing.T) {
	for _, c := range []struct {
		name     string
		embedded bool
	}{{"from the table", true}, {"by queue", false}} {
		t.Run(c.name, func(t *testing.T) {
			alone := delayed(t, newRig(t, c.embedded), nil, func() {})
			r := newRig(t, c.embedded)
			big := r.owner("big")
			r.exec(`insert into task (tenant_id, id, type, priority) select $1, gen_random_uuid(), 'slow', 600 from generate_series(1, 100000)`, big.tenant)
			slow := func(ctx context.Context, _ task.Held) (any, error) {
				select {
				case <-time.After(250 * time.Millisecond):
					return nil, nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			beside := delayed(t, r, map[string]task.Handler{"slow": slow}, func() {
				testkit.Eventually(t, 30*time.Second, func() bool { return r.count("status = 'completed'") > 3 })
			})
			t.Logf("a scan of ten books takes %s alone, %s beside 100,000 tasks", alone.Round(time.Millisecond), beside.Round(time.Millisecond))
			if beside-alone > 10*time.Second {
				t.Errorf("delayed by %s", beside-alone)
			}
			if n := r.count("status = 'pending' and type = 'slow'"); n < 90000 {
				t.Errorf("only %d tasks were left to wait behind", n)
			}
		})
	}
}

// A tenant whose scans hold every slot makes room: tasks that could go on for ever save their place.
func TestLongTasksMakeRoom(t *testing.T) {
	for _, c := range []struct {
		name     string
		embedded bool
	}{{"from the table", true}, {"by queue", false}} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, c.embedded)
			big := r.owner("big")
			r.exec(`insert into task (tenant_id, id, type, priority) select $1, gen_random_uuid(), 'endless', 600 from generate_series(1, 5)`, big.tenant)
			endless := func(ctx context.Context, h task.Held) (any, error) {
				select {
				case <-task.Pause(ctx):
					return nil, task.Paused(string(h.Place) + "+")
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			took := delayed(t, r, map[string]task.Handler{"endless": endless}, func() {
				testkit.Eventually(t, 30*time.Second, func() bool { return r.count("status = 'running'") == 3 })
			})
			t.Logf("a scan of ten books takes %s beside tasks without end", took.Round(time.Millisecond))
			if took > 15*time.Second { // slices of 2 s; the scan needs a slot twice
				t.Errorf("it took %s", took)
			}
			if n := r.count("type = 'endless' and place is not null and attempts <= 1"); n == 0 {
				t.Error("no task was paused")
			}
		})
	}
}

func (r *rig) count(where string, args ...any) (n int) {
	r.t.Helper()
	if err := r.db.Owner.Pool().QueryRow(context.Background(), "select count(*) from task where "+where, args...).Scan(&n); err != nil {
		r.t.Fatal(err)
	}
	return n
}

// In Lambda a task is told to stop before the invocation ends, and is ended when it does not.
func TestInvocationsTime(t *testing.T) {
	t.Parallel()
	r := newRig(t, false)
	o := r.owner("one")
	r.config.Lease, r.config.Margin = 30*time.Second, 3*time.Second
	w := r.worker()
	var polite, stubborn error
	w.Handlers = map[string]task.Handler{
		"polite": func(ctx context.Context, h task.Held) (any, error) {
			<-task.Pause(ctx)
			polite = ctx.Err()
			return nil, task.Paused(map[string]int{"page": 7})
		},
		"stubborn": func(ctx context.Context, h task.Held) (any, error) {
			<-ctx.Done()
			stubborn = context.Cause(ctx)
			return nil, ctx.Err()
		},
	}
	r.exec("insert into task (tenant_id, id, type) values ($1, gen_random_uuid(), 'polite'), ($1, gen_random_uuid(), 'stubborn')", o.tenant)
	w.Added(context.Background(), o.tenant)
	payload, _ := sqsEvent(t, r.queue(r.config.Queue.TaskURL), "tasks", 2)
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
	defer cancel()
	out, err := w.Handle(ctx, payload)
	if err != nil || len(again(t, out)) != 0 || ctx.Err() != nil {
		t.Fatalf("%v, %v, %v", out, err, ctx.Err())
	}
	if polite != nil || !errors.Is(stubborn, task.ErrTime) {
		t.Errorf("told to stop: %v; stopped: %v", polite, stubborn)
	}
	if r.count(`type = 'polite' and status = 'pending' and attempts = 0 and place = '{"page": 7}'`) != 1 {
		t.Error("the place was not saved, or an attempt was counted")
	}
	if r.count(`type = 'stubborn' and status = 'pending' and attempts = 1 and last_error = 'The task ran out of time'`) != 1 {
		t.Error("a task that did not stop must count an attempt")
	}
	if n := r.count("queued_at is not null"); n != 2 {
		t.Errorf("%d of 2 tasks have a new message", n)
	}
}

// budgets runs a scan in invocations that must stop after a few milliseconds, and says how many there were and how
// often the scan itself was paused.
func (o *owner) budgets(w *worker.Worker) (invocations, paused int) {
	o.t.Helper()
	id := o.start()
	w.Added(context.Background(), o.tenant)
	q := o.queue(o.config.Queue.TaskURL)
	for !o.ended(id) {
		got, err := q.Receive(context.Background(), 1, time.Second, time.Minute)
		if err != nil {
			o.t.Fatal(err)
		}
		for _, m := range got {
			budget := 300 * time.Millisecond
			if invocations%3 == 0 {
				budget = 20 * time.Millisecond
			}
			pause, cancel := context.WithTimeout(context.Background(), budget)
			if err := w.Take(task.WithPause(context.Background(), pause.Done()), m.Body); err != nil {
				o.t.Fatal(err)
			}
			cancel()
			if err := q.Delete(context.Background(), m); err != nil {
				o.t.Fatal(err)
			}
			invocations++
			paused += o.count("id = $1 and status = 'pending' and place is not null", id)
		}
		if invocations > 2000 {
			o.t.Fatalf("no end after %d invocations: %+v", invocations, o.result(id))
		}
	}
	if res := o.result(id); res.Status != "completed" || res.Processed != res.Total {
		o.t.Fatalf("%+v", res)
	}
	return invocations, paused
}

// A scan of 9,000 keys whose invocations last 20 or 300 ms leaves what an undisturbed one does, and so does a rescan
// that finds files changed and gone.
func TestScanOverManyInvocations(t *testing.T) {
	t.Parallel()
	prepare := func(embedded bool) *owner {
		r := newRig(t, embedded)
		o := r.owner("one")
		r.config.Lease, r.config.Queue.Resend = 30*time.Second, time.Minute
		r.exec("update library set number_strategy = 'file_order'")
		o.fill(5, 200)
		for _, dir := range []string{"S00", "S01", "S02", "S03"} {
			for n := range 2000 {
				testkit.WriteFile(t, o.folder, dir+"/note"+time.UnixMilli(int64(n)).UTC().Format("05.000")+".txt", nil)
			}
		}
		return o
	}
	change := func(o *owner) {
		for _, gone := range []string{"S01/b0*.cbz", "S02/b1*.cbz", "S03/*.cbz"} {
			files, err := filepath.Glob(o.folder + "/" + gone)
			if err != nil || len(files) == 0 {
				t.Fatal(files, err)
			}
			for _, f := range files {
				if err := os.Remove(f); err != nil {
					t.Fatal(err)
				}
			}
		}
		testkit.WriteFile(t, o.folder, "S00/b000.cbz", testkit.Comic(t, 77, 3, ""))
	}
	plain := prepare(true)
	stop := plain.work(1)
	id := plain.start()
	testkit.Eventually(t, stuck, func() bool { return plain.ended(id) })
	first := plain.state()
	change(plain)
	id = plain.start()
	testkit.Eventually(t, stuck, func() bool { return plain.ended(id) })
	stop()

	o := prepare(false)
	w := o.worker()
	invocations, paused := o.budgets(w)
	same(t, o.state(), first)
	change(o)
	again, pausedAgain := o.budgets(w)
	same(t, o.state(), plain.state())
	t.Logf("%d invocations, the scan paused %d times; rescan %d and %d", invocations, paused, again, pausedAgain)
	if paused == 0 || pausedAgain == 0 {
		t.Error("the scan never outlived an invocation")
	}
}
