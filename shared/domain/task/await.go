package task

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// Await polls quickly at first, and for at most ten seconds, less than a gateway's timeout.
const (
	firstLook = 50 * time.Millisecond
	lastLook  = time.Second
	lookFor   = 10 * time.Second
)

// Outcome is the state of a task.
type Outcome struct {
	Status    string          `db:"status"`
	Place     json.RawMessage `db:"place"`  // checkpoint of an unfinished task; null at the start
	Result    json.RawMessage `db:"result"` // null until it has completed
	LastError *string         `db:"last_error"`
}

// ended reports whether the task has ended.
func (o *Outcome) ended() bool { return o.Status != Pending && o.Status != Running }

// Read decodes the result of the task, or its checkpoint before the end, into dst.
func (o *Outcome) Read(dst any) error {
	for _, data := range []json.RawMessage{o.Result, o.Place} {
		if data != nil {
			return json.Unmarshal(data, dst)
		}
	}
	return nil
}

// Await waits up to ten seconds for a task to end and returns its state, for callers that want the result of a short
// task.
func Await(ctx context.Context, d *db.DB, id uuid.UUID) (*Outcome, error) {
	until := time.Now().Add(lookFor)
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		o, err := db.Get[Outcome](ctx, d, "select status, place, result, last_error from task where tenant_id = app.tenant() and id = $1", id)
		if err != nil {
			return nil, err
		}
		if o == nil {
			return nil, fault.New(fault.Conflict, "The task was deleted before it ended; start it again")
		}
		if o.ended() || !time.Now().Before(until) {
			return o, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(min(pause, time.Until(until))):
		}
	}
}
