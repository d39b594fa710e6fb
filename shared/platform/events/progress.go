package events

import (
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/cut"
)

// TaskProgress is the state of a background task; nil pointers are sent as null.
type TaskProgress struct {
	TaskID      uuid.UUID  `json:"task_id"`
	TaskType    string     `json:"task_type"` // for example scan_library
	Status      string     `json:"status"`    // pending, running, completed, failed, cancelled
	Progress    Progress   `json:"progress"`
	Error       *string    `json:"error"`
	StartedAt   *time.Time `json:"started_at"`
	CompletedAt *time.Time `json:"completed_at"`
	LibraryID   *uuid.UUID `json:"library_id"`
	SeriesID    *uuid.UUID `json:"series_id"`
	BookID      *uuid.UUID `json:"book_id"`
}

// Progress counts the items of a task, 0 of 0 if it has none. The message says what an item is.
type Progress struct {
	Current int64  `json:"current"`
	Total   int64  `json:"total"`
	Message string `json:"message"`
}

// ScanProgress is the state of a library scan with its counts so far.
type ScanProgress struct {
	LibraryID      uuid.UUID  `json:"library_id"`
	Status         string     `json:"status"` // pending, running, completed, failed, cancelled
	FilesTotal     int64      `json:"files_total"`
	FilesProcessed int64      `json:"files_processed"`
	SeriesFound    int64      `json:"series_found"`
	BooksFound     int64      `json:"books_found"`
	BooksUpdated   int64      `json:"books_updated"`
	BooksDeleted   int64      `json:"books_deleted"`
	Errors         []string   `json:"errors"` // at most 20 are sent, each truncated to 200 bytes
	StartedAt      *time.Time `json:"started_at"`
	CompletedAt    *time.Time `json:"completed_at"`
}

const (
	maxScanErrors = 20 // with maxErrorBytes below maxData even if every byte is escaped
	maxErrorBytes = 200
	maxTextBytes  = 1000
)

// TaskProgressed is the task_progress event, for listeners of the task stream who see all series. Its error and message
// are truncated to 1,000 bytes.
func TaskProgressed(t TaskProgress) Event {
	if t.Error != nil {
		t.Error = new(cut.Bytes(*t.Error, maxTextBytes))
	}
	t.Progress.Message = cut.Bytes(t.Progress.Message, maxTextBytes)
	return Event{Topic: Tasks, Kind: "task_progress", Permission: SeesAll, Data: t}
}

// ScanProgressed is the scan_progress event, for listeners of the scan stream who see all series.
func ScanProgressed(s ScanProgress) Event {
	texts := make([]string, 0, maxScanErrors) // never null
	for _, text := range s.Errors[:min(len(s.Errors), maxScanErrors)] {
		texts = append(texts, cut.Bytes(text, maxErrorBytes))
	}
	s.Errors = texts
	return Event{Topic: Scans, Kind: "scan_progress", Permission: SeesAll, Data: s}
}
