package scan

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// UnfinishedSQL is a condition: a scan of library $1 is pending or running. It may still find a book that is marked
// deleted.
const UnfinishedSQL = `exists (select from task where tenant_id = app.tenant() and library_id = $1 and type = 'scan_library' and status in ('pending', 'running'))`

// KeptOutSQL is a condition: the limit of books has kept files out of a library, and no scan since had room for all.
// A book marked deleted may be one of these files under another name.
func KeptOutSQL(library string) string { return sinceNone("files_refused", library) }

// UnlistedSQL is a condition: folders of a library could not be listed, and no scan since listed all. A book marked
// deleted may be in one.
func UnlistedSQL(library string) string { return sinceNone("unlisted", library) }

// sinceNone is an SQL condition: a scan of a library has a positive count, and no later scan of the whole library has
// completed with zero.
func sinceNone(count, library string) string {
	return `exists (select from scan s where s.tenant_id = app.tenant() and s.library_id = ` + library + ` and s.` + count + ` > 0 and not exists (
		select from scan n join task t on t.tenant_id = n.tenant_id and t.id = n.id where n.tenant_id = app.tenant() and n.library_id = s.library_id
		  and n.id > s.id and n.` + count + ` = 0 and t.status = 'completed' and coalesce(t.params ->> 'path', '') = ''))`
}

// UnseenElsewhereSQL is a condition: KeptOutSQL or UnlistedSQL holds for another library.
func UnseenElsewhereSQL(library string) string {
	return `exists (select from library o where o.tenant_id = app.tenant() and o.id <> ` + library + ` and (` + KeptOutSQL("o.id") + ` or ` + UnlistedSQL("o.id") + `))`
}

// PurgeParams are the parameters of a purge_deleted task.
type PurgeParams struct {
	// AfterScan marks a purge that nobody requested: books with which more than the file would be lost stay until a
	// scan of every other library has shown that the file is not there.
	AfterScan bool `json:"afterScan,omitempty"`
}

// purge is the removal of the books whose files are gone, of a library or of one series of it, for good.
func purge(library uuid.UUID, series *uuid.UUID, p PurgeParams) task.Spec {
	key := task.PurgeDeleted + ":" + library.String()
	switch {
	case series != nil:
		key = task.PurgeDeleted + ":" + series.String()
	case p.AfterScan:
		key += ":scan"
	}
	return task.Spec{Type: task.PurgeDeleted, LibraryID: &library, SeriesID: series, Params: p, DedupeKey: key}
}

// purgable is the target of a purge request.
type purgable struct {
	LibraryID  uuid.UUID `db:"library_id"`
	Name       string    `db:"name"`
	Unfinished bool      `db:"unfinished"`
	KeptOut    bool      `db:"kept_out"`
	Unlisted   bool      `db:"unlisted"`
	Elsewhere  bool      `db:"elsewhere"`
	Books      int64     `db:"books"`
}

// RequestPurge starts the removal of the books whose files are gone, of a library or of a series, for good, and tells
// added; as changes the task. Conflict while a scan may still find the files elsewhere.
func RequestPurge(ctx context.Context, d *db.DB, added task.Added, library, series *uuid.UUID, as ...func(*task.Spec)) (*task.Started, error) {
	at, err := db.Get[purgable](ctx, d, `with l as (
		  select id as library_id, name from library where tenant_id = app.tenant() and id = $1
		  union all select s.library_id, m.name from series s join library m on m.tenant_id = s.tenant_id and m.id = s.library_id
		    where s.tenant_id = app.tenant() and s.id = $2)
		select library_id, name, exists (select from task t where t.tenant_id = app.tenant() and t.library_id = l.library_id
		    and t.type = 'scan_library' and t.status in ('pending', 'running')) as unfinished, `+KeptOutSQL("l.library_id")+` as kept_out,
		  `+UnlistedSQL("l.library_id")+` as unlisted, `+UnseenElsewhereSQL("l.library_id")+` as elsewhere,
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
		return nil, fault.New(fault.Conflict, "A scan of this library is pending or running and may find the files in other places; purge after it ends")
	case at.KeptOut:
		return nil, fault.New(fault.Conflict, "The limit of books kept files out of this library, and they may belong to books that would be removed; "+
			"make room, scan, and then purge")
	case at.Unlisted:
		return nil, fault.New(fault.Conflict, "Folders of the library %s could not be listed and may contain files of books that would be removed; "+
			"the scan's errors name them. Make them readable, rename or exclude them, scan, and then purge", at.Name)
	}
	var b pgx.Batch
	out := task.Started{Message: fmt.Sprintf("Books whose files are gone (%d) will be deleted permanently", at.Books)}
	if at.Books > 0 && at.Elsewhere {
		out.Message += ", except books that people have read, edited or chosen: their files may be in another library that is not fully scanned, " +
			"because of the limit of books or a folder that cannot be listed"
	}
	spec := purge(at.LibraryID, series, PurgeParams{})
	for _, change := range as {
		change(&spec)
	}
	if err := task.Add(&b, spec, &out.TaskID); err != nil {
		return nil, err
	}
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	added.Tell(ctx, httpapi.TenantOf(ctx).ID)
	return &out, nil
}
