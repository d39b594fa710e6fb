package series

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/filter"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// row is a row of a page.
type row struct {
	Series
	LibraryPath string  `db:"library_path"`
	Key         string  `db:"path"`
	Pictured    bool    `db:"pictured"` // there is a cover picture beside its books
	Chosen      *string `db:"chosen"`   // what was chosen as its cover, as clients see it; null when that is not there
}

func (r row) series() Series {
	s := r.Series
	s.Path = Folder(r.LibraryPath, r.Key)
	switch {
	case r.Chosen != nil:
		s.SelectedCoverSource = *r.Chosen
	case r.Pictured:
		s.SelectedCoverSource = "file"
	default:
		s.SelectedCoverSource = "first_book"
	}
	return s
}

// Folder returns the displayed folder of a series; path is the column of its table.
func Folder(library, path string) string {
	if strings.HasPrefix(path, "/") { // the files are all over the library
		return library
	}
	return book.Join(library, path)
}

// sql selects the rows of one page, one index lookup per id and table ("limit 1" and the lateral aggregate keep the
// planner from reading whole tables). The last two parameters are limit and offset.
func (q query) sql() string {
	return "with page as materialized (select id, row_number() over () as pos from (" + q.page() + `) x),
	  ` + progress.MineOfPageSQL + `
	select s.id, s.library_id, l.name as library_name, l.path as library_path, s.title, s.title_sort, s.path, s.summary, s.publisher,
	  s.year, s.book_count, c.unread_count, c.max_volume, c.max_chapter, c.volumes_owned, s.created_at, s.updated_at,
	  coalesce(t.tracked, false) as tracked, g.chapter_gap, g.volume_gap, ` + gapProvider + ` as gap_provider,
	  exists (select from sidecar k where k.tenant_id = app.tenant() and k.library_id = s.library_id and k.about = s.path
	    and k.kind = 'cover' and k.document is not null) as pictured,
	  exists (select from wanted w where w.tenant_id = app.tenant() and w.account_id = app.account() and w.series_id = s.id) as wanted,
	  exists (select from series_cover c where c.tenant_id = app.tenant() and c.series_id = s.id and c.source = 'custom') as custom,
	  case when s.cover_source like 'book:%' then (select s.cover_source from book b where b.tenant_id = app.tenant()
	    and b.id = substr(s.cover_source, 6)::uuid and b.series_id = s.id and b.deleted_at is null)
	  when s.cover_source like 'custom:%' then (select c.source from series_cover c where c.tenant_id = app.tenant()
	    and c.id = substr(s.cover_source, 8)::uuid and c.series_id = s.id)
	  when s.cover_source = 'first_book' then s.cover_source end as chosen
	from page
	cross join lateral (select x.id, x.library_id, x.title, x.title_sort, x.path, x.cover_source, x.summary, x.publisher, x.year, x.book_count,
	  x.total_chapter_count, x.total_volume_count, x.created_at, x.updated_at from series x where x.tenant_id = app.tenant() and x.id = page.id limit 1) s
	cross join lateral (select x.name, x.path from library x where x.tenant_id = app.tenant() and x.id = s.library_id limit 1) l
	cross join lateral (select max(b.volume) as max_volume, max(b.chapter) as max_chapter,
	    count(*) filter (where b.volume is not null and b.chapter is null) as volumes_owned,
	    count(*) filter (where (` + progress.CompletedSQL + `) is not true) as unread_count
	  from book b where b.tenant_id = app.tenant() and b.series_id = page.id and b.deleted_at is null) c
	left join lateral (select x.tracked, x.track_chapters, x.track_volumes from series_tracking x
	  where x.tenant_id = app.tenant() and x.series_id = page.id limit 1) t on true
	cross join lateral (select
	  case when t.tracked and t.track_chapters and s.total_chapter_count > c.max_chapter
	    then nullif(round((s.total_chapter_count - c.max_chapter)::numeric, 1), 0)::double precision end as chapter_gap,
	  case when t.tracked and t.track_volumes and s.total_volume_count > c.max_volume then s.total_volume_count - c.max_volume end as volume_gap) g
	order by page.pos`
}

// gapProvider is SQL for the source of the volume or chapter count of series s: the plugin that matched it last.
const gapProvider = `case when num_nonnulls(g.chapter_gap, g.volume_gap) > 0 then (
	    select coalesce(p.display_name, substr(x.source, 8)) from external_id x
	    left join plugin p on p.tenant_id = app.tenant() and p.name = substr(x.source, 8)
	    where x.tenant_id = app.tenant() and x.series_id = s.id and starts_with(x.source, 'plugin:')
	    order by x.last_synced_at desc nulls last, x.updated_at desc, x.id limit 1) end`

// query is a list: a select of ids in order, and the statement for the total.
type query struct {
	ids, total      string
	args, totalArgs []any
	skips           bool // ids itself skips the rows before the offset
}

