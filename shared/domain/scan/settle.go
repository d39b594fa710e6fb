package scan

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/scan/follow"
	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
)

// Settler does what remains after the last part of a scan has ended. Usually a worker ends it, but also a person who
// cancels it, or the scheduler after a worker has died.
type Settler struct {
	Database *db.DB
	Publish  events.Publish
	Added    task.Added // nil if no messages are sent

	mu     sync.Mutex
	failed map[uuid.UUID]time.Time // when settling a scan failed
}

const (
	settleAfter  = 10 * time.Second // time for the worker that ended the scan
	settleWithin = 5 * time.Minute  // tens of thousands of books that moved to another library take long
	againAfter   = 5 * time.Minute  // interval of retries
)

// Ended is Settle for the worker that has ended the scan; failures are left to All. It stops before the worker's
// invocation ends.
func (s *Settler) Ended(ctx context.Context, tenant, id uuid.UUID) {
	ctx, cancel := task.UntilEnd(ctx)
	defer cancel()
	if err := s.Settle(ctx, tenant, id); err != nil {
		slog.Error("cannot settle an ended scan; the scheduler settles it later", "tenant", tenant, "scan", id, "error", err)
	}
}

// All settles the ended scans of all active tenants that nobody has settled. The scheduler calls it.
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
		if ctx.Err() != nil { // the caller's next call continues
			break
		}
		if s.mayTry(e.Scan) {
			err = errors.Join(err, s.Settle(ctx, e.Tenant, e.Scan))
		}
	}
	return err
}

func (s *Settler) mayTry(id uuid.UUID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.failed, func(_ uuid.UUID, at time.Time) bool { return time.Since(at) > againAfter })
	_, failed := s.failed[id]
	return !failed
}

// Settle completes the counters of a completed or failed scan, lets books follow their files between this library and
// others, and publishes the end. A scan is followed by another one if somebody needs one, or if it has completed and
// left something to find; else a completed one by a purge if the library is so configured. There is no purge after a
// scan of one folder, or if the limit of books kept files out, or if a folder could not be listed: the files may be
// there. All of it is one transaction that runs once, whoever comes first. An unfinished or cancelled scan is left
// unchanged; if the scan was deleted with its library, only its end is published.
func (s *Settler) Settle(ctx context.Context, tenant, id uuid.UUID) error {
	ctx = db.In(ctx, db.Tenant(tenant))
	at, err := db.Get[struct {
		Library uuid.UUID `db:"library_id"`
	}](ctx, s.Database, `select s.library_id from scan s join task t on t.tenant_id = s.tenant_id and t.id = s.id
		where s.tenant_id = app.tenant() and s.id = $1 and not s.settled and t.status in ('completed', 'failed')`, id)
	if err != nil {
		return err
	}
	if at == nil {
		return s.tellGone(ctx, tenant, id)
	}
	var b pgx.Batch
	var first bool
	var status *Status
	var again, purges, matches int64
	var moved []follow.Book
	fresh := uuid.Must(uuid.NewV7())
	// The task stores the progress, in case the scan is deleted with its library.
	b.Queue(`update task t set progress_current = case when t.status = 'completed' then s.files_total else s.files_processed end, progress_total = s.files_total
		from scan s where t.tenant_id = app.tenant() and t.id = $1 and t.status in ('completed', 'failed') and s.tenant_id = t.tenant_id and s.id = t.id`, id)
	// All unsettled scans in one order: otherwise two that end at once could each wait for the other's lock.
	b.Queue("select from scan where tenant_id = app.tenant() and library_id = $1 and not settled order by id for update", at.Library)
	db.Value(&b, &first, "select not settled from scan where tenant_id = app.tenant() and id = $1 for update", id)
	b.Queue(`update scan s set files_processed = s.files_total from task t
		where s.tenant_id = app.tenant() and s.id = $1 and t.tenant_id = s.tenant_id and t.id = s.id and t.status = 'completed'`, id)
	QueueUnread(&b, &id, nil, nil) // of tasks whose worker died, or had no time left
	// Locked after the scan and before books, as when a library is deleted.
	b.Queue(`update library l set last_scanned_at = greatest(l.last_scanned_at, t.completed_at) from task t
		where l.tenant_id = app.tenant() and l.id = $2 and t.tenant_id = l.tenant_id and t.id = $1 and t.status = 'completed'
		  and coalesce(t.params ->> 'path', '') = ''`, id, at.Library)
	err = task.AddNew(&b, task.Spec{ID: fresh, Type: task.ScanLibrary, Params: Params{Mode: Normal}, DedupeKey: dedupeKey(at.Library)}, task.Found(lookAgain, id), &again)
	if err != nil {
		return err
	}
	queueStatus(&b, fresh, Params{Mode: Normal})
	if err := task.AddNew(&b, purge(at.Library, nil, PurgeParams{AfterScan: true}), task.Found(purgeAfter, id), &purges); err != nil {
		return err
	}
	if err := task.AddEach(&b, task.Spec{Type: task.PluginAutoMatch}, &matches, matchAfter, id, setting.MatchAfterScan); err != nil {
		return err
	}
	follow.AfterScan(&b, id, &moved)
	b.Queue(`update library l set looked_at = greatest(l.looked_at, t.created_at) from task t join scan s on s.tenant_id = t.tenant_id and s.id = t.id
		where l.tenant_id = app.tenant() and l.id = $2 and t.tenant_id = l.tenant_id and t.id = $1 and t.status = 'completed'
		  and coalesce(t.params ->> 'path', '') = '' and s.unlisted = 0 and s.files_refused = 0`, id, at.Library)
	b.Queue(countsSQL, id)
	db.One(&b, &status, ByTaskSQL, id)
	if err := s.Database.RunWithin(ctx, &b, settleWithin); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.failed == nil {
			s.failed = map[uuid.UUID]time.Time{}
		}
		s.failed[id] = time.Now()
		return fmt.Errorf("settle scan %s: %w", id, err)
	}
	if !first || status == nil { // another call was first, or it was deleted with its library
		return nil
	}
	if again > 0 || purges > 0 || matches > 0 || follow.Again(moved) {
		s.Added.Tell(ctx, tenant)
	}
	s.Publish(ctx, tenant, append([]events.Event{status.Event(), status.TaskEvent()}, follow.Events(moved)...)...)
	return nil
}

