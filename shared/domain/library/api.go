package library

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/filesystem"
	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/domain/scan/follow"
	"github.com/longbox/longbox/shared/domain/strategy"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// CreateInput is a library to add.
type CreateInput struct {
	Body struct {
		Name string `json:"name" minLength:"1" maxLength:"200"`
		Path string `json:"path" minLength:"1" maxLength:"4096" doc:"Absolute path or s3://bucket/prefix, below one of the roots that /filesystem/drives lists"`
		Settings
		ScanImmediately bool `json:"scanImmediately,omitempty" doc:"Start a scan as soon as the library is created"`
	}
}

// UpdateInput holds the fields to change.
type UpdateInput struct {
	httpapi.IDInput
	Body struct {
		Name httpapi.Optional[string] `json:"name,omitempty" minLength:"1" maxLength:"200" nullable:"false"`
		Path httpapi.Optional[string] `json:"path,omitempty" minLength:"1" maxLength:"4096" nullable:"false"`
		Settings
	}
}

// Abandon aborts the open uploads to a library that is about to be deleted; see package upload. Without done, another
// call continues.
type Abandon func(ctx context.Context, library uuid.UUID) (done bool, err error)

// Routes registers the operations on libraries. bump is called after a library was deleted, so that no cached page of
// it is served.
func Routes(a *httpapi.API, d *db.DB, publish events.Publish, store Store, added task.Added, bump events.AccessChanged, abandon Abandon) {
	tell := func(ctx context.Context, e ...events.Event) { publish(ctx, httpapi.TenantOf(ctx).ID, e...) }
	httpapi.Register(a, httpapi.Op{Method: "GET", Path: "/api/v1/libraries", ID: "listLibraries",
		Summary: "List libraries by name", Tag: "Libraries", Permission: auth.LibrariesRead}.Ahead(),
		func(ctx context.Context, in *struct{ httpapi.Paging }) (*httpapi.Page[Library], error) {
			page, total, err := list(ctx, d, in.Limit(), in.Offset())
			if err != nil {
				return nil, err
			}
			return httpapi.NewPage(ctx, in.Paging, page, total), nil
		})
	httpapi.Register(a, httpapi.Op{Method: "GET", Path: "/api/v1/libraries/{id}", ID: "getLibrary",
		Summary: "Get a library", Tag: "Libraries", Permission: auth.LibrariesRead}.Ahead(),
		func(ctx context.Context, in *httpapi.IDInput) (*Library, error) { return get(ctx, d, in.ID) })
	httpapi.Register(a, httpapi.Op{Method: "POST", Path: "/api/v1/libraries", ID: "createLibrary", Status: 201,
		Summary: "Create a library", Tag: "Libraries", Permission: auth.LibrariesWrite, SeesAll: true},
		func(ctx context.Context, in *CreateInput) (*Library, error) {
			l, err := add(ctx, d, in, store)
			if err != nil {
				return nil, err
			}
			tell(ctx, events.LibraryCreated(l.ID))
			if in.Body.ScanImmediately {
				added.Tell(ctx, httpapi.TenantOf(ctx).ID)
			}
			return l, nil
		})
	httpapi.Register(a, httpapi.Op{Method: "POST", Path: "/api/v1/libraries/preview-scan", ID: "previewScan",
		Summary: "Preview what a scan would find, based on file and folder names only", Tag: "Libraries", Permission: auth.LibrariesWrite, SeesAll: true},
		func(ctx context.Context, in *PreviewInput) (*Preview, error) {
			return preview(ctx, d, in, store)
		})
	for _, method := range []string{"PUT", "PATCH"} {
		httpapi.Register(a, httpapi.Op{Method: method, Path: "/api/v1/libraries/{id}", ID: strings.ToLower(method) + "Library",
			Summary: "Update the given fields of a library", Tag: "Libraries", Permission: auth.LibrariesWrite, SeesAll: true},
			func(ctx context.Context, in *UpdateInput) (*Library, error) {
				l, changed, woken, err := edit(ctx, d, in, store)
				if err != nil || !changed {
					return l, err
				}
				happened := events.LibraryUpdated(l.ID)
				happened.Elsewhere = in.Body.Path.Set
				tell(ctx, happened)
				if woken {
					added.Tell(ctx, httpapi.TenantOf(ctx).ID)
				}
				return l, nil
			})
	}
	httpapi.Register(a, httpapi.Op{Method: "DELETE", Path: "/api/v1/libraries/{id}", ID: "deleteLibrary",
		Summary: "Delete a library with its series, books and progress; its files stay, and so do books whose files are now in another library", Tag: "Libraries", Permission: auth.LibrariesDelete, SeesAll: true},
		func(ctx context.Context, in *httpapi.IDInput) (*httpapi.None, error) {
			return nil, erase(ctx, d, in.ID, tell, added, bump, abandon)
		})
}

