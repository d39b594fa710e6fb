package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/queue"
	"github.com/longbox/longbox/shared/testkit"
	"github.com/longbox/longbox/shared/testkit/bound"
	"github.com/longbox/longbox/shared/testkit/sqs"
)

// undisturbed is what one worker without queues leaves of the library that fill makes.
func undisturbed(t *testing.T, series, books int) []string {
	t.Helper()
	r := newRig(t, true)
	r.config.Lease = time.Minute // a busy machine must not take it for dead: that would disturb
	o := r.owner("one")
	o.fill(series, books)
	id := o.start()
	stop := r.work(1)
	defer stop()
	testkit.Eventually(t, time.Minute+time.Duration(series*books)*20*time.Millisecond, func() bool { return o.ended(id) })
	if res := o.result(id); res.Status != "completed" {
		t.Fatalf("%+v", res)
	}
	return o.state()
}

// stuck is the time limit of tests that wait for an end, for the busiest machine.
const stuck = 3 * time.Minute

// size is a number from the environment.
func size(t *testing.T, name string, otherwise int) int {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < otherwise {
		t.Fatalf("%s: must be at least %d, is %q", name, otherwise, v)
	}
	return n
}

func same(t *testing.T, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("row %d is\n%s\nwant\n%s", i, got[i], want[i])
		}
	}
	t.Fatalf("%d rows, want %d", len(got), len(want))
}

