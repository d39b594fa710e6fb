package task

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
)

// DefaultLease is how long a worker may be silent before its tasks go to another.
const DefaultLease = 30 * time.Second

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
	Started   *time.Time      `db:"started_at"`
}

// Scope is the scope of the task's writes: they fail once the lease is lost.
func (h Held) Scope() db.Task { return db.Task{Tenant: h.Tenant, ID: h.ID, Epoch: h.Epoch} }

const heldColumns = "t.tenant_id, t.id, t.type, t.params, t.library_id, t.series_id, t.book_id, t.parent_id, t.lease_epoch, t.attempts, t.started_at"

// claim takes up to n due tasks of any tenant, the most urgent first; no two workers get the same one.
func claim(ctx context.Context, system *db.DB, worker string, lease time.Duration, n int) ([]Held, error) {
	rows, err := system.Pool().Query(ctx, `
		with next as (
		  select tenant_id, id from task where status = 'pending' and scheduled_for <= now()
		  order by priority desc, scheduled_for, id limit $1 for update skip locked)
		update task t set status = 'running', locked_by = $2, lease_until = now() + $3, lease_epoch = t.lease_epoch + 1,
		  attempts = t.attempts + 1, started_at = coalesce(t.started_at, now())
		from next where t.tenant_id = next.tenant_id and t.id = next.id
		returning `+heldColumns, n, worker, lease)
	if err != nil {
		return nil, fmt.Errorf("claim tasks: %w", err)
	}
	held, err := pgx.CollectRows(rows, pgx.RowToStructByName[Held])
	if err != nil {
		return nil, fmt.Errorf("claim tasks: %w", err)
	}
	return held, nil
}

// renew extends the leases of the tasks and tells which of them are still held. Rows that a writer has locked
// this moment keep the lease they have: waiting for them could deadlock.
func renew(ctx context.Context, system *db.DB, lease time.Duration, held []Held) (map[uuid.UUID]bool, error) {
	tenants, ids, epochs := make([]uuid.UUID, len(held)), make([]uuid.UUID, len(held)), make([]int32, len(held))
	for i, h := range held {
		tenants[i], ids[i], epochs[i] = h.Tenant, h.ID, h.Epoch
	}
	rows, err := system.Pool().Query(ctx, `
		with held as (
		  select t.tenant_id, t.id from task t join unnest($1::uuid[], $2::uuid[], $3::integer[]) as h(tenant_id, id, epoch)
		    on t.tenant_id = h.tenant_id and t.id = h.id and t.lease_epoch = h.epoch
		  where t.status = 'running'),
		free as (
		  select t.tenant_id, t.id from task t join held using (tenant_id, id) for update of t skip locked),
		renewed as (
		  update task t set lease_until = now() + $4 from free where t.tenant_id = free.tenant_id and t.id = free.id)
		select id from held`, tenants, ids, epochs, lease)
	if err != nil {
		return nil, fmt.Errorf("renew leases: %w", err)
	}
	still, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return nil, fmt.Errorf("renew leases: %w", err)
	}
	out := make(map[uuid.UUID]bool, len(still))
	for _, id := range still {
		out[id] = true
	}
	return out, nil
}

// state is a task and the status that it has now.
type state struct {
	ID     uuid.UUID `db:"id"`
	Status string    `db:"status"`
}

// finish ends the task and tells the new state of it and of its parent; none when the lease was lost.
func finish(ctx context.Context, system *db.DB, h Held, result json.RawMessage, failure *string, retry *time.Duration) ([]state, error) {
	rows, err := system.Pool().Query(ctx, "select id, status from app.finish_task($1, $2, $3, $4, $5, $6)",
		h.Tenant, h.ID, h.Epoch, result, failure, retry)
	if err != nil {
		return nil, fmt.Errorf("finish task %s: %w", h.ID, err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByName[state])
	if err != nil {
		return nil, fmt.Errorf("finish task %s: %w", h.ID, err)
	}
	return out, nil
}

// Rescue gives back the tasks whose worker has died: to pending while attempts are left, else failed; and ends
// the children of cancelled parents. It returns how many changed. The scheduler calls it.
func Rescue(ctx context.Context, system *db.DB) (int64, error) {
	tag, err := system.Pool().Exec(ctx, `
		update task t set
		  status = case when attempts < max_attempts then 'pending' else 'failed' end,
		  lease_until = null, locked_by = null, scheduled_for = now(),
		  last_error = 'The worker stopped answering while it had the task',
		  completed_at = case when attempts < max_attempts then null else now() end
		where status = 'running' and lease_until < now()`)
	if err != nil {
		return 0, fmt.Errorf("rescue tasks: %w", err)
	}
	orphans, err := system.Pool().Exec(ctx, `
		update task t set status = 'cancelled', completed_at = now(), lease_until = null
		from task p where p.tenant_id = t.tenant_id and p.id = t.parent_id and p.status = 'cancelled'
		  and t.status in ('pending', 'running')`)
	if err != nil {
		return 0, fmt.Errorf("end children of cancelled tasks: %w", err)
	}
	lost, err := system.Pool().Exec(ctx, `
		update task p set open_children = c.open,
		  status = case when p.done and c.open = 0 then 'completed' else p.status end,
		  completed_at = case when p.done and c.open = 0 then now() else p.completed_at end
		from (select p.tenant_id, p.id, count(t.id) filter (where t.status in ('pending', 'running')) as open
		      from task p left join task t on t.tenant_id = p.tenant_id and t.parent_id = p.id
		      where p.status = 'running' and p.open_children > 0 group by 1, 2) c
		where p.tenant_id = c.tenant_id and p.id = c.id and p.open_children > c.open`)
	if err != nil {
		return 0, fmt.Errorf("count children of tasks: %w", err)
	}
	return tag.RowsAffected() + orphans.RowsAffected() + lost.RowsAffected(), nil
}

// Forget deletes tasks that ended before the retention. The scheduler calls it.
func Forget(ctx context.Context, system *db.DB, defaultDays int) (int64, error) {
	tag, err := system.Pool().Exec(ctx, `
		delete from task t where t.completed_at < now() - interval '1 day' * coalesce(
		  (select s.value::integer from setting s where s.tenant_id = t.tenant_id and s.key = 'tasks.retention_days'), $1)`, defaultDays)
	if err != nil {
		return 0, fmt.Errorf("forget old tasks: %w", err)
	}
	return tag.RowsAffected(), nil
}
