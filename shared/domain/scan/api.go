package scan

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// LibraryInput names a library.
type LibraryInput struct {
	ID uuid.UUID `path:"id" format:"uuid"`
}

// SeriesInput names a series.
type SeriesInput struct {
	ID uuid.UUID `path:"id" format:"uuid"`
}

const newest = `select ` + statusColumns + ` from scan s join task t on t.tenant_id = s.tenant_id and t.id = s.id
	where s.tenant_id = app.tenant() and s.library_id = $1 order by s.id desc limit 1`

// Routes adds the operations on scans (contract 4.4).
func Routes(a *httpapi.API, d *db.DB, publish task.Publish, added task.Added) {
	httpapi.Register(a, httpapi.Op{Method: "POST", Path: "/api/v1/libraries/{id}/scan", ID: "startScan",
		Summary: "Start a scan", Tag: "Scans", Permission: auth.LibrariesWrite},
		func(ctx context.Context, in *struct {
			LibraryInput
			Mode string `query:"mode" default:"normal" enum:"normal,deep" doc:"normal: new and changed files; deep: analyse every file again"`
		}) (*Status, error) {
			s, err := start(ctx, d, publish, in.ID, in.Mode)
			if err == nil {
				added.Tell(ctx, httpapi.TenantOf(ctx).ID)
			}
			return s, err
		})
	httpapi.Register(a, httpapi.Op{Method: "GET", Path: "/api/v1/libraries/{id}/scan-status", ID: "getScanStatus",
		Summary: "The newest scan of a library", Tag: "Scans", Permission: auth.LibrariesRead},
		func(ctx context.Context, in *LibraryInput) (*Status, error) {
			s, err := db.Get[Status](ctx, d, newest, in.ID)
			if err != nil {
				return nil, err
			}
			if s == nil {
				return nil, fault.New(fault.NotFound, "The library does not exist or was never scanned")
			}
			s.UTC()
			return s, nil
		})
	httpapi.Register(a, httpapi.Op{Method: "POST", Path: "/api/v1/libraries/{id}/scan/cancel", ID: "cancelScan",
		Summary: "Cancel the running scan", Tag: "Scans", Permission: auth.LibrariesWrite},
		func(ctx context.Context, in *LibraryInput) (*httpapi.None, error) {
			none, err := cancel(ctx, d, publish, in.ID)
			if err == nil {
				added.Tell(ctx, httpapi.TenantOf(ctx).ID)
			}
			return none, err
		})
	purge := func(ctx context.Context, library, series *uuid.UUID) (*task.Started, error) {
		s, err := requestPurge(ctx, d, library, series)
		if err == nil {
			added.Tell(ctx, httpapi.TenantOf(ctx).ID)
		}
		return s, err
	}
	httpapi.Register(a, httpapi.Op{Method: "DELETE", Path: "/api/v1/libraries/{id}/purge-deleted", ID: "purgeLibrary",
		Summary: "Remove the books of a library whose files are gone, for good", Tag: "Scans", Permission: auth.LibrariesWrite},
		func(ctx context.Context, in *LibraryInput) (*task.Started, error) { return purge(ctx, &in.ID, nil) })
	httpapi.Register(a, httpapi.Op{Method: "DELETE", Path: "/api/v1/series/{id}/purge-deleted", ID: "purgeSeries",
		Summary: "Remove the books of a series whose files are gone, for good", Tag: "Scans", Permission: auth.SeriesWrite},
		func(ctx context.Context, in *SeriesInput) (*task.Started, error) { return purge(ctx, nil, &in.ID) })
	httpapi.Register(a, httpapi.Op{Method: "GET", Path: "/api/v1/scans/active", ID: "listActiveScans",
		Summary: "All active scans", Tag: "Scans", Permission: auth.LibrariesRead},
		func(ctx context.Context, in *struct{ httpapi.Paging }) (*httpapi.Page[Status], error) {
			all, err := db.List[Status](ctx, d, `select `+statusColumns+` from scan s join task t on t.tenant_id = s.tenant_id and t.id = s.id
				where s.tenant_id = app.tenant() and t.status in ('pending', 'running') order by s.id`)
			if err != nil {
				return nil, err
			}
			for i := range all {
				all[i].UTC()
			}
			return httpapi.All(ctx, in.Paging, all), nil
		})
}

func start(ctx context.Context, d *db.DB, publish task.Publish, library uuid.UUID, mode string) (*Status, error) {
	var b pgx.Batch
	var exists bool
	var status *Status
	fresh := uuid.Must(uuid.NewV7())
	var id uuid.UUID
	db.Value(&b, &exists, "select true from library where tenant_id = app.tenant() and id = $1", library)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if !exists {
		return nil, fault.Missing("Library")
	}
	b = pgx.Batch{}
	if err := Start(&b, library, mode, fresh, &id); err != nil {
		return nil, err
	}
	db.One(&b, &status, newest, library)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if id != fresh {
		return nil, fault.New(fault.Conflict, "A scan of this library is already waiting or running; cancel it or let it finish")
	}
	if status == nil {
		return nil, fault.Missing("Library")
	}
	status.UTC()
	publish(ctx, httpapi.TenantOf(ctx).ID, status.Event())
	return status, nil
}

// cancel ends the scan and everything it still waits for. A batch that is being written is finished first; after
// the cancel nothing is.
func cancel(ctx context.Context, d *db.DB, publish task.Publish, library uuid.UUID) (*httpapi.None, error) {
	none := fault.New(fault.NotFound, "No scan of this library is waiting or running")
	running, err := db.Get[struct{ ID uuid.UUID }](ctx, d, `select id from task where tenant_id = app.tenant() and library_id = $1
		and type = 'scan_library' and status in ('pending', 'running')`, library)
	if err != nil {
		return nil, err
	}
	if running == nil {
		return nil, none
	}
	out, err := task.Cancel(ctx, d, running.ID)
	if fault.Is(err, fault.BadRequest) { // it ended in between
		return nil, none
	}
	if err != nil {
		return nil, err
	}
	publish(ctx, httpapi.TenantOf(ctx).ID, out...)
	return &httpapi.None{}, nil
}
