package scan

import (
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
)

// The modes of a scan.
const (
	Normal = "normal" // new and changed files
	Deep   = "deep"   // every file is analysed again
)

// Status is the state of a library's scan; its counts are current while it runs.
type Status struct {
	TaskID         uuid.UUID  `json:"taskId" db:"id"`
	LibraryID      uuid.UUID  `json:"libraryId" db:"library_id"`
	Mode           string     `json:"mode" db:"mode" enum:"normal,deep"`
	Path           string     `json:"path" db:"path" doc:"Folder of the library that is scanned; empty means the whole library"`
	Status         string     `json:"status" db:"status" enum:"pending,running,completed,failed,cancelled"`
	FilesTotal     int64      `json:"filesTotal" db:"files_total"`
	FilesProcessed int64      `json:"filesProcessed" db:"files_processed"`
	SeriesFound    int64      `json:"seriesFound" db:"series_created"`
	BooksFound     int64      `json:"booksFound" db:"books_created"`
	BooksUpdated   int64      `json:"booksUpdated" db:"books_updated"`
	BooksDeleted   int64      `json:"booksDeleted" db:"books_deleted"`
	BooksRestored  int64      `json:"booksRestored" db:"books_restored"`
	BooksMoved     int64      `json:"booksMoved" db:"books_moved" doc:"Number of books found in another place with the same content; neither created nor deleted"`
	RemovalsHeld   int64      `json:"removalsHeld" db:"removals_held" doc:"Number of removals for which the scan stopped: more than half of the books, or any if it listed none or its folder became empty; 0 if it did not stop. errors says what to do"`
	ErrorCount     int64      `json:"errorCount" db:"error_count"`
	Errors         []string   `json:"errors" db:"errors" nullable:"false" doc:"The first errors; empty for users from whom series are hidden"`
	StartedAt      time.Time  `json:"startedAt" db:"started_at"`
	CompletedAt    *time.Time `json:"completedAt" db:"completed_at"`
}

// statusColumns hides file names from callers from whom series are hidden.
const statusColumns = `s.id, s.library_id, s.mode, case when app.limited() then '' else coalesce(t.params ->> 'path', '') end as path, t.status, s.files_total, s.files_processed, s.series_created, s.books_created,
	s.books_updated, s.books_deleted, s.books_restored, s.books_moved, s.removals_held,
	s.error_count + case when t.last_error is null then 0 else 1 end as error_count,
	case when app.limited() then '{}' when t.last_error is null then s.errors else array_append(s.errors, t.last_error) end as errors,
	coalesce(t.started_at, t.created_at) as started_at, t.completed_at`

// ByTaskSQL selects the Status of a scan by its task.
const ByTaskSQL = `select ` + statusColumns + ` from scan s join task t on t.tenant_id = s.tenant_id and t.id = s.id
	where s.tenant_id = app.tenant() and s.id = $1`

// Event returns the scan's progress for the scan stream.
func (s Status) Event() events.Event {
	started := s.StartedAt
	return events.ScanProgressed(events.ScanProgress{LibraryID: s.LibraryID, Status: s.Status, FilesTotal: s.FilesTotal,
		FilesProcessed: s.FilesProcessed, SeriesFound: s.SeriesFound, BooksFound: s.BooksFound, BooksUpdated: s.BooksUpdated,
		BooksDeleted: s.BooksDeleted, Errors: s.Errors, StartedAt: &started, CompletedAt: s.CompletedAt})
}

// TaskEvent returns the scan's progress for the task stream.
func (s Status) TaskEvent() events.Event {
	started := s.StartedAt
	var failure *string
	if n := len(s.Errors); n > 0 && s.Status == task.Failed { // the last one is why it failed
		failure = &s.Errors[n-1]
	}
	return task.Progressed(events.TaskProgress{TaskID: s.TaskID, TaskType: task.ScanLibrary, Status: s.Status, StartedAt: &started, Error: failure,
		CompletedAt: s.CompletedAt, LibraryID: &s.LibraryID, Progress: events.Progress{Current: s.FilesProcessed, Total: s.FilesTotal}})
}

// Params are the parameters of a scan_library task.
type Params struct {
	Mode string `json:"mode"`
	// Path is the folder to scan, below the library's root; empty is the whole library.
	Path string `json:"path,omitempty"`
	// Removals is how many books an administrator has allowed to be marked deleted, even if they are more than half of
	// the library.
	Removals int `json:"removals,omitempty"`
	// Again has another scan follow, of the whole library: see StartAgain.
	Again bool `json:"again,omitempty"`
}

// MaxPath is the maximum length of a path below the library's root in bytes: an index stores it.
const MaxPath = 2600

// Check rejects an unknown mode, and a path that is not a folder below the root.
func (p Params) Check() error {
	if p.Mode != Normal && p.Mode != Deep {
		return fault.Invalid("mode", "must be normal or deep")
	}
	if p.Path != "" && (len(p.Path) > MaxPath || path.Clean("/"+p.Path) != "/"+p.Path || strings.ContainsRune(p.Path, 0) || !utf8.ValidString(p.Path)) {
		return fault.Invalid("path", "must be a folder below the library's root, such as Marvel/Daredevil, without a slash at the start or end, at most %d bytes",
			MaxPath)
	}
	return nil
}

// scanKey is the prefix of the dedupe_key of scans; the id of the library follows.
const scanKey = "scan:"

func dedupeKey(library uuid.UUID) string { return scanKey + library.String() }

// Start queues a scan of the library. id receives the id of its task: fresh, unless a scan of the library is
// unfinished, which then goes on.
func Start(b *pgx.Batch, library uuid.UUID, p Params, fresh uuid.UUID, id *uuid.UUID) error {
	if err := p.Check(); err != nil {
		return err
	}
	err := task.Add(b, task.Spec{ID: fresh, Type: task.ScanLibrary, LibraryID: &library, Params: p, DedupeKey: dedupeKey(library)}, id)
	if err != nil {
		return err
	}
	queueStatus(b, fresh, p)
	return nil
}

// StartAgain is Start for callers that rely on a listing that begins after them: an unfinished scan that may have
// listed files already is followed by another one, of the whole library.
func StartAgain(b *pgx.Batch, library uuid.UUID, p Params, fresh uuid.UUID, id *uuid.UUID) error {
	if err := Start(b, library, p, fresh, id); err != nil {
		return err
	}
	b.Queue(`update task set params = params || '{"again": true}' where tenant_id = app.tenant() and dedupe_key = $1 and id <> $2
		and status in ('pending', 'running') and (started_at is not null or coalesce(params ->> 'path', '') <> '')`, dedupeKey(library), fresh)
	return nil
}

// queueStatus adds the status row of a scan, if its task is new.
func queueStatus(b *pgx.Batch, fresh uuid.UUID, p Params) {
	b.Queue(`insert into scan (tenant_id, id, library_id, mode)
		select tenant_id, id, library_id, $2 from task where tenant_id = app.tenant() and id = $1`, fresh, p.Mode)
}
