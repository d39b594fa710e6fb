package export

import (
	"context"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

var op = httpapi.Group{Path: "/api/v1/user/exports/series", Tag: "Exports"}.Op

// Routes registers the operations on the caller's exports, except the download.
func Routes(a *httpapi.API, d *db.DB, added task.Added) {
	httpapi.Register(a, op("GET", "", "listExports", "List the caller's exports, latest first", httpapi.SignedIn),
		func(ctx context.Context, in *struct{ httpapi.Paging }) (*httpapi.Page[Export], error) {
			page, total, err := list(ctx, d, in.Limit(), in.Offset())
			if err != nil {
				return nil, err
			}
			return httpapi.NewPage(ctx, in.Paging, page, total), nil
		})
	// An API key without the permission to read series must not get them in a file.
	add := op("POST", "", "createExport", "Create an export of what the caller may see, with their progress; books also require BooksRead", auth.SeriesRead)
	add.Status = 201
	httpapi.Register(a, add,
		func(ctx context.Context, in *struct{ Body Body }) (*Export, error) {
			return create(ctx, d, added, &in.Body)
		})
	httpapi.Register(a, op("GET", "/fields", "listExportFields", "List the fields of series and books that can be exported", httpapi.Public),
		func(context.Context, *struct{}) (*Catalog, error) { return catalog(), nil })
	httpapi.Register(a, op("GET", "/{id}", "getExport", "Get an export of the caller", httpapi.SignedIn),
		func(ctx context.Context, in *httpapi.IDInput) (*Export, error) { return get(ctx, d, in.ID) })
	httpapi.Register(a, op("DELETE", "/{id}", "deleteExport", "Delete an export of the caller; works for unfinished exports, too", httpapi.SignedIn),
		func(ctx context.Context, in *httpapi.IDInput) (*httpapi.None, error) {
			return nil, remove(ctx, d, in.ID)
		})
}
