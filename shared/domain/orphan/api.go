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
	Complete bool      `json:"complete" doc:"False: the counts are those so far, and the task goes on or, where errors says so, has failed"`
	TaskID   uuid.UUID `json:"taskId" format:"uuid"`
}

func op(method, path, id, summary string) httpapi.Op {
	return httpapi.Op{Method: method, Path: "/api/v1/admin/cleanup-orphans" + path, ID: id, Summary: summary, Tag: "Maintenance", Permission: auth.SystemAdmin}.ForAll()
}

// Making describes the task that deletes orphans.
func Making() task.Spec { return task.Spec{Type: task.CleanUpOrphans, DedupeKey: task.CleanUpOrphans} }

// Routes registers the operations that delete orphans.
func Routes(a *httpapi.API, d *db.DB, added task.Added) {
	start := func(ctx context.Context) (*task.Started, error) {
		return task.Start(ctx, d, added, Making(), task.Everything(), "The clean-up is queued")
	}
	httpapi.Register(a, op("POST", "", "startOrphanCleanup", "Start deleting stored pictures that nothing shows any more"),
		func(ctx context.Context, _ *struct{}) (*task.Started, error) { return start(ctx) })
	httpapi.Register(a, op("DELETE", "", "deleteOrphans", "Delete stored pictures that nothing shows any more, and wait some seconds for it"),
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
	IncludeFiles bool `query:"includeFiles" doc:"Name the files, too"`
}

// StatsRoutes registers the operation that counts orphans, for the function that may list the media bucket.
func StatsRoutes(a *httpapi.API, f *Finder) {
	httpapi.Register(a, op("GET", "/stats", "getOrphanStats", "How much is stored that nothing shows any more; what is younger than a day does not count"),
		func(ctx context.Context, in *StatsInput) (*Stats, error) { return f.stats(ctx, in.IncludeFiles) })
}