// Workers are killed again and again while messages are lost, or come twice, late and in any order. WORKER_TEST_BOOKS
// and WORKER_TEST_KILLS make it larger: 5000 and 200 take some minutes.
func TestKilledWorkersAndBadQueue(t *testing.T) {
	const series = 25
	books, kills := size(t, "WORKER_TEST_BOOKS", 1500)/series, size(t, "WORKER_TEST_KILLS", 45)
	want := undisturbed(t, series, books)
	r := newRig(t, false)
	o := r.owner("one")
	o.fill(series, books)
	r.exec("alter table task alter column max_attempts set default 1000") // being killed is not the tasks' fault here
	r.sqs.Fault(sqs.Faults{Seed: 6, Lose: 0.2, Duplicate: 0.1, Reorder: true, Delay: 0.2, DelayMax: 500 * time.Millisecond})
	r.config.Queue.DeadURL = ""
	r.config.Queue.TaskURL = r.sqs.Queue("tasks", time.Second, "", 0)
	stop := r.work(0)
	defer stop()
	id := o.start()
	spec, err := json.Marshal(r.config)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	killed := 0
	random := rand.New(rand.NewPCG(6, 6))
	const idle = 3 * time.Second       // is killed, too, who finds no work
	patience := func() time.Duration { // from its start to its first work; a slow machine ends the test undisturbed
		mu.Lock()
		defer mu.Unlock()
		if killed >= kills {
			return stuck
		}
		return idle
	}
	life := func() time.Duration { // from when it has work
		mu.Lock()
		defer mu.Unlock()
		if killed >= kills {
			return time.Minute
		}
		return time.Duration(300+random.IntN(900)) * time.Millisecond
	}
	deadline := time.Now().Add(stuck + time.Duration(kills-45)*time.Second + time.Duration(series*books-1500)*20*time.Millisecond)
	var workers sync.WaitGroup
	for range 3 {
		workers.Go(func() {
			for !o.ended(id) && time.Now().Before(deadline) {
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), "WORKER_TEST_CONFIG="+string(spec))
				if err := errors.Join(bound.Parent(cmd), cmd.Start()); err != nil {
					t.Error(err)
					return
				}
				worker, works := "%/"+strconv.Itoa(cmd.Process.Pid), false
				for end := time.Now().Add(patience()); time.Now().Before(end) && !o.ended(id); {
					if !works && r.count("status = 'running' and locked_by like $1", worker) > 0 {
						works, end = true, time.Now().Add(life())
					}
					if n := r.count("status = 'running' and lease_until < now() - interval '10 seconds'"); n > 0 { // the lease is 1 s
						t.Errorf("%d tasks of dead workers were not taken back", n)
						break
					}
					time.Sleep(20 * time.Millisecond) // its life, not a wait for something
				}
				if err := cmd.Process.Kill(); err != nil {
					t.Error(err)
				}
				_ = cmd.Wait() // killed: that is its end
				mu.Lock()
				killed++
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	res := o.result(id)
	if res.Status != "completed" || res.Created != int64(series*books) || res.Processed != res.Total || res.Total != int64(series*books) {
		t.Fatalf("after %d kills: %+v", killed, res)
	}
	same(t, o.state(), want)
	var attempts, deaths, epochs int
	if err := r.db.Owner.Pool().QueryRow(context.Background(), "select sum(attempts), sum(deaths), max(lease_epoch) from task").Scan(&attempts, &deaths, &epochs); err != nil {
		t.Fatal(err)
	}
	if deaths < kills/4 {
		t.Errorf("%d workers were killed, but only %d tasks lost theirs", killed, deaths)
	}
	if did := r.sqs.Done(); did.Lost == 0 || did.Duplicated == 0 || did.Reordered == 0 {
		t.Errorf("the faults of the queue did not happen: %+v", did)
	}
	t.Logf("%d kills, %d tasks lost their worker, %d attempts, the scan was claimed up to %d times, messages: %+v", killed, deaths, attempts, epochs, r.sqs.Done())
}

// A scan through the queue, with two workers.
func TestScanThroughTheQueue(t *testing.T) {
	t.Parallel()
	r := newRig(t, false)
	// No worker dies in this test: on a busy machine none must be taken for dead, because its tasks would fail.
	r.config.Lease = time.Minute
	o := r.owner("one")
	o.fill(5, 40)
	id := o.start()
	stop := r.work(2)
	testkit.Eventually(t, stuck, func() bool { return o.ended(id) })
	testkit.Eventually(t, stuck, func() bool {
		visible, hidden := r.sqs.Len("tasks")
		return visible+hidden == 0
	})
	stop()
	if res := o.result(id); res.Status != "completed" || res.Created != 200 || res.Processed != 200 || res.Errors != 0 {
		t.Errorf("%+v", res)
	}
	if dead, _ := r.sqs.Len("dead"); dead != 0 {
		t.Errorf("%d messages were given up", dead)
	}
}

// sqsEvent is a batch as Lambda hands it over; the messages are received from the queue first.
func sqsEvent(t *testing.T, q *queue.Queue, name string, n int) (json.RawMessage, []queue.Message) {
	t.Helper()
	var all []queue.Message
	testkit.Eventually(t, 10*time.Second, func() bool {
		got, err := q.Receive(context.Background(), n-len(all), 0, 30*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, got...)
		return len(all) == n
	})
	var e events.SQSEvent
	for _, m := range all {
		e.Records = append(e.Records, events.SQSMessage{MessageId: m.ID, ReceiptHandle: m.Receipt, Body: m.Body, EventSource: "aws:sqs",
			EventSourceARN: "arn:aws:sqs:us-east-1:000000000000:" + name, Attributes: map[string]string{"ApproximateReceiveCount": fmt.Sprint(m.Receives)}})
	}
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return data, all
}

func (r *rig) queue(url string) *queue.Queue {
	r.t.Helper()
	return queue.Open(r.config.Queue, url)
}

// again are the messages that the answer of an invocation names.
func again(t *testing.T, out any) []string {
	t.Helper()
	ids := []string{}
	for _, f := range out.(events.SQSEventResponse).BatchItemFailures {
		ids = append(ids, f.ItemIdentifier)
	}
	data, err := json.Marshal(out)
	if err != nil || !strings.HasPrefix(string(data), `{"batchItemFailures":[`) {
		t.Errorf("answer %s, %v", data, err)
	}
	return ids
}

func TestPartOfABatchComesAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, false)
	o := r.owner("one")
	w := r.worker()
	w.Slots = 10
	ran := make(chan uuid.UUID, 10)
	w.Handlers = map[string]task.Handler{"good": func(_ context.Context, h task.Held) (any, error) { ran <- h.ID; return nil, nil }}
	var notified []string
	w.Objects = func(_ context.Context, body json.RawMessage) error {
		notified = append(notified, string(body))
		if len(notified) == 1 {
			return errors.New("the database is away")
		}
		return nil
	}
	q := r.queue(r.config.Queue.TaskURL)
	id := uuid.New()
	r.exec("insert into task (tenant_id, id, type) values ($1, $2, 'good')", o.tenant, id)
	bodies := []string{fmt.Sprintf(`{"tenant":%q,"task":%q}`, o.tenant, id), fmt.Sprintf(`{"tenant":%q,"task":%q}`, uuid.New(), id), "forged",
		`{"Records":[{"eventSource":"aws:s3"}]}`}
	if _, err := q.Send(context.Background(), bodies...); err != nil {
		t.Fatal(err)
	}
	payload, messages := sqsEvent(t, q, "tasks", len(bodies))
	out, err := w.Handle(context.Background(), payload)
	if err != nil {
		t.Fatal(err)
	}
	failed := again(t, out)
	if len(failed) != 1 || !slices.ContainsFunc(messages, func(m queue.Message) bool { return m.ID == failed[0] && strings.Contains(m.Body, "aws:s3") }) {
		t.Errorf("come again: %v", failed)
	}
	if got := <-ran; got != id {
		t.Errorf("ran %s", got)
	}
	// A notification of the store by itself.
	if _, err := w.Handle(context.Background(), json.RawMessage(`{"Records":[{"eventSource":"aws:s3","s3":{}}]}`)); err != nil || len(notified) != 2 {
		t.Errorf("%v %v", notified, err)
	}
	// If all messages fail, the invocation does not: infra/alarm.yaml counts such failures in the log.
	w.Objects = func(context.Context, json.RawMessage) error { return errors.New("the database is away") }
	if _, err := q.Send(context.Background(), bodies[3], bodies[3]); err != nil {
		t.Fatal(err)
	}
	payload, _ = sqsEvent(t, q, "tasks", 2)
	if out, err = w.Handle(context.Background(), payload); err != nil || len(again(t, out)) != 2 {
		t.Errorf("a batch that fails as a whole: %v %v", out, err)
	}
	for _, bad := range []string{`{}`, `[]`, `{"Records":[{"eventSource":"aws:kinesis"}]}`, `{"Records":7}`} {
		if _, err := w.Handle(context.Background(), json.RawMessage(bad)); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}

// A message that is done is gone at once, although its batch goes on: it must not come again when its lease is over.
func TestAMessageIsDoneBeforeItsBatch(t *testing.T) {
	t.Parallel()
	r := newRig(t, false)
	r.config.Lease = time.Minute
	o := r.owner("one")
	w := r.worker()
	started, release := make(chan struct{}), make(chan struct{})
	w.Handlers = map[string]task.Handler{
		"short": func(context.Context, task.Held) (any, error) { return nil, nil },
		"long":  func(context.Context, task.Held) (any, error) { close(started); <-release; return nil, nil },
	}
	q := r.queue(r.config.Queue.TaskURL)
	for _, typ := range []string{"short", "long"} {
		id := uuid.New()
		r.exec("insert into task (tenant_id, id, type, queued_at) values ($1, $2, $3, now() + interval '1 hour')", o.tenant, id, typ)
		if _, err := q.Send(context.Background(), fmt.Sprintf(`{"tenant":%q,"task":%q}`, o.tenant, id)); err != nil {
			t.Fatal(err)
		}
	}
	payload, _ := sqsEvent(t, q, "tasks", 2)
	done := make(chan any, 1)
	go func() {
		out, err := w.Handle(context.Background(), payload)
		if err != nil {
			t.Error(err)
		}
		done <- out
	}()
	defer func() {
		close(release)
		if failed := again(t, <-done); len(failed) > 0 {
			t.Errorf("come again: %v", failed)
		}
	}()
	<-started
	testkit.Eventually(t, 10*time.Second, func() bool {
		visible, hidden := r.sqs.Len("tasks")
		return visible+hidden == 1
	})
}

// While work goes on neither the lease nor the message's visibility runs out, however long it takes.
func TestVisibilityIsExtended(t *testing.T) {
	t.Parallel()
	r := newRig(t, false)
	r.config.Lease = 5 * time.Second
	o := r.owner("one")
	w := r.worker()
	release, started := make(chan struct{}), make(chan struct{}, 10)
	w.Handlers = map[string]task.Handler{"long": func(ctx context.Context, _ task.Held) (any, error) {
		started <- struct{}{}
		select {
		case <-release:
			return nil, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}}
	r.exec("insert into task (tenant_id, id, type, queued_at) values ($1, $2, 'long', now() + interval '1 hour')", o.tenant, uuid.New())
	q := r.queue(r.config.Queue.TaskURL)
	var id uuid.UUID
	if err := r.db.Owner.Pool().QueryRow(context.Background(), "select id from task").Scan(&id); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Send(context.Background(), fmt.Sprintf(`{"tenant":%q,"task":%q}`, o.tenant, id)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	<-started
	before := r.sqs.Calls("ChangeMessageVisibilityBatch")
	testkit.Eventually(t, time.Minute, func() bool { // the visibility and the lease are 5 s
		if got, err := q.Receive(context.Background(), 1, 0, 0); err != nil || len(got) > 0 {
			t.Fatalf("the message came again while it was worked on: %v, %v", got, err)
		}
		if n, err := task.Rescue(context.Background(), r.db.System, nil); err != nil || n > 0 {
			t.Fatalf("the task was given back while it was worked on: %v", err)
		}
		return r.sqs.Calls("ChangeMessageVisibilityBatch") > before+4 // every third of that
	})
	close(release)
	testkit.Eventually(t, 10*time.Second, func() bool {
		visible, hidden := r.sqs.Len("tasks")
		return visible+hidden == 0
	})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	var attempts int
	if err := r.db.Owner.Pool().QueryRow(context.Background(), "select attempts from task where status = 'completed'").Scan(&attempts); err != nil || attempts != 1 {
		t.Errorf("%d attempts, %v", attempts, err)
	}
}

// A notification is hidden for a lease before the work begins, and not for the long timeout of its queue: if the worker
// dies at once, the notification soon comes again.
func TestVisibilityOfANotificationIsShortened(t *testing.T) {
	t.Parallel()
	r := newRig(t, false)
	r.config.Lease = time.Minute
	w := r.worker()
	calls := -1
	w.Objects = func(context.Context, json.RawMessage) error {
		calls = r.sqs.Calls("ChangeMessageVisibilityBatch")
		return nil
	}
	q := r.queue(r.config.Queue.TaskURL)
	if _, err := q.Send(context.Background(), `{"Records":[{"eventSource":"aws:s3"}]}`); err != nil {
		t.Fatal(err)
	}
	payload, _ := sqsEvent(t, q, "tasks", 1)
	if out, err := w.Handle(context.Background(), payload); err != nil || len(again(t, out)) > 0 {
		t.Fatalf("%v, %v", out, err)
	}
	if calls != 1 {
		t.Errorf("the visibility was set %d times before the work, want once", calls)
	}
}

// A message whose task cannot even be claimed goes to the dead-letter queue. That may be for the database, which was
// away for everybody, so the task is sent once more; if it comes there again it fails.
func TestDeadLetterQueue(t *testing.T) {
	t.Parallel()
	r := newRig(t, false)
	o := r.owner("one")
	id := uuid.New()
	r.exec("insert into task (tenant_id, id, type, queued_at) values ($1, $2, 'analyze_books', now() + interval '1 hour')", o.tenant, id)
	q := r.queue(r.config.Queue.TaskURL)
	w := r.worker()
	broken := r.config
	broken.SystemURL = strings.Replace(broken.SystemURL, "longbox_system", "longbox_nobody", 1)
	r.config = broken
	cannot := r.worker()
	for _, want := range []string{"pending, to be sent: No worker could start the task",
		"failed: No worker finished the task in 6 attempts: No worker could start the task"} {
		r.exec("update task set scheduled_for = now() - interval '1 hour', queued_at = now() + interval '1 hour'") // sent, and what came before is long ago
		if _, err := q.Send(context.Background(), fmt.Sprintf(`{"tenant":%q,"task":%q}`, o.tenant, id)); err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= 5; n++ {
			payload, _ := sqsEvent(t, q, "tasks", 1)
			out, err := cannot.Handle(context.Background(), payload)
			if err != nil || len(again(t, out)) != 1 {
				t.Fatalf("receive %d: %v, %v", n, out, err)
			}
			r.sqs.Appear("tasks") // the wait until it comes again is over
		}
		if got, err := q.Receive(context.Background(), 1, 0, time.Second); err != nil || len(got) != 0 {
			t.Fatalf("received a sixth time: %v, %v", got, err)
		}
		payload, _ := sqsEvent(t, r.queue(r.config.Queue.DeadURL), "dead", 1)
		if out, err := w.Handle(context.Background(), payload); err != nil || len(again(t, out)) != 0 {
			t.Fatalf("%v, %v", out, err)
		}
		var state string
		if err := r.db.Owner.Pool().QueryRow(context.Background(), `select status || case when status = 'pending' and queued_at is null then ', to be sent' else '' end || ': ' || last_error
			from task`).Scan(&state); err != nil {
			t.Fatal(err)
		}
		if state != want {
			t.Errorf("%s, want %s", state, want)
		}
	}
}
