package task

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
)

// QueueProgress stores the progress of a task, and the checkpoint from which another run continues if this one dies.
func QueueProgress(b *pgx.Batch, h Held, current, total int64, place any) error {
	data, err := json.Marshal(place)
	if err != nil {
		return fmt.Errorf("encode checkpoint: %w", err)
	}
	b.Queue("update task set progress_current = $2, progress_total = $3, place = $4 where tenant_id = app.tenant() and id = $1", h.ID, current, total, json.RawMessage(data))
	return nil
}

// QueueDone adds a child's work to the progress of its parent, and reads the parent for ProgressEvent.
func QueueDone(b *pgx.Batch, parent uuid.UUID, done int, dst **Held) {
	db.One(b, dst, `with t as (update task set progress_current = least(progress_current + $2, progress_total)
		where tenant_id = app.tenant() and id = $1 returning *) select `+heldColumns+" from t"+countedBy, parent, done)
}

// ProgressEvent returns the event for the progress of a running task.
func ProgressEvent(h Held, current, total int64) events.Event {
	h.Current, h.Total = current, total
	return Progressed(progress(h, Running))
}

func progress(h Held, status string) events.TaskProgress {
	return events.TaskProgress{TaskID: h.ID, TaskType: h.Type, Status: status, Progress: events.Progress{Current: h.Current, Total: h.Total},
		StartedAt: h.Started, LibraryID: h.LibraryID, SeriesID: h.SeriesID, BookID: h.BookID}
}

// Progressed returns the task_progress event and adds a message. All listeners get it, so it omits the error of a task
// for a single user.
func Progressed(p events.TaskProgress) events.Event {
	if slices.Contains(Personal, p.TaskType) {
		p.Error = nil
	}
	p.Progress.Message = describe(p.TaskType, p.Status, p.Progress.Current, p.Progress.Total)
	return events.TaskProgressed(p)
}

// doing says, per type, what tasks do and which items they count.
var doing = map[string]struct{ does, items string }{
	ScanLibrary:     {"Scanning the library", " files"},
	AnalyzeBooks:    {"Analysing books", ""},
	AnalyzeBook:     {"Analysing a book", ""},
	AnalyzeSeries:   {"Analysing a series", ""},
	AnalyzeLibrary:  {"Analysing the library", " books"},
	PackBook:        {"Preparing the pages of a book", ""},
	MeasurePages:    {"Measuring the pages of a book", " pages"},
	FindDuplicates:  {"Looking for duplicates", ""},
	PurgeDeleted:    {"Removing books whose files are gone", ""},
	RenumberSeries:  {"Numbering the books of series", ""},
	ReprocessTitles: {"Naming series after their folders", ""},
	BookCovers:      {"Making covers of books", " covers"},
	SeriesCovers:    {"Making covers of series", " covers"},
	KOReaderDigests: {"Computing KOReader digests of books", " books"},
	PluginAutoMatch: {"Matching a series with a plugin", ""},

	UserPluginSync:            {"Syncing reading progress with another service", " entries"},
	UserPluginRecommendations: {"Requesting recommendations", ""},
	UserPluginDismissal:       {"Dismissing a recommendation", ""},
	PollReleaseSource:         {"Checking a source for new releases", ""},
	TrackSeries:               {"Tracking series", " series"},
	BackfillTracking:          {"Adding titles to the aliases of tracked series", " series"},
	RefreshLibrary:            {"Refreshing the library's metadata from a plugin", ""},
	ExportSeries:              {"Exporting series and books", " rows"},
	CleanUpExports:            {"Removing expired exports", ""},
	CleanUpOrphans:            {"Removing unused stored images", ""},
	CleanUpPDF:                {"Removing cached pages of PDF documents", " books"},
}

// describe returns a message for people: what a task does, its progress if it counts, and its end if it does not run
// ("Scanning the library: 42 of 100 files").
func describe(typ, status string, current, total int64) string {
	w, known := doing[typ]
	if !known { // a type of another version
		w.does = typ
	}
	var more []string
	if total > 0 {
		more = append(more, fmt.Sprintf("%d of %d%s", current, total, w.items))
	}
	if status != Running {
		more = append(more, status)
	}
	if len(more) == 0 {
		return w.does
	}
	return w.does + ": " + strings.Join(more, ", ")
}
