package export

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

const (
	// mine joins the caller's unexpired exports with their unfinished tasks.
	mine = ` from series_export e left join task t on t.tenant_id = e.tenant_id and t.id = e.id and t.status in ('pending', 'running')
		where e.tenant_id = app.tenant() and e.account_id = app.account() and e.expires_at > now()`
	status  = "case when e.completed_at is not null then 'completed' when e.error is not null then 'failed' else coalesce(t.status, 'failed') end"
	columns = "e.id, e.format, e.export_type, e.library_ids, e.fields, e.book_fields, " + status + ` as status,
		case when e.completed_at is null then coalesce(e.error, case when t.id is null then 'The export was given up; ask for another' end) end as error,
		e.file_size, e.row_count, e.created_at, e.started_at, e.completed_at, e.expires_at`
)

func list(ctx context.Context, d *db.DB, limit, offset int) ([]Export, int64, error) {
	var b pgx.Batch
	var page []Export
	var total int64
	db.All(&b, &page, "select "+columns+mine+" order by e.created_at desc, e.id limit $1 offset $2", limit, offset)
	db.Value(&b, &total, "select count(*)"+mine)
	return page, total, d.Run(ctx, &b)
}

func get(ctx context.Context, d *db.DB, id uuid.UUID) (*Export, error) {
	e, err := db.Get[Export](ctx, d, "select "+columns+mine+" and e.id = $1", id)
	if err == nil && e == nil {
		err = fault.Missing("Export")
	}
	return e, err
}

// remove deletes the row, and cancels its task if that has not begun: it counts towards the limit no more. A task that
// is making the file stops at its next batch; one that was interrupted deletes what it has stored. Another task
// deletes the file.
func remove(ctx context.Context, d *db.DB, id uuid.UUID) error {
	var b pgx.Batch
	var n int64
	db.Affected(&b, &n, "delete from series_export where tenant_id = app.tenant() and account_id = app.account() and id = $1 and expires_at > now()", id)
	b.Queue(`update task t set status = 'cancelled', completed_at = now() where t.tenant_id = app.tenant() and t.id = $1 and t.type = $2
		and t.status = 'pending' and t.started_at is null and not exists (select from series_export e where e.tenant_id = t.tenant_id and e.id = t.id)`, id, task.ExportSeries)
	err := d.Run(ctx, &b)
	if err == nil && n == 0 {
		err = fault.Missing("Export")
	}
	return err
}

// room is what the exports use, and the limits.
type room struct {
	Kept    int64 `db:"kept"`
	Running int64 `db:"running"`
	Used    int64 `db:"used"`    // bytes of all users' files
	Own     int64 `db:"own"`     // of the caller's
	Expired bool  `db:"expired"` // some of them have expired
	Known   int   `db:"known"`   // how many of the named libraries exist
	MaxKept int64 `db:"max_kept"`
	MaxRuns int64 `db:"max_runs"`
	MaxUsed int64 `db:"max_used"`
}

const (
	expired = "exists (select from series_export o where o.tenant_id = app.tenant() and o.file_size is not null and o.expires_at <= now())"
	// makeRoom makes the scheduler clean up if expired files take up room, whatever the schedule in the settings.
	makeRoom = "update export_cleanup set deletions = deletions + 1 where tenant_id = app.tenant() and deletions = asked and " + expired
)

var (
	retention = "(" + setting.SQL(setting.ExportRetentionDays) + ")::integer * interval '1 day'"
	roomSQL   = `select count(*) filter (where e.id is not null) as kept, count(*) filter (where e.completed_at is null and e.error is null and t.id is not null) as running,
		(select coalesce(sum(o.file_size), 0)::bigint from series_export o where o.tenant_id = app.tenant()) as used,
		(select coalesce(sum(o.file_size), 0)::bigint from series_export o where o.tenant_id = app.tenant() and o.account_id = app.account()) as own, ` + expired + ` as expired,
		(select count(*) from library l where l.tenant_id = app.tenant() and l.id = any($1))::integer as known,
		(` + setting.SQL(setting.ExportsPerUser) + ")::bigint as max_kept, (" + setting.SQL(setting.ExportsAtOnce) + ")::bigint as max_runs, (" +
		setting.SQL(setting.ExportBytes) + ")::bigint as max_used" + mine
)

// share is how many of the bytes of all exports those of one user may take: otherwise one user could leave the others
// nothing, which they cannot change.
func share(all int64) int64 { return all / 2 }

