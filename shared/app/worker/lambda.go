package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/queue"
)

// Handle processes one Lambda event: a batch of SQS messages or an S3 notification. For SQS it returns the messages to
// retry. ctx ends with the invocation.
func (w *Worker) Handle(ctx context.Context, payload json.RawMessage) (any, error) {
	var source struct {
		Records []struct {
			EventSource string `json:"eventSource"`
		}
	}
	if err := json.Unmarshal(payload, &source); err != nil {
		return nil, fmt.Errorf("event: %w", err)
	}
	if len(source.Records) == 0 {
		return nil, errors.New("event: it has no Records; the worker accepts only messages from SQS and notifications from S3")
	}
	ctx, stop := w.begin(ctx)
	defer stop()
	switch s := source.Records[0].EventSource; s {
	case "aws:sqs":
		var e events.SQSEvent
		if err := json.Unmarshal(payload, &e); err != nil {
			return nil, fmt.Errorf("event from SQS: %w", err)
		}
		return w.batch(ctx, e.Records), nil
	case "aws:s3":
		return nil, w.Objects(ctx, payload)
	default:
		return nil, fmt.Errorf("event: the worker accepts only messages from SQS and notifications from S3, not events from %q", s)
	}
}

// batch processes the messages concurrently, as far as there are free slots.
func (w *Worker) batch(ctx context.Context, messages []events.SQSMessage) events.SQSEventResponse {
	out := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, m := range messages {
		all.Go(func() {
			receives, err := strconv.Atoi(m.Attributes["ApproximateReceiveCount"])
			if err != nil {
				receives = 1
			}
			q := w.queueOf(m.EventSourceARN)
			err = w.message(ctx, q, queue.Message{ID: m.MessageId, Receipt: m.ReceiptHandle, Body: m.Body, Receives: receives},
				w.isDead(m.EventSourceARN, m.Attributes["DeadLetterQueueSourceArn"]))
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				out.BatchItemFailures = append(out.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
			}
		})
	}
	all.Wait()
	return out
}

// begin renews leases until the returned function is called. It sets two deadlines: at the first, handlers should stop;
// at the second, they are cancelled. In between they save their place. What follows a task gets half of the rest.
func (w *Worker) begin(ctx context.Context) (context.Context, func()) {
	beating, cancelBeat := context.WithCancel(context.WithoutCancel(ctx))
	var beat sync.WaitGroup
	beat.Go(func() { w.Beat(beating) })
	endBeat := func() { cancelBeat(); beat.Wait() }
	deadline, ok := ctx.Deadline()
	if !ok {
		return ctx, endBeat
	}
	margin := min(w.margin, time.Until(deadline)/3)
	pausing, cancelPause := context.WithDeadline(beating, deadline.Add(-margin))
	ctx = task.WithEnd(ctx, deadline.Add(-margin/4))
	ctx, cancel := context.WithDeadlineCause(task.WithPause(ctx, pausing.Done()), deadline.Add(-margin/2), task.ErrTime)
	return ctx, func() { endBeat(); cancel(); cancelPause() }
}

// queueOf returns the configured queue with the ARN, or nil.
func (w *Worker) queueOf(arn string) *queue.Queue {
	for _, q := range []*queue.Queue{w.tasks, w.dead, w.objects} {
		if q != nil && queue.Name(q.URL()) == queue.Name(arn) {
			return q
		}
	}
	return nil
}

// isDead reports whether the queue is a dead-letter queue: it has the configured name, or its messages were moved there
// from the task queue.
func (w *Worker) isDead(arn, movedFrom string) bool {
	if w.dead != nil {
		return queue.Name(arn) == queue.Name(w.dead.URL())
	}
	return w.tasks != nil && movedFrom != "" && queue.Name(arn) != queue.Name(w.tasks.URL()) && queue.Name(movedFrom) == queue.Name(w.tasks.URL())
}
