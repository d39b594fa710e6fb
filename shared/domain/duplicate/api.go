package duplicate

import (
	"context"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Routes registers the operations on duplicates.
func Routes(a *httpapi.API, d *db.DB, added task.Added) {
	op := httpapi.Group{Path: "/api/v1/duplicates", Tag: "Duplicates"}.Op
	httpapi.Register(a, op("GET", "", "listDuplicates", "List the groups of books with the same content", auth.BooksRead),
		func(ctx context.Context, in *struct{ httpapi.Paging }) (*GroupPage, error) {
			page, totals, err := list(ctx, d, in.Limit(), in.Offset())
			if err != nil {
				return nil, err
			}
			return &GroupPage{*httpapi.NewPage(ctx, in.Paging, page, totals.TotalGroups), *totals}, nil
		})
	httpapi.Register(a, op("POST", "/scan", "findDuplicates", "Start the task that finds duplicates", auth.BooksWrite),
		func(ctx context.Context, _ *struct{}) (*task.Started, error) {
			s, err := start(ctx, d)
			if err == nil {
				added.Tell(ctx, httpapi.TenantOf(ctx).ID)
			}
			return s, err
		})
	httpapi.Register(a, op("DELETE", "/{id}", "dismissDuplicate", "Dismiss a group of books; it is listed again when other books belong to it", auth.BooksWrite).OnlyIfSeesAll(),
		func(ctx context.Context, in *httpapi.IDInput) (*httpapi.None, error) {
			return nil, dismiss(ctx, d, in.ID)
		})
	httpapi.Register(a, op("GET", "/series", "listSeriesDuplicates", "List the groups of series that are likely the same", auth.SeriesRead),
		func(ctx context.Context, in *struct {
			MatchType string `query:"matchType" enum:"external_id,title" doc:"Only groups with this match type"`
			httpapi.Paging
		}) (*SeriesPage, error) {
			page, total, totals, err := listSeries(ctx, d, in.MatchType, in.Limit(), in.Offset())
			if err != nil {
				return nil, err
			}
			return &SeriesPage{*httpapi.NewPage(ctx, in.Paging, page, total), *totals}, nil
		})
	httpapi.Register(a, op("DELETE", "/series/{id}", "dismissSeriesDuplicate", "Dismiss a group of series; it is listed again when other series join it", auth.SeriesWrite).OnlyIfSeesAll(),
		func(ctx context.Context, in *httpapi.IDInput) (*httpapi.None, error) {
			return nil, dismissSeries(ctx, d, in.ID)
		})
}