// erase deletes a library, and tells what has happened, also where only a part of it is gone.
func erase(ctx context.Context, d *db.DB, id uuid.UUID, tell func(context.Context, ...events.Event), added task.Added,
	bump events.AccessChanged, abandon Abandon) error {
	if err := awaited(ctx, d, id); err != nil {
		return err
	}
	end := time.Now().Add(removeTime)
	moved, err := leave(ctx, d, id, examineBooks, end)
	happened := follow.Events(moved)
	if follow.Again(moved) {
		added.Tell(ctx, httpapi.TenantOf(ctx).ID)
	}
	if err == nil { // no more uploads can begin: the library is inactive
		var done bool
		if done, err = abandon(ctx, id); err == nil && !done {
			err = errTooLarge
		}
	}
	if err != nil { // the library is inactive
		bump(ctx, httpapi.TenantOf(ctx).ID)
		tell(ctx, append(happened, events.LibraryUpdated(id))...)
		return err
	}
	tasks, found, err := remove(ctx, d, id, removeBooks, end)
	if !found {
		tell(ctx, happened...) // what has moved stays there
		if err == nil {
			err = fault.Missing("Library")
		}
		return err
	}
	bump(ctx, httpapi.TenantOf(ctx).ID)
	for _, t := range tasks {
		happened = append(happened, t.events(id)...)
	}
	if err == nil {
		happened = append(happened, events.LibraryDeleted(id))
	} else { // a part of it is gone
		happened = append(happened, events.LibraryUpdated(id))
	}
	tell(ctx, happened...)
	return err
}

func add(ctx context.Context, d *db.DB, in *CreateInput, folders filesystem.Store) (*Library, error) {
	l := blank()
	l.Name = in.Body.Name
	in.Body.Settings.apply(&l)
	at, err := checked(ctx, d, &l, in.Body.Path, folders)
	if err != nil {
		return nil, err
	}
	if l.ID, err = uuid.NewV7(); err != nil {
		return nil, err
	}
	zone, err := serverZone(ctx, d)
	if err != nil {
		return nil, err
	}
	next, err := nextScan(l, zone, time.Now())
	if err != nil {
		return nil, err
	}
	return create(ctx, d, &l, &at, next, in.Body.ScanImmediately)
}

func startScan(b *pgx.Batch, library uuid.UUID) error {
	return scan.StartAgain(b, library, scan.Params{Mode: scan.Normal}, uuid.Must(uuid.NewV7()), new(uuid.UUID))
}

// edit changes the library, unless nothing differs. woken reports that the library was reactivated and a scan was
// queued, which finds what was announced meanwhile.
func edit(ctx context.Context, d *db.DB, in *UpdateInput, folders filesystem.Store) (l *Library, changed, woken bool, err error) {
	var at *filesystem.Place
	if in.Body.Path.Set {
		path := in.Body.Path.Or("")
		found, err := locate(ctx, d, path, folders, true)
		if err == nil {
			at = &found
		} else if stays, failed := lies(ctx, d, in.ID, path); failed != nil {
			return nil, false, false, failed
		} else if !stays { // an unchanged path is accepted while its folder is away
			return nil, false, false, err
		}
	}
	l, changed, err = change(ctx, d, in.ID, at, func(l *Library) error {
		old := *l
		l.Name = in.Body.Name.Or(l.Name)
		in.Body.Settings.apply(l)
		bad := checkFixed(old, *l)
		if len(bad) == 0 {
			bad = check(l)
		}
		if !sameJSON(old.BookConfig, l.BookConfig) {
			of := l.strategies()
			of.SeriesConfig = nil // as it was
			bad = append(bad, strategy.Unknown(of)...)
		}
		woken = l.IsActive && !old.IsActive
		return fault.InvalidFields(bad)
	})
	return l, changed, woken, err
}

// lies reports whether the library has this path.
func lies(ctx context.Context, d *db.DB, id uuid.UUID, path string) (bool, error) {
	return db.GetValue[bool](ctx, d, "select exists (select from library where tenant_id = app.tenant() and id = $1 and path = $2)", id, path)
}

// checked validates a library and returns its place. It reads the tenant's roots even if the input is invalid: a caller
// without the permission learns nothing about the input.
func checked(ctx context.Context, d *db.DB, l *Library, path string, folders filesystem.Store) (filesystem.Place, error) {
	bad := append(check(l), strategy.Unknown(l.strategies())...)
	at, err := locate(ctx, d, path, folders, len(bad) == 0)
	if err == nil {
		err = fault.InvalidFields(bad)
	}
	return at, err
}

// locate finds the place of a path; look also checks that the folder exists, see [filesystem.Place.Exists].
func locate(ctx context.Context, d *db.DB, path string, folders filesystem.Store, look bool) (filesystem.Place, error) {
	all, err := filesystem.RootsOf(ctx, d)
	if err != nil {
		return filesystem.Place{}, err
	}
	at, err := filesystem.Locate(all, path)
	if err == nil && look {
		err = at.Exists(ctx, folders)
	}
	return at, err
}
