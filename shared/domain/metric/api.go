package metric

import (
	"context"
	"time"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Cleaned is the result of a clean-up. A row holds the metrics of one type of task in one hour.
type Cleaned struct {
	DeletedCount    int64      `json:"deletedCount"`
	RetentionDays   string     `json:"retentionDays" enum:"disabled,7,30,90,180"`
	OldestRemaining *time.Time `json:"oldestRemaining" doc:"First hour with remaining metrics; null if there are none"`
}

// Removed is the number of deleted rows.
type Removed struct {
	DeletedCount int64 `json:"deletedCount"`
}

// HistoryInput selects a history.
type HistoryInput struct {
	Days        int    `query:"days" default:"7" minimum:"1" maximum:"180" doc:"Number of days until now; metrics older than metrics.task_retention_days are not available"`
	TaskType    string `query:"taskType" maxLength:"64" doc:"Only tasks of this type, for example scan_library"`
	Granularity string `query:"granularity" default:"hour" enum:"hour,day" doc:"Days are in UTC"`
}

// Routes registers the operations on task metrics.
func Routes(a *httpapi.API, d *db.DB) {
	op := httpapi.Group{Path: "/api/v1/metrics/tasks", Tag: "Metrics"}.Op
	httpapi.Register(a, op("GET", "", "getTaskMetrics", "Get the metrics of background tasks by type, and the current queue", auth.LibrariesRead),
		func(ctx context.Context, _ *struct{}) (*Tasks, error) { return tasks(ctx, d) })
	httpapi.Register(a, op("GET", "/history", "getTaskMetricsHistory", "Get the metrics of background tasks by hour or day", auth.LibrariesRead),
		func(ctx context.Context, in *HistoryInput) (*History, error) {
			return history(ctx, d, in.Days, in.Granularity, task.Stored(in.TaskType))
		})
	httpapi.Register(a, op("POST", "/cleanup", "cleanUpTaskMetrics", "Delete task metrics older than metrics.task_retention_days now, not in the next hourly clean-up", auth.SystemAdmin),
		func(ctx context.Context, _ *struct{}) (*Cleaned, error) { return cleanUp(ctx, d) })
	httpapi.Register(a, op("DELETE", "", "deleteTaskMetrics", "Delete all task metrics; the tasks are kept", auth.SystemAdmin),
		func(ctx context.Context, _ *struct{}) (*Removed, error) { return removeAll(ctx, d) })
}
