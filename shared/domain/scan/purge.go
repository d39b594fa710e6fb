package scan

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// Unfinished tells in SQL whether a scan of library $1 waits or runs: a book that it has not found yet may be marked deleted.
const Unfinished = `exists (select from task where tenant_id = app.tenant() and library_id = $1 and type = 'scan_library' and status in ('pending', 'running'))`

// Purge queues the removal of the books whose files are gone, of a library or of one series of it, for good; id
// receives the id of its task, perhaps of one that waits already.
func Purge(b *pgx.Batch, library uuid.UUID, series *uuid.UUID, id *uuid.UUID) error {
	of := library
	if series != nil {
		of = *series
	}
	return task.Add(b, task.Spec{Type: task.PurgeDeleted, LibraryID: &library, SeriesID: series, DedupeKey: task.PurgeDeleted + ":" + of.String()}, id)
}

// purgable is what a purge is asked for.
type purgable struct {
	LibraryID  uuid.UUID `db:"library_id"`
	Unfinished bool      `db:"unfinished"`
	Books      int64     `db:"books"`
}

// requestPurge is Purge for a person: not while a scan may still find the files elsewhere.
func requestPurge(ctx context.Context, d *db.DB, library, series *uuid.UUID) (*task.Started, error) {
	at, err := db.Get[purgable](ctx, d, `with l as (
		  select id as library_id from library where tenant_id = app.tenant() and id = $1
		  union all select library_id from series where tenant_id = app.tenant() and id = $2)
		select library_id, exists (select from task t where t.tenant_id = app.tenant() and t.library_id = l.library_id
		    and t.type = 'scan_library' and t.status in ('pending', 'running')) as unfinished,
		  (select count(*) from book b where b.tenant_id = app.tenant() and b.library_id = l.library_id and b.deleted_at is not null
		    and ($2::uuid is null or b.series_id = $2)) as books
		from l`, library, series)
	switch {
	case err != nil:
		return nil, err
	case at == nil && series != nil:
		return nil, fault.Missing("Series")
	case at == nil:
		return nil, fault.Missing("Library")
	case at.Unfinished:
		return nil, fault.New(fault.Conflict, "A scan of this library is waiting or running, which may find the files in other places; purge when it has ended")
	}
	var b pgx.Batch
	out := task.Started{Message: fmt.Sprintf("Books whose files are gone (%d) will be removed for good", at.Books)}
	if err := Purge(&b, at.LibraryID, series, &out.TaskID); err != nil {
		return nil, err
	}
	return &out, d.Run(ctx, &b)
}
