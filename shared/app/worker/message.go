package worker

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/longbox/longbox/shared/platform/queue"
)

// message processes one message, meanwhile hides it from other workers, and deletes it. After an error it is retried,
// with growing delays, until the queue gives up after a few receives.
func (w *Worker) message(ctx context.Context, q *queue.Queue, m queue.Message, dead bool) error {
	working, stop := context.WithCancel(ctx)
	hidden := make(chan struct{})
	if q != nil && isNotification(m.Body) { // a task has a row that brings it back; a notification has only the queue
		w.extend(ctx, q, m, w.hiddenAtFirst(m.Receives))
	}
	go func() { defer close(hidden); w.keepHidden(working, q, m) }()
	err := w.do(ctx, m, dead)
	stop()
	<-hidden
	if err == nil {
		finished(ctx, q, m)
		return nil
	}
	slog.Error("message failed; the queue delivers it again", "message", m.ID, "receives", m.Receives, "error", err)
	if q != nil {
		wait := min(15*time.Minute, 5*time.Second<<min(m.Receives, 10))
		if ctx.Err() != nil {
			wait = 0 // only this worker stops
		}
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
		defer cancel()
		if err := q.Extend(end, wait, m); err != nil {
			slog.Warn("delay of a failed message was not set; the queue delivers it again after its own delay", "message", m.ID, "error", err)
		}
	}
	return err
}

// finished deletes a message at once. Lambda deletes it only when the whole batch has ended, and until then it would
// come again: keepHidden has shortened its visibility timeout.
func finished(ctx context.Context, q *queue.Queue, m queue.Message) {
	if q == nil {
		return
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := q.Delete(end, m); err != nil {
		slog.Warn("processed message was not deleted from the queue; it will be delivered again, and then does nothing", "message", m.ID, "error", err)
	}
}

func (w *Worker) do(ctx context.Context, m queue.Message, dead bool) error {
	switch {
	case isNotification(m.Body):
		return w.Objects(ctx, json.RawMessage(m.Body))
	case dead:
		return w.GiveUp(ctx, m.Body, m.Receives)
	}
	return w.Take(ctx, m.Body)
}

// keepHidden extends the message's visibility timeout whenever the lease of its task is renewed. If this worker dies,
// another one gets the message within a lease. In Lambda this holds for a task only after the first third of its lease:
// until then the message stays hidden for the queue's own timeout.
func (w *Worker) keepHidden(ctx context.Context, q *queue.Queue, m queue.Message) {
	if q == nil {
		return
	}
	tick := time.NewTicker(w.Lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.extend(ctx, q, m, w.Lease)
		}
	}
}

// hiddenAtFirst is how long a notification is hidden when its work begins: one lease at the first receive, twice as
// long at each further one, up to 15 minutes. A worker that dies each time does not use up the attempts within minutes.
func (w *Worker) hiddenAtFirst(receives int) time.Duration {
	return min(15*time.Minute, w.Lease<<min(max(receives-1, 0), 5))
}

// extend hides the message for a time from now.
func (w *Worker) extend(ctx context.Context, q *queue.Queue, m queue.Message, d time.Duration) {
	if err := q.Extend(ctx, d, m); err != nil && ctx.Err() == nil {
		slog.Warn("visibility timeout of a message was not extended; it may be delivered twice", "message", m.ID, "error", err)
	}
}

// isNotification reports whether the store sent the message: {"Records": ...} from S3, or the test event of a new
// notification rule.
func isNotification(body string) bool {
	var n struct {
		Records json.RawMessage
		Event   string
		Source  string `json:"source"`
	}
	return json.Unmarshal([]byte(body), &n) == nil && (n.Records != nil || n.Event == "s3:TestEvent" || n.Source == "aws.s3")
}
