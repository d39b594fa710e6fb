package library

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/longbox/longbox/shared/domain/filesystem"
	"github.com/longbox/longbox/shared/domain/schedule"
	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
)

// row is a row of the library table.
type row struct {
	Library
	Scanning
	NextScan *time.Time `db:"next_scan_at"`
}

func (r row) library() *Library {
	r.Library.ScanningConfig = r.Scanning
	return &r.Library
}

// settable are the columns that hold the request's values or derive from them. The location is stored separately,
// because it may stay unchanged.
var settable = []string{"name", "description", "is_active", "allowed_formats", "excluded_patterns", "default_reading_direction",
	"series_strategy", "series_config", "book_strategy", "book_config", "number_strategy", "number_config", "title_preprocessing_rules",
	"auto_match_conditions", "scan_enabled", "scan_cron", "scan_timezone", "scan_mode", "scan_on_start", "purge_deleted_on_scan", "next_scan_at"}

var columns = "l.id, l.path, l." + strings.Join(settable, ", l.") + `, l.last_scanned_at, l.created_at, l.updated_at,
	app.total('books', l.id) as book_count, app.total('series', l.id) as series_count`

const from = ` from library l where l.tenant_id = app.tenant()`

func queueGet(b *pgx.Batch, dst **row, id uuid.UUID) {
	db.One(b, dst, "select "+columns+from+" and l.id = $1", id)
}

func get(ctx context.Context, d *db.DB, id uuid.UUID) (*Library, error) {
	var b pgx.Batch
	var r *row
	queueGet(&b, &r, id)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if r == nil {
		return nil, fault.Missing("Library")
	}
	return r.library(), nil
}

func list(ctx context.Context, d *db.DB, limit, offset int) ([]Library, int64, error) {
	var b pgx.Batch
	var rows []row
	var total int64
	db.All(&b, &rows, "select "+columns+from+" order by l.name collate natural_order, l.id limit $1 offset $2", limit, offset)
	db.Value(&b, &total, "select count(*) from library where tenant_id = app.tenant()")
	if err := d.Run(ctx, &b); err != nil {
		return nil, 0, err
	}
	out := make([]Library, len(rows))
	for i, r := range rows {
		out[i] = *r.library()
	}
	return out, total, nil
}

// serverZone returns the time zone of schedules that have none of their own.
func serverZone(ctx context.Context, d *db.DB) (zone string, err error) {
	var b pgx.Batch
	setting.Value(&b, setting.SchedulerZone, &zone)
	err = d.Run(ctx, &b)
	return zone, err
}

// values returns the arguments of insert and update; at is nil if the location stays.
func values(l *Library, at *filesystem.Place, next *time.Time) pgx.StrictNamedArgs {
	s := l.ScanningConfig
	out := pgx.StrictNamedArgs{
		"id": l.ID, "name": l.Name, "description": l.Description, "is_active": l.IsActive,
		"allowed_formats": l.AllowedFormats, "excluded_patterns": l.ExcludedPatterns,
		"default_reading_direction": l.DefaultReadingDirection,
		"series_strategy":           l.SeriesStrategy, "series_config": l.SeriesConfig,
		"book_strategy": l.BookStrategy, "book_config": l.BookConfig,
		"number_strategy": l.NumberStrategy, "number_config": l.NumberConfig,
		"title_preprocessing_rules": l.TitlePreprocessingRules, "auto_match_conditions": l.AutoMatchConditions,
		"scan_enabled": s.Enabled, "scan_cron": s.CronSchedule, "scan_timezone": s.CronTimezone, "scan_mode": s.ScanMode,
		"scan_on_start": s.ScanOnStart, "purge_deleted_on_scan": s.PurgeDeletedOnScan, "next_scan_at": next,
		"path": nil, "bucket": nil, "prefix": nil, "root_path": nil, "root_prefix": nil,
	}
	if at != nil {
		out["path"], out["bucket"], out["prefix"] = at.Path, at.Root.Bucket, at.Prefix
		out["root_path"], out["root_prefix"] = at.Root.Path, at.Root.Prefix
	}
	return out
}

// heldBucket selects the root's bucket and locks the root until the library is stored: the operator may have removed or
// replaced it since it was read. Then it is null, the column rejects it, and the whole batch fails.
const heldBucket = `(select r.bucket from library_root r
	where r.tenant_id = app.tenant() and r.path = @root_path and r.prefix = @root_prefix and r.bucket = @bucket for share)`

var insert = "insert into library (tenant_id, id, path, bucket, prefix, " + strings.Join(settable, ", ") + `)
	values (app.tenant(), @id, @path, ` + heldBucket + ", @prefix, @" + strings.Join(settable, ", @") + ")"

