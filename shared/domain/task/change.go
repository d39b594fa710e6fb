package task

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
)

// changed is a task before and after a change; for a scan, with its counters.
type changed struct {
	ID            uuid.UUID  `db:"id"`
	Type          string     `db:"type"`
	Before        string     `db:"before"`
	Status        string     `db:"status"`
	LibraryID     *uuid.UUID `db:"library_id"`
	SeriesID      *uuid.UUID `db:"series_id"`
	BookID        *uuid.UUID `db:"book_id"`
	Current       int64      `db:"progress_current"`
	Total         int64      `db:"progress_total"`
	LastError     *string    `db:"last_error"`
	StartedAt     *time.Time `db:"started_at"`
	CompletedAt   *time.Time `db:"completed_at"`
	ScanID        *uuid.UUID `db:"scan_id"`
	FilesTotal    int64      `db:"files_total"`
	FilesDone     int64      `db:"files_processed"`
	SeriesCreated int64      `db:"series_created"`
	BooksCreated  int64      `db:"books_created"`
	BooksUpdated  int64      `db:"books_updated"`
	BooksDeleted  int64      `db:"books_deleted"`
	Errors        []string   `db:"errors"`
}

const changedColumns = `t.id, t.type, t.status, t.library_id, t.series_id, t.book_id, t.progress_current, t.progress_total,
	t.last_error, t.started_at, t.completed_at, c.id as scan_id,
	coalesce(c.files_total, 0) as files_total, coalesce(c.files_processed, 0) as files_processed,
	coalesce(c.series_created, 0) as series_created, coalesce(c.books_created, 0) as books_created,
	coalesce(c.books_updated, 0) as books_updated, coalesce(c.books_deleted, 0) as books_deleted,
	coalesce(c.errors, '{}') as errors`

// afterChange selects task $1 as changed by t, or as it is if t did not change it; old is its state before.
const afterChange = changedColumns + ` from old
	join (select * from t union all select * from task where tenant_id = app.tenant() and id = $1 and not exists (select from t)) t
	  on t.id = old.id` + countedBy

// cancelChildren cancels all unfinished descendants of $1. It returns those that had started: listeners know them.
const cancelChildren = `with recursive below as (
	  select t.id from task t join task p on p.tenant_id = t.tenant_id and p.id = t.parent_id
	  where t.tenant_id = app.tenant() and p.id = $1 and p.status in ('pending', 'running', 'cancelled')
	  union select t.id from task t join below b on t.parent_id = b.id where t.tenant_id = app.tenant()),
	t as (
	  update task t set status = 'cancelled', completed_at = now(), lease_until = null
	  from below where t.tenant_id = app.tenant() and t.id = below.id and t.status in ('pending', 'running') returning t.*)
	select 'running' as before, ` + changedColumns + ` from t` + countedBy + ` where t.started_at is not null`

// Cancel cancels a pending or running task and its children in one round trip and one transaction; the caller publishes
// the events. BadRequest if it has ended already, NotFound if there is none. The worker notices at its next write,
// which is refused, or within a second.
func Cancel(ctx context.Context, d *db.DB, id uuid.UUID) ([]events.Event, error) {
	tasks, err := cancel(ctx, d, id)
	if err != nil {
		return nil, err
	}
	var out []events.Event
	for i := range tasks {
		out = append(out, tasks[i].events()...)
	}
	return out, nil
}

