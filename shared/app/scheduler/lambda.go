package scheduler

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/scan"
)

// invocation is the payload in Lambda: an EventBridge event, whose kind alone matters, or {"start": true}.
type invocation struct {
	Start      bool   `json:"start"`
	DetailType string `json:"detail-type"`
}

// did is the result of an invocation.
type did struct {
	Started int       `json:"started"` // scans of libraries with scan on start
	Round   time.Time `json:"round"`
}

// Invoked runs one round for a Lambda invocation.
//
// Outside Lambda, a start of the process is a start of the server, which also scans the libraries with scan on start.
// In Lambda, processes start at any time. There the operator reports a start with {"start": true}, sent at the end of a
// deployment.
//
// The round ends before the invocation. If Lambda ended it, the process would end too, and its place in the hourly
// cleaning and the scans that cannot be settled would be forgotten.
func (s *Scheduler) Invoked(ctx context.Context, payload json.RawMessage) (any, error) {
	var v invocation
	if p := bytes.TrimSpace(payload); len(p) > 0 {
		if err := json.Unmarshal(p, &v); err != nil {
			return nil, fmt.Errorf(`the payload must be an event from EventBridge, {} or {"start": true}: %w`, err)
		}
	}
	if v.DetailType != "" && v.DetailType != "Scheduled Event" {
		return nil, fmt.Errorf("the scheduler accepts only the event type Scheduled Event from EventBridge, not %q", v.DetailType)
	}
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-margin))
		defer cancel()
	}
	if err := s.awake(ctx); err != nil {
		return nil, fmt.Errorf("the database does not wake up: %w", err)
	}
	out := did{Round: time.Now().UTC()}
	if v.Start {
		n, err := scan.OnStart(ctx, s.system, map[uuid.UUID]bool{})
		if err != nil {
			return nil, fmt.Errorf("scans on start: %w", err)
		}
		slog.Info("requested the scans on start", "started", n)
		out.Started = n
	}
	return out, s.Round(ctx, out.Round)
}

// A paused database needs about 15 s to wake, or 30 s after a day. The timeout of the invocation is the sum of wakes,
// roundFor, margin and the time for settling a scan.
const (
	margin   = 8 * time.Second // to return, and to send what is left to send
	wakes    = 35 * time.Second
	askAgain = 500 * time.Millisecond
)

// awake waits for a paused database. The hourly invocation usually wakes it, and a failed invocation would raise an
// alarm.
func (s *Scheduler) awake(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, wakes)
	defer cancel()
	tick := time.NewTicker(askAgain)
	defer tick.Stop()
	for {
		err := s.system.Pool().Ping(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}
