package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/cut"
	"github.com/longbox/longbox/shared/platform/db"
)

// message is the body of a message: the id of a task. It is no command: the row says what to do.
type message struct {
	Tenant uuid.UUID `json:"tenant"`
	Task   uuid.UUID `json:"task"`
}

func (m message) String() string {
	return `{"tenant":"` + m.Tenant.String() + `","task":"` + m.Task.String() + `"}`
}

func parseMessage(body string) (m message, err error) {
	d := json.NewDecoder(strings.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return m, err
	}
	if d.More() || m.Tenant == uuid.Nil || m.Task == uuid.Nil {
		return m, errors.New(`it must be {"tenant": id, "task": id}`)
	}
	return m, nil
}

// Take runs the task that a message names, if it may run now. An error redelivers the message. nil acknowledges it: the
// task was run, has ended, runs elsewhere, or no row matches.
func (r *Runner) Take(ctx context.Context, body string) error {
	r.init()
	m, err := parseMessage(body)
	if err != nil {
		slog.Warn("message dropped: it does not name a task", "error", err, "body", cut.Bytes(body, 200))
		return nil
	}
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-Pause(ctx):
	case <-ctx.Done():
		return ctx.Err()
	}
	if MustPause(ctx) {
		return r.unsend(ctx, m)
	}
	h, v, err := claimNamed(ctx, r.System, r.Worker, r.Lease, m.Tenant, m.Task)
	switch {
	case err != nil:
		return err
	case v == claimed:
		return r.run(ctx, *h)
	case v == unknown:
		slog.Warn("message dropped: its task does not exist", "tenant", m.Tenant, "task", m.Task)
	default:
		slog.Debug("message dropped: its task cannot be claimed", "tenant", m.Tenant, "task", m.Task, "why", string(v))
	}
	return nil
}

// unsend frees a task whose message came when no time was left, so that it gets a new message: redelivering this one
// would count towards giving the task up.
func (r *Runner) unsend(ctx context.Context, m message) error {
	ctx = db.In(ctx, db.Tenant(m.Tenant))
	_, err := db.Exec(ctx, r.System, "update task set queued_at = null where tenant_id = app.tenant() and id = $1 and status = 'pending'", m.Task)
	if err == nil {
		r.Added.Tell(ctx, m.Tenant)
	}
	return err
}

// unstarted begins the error of a task whose message has ended in the dead-letter queue once.
const unstarted = "No worker could start the task"

// GiveUp fails the task of a message that was received too often, as it arrives from the dead-letter queue. A task that
// has attempts left is sent once more, by the scheduler: while the database is away, all messages end here. So may
// several messages of one task: those that come within 15 minutes count as one. An error redelivers the message.
func (r *Runner) GiveUp(ctx context.Context, body string, receives int) error {
	m, err := parseMessage(body)
	if err != nil {
		slog.Warn("message dropped: it does not name a task", "error", err, "body", cut.Bytes(body, 200))
		return nil
	}
	log := slog.With("tenant", m.Tenant, "task", m.Task)
	again, err := db.Exec(db.In(ctx, db.Tenant(m.Tenant)), r.System, `update task
		set queued_at = case when starts_with(last_error, $2::text) then queued_at end,
		  scheduled_for = case when starts_with(last_error, $2) then scheduled_for else greatest(scheduled_for, now()) end,
		  last_error = case when starts_with(last_error, $2) then last_error else $2 || coalesce(': ' || last_error, '') end
		where tenant_id = app.tenant() and id = $1 and status = 'pending' and attempts < max_attempts
		  and (starts_with(last_error, $2) is not true or queued_at is null or scheduled_for > now() - interval '15 minutes')`, m.Task, unstarted)
	if err != nil {
		return err
	}
	if again > 0 {
		log.Warn("dead-letter message: no worker could claim the task; the scheduler sends it once more")
		return nil
	}
	reason := fmt.Sprintf("No worker finished the task in %d attempts", receives)
	states, err := fail(ctx, r.System, m.Tenant, m.Task, reason)
	if err != nil {
		return err
	}
	if len(states) == 0 {
		log.Info("dead-letter message dropped: its task has ended, is running, does not exist, or is taken back by the scheduler")
		return nil
	}
	h, err := find(ctx, r.System, m.Tenant, m.Task)
	if err != nil { // it has failed anyway; only the event is missing
		log.Error("cannot publish the failure of the task", "reason", reason, "error", err)
		return nil
	}
	if h == nil { // deleted since, with its library or user
		return nil
	}
	log = log.With("type", h.Type)
	log.Error("task failed", "error", reason, "attempt", h.Attempts)
	r.tell(ctx, log, *h, states, &reason)
	r.Added.Tell(ctx, m.Tenant)
	return nil
}
