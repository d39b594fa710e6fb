package scan

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/scan/follow"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
)

// Settler does what is left to do when the last part of a scan has ended: who ends that is a worker most of the time, but also
// somebody who cancels it, or the scheduler when a worker has died.
type Settler struct {
	Database *db.DB
	Publish  task.Publish
	Added    task.Added // nil where no messages are sent
}

// settleAfter is how long a scan is left to the worker that ended it.
const settleAfter = 10 * time.Second

// Ended is Settle for a worker, which has ended the scan; what fails is left to All.
func (s *Settler) Ended(ctx context.Context, tenant, id uuid.UUID) {
	if err := s.Settle(ctx, tenant, id); err != nil {
		slog.Error("cannot settle a scan that has ended; the scheduler will", "tenant", tenant, "scan", id, "error", err)
	}
}

// All settles the scans of all active tenants that nobody has settled after their end. The scheduler calls it.
func (s *Settler) All(ctx context.Context, system *db.DB) error {
	rows, err := system.Pool().Query(ctx, "select tenant, scan from app.unsettled_scans($1)", settleAfter)
	if err != nil {
		return fmt.Errorf("find scans that are not settled: %w", err)
	}
	type ended struct{ Tenant, Scan uuid.UUID }
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[ended])
	if err != nil {
		return fmt.Errorf("find scans that are not settled: %w", err)
	}
	for _, e := range all {
		err = errors.Join(err, s.Settle(ctx, e.Tenant, e.Scan))
	}
	return err
}

// Settle completes the counters of a scan that has completed or failed, tells listeners how it ended, and lets books follow their
// files between this library and others. A completed one is followed by another where it left something to find, else by a purge where
// the library wants that: not after a scan of one folder, or one from which the limit of books has kept files, which may be theirs.
// A scan that goes on, was cancelled or has gone with its library is left as it is. Settling one twice changes nothing.
func (s *Settler) Settle(ctx context.Context, tenant, id uuid.UUID) error {
	ctx = db.In(ctx, db.Tenant(tenant))
	var b pgx.Batch
	var status *Status
	var again *string
	var purge *uuid.UUID
	// The task says how far it came when the scan has gone with its library.
	b.Queue(`update task t set progress_current = case when t.status = 'completed' then s.files_total else s.files_processed end, progress_total = s.files_total
		from scan s where t.tenant_id = app.tenant() and t.id = $1 and t.status in ('completed', 'failed') and s.tenant_id = t.tenant_id and s.id = t.id`, id)
	b.Queue(`update scan s set files_processed = s.files_total from task t
		where s.tenant_id = app.tenant() and s.id = $1 and t.tenant_id = s.tenant_id and t.id = s.id and t.status = 'completed'`, id)
	db.One(&b, &status, ByTask, id)
	db.Value(&b, &again, lookAgain, id)
	db.Value(&b, &purge, purgeAfter, id)
	if err := s.Database.Run(ctx, &b); err != nil {
		return fmt.Errorf("count scan %s: %w", id, err)
	}
	if status == nil || status.Status != task.Completed && status.Status != task.Failed {
		return nil
	}
	status.UTC()
	s.Publish(ctx, tenant, status.Event(), status.TaskEvent())

	b = pgx.Batch{}
	var next uuid.UUID // a task that follows
	var err error
	switch { // tasks come before books in the order of locks
	case again != nil:
		err = Start(&b, status.LibraryID, Params{Mode: Normal, Path: *again}, uuid.Must(uuid.NewV7()), &next)
	case purge != nil:
		err = Purge(&b, *purge, nil, PurgeParams{AfterScan: true}, &next)
	}
	if err != nil {
		return err
	}
	var moved []follow.Book
	follow.AfterScan(&b, id, &moved)
	if err := s.Database.Run(ctx, &b); err != nil {
		return fmt.Errorf("settle scan %s: %w", id, err)
	}
	if next != uuid.Nil || follow.Again(moved) {
		s.Added.Tell(ctx, tenant)
	}
	s.Publish(ctx, tenant, follow.Events(moved)...)
	return nil
}

// lookAgain tells in which folder a completed scan $1 is to look once more ("" is all of the library): files were gone when they
// were to be read; or it kept files out for the limit, and there is room now for what it marked deleted, one of which may be the
// other under a new name. Once it is settled it has looked.
const lookAgain = `select coalesce(t.params ->> 'path', '') from scan s join task t on t.tenant_id = s.tenant_id and t.id = s.id
	where s.tenant_id = app.tenant() and s.id = $1 and t.status = 'completed' and not s.settled
	  and (s.files_gone > 0 or s.files_refused > 0 and s.books_deleted > 0 and app.book_room() > 0)`

// purgeAfter is the library whose books are purged after scan $1, where that is to be. A scan that waits already will do it.
const purgeAfter = `select l.id from scan s join library l on l.tenant_id = s.tenant_id and l.id = s.library_id join task t on t.tenant_id = s.tenant_id and t.id = s.id
	where s.tenant_id = app.tenant() and s.id = $1 and t.status = 'completed' and not s.settled and l.purge_deleted_on_scan and s.files_refused = 0
	  and coalesce(t.params ->> 'path', '') = ''
	  and exists (select from book k where k.tenant_id = app.tenant() and k.library_id = l.id and k.deleted_at is not null)
	  and not exists (select from task w where w.tenant_id = app.tenant() and w.library_id = l.id and w.type = 'scan_library' and w.status in ('pending', 'running'))`
