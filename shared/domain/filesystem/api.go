package filesystem

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Routes registers browsing, for administrators only.
func Routes(a *httpapi.API, d *db.DB, store Store) {
	httpapi.Register(a, httpapi.Op{Method: "GET", Path: "/api/v1/filesystem/drives", ID: "listDrives",
		Summary: "List the folders that libraries may use", Tag: "Filesystem", Permission: auth.SystemAdmin},
		func(ctx context.Context, in *struct{ httpapi.Paging }) (*httpapi.Page[Entry], error) {
			roots, err := RootsOf(ctx, d)
			if err != nil {
				return nil, err
			}
			return httpapi.All(ctx, in.Paging, drives(roots)), nil
		})
	httpapi.Register(a, httpapi.Op{Method: "GET", Path: "/api/v1/filesystem/browse", ID: "browseFilesystem",
		Summary: "List the content of a folder; without a path, list the root folders", Tag: "Filesystem", Permission: auth.SystemAdmin, SeesAll: true},
		func(ctx context.Context, in *struct {
			Path  string `query:"path" maxLength:"2048" doc:"Absolute path of a drive or of a folder below one, or s3://bucket/prefix"`
			After string `query:"after" maxLength:"1024" doc:"The next of a truncated listing of the same folder: lists the entries after it"`
		}) (*Listing, error) {
			roots, err := RootsOf(ctx, d)
			if err != nil {
				return nil, err
			}
			if in.Path == "" {
				return &Listing{Entries: drives(roots)}, nil
			}
			return browse(ctx, roots, store, in.Path, in.After)
		})
}

// RootsOf returns the folders that the operator gave the tenant.
func RootsOf(ctx context.Context, d *db.DB) ([]Root, error) {
	var b pgx.Batch
	var out []Root
	Roots(&b, &out)
	return out, d.Run(ctx, &b)
}
