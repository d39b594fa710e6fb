package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// defaultLease is how long a worker may be silent before its tasks can be claimed by another.
const defaultLease = 30 * time.Second

// Held is a task that this worker has claimed.
type Held struct {
	Tenant    uuid.UUID       `db:"tenant_id"`
	ID        uuid.UUID       `db:"id"`
	Type      string          `db:"type"`
	Params    json.RawMessage `db:"params"`
	LibraryID *uuid.UUID      `db:"library_id"`
	SeriesID  *uuid.UUID      `db:"series_id"`
	BookID    *uuid.UUID      `db:"book_id"`
	ParentID  *uuid.UUID      `db:"parent_id"`
	Epoch     int32           `db:"lease_epoch"`
	Attempts  int             `db:"attempts"`
	Allowed   int             `db:"max_attempts"` // attempts allowed
	Started   *time.Time      `db:"started_at"`
	// Deaths counts the workers that died while they held the task.
	Deaths int `db:"deaths"`
	// Place is the checkpoint of the handler's last run; nil at the start.
	Place json.RawMessage `db:"place"`
	// Current and Total are the progress at the claim, except for scans: a claim across all tenants cannot see them. A
	// scan reports its progress itself when it begins.
	Current int64 `db:"progress_current"`
	Total   int64 `db:"progress_total"`
}

// Scope returns the scope of the task's writes: they fail once the lease is lost.
func (h Held) Scope() db.Task { return db.Task{Tenant: h.Tenant, ID: h.ID, Epoch: h.Epoch} }

// Last reports whether the task fails for good if its handler returns err.
func (h Held) Last(err error) bool {
	if errors.As(err, new(*paused)) {
		return false
	}
	return h.Attempts >= h.Allowed || permanent(err)
}

// permanent reports whether another attempt would fail in the same way.
func permanent(err error) bool {
	return fault.Is(err, fault.BadRequest) || fault.Is(err, fault.NotFound) || fault.Is(err, fault.Conflict)
}

const heldColumns = "t.tenant_id, t.id, t.type, t.params, t.library_id, t.series_id, t.book_id, t.parent_id, t.lease_epoch, t.attempts, t.max_attempts, t.deaths, t.started_at, t.place, " + counts

// SQL for the progress of a task; a scan counts in its own row.
const (
	counts    = "coalesce(c.files_processed, t.progress_current) as progress_current, coalesce(c.files_total, t.progress_total) as progress_total"
	countedBy = " left join scan c on c.tenant_id = t.tenant_id and c.id = t.id"
)

// selectHeld selects task $2 of tenant $1.
const selectHeld = "select " + heldColumns + " from task t" + countedBy + " where t.tenant_id = $1 and t.id = $2"

// claim takes up to n due tasks, each from the tenant with the fewest running, by priority within the tenant. No two
// workers get the same task.
func claim(ctx context.Context, system *db.DB, worker string, lease time.Duration, n int) ([]Held, error) {
	var b pgx.Batch
	found := make([]*Held, n)
	for i := range found {
		db.One(&b, &found[i], "select "+heldColumns+" from app.claim_task($1, $2) t"+countedBy, worker, lease)
	}
	ctx, cancel := seenThrough(ctx)
	defer cancel()
	if err := system.Pool().SendBatch(ctx, &b).Close(); err != nil {
		return nil, fmt.Errorf("claim tasks: %w", err)
	}
	held := make([]Held, 0, n)
	for _, h := range found {
		if h != nil {
			held = append(held, *h)
		}
	}
	return held, nil
}

// seenThrough returns a context for a claim, which completes even if its worker is stopping: a claimed task that no
// worker knows of would be blocked until its lease expires. The run gives it back.
func seenThrough(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
}

// verdict is the result of claiming a task by its id: see app.claim_named.
type verdict string

const (
	claimed verdict = "claimed"
	unknown verdict = "unknown"
)

