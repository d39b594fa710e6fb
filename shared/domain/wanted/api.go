package wanted

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Routes registers the operations on the caller's want-to-read list.
func Routes(a *httpapi.API, d *db.DB) {
	op := httpapi.Group{Path: "/api/v1/want-to-read", Tag: "Want to read"}.For(auth.BooksRead)
	httpapi.Register(a, op("GET", "", "listWanted", "List the caller's want-to-read list"),
		func(ctx context.Context, in *struct {
			httpapi.Paging
			Sort string `query:"sort" enum:"newest,oldest,custom" default:"newest" doc:"Sort order: newest and oldest by time of addition, custom by the caller's own order"`
		}) (*httpapi.Page[Entry], error) {
			page, total, err := list(ctx, d, in.Sort, in.Limit(), in.Offset())
			if err != nil {
				return nil, err
			}
			return httpapi.NewPage(ctx, in.Paging, page, total), nil
		})
	one := op("POST", "", "addWanted", "Add a series or book to the caller's want-to-read list; adding an existing one changes nothing")
	one.Status = 201
	httpapi.Register(a, one,
		func(ctx context.Context, in *struct{ Body Item }) (*Entry, error) {
			if (in.Body.SeriesID == nil) == (in.Body.BookID == nil) {
				return nil, fault.Invalid("seriesId", "send either seriesId or bookId")
			}
			return add(ctx, d, in.Body)
		})
	httpapi.Register(a, op("POST", "/bulk", "addAllWanted", "Add several series and books to the caller's want-to-read list"),
		func(ctx context.Context, in *struct{ Body Items }) (*Added, error) {
			return addAll(ctx, d, in.Body)
		})
	httpapi.Register(a, op("PUT", "/order", "orderWanted", "Reorder the caller's want-to-read list"),
		func(ctx context.Context, in *struct {
			Body struct {
				IDs []uuid.UUID `json:"ids" nullable:"false" maxItems:"10000" doc:"Ids of entries in the wanted order; entries that are not listed follow in their current order; unknown ids are ignored"`
			}
		}) (*httpapi.None, error) {
			return nil, order(ctx, d, in.Body.IDs)
		})
	for _, k := range []struct{ path, id, what, column string }{
		{"series", "removeWantedSeries", "Series", "series_id"}, {"books", "removeWantedBook", "Book", "book_id"},
	} {
		httpapi.Register(a, op("DELETE", "/"+k.path+"/{id}", k.id, "Remove a "+strings.ToLower(k.what)+" from the caller's want-to-read list, if it is on it"),
			func(ctx context.Context, in *httpapi.IDInput) (*httpapi.None, error) {
				return nil, remove(ctx, d, k.what, k.column, in.ID)
			})
	}
}
