package scanner

import (
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/analysis"
	"github.com/longbox/longbox/shared/format/naming"
)

// queueSeriesMetadata lets a series take summary, publisher and year from its first book, all three or none and
// only while they are empty and unlocked; language and reading direction each while it is empty.
func queueSeriesMetadata(b *pgx.Batch, found []analyzed) {
	first := map[uuid.UUID]analyzed{}
	for _, a := range found {
		if a.Result == nil {
			continue
		}
		if have, ok := first[a.SeriesID]; !ok || naming.ComparePath(a.Key, have.Key) < 0 {
			first[a.SeriesID] = a
		}
	}
	var series, books []uuid.UUID
	var summaries, publishers, languages, directions []*string
	var years []*int
	for _, id := range sortedKeys(first) {
		a := first[id]
		m := a.Metadata
		if m.Summary == "" && m.Publisher == "" && m.Year == nil && m.LanguageISO == "" && a.Direction == "" {
			continue
		}
		series, books = append(series, id), append(books, a.ID)
		summaries, publishers = append(summaries, nonEmpty(m.Summary)), append(publishers, nonEmpty(m.Publisher))
		languages, directions, years = append(languages, nonEmpty(m.LanguageISO)), append(directions, nonEmpty(a.Direction)), append(years, m.Year)
	}
	if len(series) == 0 {
		return
	}
	b.Queue(`update series s set
		  summary = case when u.fill and not 'summary' = any(s.locks) then u.summary else s.summary end,
		  publisher = case when u.fill and not 'publisher' = any(s.locks) then u.publisher else s.publisher end,
		  year = case when u.fill and not 'year' = any(s.locks) then u.year else s.year end,
		  language = case when 'language' = any(s.locks) then s.language else coalesce(s.language, u.language) end,
		  reading_direction = case when 'readingDirection' = any(s.locks) then s.reading_direction else coalesce(s.reading_direction, u.direction) end,
		  updated_at = now()
		from (
		  select u.*, t.summary is null and t.publisher is null and t.year is null as fill
		  from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::integer[], $6::text[], $7::text[])
		    as u(series_id, book_id, summary, publisher, year, language, direction)
		  join series t on t.tenant_id = app.tenant() and t.id = u.series_id
		  where u.book_id = (select k.id from book k where k.tenant_id = app.tenant() and k.series_id = u.series_id and k.deleted_at is null
		    order by k.key collate natural_order, k.key limit 1)) u
		where s.tenant_id = app.tenant() and s.id = u.series_id
		  and (u.fill and num_nonnulls(u.summary, u.publisher, u.year) > 0 or s.language is null and u.language is not null
		    or s.reading_direction is null and u.direction is not null)`,
		series, books, summaries, publishers, years, languages, directions)
}

// queueTaxonomy adds the names that the books carry to their series, unless the series' set is locked. Names are
// inserted in one order so that two writers cannot deadlock.
func queueTaxonomy(b *pgx.Batch, table, lock string, found []analyzed, of func(*analysis.Result) []string) {
	var series []uuid.UUID
	var names []string
	for _, a := range found {
		if a.Result == nil {
			continue
		}
		for _, name := range of(a.Result) {
			if name = strings.TrimSpace(name); name != "" && len(name) <= 200 {
				series, names = append(series, a.SeriesID), append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return
	}
	b.Queue(`insert into `+table+` (tenant_id, id, name)
		select app.tenant(), gen_random_uuid(), n.name from (select distinct on (lower(name)) name from unnest($1::text[]) u(name) order by lower(name), name) n
		on conflict (tenant_id, lower(name)) do nothing`, names)
	b.Queue(`insert into series_`+table+` (tenant_id, series_id, `+table+`_id)
		select distinct app.tenant(), u.series_id, g.id from unnest($1::uuid[], $2::text[]) u(series_id, name)
		join `+table+` g on g.tenant_id = app.tenant() and lower(g.name) = lower(u.name)
		join series s on s.tenant_id = app.tenant() and s.id = u.series_id and not $3 = any(s.locks)
		on conflict do nothing`, series, names, lock)
}

func sortedKeys(m map[uuid.UUID]analyzed) []uuid.UUID {
	out := make([]uuid.UUID, 0, len(m))
	for id := range m {
		out = append(out, id)
	}
	slices.SortFunc(out, func(a, b uuid.UUID) int { return strings.Compare(a.String(), b.String()) })
	return out
}