var update = `update library set path = coalesce(@path, path), bucket = case when @bucket::text is null then bucket else ` + heldBucket + ` end,
	prefix = coalesce(@prefix, prefix), (` + strings.Join(settable, ", ") + ") = (@" + strings.Join(settable, ", @") + `), updated_at = now()
	where tenant_id = app.tenant() and id = @id`

// create stores the library and, with start, queues its first scan.
func create(ctx context.Context, d *db.DB, l *Library, at *filesystem.Place, next *time.Time, start bool) (*Library, error) {
	var b pgx.Batch
	var r *row
	b.Queue(insert, values(l, at, next))
	if next != nil { // the time zone may have changed
		schedule.FollowAgain(&b, setting.SchedulerZone)
	}
	if start {
		if err := startScan(&b, l.ID); err != nil {
			return nil, err
		}
	}
	queueGet(&b, &r, l.ID)
	if err := d.Run(ctx, &b); err != nil {
		return nil, named(err, l.Name)
	}
	return r.library(), nil
}

// holdScan locks the library's unfinished scan, which startScan looks for: its worker locks it before it writes to the
// library.
const holdScan = `select from task where tenant_id = app.tenant() and library_id = $1 and type = 'scan_library' and status in ('pending', 'running')
	for no key update`

// change reads the library under a lock, lets fn change it, and stores it if it differs. at is nil if the path stays. A
// library that becomes active gets a scan that makes up for the time in which it was not. The path changes only while
// no task works on the library: a running scan would go on in the old folder and take the library's books for gone. No
// scan starts meanwhile, since a scan's row references the library's.
func change(ctx context.Context, d *db.DB, id uuid.UUID, at *filesystem.Place, fn func(l *Library) error) (out *Library, changed bool, err error) {
	err = d.Tx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var read pgx.Batch
		var r *row
		var zone string
		var busy bool
		read.Queue(holdScan, id)
		db.One(&read, &r, "select "+columns+from+" and l.id = $1 for update of l", id)
		db.Value(&read, &busy, "select exists (select from task t where t.tenant_id = app.tenant() and t.library_id = $1 and t.status in ('pending', 'running') and not "+task.PutOffSQL+")", id)
		// Read under the lock: whoever reacts to a change of it waits, or is done.
		setting.Value(&read, setting.SchedulerZone, &zone)
		if err := tx.SendBatch(ctx, &read).Close(); err != nil {
			return err
		}
		if r == nil {
			return fault.Missing("Library")
		}
		old := *r.library()
		if at != nil && at.Path != old.Path && busy {
			return fault.New(fault.Conflict, "The path cannot change while a scan or another task of the library is pending or running: "+
				"cancel the task or let it finish")
		}
		l := old
		if err := fn(&l); err != nil {
			return err
		}
		if changed = at != nil || !reflect.DeepEqual(l, old); !changed {
			out = &old
			return nil
		}
		next := r.NextScan
		if old.IsActive != l.IsActive || !old.ScanningConfig.equal(l.ScanningConfig) {
			var err error
			if next, err = nextScan(l, zone, time.Now()); err != nil {
				return err
			}
		}
		var write pgx.Batch
		var now *row
		write.Queue(update, values(&l, at, next))
		if l.IsActive && !old.IsActive {
			if err := startScan(&write, id); err != nil {
				return err
			}
		}
		queueGet(&write, &now, id)
		if err := tx.SendBatch(ctx, &write).Close(); err != nil {
			return named(err, l.Name)
		}
		out = now.library()
		return nil
	})
	return out, changed, err
}

func (s Scanning) equal(o Scanning) bool {
	same := func(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }
	return s.Enabled == o.Enabled && same(s.CronSchedule, o.CronSchedule) && same(s.CronTimezone, o.CronTimezone)
}

// cancelled is an unfinished task of a deleted library and its progress; a scan counts in its own row.
type cancelled struct {
	ID          uuid.UUID  `db:"id"`
	Type        string     `db:"type"`
	SeriesID    *uuid.UUID `db:"series_id"`
	BookID      *uuid.UUID `db:"book_id"`
	StartedAt   *time.Time `db:"started_at"`
	CompletedAt *time.Time `db:"completed_at"`
	Current     int64      `db:"progress_current"`
	Total       int64      `db:"progress_total"`
}

// removeBooks is the number of rows that a deletion starts with, and removeTime the time per request.
const (
	removeBooks = 200
	removeTime  = 20 * time.Second
)

var errTooLarge = &fault.Error{Code: fault.Unavailable, RetryAfter: time.Second,
	Message: "The library is too large to delete in one request; delete it again to continue"}

