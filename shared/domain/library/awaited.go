package library

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/domain/scan/follow"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// awaited refuses to delete a library while another library may soon find the files of books that people have read,
// edited or chosen here; those books would live on there. That is so while the other library is scanned, or while it
// reads new files of the same size. For books whose files are gone, it is also so while the limit of books keeps files
// out of the other library, or while one of its folders cannot be listed.
func awaited(ctx context.Context, d *db.DB, id uuid.UUID) error {
	var b pgx.Batch
	var at *struct {
		Name    string `db:"name"`
		Scanned bool   `db:"scanned"`
		Reads   bool   `db:"reads"`
		KeptOut bool   `db:"kept_out"`
	}
	db.NoStatementTimeout(&b) // as in leave
	db.One(&b, &at, `with busy as materialized (
		  select m.id, m.name, scanned, reads, kept_out, unlisted from library m cross join lateral (
		    select exists (`+unfinished+` and t.type = 'scan_library') as scanned, exists (`+unfinished+` and t.type in ('analyze_books', 'analyze_book', 'analyze_series', 'analyze_library')) as reads,
		      `+scan.KeptOutSQL("m.id")+` as kept_out, `+scan.UnlistedSQL("m.id")+` as unlisted) x
		  where m.tenant_id = app.tenant() and m.id <> $1 and (scanned or reads or kept_out or unlisted))
		select name, scanned, reads, kept_out from busy where exists (
		  select from book k where k.tenant_id = app.tenant() and k.library_id = $1 and ((scanned
		      or reads and exists (select from book b where b.tenant_id = k.tenant_id and b.library_id = busy.id and b.size = k.size and b.deleted_at is null and `+book.NeverReadSQL+`))
		    and `+follow.KeptSQL+` or (kept_out or unlisted) and k.deleted_at is not null and `+follow.ChosenSQL+`))
		order by scanned desc, reads desc, kept_out desc, name limit 1`, id)
	if err := d.Run(ctx, &b); err != nil || at == nil {
		return err
	}
	const these = "files of books in this library that people have read, edited or chosen"
	switch {
	case at.Scanned:
		return fault.New(fault.Conflict, "A scan of the library %s is pending or running and may find "+these+"; delete this library after the scan ends, "+
			"or cancel the scan", at.Name)
	case at.Reads:
		return fault.New(fault.Conflict, "The library %s has new files that are not read yet and may be "+these+"; delete this library after they are read", at.Name)
	case at.KeptOut:
		return fault.New(fault.Conflict, "The limit of books keeps files out of the library %s; they may be "+these+"; make room and scan that library first. "+
			"To make room, exclude some folders of this library (excludedPatterns) and scan it: their books do not count and are not lost", at.Name)
	}
	return fault.New(fault.Conflict, "Folders of the library %s could not be listed and may contain "+these+"; make them readable, rename or exclude them, "+
		"and scan that library first", at.Name)
}

// unfinished selects the pending and running tasks of library m.
const unfinished = "select from task t where t.tenant_id = m.tenant_id and t.library_id = m.id and t.status in ('pending', 'running') and not " + task.PutOffSQL
