package series

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// terms adds the lists of all genres and tags that series have.
func terms(a *httpapi.API, d *db.DB) {
	for _, l := range []struct{ table, path, id, summary string }{
		{"genre", "/genres", "listGenres", "The genres that series have, by name"}, {"tag", "/tags", "listTags", "The tags that series have, by name"},
	} {
		httpapi.Register(a, httpapi.Op{Method: "GET", Path: "/api/v1" + l.path, ID: l.id, Summary: l.summary, Tag: "Series", Permission: auth.SeriesRead},
			func(ctx context.Context, in *struct{ httpapi.Paging }) (*httpapi.Page[book.Term], error) {
				// What no series has any more stays in its table.
				from := " from " + l.table + " t where t.tenant_id = app.tenant() and exists (select from series_" + l.table +
					" x where x.tenant_id = app.tenant() and x." + l.table + "_id = t.id)"
				var b pgx.Batch
				var page []book.Term
				var total int64
				db.All(&b, &page, "select t.id, t.name, t.created_at, (select count(*) from series_"+l.table+" x where x.tenant_id = app.tenant() and x."+l.table+
					"_id = t.id) as series_count"+from+" order by lower(t.name), t.id limit $1 offset $2", in.Limit(), in.Offset())
				db.Value(&b, &total, "select count(*)"+from)
				if err := d.Run(ctx, &b); err != nil {
					return nil, err
				}
				return httpapi.NewPage(ctx, in.Paging, page, total), nil
			})
	}
}