// remove deletes a library with everything in it; found is false if there is none. A large library is deleted in
// several transactions, which start with that many rows. If it stops in between, by an error or at end, the library
// stays inactive and the next call continues. It returns the cancelled tasks that listeners know, also if there is an
// error.
func remove(ctx context.Context, d *db.DB, id uuid.UUID, rows int, end time.Time) (tasks []cancelled, found bool, err error) {
	steps := db.Steps{Size: rows}
	for {
		var ended []cancelled
		var left, deleted bool
		err := steps.Next(func(rows int, limit time.Duration) (err error) {
			ended, left, deleted, err = removePart(ctx, d, id, rows, limit)
			return err
		})
		tasks, found = append(tasks, ended...), found || left || deleted
		if err != nil || !left {
			return tasks, found, err
		}
		if time.Now().After(end) {
			return tasks, found, errTooLarge
		}
	}
}

// removePart cancels the library's unfinished tasks, however many, and deletes up to that many books, or series if
// no books are left; if neither are left, it deletes the library itself. What readers have of the books and series goes
// too, which may be very much. It locks tasks first and children before parents, as workers do. A library that
// remains is inactive: only a person can start a scan of it, which the next part cancels.
func removePart(ctx context.Context, d *db.DB, id uuid.UUID, rows int, limit time.Duration) (tasks []cancelled, left, deleted bool, err error) {
	const cancel = `update task t set status = 'cancelled', completed_at = now(), lease_until = null
		where t.tenant_id = app.tenant() and t.library_id = $1 and t.status in ('pending', 'running') and t.parent_id is `
	const ended = ` returning t.*)
		select t.id, t.type, t.series_id, t.book_id, t.started_at, t.completed_at, coalesce(c.files_total, t.progress_total) as progress_total,
		  coalesce(c.files_processed, t.progress_current) as progress_current
		from t left join scan c on c.tenant_id = t.tenant_id and c.id = t.id`
	const books, series = "select id from book where tenant_id = app.tenant() and library_id = $1", "select id from series where tenant_id = app.tenant() and library_id = $1"
	var b pgx.Batch
	var children []cancelled
	db.NoStatementTimeout(&b)
	// Listeners know only started ones, and scans.
	db.All(&b, &children, "with t as ("+cancel+"not null"+ended+" where t.started_at is not null", id)
	db.All(&b, &tasks, "with t as ("+cancel+"null"+ended+" where t.started_at is not null or t.type = $2", id, task.ScanLibrary)
	// A task added during the cancellation may be writing. Books are locked after these rows, as its worker does:
	b.Queue("select from scan where tenant_id = app.tenant() and library_id = $1 order by id for update", id)
	b.Queue("select from library where tenant_id = app.tenant() and id = $1 for update", id)
	b.Queue("select from library_count where tenant_id = app.tenant() and library_id = $1 for update", id)
	db.StatementTimeout(&b, limit)
	b.Queue("delete from book where tenant_id = app.tenant() and id = any(array("+books+" order by key limit $2))", id, rows)
	b.Queue("delete from series where tenant_id = app.tenant() and not exists ("+books+") and id = any(array("+series+" limit $2))", id, rows)
	db.Value(&b, &deleted, "delete from library where tenant_id = app.tenant() and id = $1 and not exists ("+books+") and not exists ("+series+") returning true", id)
	db.Value(&b, &left, "update library set is_active = false, updated_at = now() where tenant_id = app.tenant() and id = $1 returning true", id)
	if err := d.Run(ctx, &b); err != nil {
		return nil, false, false, err
	}
	return append(children, tasks...), left, deleted, nil
}

// events returns the events for the end of a deleted library's task.
func (c cancelled) events(library uuid.UUID) []events.Event {
	out := []events.Event{task.Progressed(events.TaskProgress{TaskID: c.ID, TaskType: c.Type, Status: task.Cancelled,
		Progress: events.Progress{Current: c.Current, Total: c.Total}, StartedAt: c.StartedAt, CompletedAt: c.CompletedAt, LibraryID: &library, SeriesID: c.SeriesID, BookID: c.BookID})}
	if c.Type == task.ScanLibrary {
		out = append(out, events.ScanProgressed(events.ScanProgress{LibraryID: library, Status: task.Cancelled, FilesTotal: c.Total,
			FilesProcessed: c.Current, StartedAt: c.StartedAt, CompletedAt: c.CompletedAt}))
	}
	return out
}

func named(err error, name string) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "23502" && pg.ColumnName == "bucket" {
		return fault.Invalid("path", "is no longer in a folder that this server may read; GET /api/v1/filesystem/drives lists them")
	}
	if db.Conflict(err, "library_name") {
		return &fault.Error{Code: fault.Conflict, Message: "There is already a library named " + name,
			Fields: []fault.Field{{Field: "name", Message: "is taken by another library"}}}
	}
	return err
}
