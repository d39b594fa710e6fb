package scan

import (
	"time"

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

// Status is the state of a library's scan (contract decision 11: the counts are true while it runs).
type Status struct {
	TaskID         uuid.UUID  `json:"taskId" db:"id"`
	LibraryID      uuid.UUID  `json:"libraryId" db:"library_id"`
	Mode           string     `json:"mode" db:"mode" enum:"normal,deep"`
	Status         string     `json:"status" db:"status" enum:"pending,running,completed,failed,cancelled"`
	FilesTotal     int64      `json:"filesTotal" db:"files_total"`
	FilesProcessed int64      `json:"filesProcessed" db:"files_processed"`
	SeriesFound    int64      `json:"seriesFound" db:"series_created"`
	BooksFound     int64      `json:"booksFound" db:"books_created"`
	BooksUpdated   int64      `json:"booksUpdated" db:"books_updated"`
	BooksDeleted   int64      `json:"booksDeleted" db:"books_deleted"`
	BooksRestored  int64      `json:"booksRestored" db:"books_restored"`
	ErrorCount     int64      `json:"errorCount" db:"error_count"`
	Errors         []string   `json:"errors" db:"errors" nullable:"false" doc:"The first of them"`
	StartedAt      time.Time  `json:"startedAt" db:"started_at"`
	CompletedAt    *time.Time `json:"completedAt" db:"completed_at"`
}

const statusColumns = `s.id, s.library_id, s.mode, t.status, s.files_total, s.files_processed, s.series_created, s.books_created,
	s.books_updated, s.books_deleted, s.books_restored, s.error_count,
	case when t.last_error is null then s.errors else array_append(s.errors, t.last_error) end as errors,
	coalesce(t.started_at, t.created_at) as started_at, t.completed_at`

func (s *Status) utc() {
	s.StartedAt = s.StartedAt.UTC()
	if s.CompletedAt != nil {
		c := s.CompletedAt.UTC()
		s.CompletedAt = &c
	}
}

// Event is the progress of the scan for the scan stream.
func (s Status) Event() events.Event {
	started := s.StartedAt
	return events.ScanProgressed(events.ScanProgress{LibraryID: s.LibraryID, Status: s.Status, FilesTotal: s.FilesTotal,
		FilesProcessed: s.FilesProcessed, SeriesFound: s.SeriesFound, BooksFound: s.BooksFound, BooksUpdated: s.BooksUpdated,
		BooksDeleted: s.BooksDeleted, Errors: s.Errors, StartedAt: &started, CompletedAt: s.CompletedAt})
}

// CheckMode refuses a mode that does not exist.
func CheckMode(mode string) error {
	if mode != Normal && mode != Deep {
		return fault.Invalid("mode", "must be normal or deep")
	}
	return nil
}

// Start queues a scan of the library. id receives the id of its task, which is fresh's unless a scan of the
// library is unfinished; then that one goes on.
func Start(b *pgx.Batch, library uuid.UUID, mode string, fresh uuid.UUID, id *uuid.UUID) error {
	if err := CheckMode(mode); err != nil {
		return err
	}
	err := task.Add(b, task.Spec{ID: fresh, Type: task.ScanLibrary, LibraryID: &library, Params: params{Mode: mode},
		DedupeKey: "scan:" + library.String()}, id)
	if err != nil {
		return err
	}
	b.Queue(`insert into scan (tenant_id, id, library_id, mode)
		select tenant_id, id, library_id, $2 from task where tenant_id = app.tenant() and id = $1`, fresh, mode)
	return nil
}

type params struct {
	Mode string `json:"mode"`
}