// cancel is Cancel. It returns the started children, the task, and its parent if that was only waiting for it.
//
// Children come first, as when a child ends: both lock the child before the parent. The second pass takes children that
// were added while the first one waited. If such a child also ends between the passes, there may be a deadlock. The
// parent stops waiting for the cancelled task.
func cancel(ctx context.Context, d *db.DB, id uuid.UUID) ([]changed, error) {
	return db.RetryDeadlock(func() ([]changed, error) {
		var b pgx.Batch
		var found, parent *changed
		var children, late []changed
		db.All(&b, &children, cancelChildren, id)
		db.One(&b, &found, `with old as (
			  select tenant_id, id, status from task where tenant_id = app.tenant() and id = $1 for update),
			t as (
			  update task t set status = 'cancelled', completed_at = now(), lease_until = null
			  from old where t.tenant_id = old.tenant_id and t.id = old.id and old.status in ('pending', 'running') returning t.*)
			select old.status as before, `+afterChange, id)
		db.All(&b, &late, cancelChildren, id)
		db.One(&b, &parent, `with child as (
			  select parent_id from task where tenant_id = app.tenant() and id = $1 and status = 'cancelled' and completed_at = now()),
			t as (
			  update task t set open_children = t.open_children - 1,
			    status = case when t.done and t.open_children = 1 then 'completed' else t.status end,
			    completed_at = case when t.done and t.open_children = 1 then now() else t.completed_at end
			  from child where t.tenant_id = app.tenant() and t.id = child.parent_id and t.status = 'running' and t.open_children > 0
			  returning t.*)
			select 'running' as before, `+changedColumns+` from t`+countedBy, id)
		if err := d.Run(ctx, &b); err != nil {
			return nil, err
		}
		switch {
		case found == nil:
			return nil, fault.Missing("Task")
		case found.Before != Pending && found.Before != Running:
			return nil, fault.New(fault.BadRequest, "The task is %s already; only a pending or running task can be cancelled", found.Before)
		case parent != nil && parent.Status == Completed:
			return append(slices.Concat(children, late), *found, *parent), nil
		}
		return append(slices.Concat(children, late), *found), nil
	})
}

// cancelled returns a worker's task and its parent, as far as they are cancelled by now.
func cancelled(ctx context.Context, system *db.DB, h Held) ([]changed, error) {
	return db.List[changed](db.In(ctx, db.Tenant(h.Tenant)), system, "select t.status as before, "+changedColumns+" from task t"+countedBy+
		" where t.tenant_id = $1 and t.id in ($2, $3) and t.status = 'cancelled' order by t.parent_id nulls last", h.Tenant, h.ID, h.ParentID)
}

// retry makes a failed task pending again, on its own: no parent waits for it any more. It waits for the children that
// it had and that still run.
func retry(ctx context.Context, d *db.DB, id uuid.UUID) (*changed, error) {
	var b pgx.Batch
	var found *changed
	db.One(&b, &found, `with old as (
		  select tenant_id, id, status from task where tenant_id = app.tenant() and id = $1 for update),
		t as (
		  update task t set status = 'pending', attempts = 0, deaths = 0, scheduled_for = now(), started_at = null, completed_at = null,
		    lease_until = null, locked_by = null, last_error = null, result = null, done = false, parent_id = null, place = null, queued_at = null,
		    open_children = (select count(*) from task c where c.tenant_id = app.tenant() and c.parent_id = $1 and c.status in ('pending', 'running')),
		    progress_current = 0, progress_total = 0
		  from old where t.tenant_id = old.tenant_id and t.id = old.id and old.status = 'failed' returning t.*)
		select old.status as before, `+afterChange, id)
	b.Queue("select pg_notify($1, '')", Wake)
	err := d.Run(ctx, &b)
	switch {
	case db.Conflict(err, "task_dedupe"):
		return nil, fault.New(fault.Conflict, "Another task for the same work is already pending or running")
	case err != nil:
		return nil, err
	case found == nil:
		return nil, fault.Missing("Task")
	case found.Before != Failed:
		return nil, fault.New(fault.BadRequest, "The task is %s; only a failed task can be retried", found.Before)
	}
	return found, nil
}

// events returns the events for the task and, if it is a scan, for the scan stream.
func (c *changed) events() []events.Event {
	if c.ScanID != nil { // a scan counts in its own row
		c.Current, c.Total = c.FilesDone, c.FilesTotal
	}
	out := []events.Event{Progressed(events.TaskProgress{TaskID: c.ID, TaskType: c.Type, Status: c.Status,
		Progress: events.Progress{Current: c.Current, Total: c.Total}, Error: c.LastError,
		StartedAt: c.StartedAt, CompletedAt: c.CompletedAt, LibraryID: c.LibraryID, SeriesID: c.SeriesID, BookID: c.BookID})}
	if c.Type == ScanLibrary && c.LibraryID != nil {
		out = append(out, events.ScanProgressed(events.ScanProgress{LibraryID: *c.LibraryID, Status: c.Status,
			FilesTotal: c.FilesTotal, FilesProcessed: c.FilesDone, SeriesFound: c.SeriesCreated, BooksFound: c.BooksCreated,
			BooksUpdated: c.BooksUpdated, BooksDeleted: c.BooksDeleted, Errors: c.Errors, StartedAt: c.StartedAt, CompletedAt: c.CompletedAt}))
	}
	return out
}
