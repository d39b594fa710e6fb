package rating

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Body is the caller's rating of a series.
type Body struct {
	Rating int32   `json:"rating" minimum:"1" maximum:"100"`
	Notes  *string `json:"notes,omitempty" maxLength:"10000" nullable:"true" doc:"Private notes that only the caller sees; if omitted, existing notes are removed"`
}

// Rating is the caller's rating of a series.
type Rating struct {
	ID        uuid.UUID `json:"id" db:"id"`
	SeriesID  uuid.UUID `json:"seriesId" db:"series_id"`
	Rating    int32     `json:"rating" db:"rating" minimum:"1" maximum:"100"`
	Notes     *string   `json:"notes" db:"notes"`
	CreatedAt time.Time `json:"createdAt" db:"created_at"`
	UpdatedAt time.Time `json:"updatedAt" db:"updated_at"`
}

// Average is the average rating of a series by all users of the tenant.
type Average struct {
	Average *float64 `json:"average" db:"average" minimum:"1" maximum:"100" doc:"Null if nobody has rated the series"`
	Count   int64    `json:"count" db:"count" minimum:"0"`
}

const (
	columns = "r.id, r.series_id, r.rating, r.notes, r.created_at, r.updated_at"
	mine    = " from series_rating r where r.tenant_id = app.tenant() and r.account_id = app.account()"
)

// Routes registers the operations on ratings.
func Routes(a *httpapi.API, d *db.DB) {
	op := httpapi.Group{Path: "/api/v1", Tag: "Ratings"}.For(auth.SeriesRead)
	own := op("GET", "/series/{id}/rating", "getRating", "Get the caller's rating of a series")
	own.MayBeEmpty = true
	httpapi.Register(a, own, func(ctx context.Context, in *httpapi.IDInput) (*Rating, error) {
		var out *Rating
		return out, progress.OfSeries(ctx, d, in.ID, func(b *pgx.Batch) { db.One(b, &out, "select "+columns+mine+" and r.series_id = $1", in.ID) })
	})
	httpapi.Register(a, op("PUT", "/series/{id}/rating", "putRating", "Set the caller's rating of a series"),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			Body Body
		}) (*Rating, error) {
			return set(ctx, d, in.ID, in.Body)
		})
	httpapi.Register(a, op("DELETE", "/series/{id}/rating", "deleteRating", "Delete the caller's rating of a series, if there is one"),
		func(ctx context.Context, in *httpapi.IDInput) (*httpapi.None, error) {
			return nil, progress.OfSeries(ctx, d, in.ID, func(b *pgx.Batch) { b.Queue("delete"+mine+" and r.series_id = $1", in.ID) })
		})
	httpapi.Register(a, op("GET", "/series/{id}/ratings/average", "getAverageRating", "Get the average rating of a series by all users"),
		func(ctx context.Context, in *httpapi.IDInput) (*Average, error) {
			var out *Average
			return out, progress.OfSeries(ctx, d, in.ID, func(b *pgx.Batch) {
				db.One(b, &out, "select avg(rating)::double precision as average, count(*) as count from series_rating where tenant_id = app.tenant() and series_id = $1", in.ID)
			})
		})
	httpapi.Register(a, op("GET", "/user/ratings", "listRatings", "List the caller's ratings of series, most recent first"),
		func(ctx context.Context, in *struct{ httpapi.Paging }) (*httpapi.Page[Rating], error) {
			var b pgx.Batch
			var page []Rating
			var total int64
			db.All(&b, &page, "select "+columns+mine+" order by r.updated_at desc, r.id limit $1 offset $2", in.Limit(), in.Offset())
			db.Value(&b, &total, "select count(*)"+mine)
			if err := d.Run(ctx, &b); err != nil {
				return nil, err
			}
			return httpapi.NewPage(ctx, in.Paging, page, total), nil
		})
}

func set(ctx context.Context, d *db.DB, id uuid.UUID, body Body) (*Rating, error) {
	if body.Notes != nil && strings.ContainsRune(*body.Notes, 0) {
		return nil, fault.Invalid("notes", "must not contain the character NUL")
	}
	out, err := db.Get[Rating](ctx, d, `insert into series_rating as r (tenant_id, account_id, series_id, id, rating, notes)
		select app.tenant(), app.account(), s.id, gen_random_uuid(), $2, $3 from series s where s.tenant_id = app.tenant() and s.id = $1
		on conflict (tenant_id, account_id, series_id) do update set rating = excluded.rating, notes = excluded.notes, updated_at = now()
		returning `+columns, id, body.Rating, body.Notes)
	if err != nil {
		return nil, err
	}
	if out == nil {
		return nil, fault.Missing("Series")
	}
	return out, nil
}

// First stores the caller's ratings (1 to 100, by series) for series that they have not rated yet, and returns those
// series.
func First(ctx context.Context, d *db.DB, ratings map[uuid.UUID]int32) ([]uuid.UUID, error) {
	ids := slices.SortedFunc(maps.Keys(ratings), func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	values := make([]int32, len(ids))
	for i, id := range ids {
		values[i] = ratings[id]
	}
	return db.ListValues[uuid.UUID](ctx, d, `insert into series_rating (tenant_id, account_id, series_id, id, rating)
		select s.tenant_id, app.account(), s.id, gen_random_uuid(), v.rating from unnest($1::uuid[], $2::integer[]) v(id, rating)
		join series s on s.tenant_id = app.tenant() and s.id = v.id on conflict (tenant_id, account_id, series_id) do nothing returning series_id`, ids, values)
}
