package scanner

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/filesystem"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// guardLeast is the minimum number of removals for the guard: a scan may always remove fewer, even in a small
// library, unless it lists no book at all or its folder is empty.
const guardLeast = 10

// guard stops a scan of a folder that never had a book. Before anything is removed, it also stops a scan that lists no
// book at all, whose folder is empty by now, or that would remove more than half of the books present at the last scan
// of the library, unless an administrator has confirmed that number. Moved books are not removals: until they are read,
// files of the same size count for them; in a later scan, files with the same content.
func (r *run) guard(ctx context.Context) error {
	gone := len(r.at.Vanished)
	switch {
	case r.at.Deleted > 0: // continues after a pause
		return nil
	case gone == 0 && len(r.at.Unlisted) > 0:
		return nil
	case gone == 0 && r.at.Listed == 0 && r.params.Path != "":
		if held, err := r.held(ctx, r.params.Path); held || err != nil {
			return err
		}
		return fault.Invalid("path", "%q contains no books, and the library never had any there: check allowedFormats, excludedPatterns, and the spelling and case of the path%s",
			r.params.Path, filesystem.Accents(r.params.Path))
	case gone == 0:
		return nil
	}
	if r.at.Listed == 0 && (r.params.Path == "" || gone > r.params.Removals) {
		return r.hold(ctx, gone, "%s now lists no books, but the library has %d there: nothing was removed. "+
			"Check that the folder exists and is mounted, and check allowedFormats and excludedPatterns; "+
			"if the books are really gone, delete the library or, for one folder of it, confirm with POST /api/v1/libraries/%s/scan/confirm",
			r.shownPath(), gone, r.library.ID)
	}
	if r.params.Path == "" || gone > r.params.Removals {
		// A disk may have gone since begin: its empty folder is listed without an error.
		holds, err := r.Library.Holds(ctx, r.library.Bucket, r.prefix())
		switch {
		case err != nil:
			return r.explain(err)
		case !holds:
			return r.hold(ctx, gone, "%s became empty while it was scanned: nothing was removed. Check that its disk is mounted, and scan again",
				r.shownPath())
		}
	}
	if gone < guardLeast || gone <= r.params.Removals {
		return nil
	}
	ids := make([]uuid.UUID, gone)
	for i, g := range r.at.Vanished {
		ids[i] = g.ID
	}
	var b pgx.Batch
	var before, elsewhere int
	// Books found by a scan that was held before this one do not count, either.
	db.Value(&b, &before, `select greatest(c.books - sum(s.books_created + s.books_restored), 0)::integer from scan s
		join library_count c on c.tenant_id = s.tenant_id and c.library_id = s.library_id
		join library l on l.tenant_id = s.tenant_id and l.id = s.library_id join task t on t.tenant_id = s.tenant_id and t.id = s.id
		where s.tenant_id = app.tenant() and s.library_id = $1 and (s.id = $2 or t.created_at > l.last_scanned_at) group by c.books`, r.library.ID, r.scanID)
	db.Value(&b, &elsewhere, `with gone as materialized (select size, fingerprint from book where tenant_id = app.tenant() and id = any($3)),
		came as materialized (select size, fingerprint from book where tenant_id = app.tenant() and library_id = $1 and deleted_at is null
		    and created_at >= app.moves_since($1, $2))
		select greatest(
		  (select coalesce(sum(least(g.n, c.n)), 0) from (select size, count(*) as n from gone group by 1) g join (select size, count(*) as n from came group by 1) c using (size)),
		  (select coalesce(sum(least(g.n, c.n)), 0) from (select fingerprint, count(*) as n from gone where fingerprint <> '' group by 1) g
		    join (select fingerprint, count(*) as n from came group by 1) c using (fingerprint)))::integer`, r.library.ID, r.scanID, ids)
	if err := r.Database.Run(ctx, &b); err != nil {
		return err
	}
	if gone -= elsewhere; gone < guardLeast || gone <= r.params.Removals || gone*2 <= before {
		return nil
	}
	return r.hold(ctx, gone, "The scan would remove %d of the %d books of this library, more than half: nothing was removed. "+
		"Check that %s is complete and mounted; "+
		"if files were renamed and changed at the same time, scan again after the new files have been read; "+
		"if the books are really gone, an administrator can confirm this with POST /api/v1/libraries/%s/scan/confirm", gone, before, r.shownPath(), r.library.ID)
}

// held reports whether a folder has ever had a book.
func (r *run) held(ctx context.Context, folder string) (yes bool, err error) {
	var b pgx.Batch
	db.Value(&b, &yes, "select exists (select from book where tenant_id = app.tenant() and library_id = $1 and starts_with(key, $2))", r.library.ID, folder+"/")
	err = r.Database.Run(ctx, &b)
	return yes, err
}

// hold stores how many removals need confirmation, and returns the error that ends the scan.
func (r *run) hold(ctx context.Context, removals int, text string, args ...any) error {
	_, err := db.Exec(ctx, r.Database, "update scan set removals_held = $2 where tenant_id = app.tenant() and id = $1", r.scanID, removals)
	if err != nil {
		return err
	}
	return fault.New(fault.Conflict, text, args...)
}
