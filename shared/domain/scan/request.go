package scan

import (
	"cmp"
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Request starts a scan of a library, or finds the unfinished one, and calls added. A nil priority is the type's
// default.
func Request(ctx context.Context, d *db.DB, publish events.Publish, added task.Added, library uuid.UUID, p Params, priority *int) (*task.Started, error) {
	out, _, err := request(ctx, d, publish, added, library, p, priority)
	return out, err
}

// request is Request that also returns the status of a new scan.
func request(ctx context.Context, d *db.DB, publish events.Publish, added task.Added,
	library uuid.UUID, p Params, priority *int) (*task.Started, *Status, error) {
	if err := p.Check(); err != nil {
		return nil, nil, cmp.Or(d.Enter(ctx), err) // a caller without the permission is told that first
	}
	var b pgx.Batch
	var status *Status
	fresh := uuid.Must(uuid.NewV7())
	out := &task.Started{Message: "The scan is queued"}
	spec := task.Spec{ID: fresh, Type: task.ScanLibrary, Params: p, Priority: priority, DedupeKey: scanKey}
	if err := task.AddFor(&b, spec, task.OfLibrary(library), &out.TaskID); err != nil {
		return nil, nil, err
	}
	queueStatus(&b, fresh, p)
	db.One(&b, &status, ByTaskSQL, fresh)
	err := d.Run(ctx, &b)
	if db.Dangling(err, "scan_tenant_id_library_id_fkey") || err == nil && out.TaskID == uuid.Nil { // the first: deleted meanwhile
		return nil, nil, fault.Missing("Library")
	}
	if err != nil {
		return nil, nil, err
	}
	if status != nil {
		publish(ctx, httpapi.TenantOf(ctx).ID, status.Event())
	}
	added.Tell(ctx, httpapi.TenantOf(ctx).ID)
	return out, status, nil
}
