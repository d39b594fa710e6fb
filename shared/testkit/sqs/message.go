package sqs

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
)

const maxBody = 256 << 10

type queue struct {
	name        string
	visibility  time.Duration
	dead        string // name of the dead-letter queue for messages received more than maxReceives times
	maxReceives int
	messages    []*message
}

type message struct {
	id, body string
	source   string // original queue of a dead message
	receipts []string
	visible  time.Time
	receives int
	sent     time.Time
	first    time.Time
}

func (q *queue) count(now time.Time) (visible, hidden int) {
	for _, m := range q.messages {
		if m.visible.After(now) {
			hidden++
		} else {
			visible++
		}
	}
	return visible, hidden
}

// send stores a message, with injected faults.
func (s *Server) send(q *queue, body string, delay int) (string, error) {
	if body == "" || len(body) > maxBody || delay < 0 || delay > 900 {
		return "", invalid("a message has 1 to 262144 bytes and a delay of 0 to 900 s")
	}
	id, now := uuid.NewString(), time.Now()
	if s.random.Float64() < s.faults.Lose {
		s.done.Lost++
		return id, nil
	}
	copies := 1
	if s.random.Float64() < s.faults.Duplicate {
		copies = 2
		s.done.Duplicated++
	}
	for range copies {
		visible := now.Add(time.Duration(delay) * time.Second)
		if s.faults.DelayMax > 0 && s.random.Float64() < s.faults.Delay {
			visible = visible.Add(time.Duration(s.random.Int64N(int64(s.faults.DelayMax))))
		}
		q.messages = append(q.messages, &message{id: id, body: body, visible: visible, sent: now})
	}
	s.wake()
	return id, nil
}

func (s *Server) wake() { close(s.changed); s.changed = make(chan struct{}) }

// extend sets when a held message becomes visible.
func (s *Server) extend(q *queue, receipt string, seconds *int) error {
	switch {
	case seconds == nil:
		return invalid("VisibilityTimeout is missing")
	case *seconds < 0 || *seconds > 43200:
		return invalid("VisibilityTimeout must be 0 to 43200")
	}
	i := q.holding(receipt)
	if i < 0 {
		return &fail{400, "ReceiptHandleIsInvalid", "The receipt handle is not valid."}
	}
	if !q.messages[i].visible.After(time.Now()) {
		return &fail{400, "MessageNotInflight", "The message is not in flight."}
	}
	q.messages[i].visible = time.Now().Add(time.Duration(*seconds) * time.Second)
	s.wake()
	return nil
}

// remove deletes a message by any of its receipts. A missing message is no error, as in SQS.
func (q *queue) remove(receipt string) error {
	if _, err := uuid.Parse(receipt); err != nil {
		return &fail{400, "ReceiptHandleIsInvalid", "The receipt handle is not valid."}
	}
	if i := q.holding(receipt); i >= 0 {
		q.messages = slices.Delete(q.messages, i, i+1)
	}
	return nil
}

func (q *queue) holding(receipt string) int {
	return slices.IndexFunc(q.messages, func(m *message) bool { return slices.Contains(m.receipts, receipt) })
}

// receive is ReceiveMessage. It waits for the first visible message as long as the request says.
func (s *Server) receive(ctx context.Context, in input) (any, error) {
	if in.WaitTimeSeconds < 0 || in.WaitTimeSeconds > 20 || in.MaxNumberOfMessages < 0 || in.MaxNumberOfMessages > 10 {
		return nil, invalid("WaitTimeSeconds is 0 to 20, MaxNumberOfMessages 1 to 10")
	}
	deadline := time.Now().Add(time.Duration(in.WaitTimeSeconds) * time.Second)
	for {
		s.mu.Lock()
		q, err := s.find(in)
		if err != nil {
			s.mu.Unlock()
			return nil, err
		}
		got := s.take(q, max(in.MaxNumberOfMessages, 1), in.VisibilityTimeout)
		next, changed := q.next(), s.changed
		s.mu.Unlock()
		if len(got) > 0 || !time.Now().Before(deadline) {
			return map[string]any{"Messages": got}, nil
		}
		if next.IsZero() || next.After(deadline) {
			next = deadline
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-changed:
		case <-time.After(time.Until(next)):
		}
	}
}

// next returns when the first hidden message becomes visible.
func (q *queue) next() (at time.Time) {
	for _, m := range q.messages {
		if at.IsZero() || m.visible.Before(at) {
			at = m.visible
		}
	}
	return at
}

// take returns up to n visible messages and hides them. Those received too often go to the dead-letter queue.
func (s *Server) take(q *queue, n int, visibility *int) []map[string]any {
	now := time.Now()
	hide := q.visibility
	if visibility != nil {
		hide = time.Duration(*visibility) * time.Second
	}
	order := make([]int, len(q.messages))
	for i := range order {
		order[i] = i
	}
	if s.faults.Reorder {
		s.random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	out := []map[string]any{}
	var dead []*message
	for _, i := range order {
		m := q.messages[i]
		if len(out) == n {
			break
		}
		if m.visible.After(now) {
			continue
		}
		if q.maxReceives > 0 && m.receives >= q.maxReceives && s.queues[q.dead] != nil {
			dead = append(dead, m)
			continue
		}
		if slices.IndexFunc(q.messages, func(o *message) bool { return !o.visible.After(now) }) < i { // an older one waits
			s.done.Reordered++
		}
		out = append(out, m.receive(now, hide))
	}
	for _, m := range dead {
		q.messages = slices.DeleteFunc(q.messages, func(o *message) bool { return o == m })
		m.source, m.receipts = arn(q.name), nil
		s.queues[q.dead].messages = append(s.queues[q.dead].messages, m)
	}
	if len(dead) > 0 {
		s.wake()
	}
	return out
}

func (m *message) receive(now time.Time, hide time.Duration) map[string]any {
	receipt := uuid.NewString()
	m.receipts = append(m.receipts, receipt)
	m.receives++
	m.visible = now.Add(hide)
	if m.first.IsZero() {
		m.first = now
	}
	attributes := map[string]string{
		"ApproximateReceiveCount":          strconv.Itoa(m.receives),
		"SentTimestamp":                    strconv.FormatInt(m.sent.UnixMilli(), 10),
		"ApproximateFirstReceiveTimestamp": strconv.FormatInt(m.first.UnixMilli(), 10),
	}
	if m.source != "" {
		attributes["DeadLetterQueueSourceArn"] = m.source
	}
	return map[string]any{"MessageId": m.id, "ReceiptHandle": receipt, "Body": m.body, "MD5OfBody": sum(m.body), "Attributes": attributes}
}

// Appear makes every hidden message of a queue visible, as if its timeout had passed.
func (s *Server) Appear(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.queues[name].messages {
		m.visible = time.Now()
	}
	s.wake()
}
