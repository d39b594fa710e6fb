package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// batch limits the messages of one request.
const batch = 10

type Queue struct {
	client *client
	url    string
}

// Open returns the queue with the URL, which Validate has checked, or nil without one. It connects on first use.
func Open(c Config, queueURL string) *Queue {
	if queueURL == "" {
		return nil
	}
	return &Queue{newClient(c, queueURL), queueURL}
}

// URL returns the queue's URL.
func (q *Queue) URL() string { return q.url }

// Message is a received message.
type Message struct {
	ID      string
	Receipt string // to delete or extend it
	Body    string
	// Receives is how often it was received, including this time, as far as the queue knows.
	Receives int
}

type entry struct {
	ID         string `json:"Id"`
	Body       string `json:"MessageBody,omitempty"`
	Receipt    string `json:"ReceiptHandle,omitempty"`
	Visibility *int   `json:"VisibilityTimeout,omitempty"`
}

type entries struct {
	QueueURL string  `json:"QueueUrl"`
	Entries  []entry `json:"Entries"`
}

type outcome struct {
	Failed []struct{ ID, Code, Message string }
}

// Send sends the messages, ten per request. It returns the indexes of unsent messages; err says why.
func (q *Queue) Send(ctx context.Context, bodies ...string) (unsent []int, err error) {
	return q.each(ctx, "SendMessageBatch", len(bodies), func(i int) entry { return entry{Body: bodies[i]} })
}

// Delete removes received messages.
func (q *Queue) Delete(ctx context.Context, messages ...Message) error {
	_, err := q.each(ctx, "DeleteMessageBatch", len(messages), func(i int) entry { return entry{Receipt: messages[i].Receipt} })
	return err
}

// Extend hides received messages from other receivers for this long from now. Zero makes them visible at once.
func (q *Queue) Extend(ctx context.Context, visibility time.Duration, messages ...Message) error {
	seconds := int((visibility + time.Second - 1) / time.Second)
	_, err := q.each(ctx, "ChangeMessageVisibilityBatch", len(messages), func(i int) entry {
		return entry{Receipt: messages[i].Receipt, Visibility: &seconds}
	})
	return err
}

// each runs an action on n messages in batches. A failed batch does not stop the others.
func (q *Queue) each(ctx context.Context, action string, n int, of func(i int) entry) (undone []int, err error) {
	for start := 0; start < n; start += batch {
		in := entries{QueueURL: q.url}
		for i := start; i < min(start+batch, n); i++ {
			e := of(i)
			e.ID = strconv.Itoa(i)
			in.Entries = append(in.Entries, e)
		}
		var out outcome
		if failure := q.client.do(ctx, action, in, &out); failure != nil {
			err = errors.Join(err, failure)
			for i := start; i < min(start+batch, n); i++ {
				undone = append(undone, i)
			}
			continue
		}
		for _, f := range out.Failed {
			i, bad := strconv.Atoi(f.ID)
			if bad != nil || i < start || i >= min(start+batch, n) {
				err = errors.Join(err, fmt.Errorf("%s: the queue's answer names a message %q that was not in the request", action, f.ID))
				continue
			}
			undone = append(undone, i)
			err = errors.Join(err, fmt.Errorf("%s: message %d: %s: %s", action, i, f.Code, f.Message))
		}
	}
	return undone, err
}

// Receive waits up to wait (20 s at most) for messages. It returns up to n of them (10 at most), hidden for the
// visibility timeout.
func (q *Queue) Receive(ctx context.Context, n int, wait, visibility time.Duration) ([]Message, error) {
	in := map[string]any{"QueueUrl": q.url, "MaxNumberOfMessages": min(max(n, 1), batch), "WaitTimeSeconds": int(min(wait, 20*time.Second).Seconds()),
		"VisibilityTimeout": int((visibility + time.Second - 1) / time.Second), "MessageSystemAttributeNames": []string{"ApproximateReceiveCount"}}
	var out struct {
		Messages []struct {
			MessageID     string `json:"MessageId"`
			ReceiptHandle string
			Body          string
			Attributes    map[string]string
		}
	}
	if err := q.client.do(ctx, "ReceiveMessage", in, &out); err != nil {
		return nil, err
	}
	messages := make([]Message, len(out.Messages))
	for i, m := range out.Messages {
		receives, err := strconv.Atoi(m.Attributes["ApproximateReceiveCount"])
		if err != nil {
			receives = 1 // a server without the count
		}
		messages[i] = Message{ID: m.MessageID, Receipt: m.ReceiptHandle, Body: m.Body, Receives: receives}
	}
	return messages, nil
}
