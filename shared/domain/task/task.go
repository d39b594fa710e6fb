package task

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"
)

// The types of tasks.
const (
	ScanLibrary     = "scan_library"
	AnalyzeBooks    = "analyze_books" // a batch of books
	AnalyzeBook     = "analyze_book"  // one book, on request or because a reader found a changed file
	AnalyzeSeries   = "analyze_series"
	AnalyzeLibrary  = "analyze_library" // through child tasks of type analyze_books
	PackBook        = "pack_book"       // makes the page pack of a book
	MeasurePages    = "measure_pages"   // reads the pixel sizes of a book's pages
	FindDuplicates  = "find_duplicates"
	KOReaderDigests = "koreader_digests" // computes the hashes by which KOReader identifies books
	PurgeDeleted    = "purge_deleted"    // removes books whose files are gone, of a library or a series
	RenumberSeries  = "renumber_series"  // one series, or several through child tasks
	// ReprocessTitles retitles one, several or all series of a library after their folders.
	ReprocessTitles = "reprocess_series_titles"
	BookCovers      = "generate_thumbnails" // makes the covers of books
	SeriesCovers    = "generate_series_thumbnails"
	// PluginAutoMatch finds a series in a plugin's data and applies its metadata.
	PluginAutoMatch = "plugin_auto_match"
	// What plugins do for a user who has enabled them.
	UserPluginSync            = "user_plugin_sync" // sends reading progress to a service, and fetches it
	UserPluginRecommendations = "user_plugin_recommendations"
	UserPluginDismissal       = "user_plugin_recommendation_dismiss" // tells a plugin which one the user dismissed
	// PollReleaseSource asks a plugin for new volumes and chapters.
	PollReleaseSource = "poll_release_source"
	TrackSeries       = "bulk_track_for_releases"         // starts or stops tracking several series
	BackfillTracking  = "backfill_tracking_from_metadata" // gives tracked series their titles as aliases
	// RefreshLibrary fetches current metadata from a plugin for a whole library, as configured in a job.
	RefreshLibrary = "refresh_library_metadata"
	// ExportSeries writes the file of an export; CleanUpExports deletes obsolete ones.
	ExportSeries   = "export_series"
	CleanUpExports = "cleanup_series_exports"
	// CleanUpOrphans deletes unreferenced objects of the media bucket; CleanUpPDF deletes cached pages of PDF
	// documents.
	CleanUpOrphans = "cleanup_orphaned_files"
	CleanUpPDF     = "cleanup_pdf_cache"
)

// stored has the types that people start with a parameter, and under which wider type such a task is stored.
var stored = map[string]string{
	"generate_thumbnail":        BookCovers,
	"generate_series_thumbnail": SeriesCovers,
	"reprocess_series_title":    ReprocessTitles,
	"renumber_series_batch":     RenumberSeries,
}

// Stored returns the type under which tasks of a type are stored, almost always itself.
func Stored(typ string) string { return cmp.Or(stored[typ], typ) }

// The states of a task.
const (
	Pending   = "pending"
	Running   = "running"
	Completed = "completed"
	Failed    = "failed"
	Cancelled = "cancelled"
)

// kind is what is known about a type of task.
type kind struct {
	priority int    // higher runs first
	does     string // what such a task does, for people
	items    string // what its progress counts, after the numbers
	personal bool   // see Personal
}

var kinds = map[string]kind{
	UserPluginDismissal:       {priority: 1000, does: "Dismissing a recommendation", personal: true},
	UserPluginSync:            {priority: 980, does: "Syncing reading progress with another service", items: " entries", personal: true},
	UserPluginRecommendations: {priority: 960, does: "Requesting recommendations", personal: true},
	FindDuplicates:            {priority: 860, does: "Looking for duplicates"},
	TrackSeries:               {priority: 840, does: "Tracking series", items: " series"},
	BackfillTracking:          {priority: 820, does: "Adding titles to the aliases of tracked series", items: " series"},
	ExportSeries:              {priority: 800, does: "Exporting series and books", items: " rows", personal: true},
	ScanLibrary:               {priority: 600, does: "Scanning the library", items: " files"},
	PurgeDeleted:              {priority: 550, does: "Removing books whose files are gone"},
	AnalyzeBook:               {priority: 500, does: "Analysing a book"},
	AnalyzeBooks:              {priority: 495, does: "Analysing books"},
	AnalyzeSeries:             {priority: 490, does: "Analysing a series"},
	AnalyzeLibrary:            {priority: 490, does: "Analysing the library", items: " books"},
	ReprocessTitles:           {priority: 470, does: "Naming series after their folders"},
	RenumberSeries:            {priority: 460, does: "Numbering the books of series"},
	BookCovers:                {priority: 380, does: "Making covers of books", items: " covers"},
	SeriesCovers:              {priority: 370, does: "Making covers of series", items: " covers"},
	// Pages can be read without it. Of those that a reader waits for, the first comes before analyses: pack.Requester.
	PackBook:        {priority: 365, does: "Preparing the pages of a book"},
	MeasurePages:    {priority: 360, does: "Measuring the pages of a book", items: " pages"},
	KOReaderDigests: {priority: 350, does: "Computing KOReader digests of books", items: " books"},
	// These wait for plugins, which wait for other services: seconds to hours, during which they hold a worker. They
	// arrive automatically and in large numbers, one per series of a library, per source, per job. If they ran before
	// scans, analyses and covers, people would wait for their own books; nobody waits for these.
	PluginAutoMatch:   {priority: 340, does: "Matching a series with a plugin"},
	PollReleaseSource: {priority: 330, does: "Checking a source for new releases"},
	RefreshLibrary:    {priority: 320, does: "Refreshing the library's metadata from a plugin"},

	CleanUpExports: {priority: 100, does: "Removing expired exports"},
	CleanUpOrphans: {priority: 100, does: "Removing unused stored images"},
	CleanUpPDF:     {priority: 100, does: "Removing cached pages of PDF documents", items: " books"},
}

// Personal are the types of tasks for one user, named by the param userId: only that user and administrators see their
// details.
var Personal = slices.Sorted(func(yield func(string) bool) {
	for typ, k := range kinds {
		if k.personal && !yield(typ) {
			return
		}
	}
})

// Priority returns the priority of a type, for statements that insert tasks themselves.
func Priority(typ string) int { return kinds[typ].priority }

// Spec is a task to add.
type Spec struct {
	ID        uuid.UUID // zero: a new id
	Type      string
	Params    any // marshalled to JSON; nil is {}
	LibraryID *uuid.UUID
	SeriesID  *uuid.UUID
	BookID    *uuid.UUID
	ParentID  *uuid.UUID
	Priority  *int       // nil: the priority of its type
	At        *time.Time // when to run; nil is now
	By        *uuid.UUID // account that wants it; nil: that of the scope. AddEach ignores it
	// DedupeKey, if not empty, prevents a second task while one with the same key is unfinished.
	DedupeKey string
}

// Task is the record of a task in the API.
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

// Progress counts the done and the total work of a task.
type Progress struct {
	Current int64  `json:"current"`
	Total   int64  `json:"total"`
	Message string `json:"message" doc:"Human-readable description of what the task does or did, for example Scanning the library: 42 of 100 files"`
}
