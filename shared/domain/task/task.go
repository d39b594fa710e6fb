package task

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// The types of tasks.
const (
	ScanLibrary     = "scan_library"
	AnalyzeBooks    = "analyze_books" // a batch of books
	AnalyzeBook     = "analyze_book"  // one book, asked for by a person or by a reader who met another file
	AnalyzeSeries   = "analyze_series"
	AnalyzeLibrary  = "analyze_library" // by children of the type analyze_books
	PackBook        = "pack_book"       // makes the page pack of a book
	MeasurePages    = "measure_pages"   // reads the pixel sizes of a book's pages
	FindDuplicates  = "find_duplicates"
	KOReaderDigests = "koreader_digests" // finds by what KOReader names books
	PurgeDeleted    = "purge_deleted"    // removes books whose files are gone, of a library or a series
	RenumberSeries  = "renumber_series"  // one, or several by a child for each
	// ReprocessTitles calls the series of a library, one or several, after their folders again.
	ReprocessTitles = "reprocess_series_titles"
	BookCovers      = "generate_thumbnails" // makes the covers of books
	SeriesCovers    = "generate_series_thumbnails"
	// PluginAutoMatch finds a series in what a plugin knows, and writes that into it.
	PluginAutoMatch = "plugin_auto_match"
	// What plugins do for a user who has enabled them.
	UserPluginSync            = "user_plugin_sync" // tells a service of what was read, and asks it
	UserPluginRecommendations = "user_plugin_recommendations"
	UserPluginDismissal       = "user_plugin_recommendation_dismiss" // tells a plugin what the user wants to see no more
	// PollReleaseSource asks a plugin for new volumes and chapters.
	PollReleaseSource = "poll_release_source"
	TrackSeries       = "bulk_track_for_releases"         // tracks several series, or tracks them no longer
	BackfillTracking  = "backfill_tracking_from_metadata" // gives tracked series their titles as aliases
	// RefreshLibrary asks a plugin for the current metadata of all that is in a library, as a job of it says.
	RefreshLibrary = "refresh_library_metadata"
	// ExportSeries writes the file of an export; CleanUpExports removes what nobody has any more.
	ExportSeries   = "export_series"
	CleanUpExports = "cleanup_series_exports"
	// CleanUpOrphans removes objects of the media bucket that no row names; CleanUpPDF removes pages of PDF documents.
	CleanUpOrphans = "cleanup_orphaned_files"
	CleanUpPDF     = "cleanup_pdf_cache"
)

// The states of a task.
const (
	Pending   = "pending"
	Running   = "running"
	Completed = "completed"
	Failed    = "failed"
	Cancelled = "cancelled"
)

// Personal are the types whose tasks do something for one user, whom their params name (userId): what they tell is for
// that user, and administrators.
var Personal = []string{UserPluginSync, UserPluginRecommendations, UserPluginDismissal, ExportSeries}

// priorities: higher runs first.
var priorities = map[string]int{ScanLibrary: 600, AnalyzeBook: 500, AnalyzeBooks: 495, AnalyzeSeries: 490, AnalyzeLibrary: 490, PackBook: 550, PurgeDeleted: 550, FindDuplicates: 860,
	UserPluginDismissal: 1000, UserPluginSync: 980, UserPluginRecommendations: 960,
	ReprocessTitles: 470, RenumberSeries: 460, BookCovers: 380, SeriesCovers: 370, MeasurePages: 360, KOReaderDigests: 350,
	ExportSeries: 800, CleanUpExports: 100, CleanUpOrphans: 100, CleanUpPDF: 100, TrackSeries: 840, BackfillTracking: 820,
	// These wait for plugins, which wait for services of others: seconds to hours, in which they keep a worker. They
	// come by themselves and in numbers, one for every series of a library, every source, every job. Before scans,
	// analyses and covers they would keep people waiting for their own books; nobody waits for them.
	PluginAutoMatch: 340, PollReleaseSource: 330, RefreshLibrary: 320}

// Priority is how urgent tasks of a type are, for statements that add some themselves.
func Priority(typ string) int { return priorities[typ] }

// Spec is a task to add.
type Spec struct {
	ID        uuid.UUID // zero makes a fresh one
	Type      string
	Params    any // marshalled to JSON; nil is {}
	LibraryID *uuid.UUID
	SeriesID  *uuid.UUID
	BookID    *uuid.UUID
	ParentID  *uuid.UUID
	Priority  *int       // nil is that of its type
	At        *time.Time // when it is to run; nil is now
	// DedupeKey, where not empty, makes a second task with the same key the first one while that is unfinished.
	DedupeKey string
}

// Task is the record of a task as the interface shows it.
type Task struct {
	ID           uuid.UUID       `json:"id" db:"id"`
	TaskType     string          `json:"taskType" db:"type"`
	Status       string          `json:"status" db:"status" enum:"pending,running,completed,failed,cancelled"`
	Priority     int             `json:"priority" db:"priority"`
	Params       json.RawMessage `json:"params" db:"params"`
	LibraryID    *uuid.UUID      `json:"libraryId" db:"library_id"`
	LibraryName  *string         `json:"libraryName" db:"library_name"`
	SeriesID     *uuid.UUID      `json:"seriesId" db:"series_id"`
	SeriesTitle  *string         `json:"seriesTitle" db:"series_title"`
	BookID       *uuid.UUID      `json:"bookId" db:"book_id"`
	BookTitle    *string         `json:"bookTitle" db:"book_title"`
	ParentID     *uuid.UUID      `json:"parentId" db:"parent_id"`
	Attempts     int             `json:"attempts" db:"attempts"`
	MaxAttempts  int             `json:"maxAttempts" db:"max_attempts"`
	ScheduledFor time.Time       `json:"scheduledFor" db:"scheduled_for"`
	LockedBy     *string         `json:"lockedBy" db:"locked_by"`
	LockedUntil  *time.Time      `json:"lockedUntil" db:"lease_until"`
	Progress     Progress        `json:"progress" db:"-"`
	Result       json.RawMessage `json:"result" db:"result"`
	LastError    *string         `json:"lastError" db:"last_error"`
	CreatedAt    time.Time       `json:"createdAt" db:"created_at"`
	StartedAt    *time.Time      `json:"startedAt" db:"started_at"`
	CompletedAt  *time.Time      `json:"completedAt" db:"completed_at"`
}

// Progress counts what a task has done of what it has to do.
type Progress struct {
	Current int64  `json:"current"`
	Total   int64  `json:"total"`
	Message string `json:"message" doc:"For people: what the task does or did, as in Scanning the library: 42 of 100 files"`
}
