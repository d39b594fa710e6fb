package duplicate

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// SeriesGroup is a group of series that are likely the same.
type SeriesGroup struct {
	ID             uuid.UUID      `json:"id" db:"id"`
	MatchType      string         `json:"matchType" db:"match_type" enum:"external_id,title"`
	MatchKey       string         `json:"matchKey" db:"match_key" doc:"What the series share: the normalised title, or the source and its external id"`
	LibraryID      *uuid.UUID     `json:"libraryId" db:"library_id" doc:"Library of series with the same title; null for series with the same external id, which may be in any library"`
	DuplicateCount int            `json:"duplicateCount" db:"count" doc:"Number of series"`
	Members        []SeriesMember `json:"members" db:"-" nullable:"false"`
	CreatedAt      time.Time      `json:"createdAt" db:"created_at"`
	UpdatedAt      time.Time      `json:"updatedAt" db:"updated_at"`
}

// SeriesMember is a series of a group.
type SeriesMember struct {
	ID          uuid.UUID `json:"id" db:"id"`
	Title       string    `json:"title" db:"title"`
	LibraryID   uuid.UUID `json:"libraryId" db:"library_id"`
	LibraryName string    `json:"libraryName" db:"library_name"`
	BookCount   int64     `json:"bookCount" db:"book_count"`
	UpdatedAt   time.Time `json:"updatedAt" db:"updated_at"`
}

// SeriesTotals counts all groups, regardless of filters.
type SeriesTotals struct {
	ExternalIDGroups     int64 `json:"externalIdGroups" db:"external_id_groups"`
	TitleGroups          int64 `json:"titleGroups" db:"title_groups"`
	TotalGroups          int64 `json:"totalGroups" db:"total_groups"`
	TotalDuplicateSeries int64 `json:"totalDuplicateSeries" db:"total_series" doc:"Number of series in all groups; a series in two groups counts twice"`
}

// SeriesPage is a page of groups, with the counts per kind.
type SeriesPage struct {
	httpapi.Page[SeriesGroup]
	SeriesTotals
}

type memberRow struct {
	SeriesMember
	Group uuid.UUID `db:"group_id"`
}

// The kinds of groups.
const (
	byTitle      = "title"
	byExternalID = "external_id"
)

// trusted selects the trusted sources of ids: setting duplicate_detection.trusted_external_id_sources.
const trusted = `(select jsonb_array_elements_text(t.value::jsonb) from setting t
	where t.tenant_id = app.tenant() and t.key = '` + setting.TrustedSources + `')`

// seriesGroups joins the groups with their current series in the order of their ids, null if none is left.
const seriesGroups = ` from series_duplicate g cross join lateral (
	  select array_agg(x.id order by x.id) as series from (
	    select s.id from series s where g.library_id is not null and s.tenant_id = app.tenant() and s.library_id = g.library_id
	      and s.search_title = g.value and s.book_count > 0
	    union
	    select s.id from external_id e join series s on s.tenant_id = app.tenant() and s.id = e.series_id and s.book_count > 0
	    where g.source is not null and e.tenant_id = app.tenant() and e.source = g.source and e.external_id = g.value
	      and e.source in ` + trusted + `) x) m
	where g.tenant_id = app.tenant()`

// shownSeries excludes dismissed groups that no series has joined since.
const shownSeries = seriesGroups + ` and cardinality(m.series) > 1 and not coalesce(m.series <@ g.dismissed, false)`

// listSeries returns a page of the groups of a kind ("" for both), oldest first, their total, and the counts per kind
// in one round trip.
func listSeries(ctx context.Context, d *db.DB, kind string, limit, offset int) ([]SeriesGroup, int64, *SeriesTotals, error) {
	page := shownSeries + ` and ($1 = '' or ($1 = 'title') = (g.source is null)) order by g.created_at, g.id limit $2 offset $3`
	var b pgx.Batch
	var groups []SeriesGroup
	var members []memberRow
	var totals *SeriesTotals
	db.All(&b, &groups, `select g.id, case when g.source is null then 'title' else 'external_id' end as match_type,
		coalesce(g.source || ':', '') || g.value as match_key, g.library_id, cardinality(m.series) as count, g.created_at, g.updated_at`+page, kind, limit, offset)
	db.All(&b, &members, `select p.id as group_id, s.id, s.title, s.library_id, l.name as library_name, s.book_count, s.updated_at
		from (select g.id, m.series`+page+`) p join series s on s.tenant_id = app.tenant() and s.id = any(p.series)
		join library l on l.tenant_id = s.tenant_id and l.id = s.library_id order by p.id, l.name, s.title_sort, s.id`, kind, limit, offset)
	db.One(&b, &totals, `select count(*) filter (where g.source is not null) as external_id_groups, count(*) filter (where g.source is null) as title_groups,
		count(*) as total_groups, coalesce(sum(cardinality(m.series)), 0)::bigint as total_series`+shownSeries)
	if err := d.Run(ctx, &b); err != nil {
		return nil, 0, nil, err
	}
	of := map[uuid.UUID][]SeriesMember{}
	for _, m := range members {
		of[m.Group] = append(of[m.Group], m.SeriesMember)
	}
	for i := range groups {
		groups[i].Members = of[groups[i].ID]
	}
	total := totals.TotalGroups
	switch kind {
	case byTitle:
		total = totals.TitleGroups
	case byExternalID:
		total = totals.ExternalIDGroups
	}
	return groups, total, totals, nil
}

// dismissSeries hides a group until other series join it.
func dismissSeries(ctx context.Context, d *db.DB, id uuid.UUID) error {
	n, err := db.Exec(ctx, d, `update series_duplicate k set dismissed = f.series, updated_at = now()
		from (select g.id, m.series`+shownSeries+` and g.id = $1) f where k.tenant_id = app.tenant() and k.id = f.id`, id)
	if err == nil && n == 0 {
		err = fault.Missing("Group of duplicates")
	}
	return err
}

// queueSeries finds the groups of series, as Find does for books.
func queueSeries(b *pgx.Batch, out *Result) {
	db.Affected(b, &out.SeriesRemoved, `delete from series_duplicate k using (select g.id`+seriesGroups+`
		and coalesce(cardinality(m.series), 0) < case when g.dismissed is null then 2 else 1 end) f where k.tenant_id = app.tenant() and k.id = f.id`)
	db.Affected(b, &out.SeriesFound, `insert into series_duplicate (tenant_id, id, library_id, source, value)
		select app.tenant(), gen_random_uuid(), library_id, null, search_title from series
		where tenant_id = app.tenant() and search_title <> '' and book_count > 0 group by library_id, search_title having count(*) > 1
		union all
		select app.tenant(), gen_random_uuid(), null, e.source, e.external_id from external_id e
		join series s on s.tenant_id = app.tenant() and s.id = e.series_id and s.book_count > 0
		where e.tenant_id = app.tenant() and e.source in `+trusted+` group by e.source, e.external_id having count(*) > 1
		on conflict do nothing`)
}