// tellGone publishes how the task of a scan has ended that was deleted with its library: nothing else does.
func (s *Settler) tellGone(ctx context.Context, tenant, id uuid.UUID) error {
	t, err := db.Get[struct {
		Library   *uuid.UUID `db:"library_id"`
		Status    string     `db:"status"`
		Failure   *string    `db:"last_error"`
		Started   *time.Time `db:"started_at"`
		Completed *time.Time `db:"completed_at"`
	}](ctx, s.Database, `select library_id, status, last_error, started_at, completed_at from task t where tenant_id = app.tenant() and id = $1
		and status in ('completed', 'failed') and not exists (select from scan s where s.tenant_id = t.tenant_id and s.id = t.id)`, id)
	if err == nil && t != nil {
		s.Publish(ctx, tenant, task.Progressed(events.TaskProgress{TaskID: id, TaskType: task.ScanLibrary, Status: t.Status, Error: t.Failure,
			StartedAt: t.Started, CompletedAt: t.Completed, LibraryID: t.Library}))
	}
	return err
}

// countsSQL adds the counts of a completed scan to the result of its task.
const countsSQL = `update task t set result = coalesce(t.result, '{}') || jsonb_build_object('filesProcessed', s.files_processed,
	  'seriesCreated', s.series_created, 'booksCreated', s.books_created, 'booksUpdated', s.books_updated, 'booksDeleted', s.books_deleted,
	  'booksRestored', s.books_restored, 'booksMoved', s.books_moved, 'errors', s.error_count)
	from scan s where t.tenant_id = app.tenant() and t.id = $1 and t.status = 'completed' and s.tenant_id = t.tenant_id and s.id = t.id`

// lookAgain selects the library of scan $1 and the folder to scan again ("" is the whole library), in three cases:
// files were gone when they were to be read; or the limit kept files out, and there is room now because books were
// marked deleted, which may be the same files under new names; or the scan had begun when another one was asked for
// (StartAgain).
const lookAgain = `select s.library_id, null::uuid as series_id, null::uuid as book_id,
	  jsonb_strip_nulls(jsonb_build_object('path', case when not t.params ? 'again' then nullif(t.params ->> 'path', '') end)) as params
	from scan s join task t on t.tenant_id = s.tenant_id and t.id = s.id
	where s.tenant_id = app.tenant() and s.id = $1 and not s.settled and (t.params ? 'again' or t.status = 'completed'
	  and (s.files_gone > 0 or s.files_refused > 0 and s.books_deleted > 0 and app.book_room() > 0))`

// matchAfter selects the series that scan $1 has created, once per plugin that is to be asked about them; none unless
// the tenant has enabled that (setting $2).
const matchAfter = `select n.library_id, n.id as series_id, null::uuid as book_id, jsonb_build_object('pluginId', p.id) as params
	from scan s join task t on t.tenant_id = s.tenant_id and t.id = s.id
	join plugin p on p.tenant_id = s.tenant_id and p.enabled and 'library:scan' = any(p.scopes) and app.asks_series(p) and (p.library_ids = '{}' or s.library_id = any(p.library_ids))
	join series n on n.tenant_id = s.tenant_id and n.library_id = s.library_id and n.created_at >= t.started_at
	where s.tenant_id = app.tenant() and s.id = $1 and t.status = 'completed' and not s.settled and s.series_created > 0
	  and exists (select from setting where tenant_id = app.tenant() and key = $2 and value = 'true')
	  and not exists (select from task t where t.tenant_id = app.tenant() and t.series_id = n.id and t.type = 'plugin_auto_match'
	    and t.status in ('pending', 'running') and not ` + task.PutOffSQL + ` and t.params ->> 'pluginId' = p.id::text)
	order by n.id, p.id`

// purgeAfter selects the library of scan $1 if its deleted books are to be purged, unless a pending scan will do so.
const purgeAfter = `select l.id as library_id, null::uuid as series_id, null::uuid as book_id, '{}'::jsonb as params
	from scan s join library l on l.tenant_id = s.tenant_id and l.id = s.library_id join task t on t.tenant_id = s.tenant_id and t.id = s.id
	where s.tenant_id = app.tenant() and s.id = $1 and t.status = 'completed' and not s.settled and l.purge_deleted_on_scan and s.files_refused = 0 and s.unlisted = 0
	  and coalesce(t.params ->> 'path', '') = ''
	  and exists (select from book k where k.tenant_id = app.tenant() and k.library_id = l.id and k.deleted_at is not null)
	  and not exists (select from task w where w.tenant_id = app.tenant() and w.library_id = l.id and w.type = 'scan_library' and w.status in ('pending', 'running'))`