// page returns the select of the ids of one page.
func (q query) page() string {
	if q.skips {
		return q.ids + fmt.Sprintf(" limit $%d", len(q.args)+1)
	}
	return q.ids + fmt.Sprintf(" limit $%d offset $%d", len(q.args)+1, len(q.args)+2)
}

// answer returns a page of a list.
func answer(ctx context.Context, d *db.DB, list listing, s scope, in book.ListInput) (*httpapi.Page[Entry], error) {
	field, desc, err := s.order(in.Sorting)
	if err != nil {
		return nil, err
	}
	p := in.Of(in.Paging)
	var b pgx.Batch
	known := true
	if s.named {
		db.Value(&b, &known, "select exists (select from library where tenant_id = app.tenant() and id = $1)", *s.library)
	}
	load := list(s, field, desc).queueEntries(&b, p, in.Full)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if !known {
		return nil, fault.Missing("Library")
	}
	page, total := load()
	return httpapi.NewPage(ctx, p, page, total), nil
}

// queue adds a page and the total of the list to the batch; load returns both after the batch has run.
func (q query) queue(b *pgx.Batch, limit, offset int) (load func() ([]Series, int64)) {
	var rows []row
	var total int64
	db.All(b, &rows, q.sql(), append(append([]any{}, q.args...), limit, offset)...)
	db.Value(b, &total, q.total, q.totalArgs...)
	return func() ([]Series, int64) {
		out := make([]Series, len(rows))
		for i, r := range rows {
			out[i] = r.series()
		}
		return out, total
	}
}

// scope narrows a list.
type scope struct {
	library *uuid.UUID
	named   bool   // the list is one of the library: NotFound if that does not exist
	where   string // a compiled condition on s; its parameters come first
	args    []any
	find    *string // the search text for titles, normalized by naming.Normalize
}

// conditioned returns the scope of a condition: its library is the one that the condition requires.
func conditioned(condition json.RawMessage, find *string) (scope, error) {
	where, args, err := book.Condition(condition, fields, 1)
	if err != nil {
		return scope{}, err
	}
	return scope{library: filter.Required(condition, "libraryId"), where: where, args: args, find: find}, nil
}

// order returns the field to sort by (one of sortFields, or the search rank) and whether it is descending.
func (s scope) order(by httpapi.Sorting) (field string, desc bool, err error) {
	names := slices.Concat(sortFields, slices.Sorted(maps.Keys(sameFields)))
	if s.find == nil {
		by = by.Unranked(score)
	} else {
		by, names = by.BestFirst(score), append([]string{httpapi.Relevance}, names...)
	}
	field, desc, err = by.By(names...)
	return cmp.Or(sameFields[field], field), desc, err
}

// sorts maps sort fields to columns. Each has an index; the year, which may be null, has one per direction. Fields that
// only some series have are in ranks.
var sorts = map[string]string{"name": "s.title_sort", "date_added": "s.created_at", "date_updated": "s.updated_at",
	"release_date": "s.year", "book_count": "s.book_count", "file_size": "s.file_size", "filename": "s.path", "page_count": "s.page_count"}

// ranks maps the sort fields that only some series have to SQL for series_id and the value (at).
var ranks = map[string]string{
	"date_read":        read,
	"rating":           "select series_id, rating as at from series_rating where tenant_id = app.tenant() and account_id = app.account()",
	"community_rating": "select series_id, avg(rating) as at from series_rating where tenant_id = app.tenant() group by series_id",
	"external_rating":  "select series_id, avg(rating) as at from external_rating where tenant_id = app.tenant() group by series_id",
}

var sortFields = []string{"name", "date_added", "date_updated", "release_date", "date_read", "book_count", "file_size", "filename", "page_count",
	"rating", "community_rating", "external_rating"}

// score is another name of the search rank.
const score = "score"

// sameFields are other names of sortFields.
var sameFields = map[string]string{"created_at": "date_added", "updated_at": "date_updated", "year": "release_date", "user_rating": "rating",
	"avg_rating": "community_rating", score: httpapi.Relevance}

func (s scope) sql() (string, []any) {
	where, args := "s.tenant_id = app.tenant()", append([]any{}, s.args...)
	if s.where != "" {
		where += " and " + s.where
	}
	if s.library != nil {
		args = append(args, *s.library)
		where += fmt.Sprintf(" and s.library_id = $%d", len(args))
	}
	return where, args
}

// listing returns a list ordered by a field that scope.order allows; "" selects its default order.
type listing func(s scope, field string, desc bool) query

// all lists series by name.
func all(s scope, field string, desc bool) query { return listBy(s, cmp.Or(field, "name"), desc) }

// listBy lists series by a field.
func listBy(s scope, field string, desc bool) query {
	switch {
	case s.find != nil:
		return found(s, field, desc)
	case ranks[field] != "":
		return ranked(s, ranks[field], desc)
	}
	where, args := s.sql()
	return query{ids: "select s.id from series s where " + where + orderBy(field, desc), args: args}.counted(s, where)
}

