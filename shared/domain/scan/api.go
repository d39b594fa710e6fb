package scan

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// ModeInput selects the mode of a scan.
type ModeInput struct {
	Mode string `query:"mode" default:"normal" enum:"normal,deep" doc:"normal: new and changed files; deep: analyse every file again"`
}

const newest = `select ` + statusColumns + ` from scan s join task t on t.tenant_id = s.tenant_id and t.id = s.id
	where s.tenant_id = app.tenant() and s.library_id = $1 order by s.id desc limit 1`

// Routes registers the operations on scans.
func Routes(a *httpapi.API, d *db.DB, publish events.Publish, added task.Added) {
	runs(a, d, publish, added)
	statuses(a, d)
	purges(a, d, added)
}

var operation = httpapi.Group{Path: "/api/v1", Tag: "Scans"}.Op

// runs registers the operations that start and cancel a scan.
func runs(a *httpapi.API, d *db.DB, publish events.Publish, added task.Added) {
	begin := func(ctx context.Context, library uuid.UUID, p Params) (*Status, error) {
		_, status, err := request(ctx, d, publish, added, library, p, nil)
		if err == nil && status == nil {
			err = fault.New(fault.Conflict, "A scan of this library is already waiting or running; cancel it or let it finish")
		}
		return status, err
	}
	httpapi.Register(a, operation("POST", "/libraries/{id}/scan", "startScan", "Start a scan of a library", auth.LibrariesWrite),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			ModeInput
			Path string `query:"path" doc:"Scan only this folder, relative to the library's root, for example Marvel/Daredevil"`
		}) (*Status, error) {
			if in.Path != "" { // the counts would reveal whether a folder of this name exists
				auth.CallerOf(ctx).SeesAll = true
			}
			return begin(ctx, in.ID, Params{Mode: in.Mode, Path: in.Path})
		})
	httpapi.Register(a, operation("POST", "/libraries/{id}/scan/confirm", "confirmScan", "Start a scan that also makes the removals for which the last scan asked for confirmation", auth.LibrariesDelete).OnlyIfSeesAll(),
		func(ctx context.Context, in *httpapi.IDInput) (*Status, error) {
			p, err := held(ctx, d, in.ID)
			if err != nil {
				return nil, err
			}
			return begin(ctx, in.ID, p)
		})
	httpapi.Register(a, operation("POST", "/series/{id}/scan", "scanSeries", "Start a scan of the folder that holds all books of a series, or of the whole library if there is no such folder (mode deep: 409)", auth.LibrariesWrite),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			ModeInput
		}) (*Status, error) {
			library, folder, err := folderOf(ctx, d, in.ID)
			if err != nil {
				return nil, err
			}
			if folder == "" && in.Mode == Deep {
				return nil, fault.New(fault.Conflict, "No folder holds all books of this series, so that a deep scan would read every file of the library again; "+
					"start a deep scan of the library, or analyse the series")
			}
			return begin(ctx, library, Params{Mode: in.Mode, Path: folder})
		})
	httpapi.Register(a, operation("POST", "/libraries/{id}/scan/cancel", "cancelScan", "Cancel the running scan of a library", auth.LibrariesWrite),
		func(ctx context.Context, in *httpapi.IDInput) (*httpapi.None, error) {
			none, err := cancel(ctx, d, publish, in.ID)
			if err == nil {
				added.Tell(ctx, httpapi.TenantOf(ctx).ID)
			}
			return none, err
		})
}

// statuses registers the operations that report scan progress.
func statuses(a *httpapi.API, d *db.DB) {
	httpapi.Register(a, operation("GET", "/libraries/{id}/scan-status", "getScanStatus", "Get the latest scan of a library", auth.LibrariesRead),
		func(ctx context.Context, in *httpapi.IDInput) (*Status, error) {
			s, err := db.Get[Status](ctx, d, newest, in.ID)
			if err != nil {
				return nil, err
			}
			if s == nil {
				return nil, fault.New(fault.NotFound, "The library does not exist or was never scanned")
			}
			return s, nil
		})
	httpapi.Register(a, operation("GET", "/scans/active", "listActiveScans", "List the active scans", auth.LibrariesRead),
		func(ctx context.Context, in *struct{ httpapi.Paging }) (*httpapi.Page[Status], error) {
			all, err := db.List[Status](ctx, d, `select `+statusColumns+` from scan s join task t on t.tenant_id = s.tenant_id and t.id = s.id
				where s.tenant_id = app.tenant() and t.status in ('pending', 'running') order by s.id`)
			if err != nil {
				return nil, err
			}
			return httpapi.All(ctx, in.Paging, all), nil
		})
}

// purges registers the operations that permanently delete books whose files are gone.
func purges(a *httpapi.API, d *db.DB, added task.Added) {
	httpapi.Register(a, operation("DELETE", "/libraries/{id}/purge-deleted", "purgeLibrary", "Permanently delete the books of a library whose files are gone", auth.LibrariesWrite).OnlyIfSeesAll(),
		func(ctx context.Context, in *httpapi.IDInput) (*task.Started, error) {
			return RequestPurge(ctx, d, added, &in.ID, nil)
		})
	httpapi.Register(a, operation("DELETE", "/series/{id}/purge-deleted", "purgeSeries", "Permanently delete the books of a series whose files are gone", auth.SeriesWrite),
		func(ctx context.Context, in *httpapi.IDInput) (*task.Started, error) {
			return RequestPurge(ctx, d, added, nil, &in.ID)
		})
}

// held returns the parameters of the newest scan, which was held before it removed books, with that number confirmed.
func held(ctx context.Context, d *db.DB, library uuid.UUID) (Params, error) {
	s, err := db.Get[Status](ctx, d, newest, library)
	switch {
	case err != nil:
		return Params{}, err
	case s == nil:
		return Params{}, fault.New(fault.NotFound, "The library does not exist or was never scanned")
	case s.RemovalsHeld == 0 || s.Status != task.Failed:
		return Params{}, fault.New(fault.Conflict, "The last scan of this library needs no confirmation; start a scan")
	}
	if s.FilesTotal == 0 && s.Path == "" {
		return Params{}, fault.New(fault.Conflict,
			"The last scan found no books at all, and a confirmation cannot remove all books of a library: check that the folder exists, or delete the library")
	}
	return Params{Mode: s.Mode, Path: s.Path, Removals: int(s.RemovalsHeld)}, nil
}

// folderOf returns the folder that holds all books of a series, including those whose files are gone; empty for the
// root.
func folderOf(ctx context.Context, d *db.DB, series uuid.UUID) (library uuid.UUID, folder string, err error) {
	at, err := db.Get[struct {
		Library uuid.UUID `db:"library_id"`
		First   *string   `db:"first"`
		Last    *string   `db:"last"`
	}](ctx, d, `select s.library_id, min(b.key) as first, max(b.key) as last from series s
		left join book b on b.tenant_id = s.tenant_id and b.series_id = s.id where s.tenant_id = app.tenant() and s.id = $1 group by 1`, series)
	if err != nil {
		return library, "", err
	}
	if at == nil {
		return library, "", fault.Missing("Series")
	}
	if at.First != nil { // the common part of the first and last key is common to all between
		folder = common(*at.First, *at.Last)
	}
	return at.Library, folder, nil
}

// common returns the common folder of two keys.
func common(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return a[:max(strings.LastIndexByte(a[:n], '/'), 0)]
}

// cancel cancels the scan and all its pending children. A batch that is being written completes; after the cancellation
// nothing more is written.
func cancel(ctx context.Context, d *db.DB, publish events.Publish, library uuid.UUID) (*httpapi.None, error) {
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
