package task

import (
	"context"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// ListInput filters the list of tasks.
type ListInput struct {
	httpapi.Paging
	Status    string `query:"status" enum:"pending,running,processing,completed,failed,cancelled" doc:"Only tasks with this status; processing is an alias of running"`
	TaskType  string `query:"taskType" maxLength:"64" doc:"Only tasks of this type, for example scan_library"`
	LibraryID string `query:"libraryId" format:"uuid" doc:"Only tasks about this library"`
}

// Message says what was done.
type Message struct {
	Message string `json:"message"`
}

// Started names the task that a command started.
type Started struct {
	TaskID  uuid.UUID `json:"taskId" format:"uuid"`
	Message string    `json:"message"`
}

// Enqueued is the number of tasks that a command started.
type Enqueued struct {
	Message       string `json:"message"`
	TasksEnqueued int64  `json:"tasksEnqueued" doc:"Number of new tasks; tasks that were already pending or running are not counted"`
}

// Purged is the number of tasks that were deleted.
type Purged struct {
	Deleted int64 `json:"deleted"`
}

var operation = httpapi.Group{Path: "/api/v1/tasks", Tag: "Tasks"}.Op

// Routes registers the operations on tasks.
func Routes(a *httpapi.API, d *db.DB, publish events.Publish, added Added) {
	reads(a, d)
	deletions(a, d, publish)
	changes(a, d, publish, added)
}

// reads registers the operations that read tasks.
func reads(a *httpapi.API, d *db.DB) {
	httpapi.Register(a, operation("GET", "", "listTasks", "List background tasks, newest first", auth.TasksRead),
		func(ctx context.Context, in *ListInput) (*httpapi.Page[Task], error) {
			f := Filter{Status: in.Status, Type: Stored(in.TaskType), LibraryID: httpapi.OptionalID(in.LibraryID)}
			if f.Status == "processing" {
				f.Status = Running
			}
			tasks, total, err := list(ctx, d, f, in.Paging)
			if err != nil {
				return nil, err
			}
			return httpapi.NewPage(ctx, in.Paging, tasks, total), nil
		})
	httpapi.Register(a, operation("GET", "/stats", "getTaskStats", "Get the number of tasks by status and type", auth.TasksRead),
		func(ctx context.Context, _ *struct{}) (*Stats, error) { return stats(ctx, d) })
	httpapi.Register(a, operation("GET", "/{id}", "getTask", "Get a background task", auth.TasksRead),
		func(ctx context.Context, in *httpapi.IDInput) (*Task, error) {
			t, err := get(ctx, d, in.ID)
			if err == nil && t == nil {
				err = fault.Missing("Task")
			}
			return t, err
		})
}

// deletions adds the deletion of several tasks.
func deletions(a *httpapi.API, d *db.DB, publish events.Publish) {
	httpapi.Register(a, operation("DELETE", "/purge", "purgeTasks", "Delete finished tasks", auth.TasksWrite).OnlyIfSeesAll(),
		func(ctx context.Context, in *struct {
			Days int `query:"days" default:"30" minimum:"0" maximum:"3650" doc:"Only tasks that ended at least this many days ago"`
		}) (*Purged, error) {
			n, err := purge(ctx, d, in.Days)
			if err != nil {
				return nil, err
			}
			return &Purged{n}, nil
		})
	httpapi.Register(a, operation("DELETE", "/nuke", "nukeTasks", "Delete all tasks and the status of scans; running tasks are stopped", auth.SystemAdmin).OnlyIfSeesAll(),
		func(ctx context.Context, _ *struct{}) (*Purged, error) {
			n, e, err := nuke(ctx, d)
			if err != nil {
				return nil, err
			}
			publish(ctx, httpapi.TenantOf(ctx).ID, e...)
			return &Purged{n}, nil
		})
}

// changes adds what people do to one task.
func changes(a *httpapi.API, d *db.DB, publish events.Publish, added Added) {
	httpapi.Register(a, operation("POST", "/{id}/cancel", "cancelTask", "Cancel a pending or running task and its children", auth.TasksWrite).OnlyIfSeesAll(),
		func(ctx context.Context, in *httpapi.IDInput) (*Message, error) {
			e, err := Cancel(ctx, d, in.ID)
			if err != nil {
				return nil, err
			}
			publish(ctx, httpapi.TenantOf(ctx).ID, e...)
			added.Tell(ctx, httpapi.TenantOf(ctx).ID) // other tasks may run in its place
			return &Message{"The task is cancelled"}, nil
		})
	httpapi.Register(a, operation("POST", "/{id}/retry", "retryTask", "Retry a failed task", auth.TasksWrite).OnlyIfSeesAll(),
		func(ctx context.Context, in *httpapi.IDInput) (*Started, error) {
			t, err := retry(ctx, d, in.ID)
			if err != nil {
				return nil, err
			}
			publish(ctx, httpapi.TenantOf(ctx).ID, t.events()...)
			added.Tell(ctx, httpapi.TenantOf(ctx).ID)
			return &Started{t.ID, "The task will be retried"}, nil
		})
	httpapi.Register(a, operation("POST", "/{id}/unlock", "unlockTask", "Release a running task from its worker, so that it is pending again", auth.TasksWrite).OnlyIfSeesAll(),
		func(ctx context.Context, in *httpapi.IDInput) (*Message, error) {
			t, err := unlock(ctx, d, in.ID)
			if err != nil {
				return nil, err
			}
			if t.Before == Pending {
				return &Message{"The task is already pending"}, nil
			}
			publish(ctx, httpapi.TenantOf(ctx).ID, t.events()...)
			added.Tell(ctx, httpapi.TenantOf(ctx).ID)
			return &Message{"The task is pending again"}, nil
		})
}