// found lists the search results: one index lookup per result, titles only.
func found(s scope, field string, desc bool) query {
	from, args := s.from()
	q := query{args: args, total: "select count(*) " + from, totalArgs: args}
	if ranks[field] == "" {
		q.ids = "select s.id " + from + orderBy(field, desc)
		return q
	}
	q.ids = "select s.id from (select s.id, s.title_sort " + from + ") s" + byRank(ranks[field], desc) + ", s.title_sort, s.id"
	return q
}

func orderBy(field string, desc bool) string {
	switch {
	case field == httpapi.Relevance && desc:
		return " order by f.score desc, s.title_sort, s.id"
	case field == httpapi.Relevance:
		return " order by f.score, s.title_sort, s.id"
	case desc && field == "release_date":
		return " order by s.year desc nulls last, s.id desc"
	case desc:
		return " order by " + sorts[field] + " desc, s.id desc"
	}
	return " order by " + sorts[field] + ", s.id"
}

// counted adds the total: from the counters if they know it, else by counting.
func (q query) counted(s scope, where string) query {
	switch {
	case s.where != "":
		q.total, q.totalArgs = "select count(*) from series s where "+where, q.args
	case s.library != nil:
		q.total, q.totalArgs = "select app.total('series', $1)", []any{*s.library}
	default:
		q.total = "select app.total('series')"
	}
	return q
}

// read is SQL for the caller's progress per series: one index lookup per progress row.
const read = `select b.series_id, max(p.updated_at) as at, count(*) filter (where p.completed) as done, bool_or(not p.completed) as open,
	  bool_or(p.completed or p.current_page > 0) as begun
	from progress p cross join lateral (select b.series_id from book b
	  where b.tenant_id = app.tenant() and b.id = p.book_id and b.deleted_at is null limit 1) b
	where p.tenant_id = app.tenant() and p.account_id = app.account() group by b.series_id`

// ranked lists series by a field that only some have (rank, of ranks); the others follow by name. Only series with a
// value are sorted; the others come from the index. The second part of the query skips the rows of the offset that the
// first part has covered.
func ranked(s scope, rank string, desc bool) query {
	where, args := s.sql()
	n := len(args) // limit and offset are $n+1 and $n+2
	ids := fmt.Sprintf(`with these as materialized (
	    select r.series_id, r.at from (%s) r where (select true from series s where %s and s.id = r.series_id))
	  select id from (
	    select id, 1 as part, row_number() over () as nth from (
	      select series_id as id from these order by at%s, series_id limit $%d offset $%d) a
	    union all
	    select id, 2, row_number() over () from (
	      select s.id from series s where %s and s.id not in (select series_id from these)
	      order by s.title_sort, s.id limit $%d offset greatest(0, $%d - (select count(*) from these))) b) u
	  order by part, nth`, rank, where, direction(desc), n+1, n+2, where, n+1, n+2)
	return query{ids: ids, args: args, skips: true}.counted(s, where)
}

// byRank joins a rank to the series s and begins an order by in which series without a value come last.
func byRank(rank string, desc bool) string {
	return " left join (" + rank + ") r on r.series_id = s.id order by r.at" + direction(desc) + " nulls last"
}

func direction(desc bool) string {
	if desc {
		return " desc"
	}
	return ""
}

// inProgress lists the series with a book that the caller has begun, latest read first. Another order costs an index
// lookup per series; date_read goes through all of the caller's progress.
func inProgress(s scope, field string, desc bool) query {
	where, args := s.sql()
	from := `(select b.series_id, max(p.updated_at) as at from progress p
	    cross join lateral (select b.series_id from book b
	      where b.tenant_id = app.tenant() and b.id = p.book_id and b.deleted_at is null limit 1) b
	    where p.tenant_id = app.tenant() and p.account_id = app.account() and not p.completed group by b.series_id) r
	  where (select true from series s where ` + where + ` and s.id = r.series_id)`
	const looked = ` cross join lateral (
	  select x.id, x.title_sort, x.created_at, x.updated_at, x.year, x.book_count, x.file_size, x.path, x.page_count
	  from series x where x.tenant_id = app.tenant() and x.id = l.id limit 1) s`
	q := query{
		ids:  "select r.series_id as id from " + from + " order by r.at desc, r.series_id",
		args: args, total: "select count(*) from " + from, totalArgs: args,
	}
	switch {
	case field == "":
	case ranks[field] != "":
		q.ids = "select s.id from (" + q.ids + ") l" + looked + byRank(ranks[field], desc) + ", s.title_sort, s.id"
	default:
		q.ids = "select s.id from (" + q.ids + ") l" + looked + orderBy(field, desc)
	}
	return q
}
