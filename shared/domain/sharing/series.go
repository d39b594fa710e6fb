package sharing

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

func queueSeriesTags(b *pgx.Batch, dst *[]TagSummary, series uuid.UUID) {
	db.All(b, dst, `select t.id, t.name, t.description from series_sharing_tag x join sharing_tag t on t.tenant_id = x.tenant_id and t.id = x.sharing_tag_id
		where x.tenant_id = app.tenant() and x.series_id = $1 order by t.name collate natural_order`, series)
}

// queueLibrary reads the library of a series and locks the series until the end of the transaction; dst is nil if there
// is no such series. Every writer of a series' tags does so first.
func queueLibrary(b *pgx.Batch, dst **uuid.UUID, series uuid.UUID) {
	db.Value(b, dst, "select library_id from series where tenant_id = app.tenant() and id = $1 for no key update", series)
}

func seriesTags(ctx context.Context, d *db.DB, series uuid.UUID) (out []TagSummary, err error) {
	return out, progress.OfSeries(ctx, d, series, func(b *pgx.Batch) { queueSeriesTags(b, &out, series) })
}

// changed publishes that the visibility of a series has changed; a nil library means that there is no such series.
func (s *service) changed(ctx context.Context, series uuid.UUID, library *uuid.UUID) error {
	if library == nil {
		return fault.Missing("Series")
	}
	tenant := httpapi.TenantOf(ctx).ID
	s.bump(ctx, tenant)
	s.publish(ctx, tenant, events.SeriesUpdated(events.Series{ID: series, LibraryID: *library}, "sharingTags"))
	return nil
}

// replaceSeriesTags sets the tags of a series; BadRequest, without any change, if one does not exist.
func (s *service) replaceSeriesTags(ctx context.Context, series uuid.UUID, ids []uuid.UUID) ([]TagSummary, error) {
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	ids = slices.Compact(ids)
	const there = ` and exists (select from series s where s.tenant_id = app.tenant() and s.id = $1)
		and (select count(*) from sharing_tag t where t.tenant_id = app.tenant() and t.id = any($2)) = cardinality($2::uuid[])`
	var b pgx.Batch
	var library *uuid.UUID
	var unknown []uuid.UUID
	var out []TagSummary
	queueLibrary(&b, &library, series)
	db.Values(&b, &unknown, "select u.id from unnest($1::uuid[]) u(id) where not exists (select from sharing_tag t where t.tenant_id = app.tenant() and t.id = u.id)", ids)
	// One statement: after the first of two the caller might no longer see the series.
	b.Queue("with gone as (delete from series_sharing_tag where tenant_id = app.tenant() and series_id = $1 and sharing_tag_id <> all($2)"+there+`)
		insert into series_sharing_tag (tenant_id, series_id, sharing_tag_id) select app.tenant(), $1, t.id from sharing_tag t
		where t.tenant_id = app.tenant() and t.id = any($2)`+there+" order by t.id on conflict do nothing", series, ids)
	queueSeriesTags(&b, &out, series)
	if err := s.database.Run(ctx, &b); err != nil {
		return nil, err
	}
	if library != nil && len(unknown) > 0 {
		return nil, fault.Invalid("sharingTagIds", "there is no sharing tag with the id %s", unknown[0])
	}
	return out, s.changed(ctx, series, library)
}

// addSeriesTag adds a tag to a series, and returns all its tags.
func (s *service) addSeriesTag(ctx context.Context, series, tag uuid.UUID) ([]TagSummary, error) {
	var b pgx.Batch
	var library *uuid.UUID
	var exists bool
	var out []TagSummary
	queueLibrary(&b, &library, series)
	tags.queueExists(&b, &exists, tag)
	b.Queue(`insert into series_sharing_tag (tenant_id, series_id, sharing_tag_id) select s.tenant_id, s.id, t.id from series s
		join sharing_tag t on t.tenant_id = s.tenant_id and t.id = $2 where s.tenant_id = app.tenant() and s.id = $1 on conflict do nothing`, series, tag)
	queueSeriesTags(&b, &out, series)
	if err := s.database.Run(ctx, &b); err != nil {
		return nil, err
	}
	if library != nil && !exists {
		return nil, fault.Invalid("sharingTagId", "there is no such sharing tag")
	}
	return out, s.changed(ctx, series, library)
}

func (s *service) dropSeriesTag(ctx context.Context, series, tag uuid.UUID) error {
	var b pgx.Batch
	var library *uuid.UUID
	var n int64
	queueLibrary(&b, &library, series)
	db.Affected(&b, &n, `delete from series_sharing_tag x where x.tenant_id = app.tenant() and x.series_id = $1 and x.sharing_tag_id = $2
		and exists (select from series s where s.tenant_id = app.tenant() and s.id = $1)`, series, tag)
	if err := s.database.Run(ctx, &b); err != nil {
		return err
	}
	if library != nil && n == 0 {
		return fault.New(fault.NotFound, "The series has no such sharing tag")
	}
	return s.changed(ctx, series, library)
}
