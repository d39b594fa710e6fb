package starter

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// How far ahead a task can be scheduled, and how many per tenant: every search for due tasks passes over them.
const (
	latest    = 366 * 24 * time.Hour
	mostLater = 1000
)

// Body is a task to start.
type Body struct {
	TaskType     TaskType   `json:"taskType"`
	Priority     *int       `json:"priority,omitempty" nullable:"true" minimum:"0" maximum:"1000" doc:"Higher priorities run first; null means the default priority of the task type"`
	ScheduledFor *time.Time `json:"scheduledFor,omitempty" nullable:"true" doc:"Earliest start time, at most a year ahead; null means now. Not supported for scan_library and refresh_library_metadata, which have schedules"`
}

// TaskType is the type of a task and its parameters. Parameters of other types must be absent or null.
type TaskType struct {
	Type        string      `json:"type" enum:"scan_library,purge_deleted,analyze_book,analyze_series,analyze_library,reprocess_series_title,reprocess_series_titles,renumber_series,renumber_series_batch,generate_thumbnail,generate_thumbnails,generate_series_thumbnail,generate_series_thumbnails,find_duplicates,plugin_auto_match,refresh_library_metadata,backfill_tracking_from_metadata,cleanup_orphaned_files,cleanup_pdf_cache"`
	LibraryID   *uuid.UUID  `json:"libraryId,omitempty" nullable:"true" format:"uuid"`
	SeriesID    *uuid.UUID  `json:"seriesId,omitempty" nullable:"true" format:"uuid"`
	BookID      *uuid.UUID  `json:"bookId,omitempty" nullable:"true" format:"uuid"`
	PluginID    *uuid.UUID  `json:"pluginId,omitempty" nullable:"true" format:"uuid"`
	JobID       *uuid.UUID  `json:"jobId,omitempty" nullable:"true" format:"uuid"`
	SeriesIDs   []uuid.UUID `json:"seriesIds,omitempty" nullable:"true" minItems:"1" maxItems:"500" doc:"Unknown ids are ignored"`
	BookIDs     []uuid.UUID `json:"bookIds,omitempty" nullable:"true" minItems:"1" maxItems:"500" doc:"Unknown ids are ignored"`
	Mode        *string     `json:"mode,omitempty" nullable:"true" enum:"normal,deep" doc:"For scan_library; defaults to normal"`
	Force       *bool       `json:"force,omitempty" nullable:"true" doc:"For analyze_book: also analyse a book that was analysed before; for generate_*: also generate covers that already exist"`
	DryRun      *bool       `json:"dryRun,omitempty" nullable:"true" doc:"For reprocess_*: change nothing; the result of the task contains what would change"`
	SourceScope *string     `json:"sourceScope,omitempty" nullable:"true" maxLength:"64" doc:"For plugin_auto_match; has no effect"`
}

// Routes registers the operation that starts a task of any type that people may start.
func Routes(a *httpapi.API, d *db.DB, publish events.Publish, added task.Added) {
	s := &starter{d, publish, added}
	httpapi.Register(a, httpapi.Op{Method: "POST", Path: "/api/v1/tasks", ID: "createTask", Tag: "Tasks", Permission: auth.TasksWrite,
		Summary: "Start a task unless it is pending or running; also requires the permission of the task's own operation"},
		func(ctx context.Context, in *struct{ Body Body }) (*task.Started, error) {
			return s.start(ctx, &in.Body)
		})
}

// starter starts tasks.
type starter struct {
	database *db.DB
	publish  events.Publish
	added    task.Added
}

func (s *starter) start(ctx context.Context, in *Body) (*task.Started, error) {
	k := kinds[in.TaskType.Type]
	if err := k.check(&in.TaskType); err != nil {
		return nil, err
	}
	if at := in.ScheduledFor; at != nil {
		switch {
		case at.After(time.Now().Add(latest)):
			return nil, fault.Invalid("scheduledFor", "must be within a year")
		case !at.After(time.Now()):
			in.ScheduledFor = nil
		case in.TaskType.Type == task.ScanLibrary:
			return nil, fault.Invalid("scheduledFor", "is not supported for a scan; set the cronSchedule of the library")
		case in.TaskType.Type == task.RefreshLibrary:
			return nil, fault.Invalid("scheduledFor", "is not supported for a job; set its cronSchedule")
		}
	}
	var b pgx.Batch
	var later int
	if in.ScheduledFor != nil {
		db.Value(&b, &later, "select count(*) from (select from task t where t.tenant_id = app.tenant() and "+task.PutOffSQL+" limit $1) t", mostLater)
	}
	if err := s.database.Run(ctx, &b); err != nil {
		return nil, err
	}
	caller := auth.CallerOf(ctx)
	needs, all := k.permission, k.all != nil && k.all(&in.TaskType)
	if !caller.May(needs) {
		return nil, fault.New(fault.Forbidden, "Missing required permission: %s", needs)
	}
	if later >= mostLater {
		return nil, fault.New(fault.Conflict, "%d tasks are already scheduled for later, the most there can be; cancel some", mostLater)
	}
	caller.Permission, caller.SeesAll = needs, all
	out, err := k.start(ctx, s, in)
	if fault.Is(err, fault.NotFound) {
		what := strings.ToLower(strings.TrimSuffix(fault.From(err).Message, " not found"))
		return nil, fault.Invalid("taskType."+what+"Id", "there is no such %s", what)
	}
	return out, err
}