// claimNamed claims one task, if it may run now. It logs that it takes the task over from a dead worker.
func claimNamed(ctx context.Context, system *db.DB, worker string, lease time.Duration, tenant, id uuid.UUID) (*Held, verdict, error) {
	var b pgx.Batch
	var v verdict
	var held *Held
	var dead *string
	db.Tenant(tenant).Enter(&b) // scans are visible only within their tenant
	db.Value(&b, &dead, "select locked_by from task where tenant_id = $1 and id = $2 and status = 'running'", tenant, id)
	db.Value(&b, &v, "select app.claim_named($1, $2, $3, $4)", tenant, id, worker, lease)
	db.One(&b, &held, selectHeld, tenant, id)
	ctx, cancel := seenThrough(ctx)
	defer cancel()
	if err := system.Pool().SendBatch(ctx, &b).Close(); err != nil {
		return nil, "", fmt.Errorf("claim task %s: %w", id, err)
	}
	if v != claimed {
		return nil, v, nil
	}
	if dead != nil {
		slog.Warn("task taken over: its worker stopped responding", "task", id, "type", held.Type, "tenant", tenant, "worker", *dead)
	}
	return held, v, nil
}

// renew extends the leases of the tasks and returns which of them are still held. Rows that are locked are skipped:
// waiting for one while others are locked could deadlock. A task's own transactions lock its row, one after the other
// in a scan, so a lease of which less than half is left is renewed on its own, and that waits.
func renew(ctx context.Context, system *db.DB, lease time.Duration, held []Held) (map[db.Task]bool, error) {
	tenants, ids, epochs := make([]uuid.UUID, len(held)), make([]uuid.UUID, len(held)), make([]int32, len(held))
	for i, h := range held {
		tenants[i], ids[i], epochs[i] = h.Tenant, h.ID, h.Epoch
	}
	rows, _ := system.Pool().Query(ctx, `
		with held as (
		  select t.tenant_id, t.id, t.lease_epoch, not t.done and t.lease_until < now() + $4::interval / 2 as ending
		  from task t join unnest($1::uuid[], $2::uuid[], $3::integer[]) as h(tenant_id, id, epoch)
		    on t.tenant_id = h.tenant_id and t.id = h.id and t.lease_epoch = h.epoch
		  where t.status = 'running'),
		free as (
		  select t.tenant_id, t.id from task t join held using (tenant_id, id)
		  where t.status = 'running' and not t.done and t.lease_epoch = held.lease_epoch -- asked of the locked row again: it may just have ended
		  for update of t skip locked),
		renewed as (
		  update task t set lease_until = now() + $4 from free where t.tenant_id = free.tenant_id and t.id = free.id returning t.id)
		select tenant_id, id, lease_epoch, ending and not exists (select from renewed r where r.id = held.id) from held`, tenants, ids, epochs, lease)
	still, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct {
		db.Task
		Ending bool
	}]) // also returns the error of Query
	if err != nil {
		return nil, fmt.Errorf("renew leases: %w", err)
	}
	out := make(map[db.Task]bool, len(still))
	for _, s := range still {
		out[s.Task] = true
		if s.Ending {
			if err := renewOne(ctx, system, lease, s.Task); err != nil {
				return nil, fmt.Errorf("renew the lease of task %s: %w", s.ID, err)
			}
		}
	}
	return out, nil
}

// renewOne extends one lease, and waits half a second at most for the task's row. It locks nothing else, and gives up
// before Postgres looks for a deadlock (after a second).
func renewOne(ctx context.Context, system *db.DB, lease time.Duration, t db.Task) error {
	var b pgx.Batch
	b.Queue("select set_config('statement_timeout', '500ms', true)")
	b.Queue("update task set lease_until = now() + $4 where tenant_id = $1 and id = $2 and lease_epoch = $3 and status = 'running' and not done",
		t.Tenant, t.ID, t.Epoch, lease)
	err := system.Pool().SendBatch(ctx, &b).Close()
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "57014" && ctx.Err() == nil { // still locked: the next beat tries again
		return nil
	}
	return err
}

// find returns a task as a worker sees it, without claiming it; nil if there is none.
func find(ctx context.Context, system *db.DB, tenant, id uuid.UUID) (*Held, error) {
	return db.Get[Held](db.In(ctx, db.Tenant(tenant)), system, selectHeld, tenant, id)
}
