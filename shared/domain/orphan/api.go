package orphan

import (
	"context"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Answer is the state of a clean-up when the response is sent.
type Answer struct {
	Cleaned
	Complete bool      `json:"complete" doc:"False if the counts are preliminary: the task is still running or, if errors says so, has failed"`
	TaskID   uuid.UUID `json:"taskId" format:"uuid"`
}

func op(method, path, id, summary string) httpapi.Op {
	return httpapi.Op{Method: method, Path: "/api/v1/admin/cleanup-orphans" + path, ID: id, Summary: summary, Tag: "Maintenance", Permission: auth.SystemAdmin}.OnlyIfSeesAll()
}

// Making describes the task that deletes orphans.
func Making() task.Spec { return task.Spec{Type: task.CleanUpOrphans, DedupeKey: task.CleanUpOrphans} }

// Routes registers the operations that delete orphans.
func Routes(a *httpapi.API, d *db.DB, added task.Added) {
	start := func(ctx context.Context) (*task.Started, error) {
		return task.Start(ctx, d, added, Making(), task.Everything(), "The clean-up is queued")
	}
	httpapi.Register(a, op("POST", "", "startOrphanCleanup", "Start a task that deletes stored images that are no longer used"),
		func(ctx context.Context, _ *struct{}) (*task.Started, error) { return start(ctx) })
	httpapi.Register(a, op("DELETE", "", "deleteOrphans", "Delete stored images that are no longer used, and wait a few seconds for the result"),
		func(ctx context.Context, _ *struct{}) (*Answer, error) {
			started, err := start(ctx)
			if err != nil {
				return nil, err
			}
			done, err := task.Await(ctx, d, started.TaskID)
			if err != nil {
				return nil, err
			}
			out := &Answer{Cleaned: Cleaned{Errors: []string{}}, Complete: done.Status == task.Completed, TaskID: started.TaskID}
			if err := done.Read(&out.Cleaned); err != nil {
				return nil, err
			}
			if done.LastError != nil && !out.Complete {
				out.Errors = append(out.Errors, *done.LastError)
			}
			return out, nil
		})
}

// StatsInput selects what the statistics contain.
type StatsInput struct {
	IncludeFiles bool `query:"includeFiles" doc:"Also list the files"`
}

// StatsRoutes registers the operation that counts orphans, for the function that may list the media bucket.
func StatsRoutes(a *httpapi.API, f *Finder) {
	httpapi.Register(a, op("GET", "/stats", "getOrphanStats", "Get the number and size of stored images that are no longer used, without those younger than a day"),
		func(ctx context.Context, in *StatsInput) (*Stats, error) { return f.stats(ctx, in.IncludeFiles) })
}
