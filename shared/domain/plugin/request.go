package plugin

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// StartJob starts a run of a job, or finds the unfinished one, and calls added; priority may be nil. NotFound if there
// is no such job.
func StartJob(ctx context.Context, d *db.DB, added task.Added, job uuid.UUID, priority *int) (*task.Started, error) {
	var b pgx.Batch
	out := &task.Started{Message: "The task is queued"}
	if err := queueStart(&b, nil, job, uuid.Must(uuid.NewV7()), priority, &out.TaskID); err != nil {
		return nil, err
	}
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if out.TaskID == uuid.Nil {
		return nil, fault.Missing("Job")
	}
	added.Tell(ctx, httpapi.TenantOf(ctx).ID)
	return out, nil
}

// StartMatch starts the task that matches a series with a plugin, or finds the pending one, and calls added; as changes
// the task. NotFound if there is no such plugin or series.
func StartMatch(ctx context.Context, d *db.DB, added task.Added, plugin, series uuid.UUID, as func(*task.Spec)) (*Enqueued, error) {
	s := &service{&Runner{Database: d, Added: added}}
	return s.enqueue(ctx, plugin, oneSeries(series), as)
}
