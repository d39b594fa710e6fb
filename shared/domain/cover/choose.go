package cover

import (
	"context"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// CoverSource is the source of a series' cover. A choice that does not exist (any more) counts as default.
type CoverSource struct {
	Source string `json:"source" maxLength:"107" example:"first_book" doc:"default (a picture beside the books, else the first book's cover), file, first_book, custom (the picture uploaded last), plugin: followed by the name of a plugin that provided a cover, or book: followed by the id of a book of the series"`
}

// chooseRoutes registers the operation by which people choose the cover of a series.
func chooseRoutes(a *httpapi.API, d *db.DB, publish events.Publish) {
	httpapi.Register(a, ofSeries.operation("PATCH", "/cover/source", "chooseSeriesCover", "Choose the cover of a series", ofSeries.Writing),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			Body CoverSource
		}) (*CoverSource, error) {
			at, err := chooseSource(ctx, d, in.ID, in.Body.Source)
			if err != nil {
				return nil, err
			}
			publish(ctx, httpapi.TenantOf(ctx).ID, events.CoverUpdated(events.SeriesEntity, in.ID, &at))
			return &in.Body, nil
		})
}

// chooseSource stores the choice and returns the library of the series.
func chooseSource(ctx context.Context, d *db.DB, id uuid.UUID, source string) (uuid.UUID, error) {
	var book *uuid.UUID
	chosen := &source
	given := source == "custom" || strings.HasPrefix(source, "plugin:")
	switch rest, isBook := strings.CutPrefix(source, "book:"); {
	case isBook:
		parsed, err := uuid.Parse(rest)
		if err != nil {
			return uuid.UUID{}, fault.Invalid("source", "must be book: and the id of a book of this series")
		}
		book, source = &parsed, "book:"+parsed.String()
	case source == "default":
		chosen = nil
	case source != "file" && source != "first_book" && !given:
		return uuid.UUID{}, fault.Invalid("source", "must be default, file, first_book, custom, plugin: and the name of a plugin, or book: and the id of a book of this series")
	}
	var b pgx.Batch
	var at, exists uuid.UUID
	db.Value(&b, &exists, "select library_id from series where tenant_id = app.tenant() and id = $1", id)
	db.Value(&b, &at, `update series s set cover_source = case when $4 then 'custom:' || c.id else $2 end, updated_at = now()
		from (select) x left join lateral (select id from series_cover where tenant_id = app.tenant() and series_id = $1 and source = $2
		  order by updated_at desc, id limit 1) c on true
		where s.tenant_id = app.tenant() and s.id = $1 and (not $4 or c.id is not null)
		  and ($3::uuid is null or exists (select from book b where b.tenant_id = app.tenant() and b.id = $3 and b.series_id = s.id)) returning s.library_id`, id, chosen, book, given)
	if err := d.Run(ctx, &b); err != nil {
		return uuid.UUID{}, err
	}
	switch {
	case exists == uuid.UUID{}:
		return uuid.UUID{}, fault.Missing("Series")
	case at == uuid.UUID{} && source == "custom":
		return uuid.UUID{}, fault.Invalid("source", "no picture was uploaded for this series")
	case at == uuid.UUID{} && given:
		return uuid.UUID{}, fault.Invalid("source", "this plugin gave no picture for this series")
	case at == uuid.UUID{}:
		return uuid.UUID{}, fault.Invalid("source", "the book does not belong to this series")
	}
	return at, nil
}