// refusal returns why an export was not created. If no limit is exceeded any more, one was a moment later.
func (r *room) refusal(libraries int) error {
	switch {
	case r.Known < libraries:
		return fault.Invalid("libraryIds", "there is no such library")
	case r.Running >= r.MaxRuns:
		return fault.New(fault.Conflict, "%d of your exports are not finished yet; wait until one finishes, or delete one", r.Running)
	case r.Kept >= r.MaxKept:
		return fault.New(fault.Conflict, "You have %d exports, the most you can have; delete one", r.Kept)
	case r.Used >= r.MaxUsed && r.Expired:
		return fault.New(fault.Conflict, "There is no room for another export: all exports together take %d bytes. "+
			"Some have expired and are deleted within a few minutes; try again then", r.Used)
	case r.Used >= r.MaxUsed:
		return fault.New(fault.Conflict, "There is no room for another export: all exports together take %d bytes. Wait until some expire, or delete some", r.Used)
	case r.Own >= share(r.MaxUsed) && r.Expired:
		return fault.New(fault.Conflict, "Your exports take %d bytes, and those of one user may take %d: half of what all exports may take. "+
			"Some have expired and are deleted within a few minutes; try again then", r.Own, share(r.MaxUsed))
	case r.Own >= share(r.MaxUsed):
		return fault.New(fault.Conflict, "Your exports take %d bytes, and those of one user may take %d: half of what all exports may take. Delete some", r.Own, share(r.MaxUsed))
	}
	return fault.New(fault.Conflict, "Exports, libraries or limits changed at the same moment, so no export was created; try again")
}

// create creates an export. Concurrent requests of one user are serialized, so that they cannot exceed the limit.
func create(ctx context.Context, d *db.DB, added task.Added, body *Body) (*Export, error) {
	if err := body.check(); err != nil {
		return nil, err
	}
	var b pgx.Batch
	caller := auth.CallerOf(ctx)
	if body.ExportType != ofSeries { // in addition to the operation's permission
		also := *caller
		also.Permission = auth.BooksRead
		also.Enter(&b)
	}
	id, taskID := uuid.Must(uuid.NewV7()), uuid.Nil
	var had *room
	var out *Export
	b.Queue("select from account where tenant_id = app.tenant() and id = app.account() for no key update")
	db.One(&b, &had, roomSQL, body.LibraryIDs)
	b.Queue(`insert into series_export (tenant_id, id, account_id, format, export_type, library_ids, fields, book_fields, expires_at)
		select app.tenant(), $2, app.account(), $3, $4, $1::uuid[], $5::text[], $6::text[], now() + `+retention+` from (`+roomSQL+`) r
		where r.known = cardinality($1::uuid[]) and r.running < r.max_runs and r.kept < r.max_kept and r.used < r.max_used and r.own < r.max_used / 2`,
		body.LibraryIDs, id, body.Format, body.ExportType, body.Fields, body.BookFields)
	if err := task.AddFor(&b, task.Spec{ID: id, Type: task.ExportSeries, Params: Params{id, caller.AccountID}}, task.Found(
		`select null::uuid as library_id, null::uuid as series_id, null::uuid as book_id, '{}'::jsonb as params from series_export
		where tenant_id = app.tenant() and id = $1`, id), &taskID); err != nil {
		return nil, err
	}
	b.Queue(`insert into export_cleanup as c (tenant_id, requests) select tenant_id, 1 from series_export where tenant_id = app.tenant() and id = $1
		on conflict (tenant_id) do update set requests = c.requests + 1`, id)
	b.Queue(makeRoom+" and exists (select from ("+roomSQL+") r where r.used >= r.max_used or r.own >= r.max_used / 2)", body.LibraryIDs)
	db.One(&b, &out, "select "+columns+mine+" and e.id = $1", id)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if out == nil {
		return nil, had.refusal(len(body.LibraryIDs))
	}
	added.Tell(ctx, httpapi.TenantOf(ctx).ID)
	return out, nil
}

// file is a completed export for download.
type file struct {
	Format     string     `db:"format"`
	ExportType string     `db:"export_type"`
	Status     string     `db:"status"`
	Object     *string    `db:"object"`
	Size       *int64     `db:"file_size"`
	Completed  *time.Time `db:"completed_at"`
	Sees       bool       `db:"sees"` // the caller sees the same by sharing tags as when it was made
}

func open(ctx context.Context, d *db.DB, id uuid.UUID) (*file, error) {
	f, err := db.Get[file](ctx, d, "select e.format, e.export_type, "+status+` as status, e.object, e.file_size, e.completed_at,
		not app.limited() or coalesce(e.sight = app.sight(), false) as sees`+mine+" and e.id = $1", id)
	switch {
	case err != nil:
		return nil, err
	case f == nil:
		return nil, fault.Missing("Export")
	case f.ExportType != ofSeries && !auth.CallerOf(ctx).May(auth.BooksRead):
		return nil, fault.New(fault.Forbidden, "Missing required permission: %s", auth.BooksRead)
	case f.Status == "failed":
		return nil, fault.New(fault.Conflict, "The export failed and has no file; create another export")
	case f.Status != "completed":
		return nil, fault.New(fault.Conflict, "The export is %s and has no file yet; wait until it is completed", f.Status)
	case !f.Sees:
		return nil, fault.New(fault.Conflict, "What sharing tags let you see has changed since the export was made; create another export")
	}
	return f, nil
}
