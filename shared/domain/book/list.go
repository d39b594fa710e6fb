package book

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/filter"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// query is a list: a select of ids in order, and the statement for the total.
type query struct {
	ids, total      string
	args, totalArgs []any
	skips           bool   // ids itself skips the rows before the offset
	back            string // ids in the opposite order, if pages may be read from the end; total has the same parameters
}

func limits(n int) string { return fmt.Sprintf(" limit $%d offset $%d", n+1, n+2) }

// far is the offset from which a page is read from the nearer end of its list.
const far = 10_000

// page returns the select of the ids of the page at offset.
func (q query) page(offset int) string {
	switch {
	case q.skips:
		return q.ids + fmt.Sprintf(" limit $%d", len(q.args)+1)
	case q.back != "" && offset >= far:
		return q.nearer()
	}
	return q.ids + limits(len(q.args))
}

// nearer returns the select of the ids of a page from the nearer end of the list. Of the other half nothing is read:
// with limit 0, Postgres skips no rows.
func (q query) nearer() string {
	n := len(q.args) // limit and offset are $n+1 and $n+2
	return fmt.Sprintf(`with list as materialized (select (%[1]s) as n)
	  select id from (
	    select a.id, row_number() over () as nth from (%[2]s
	      limit (select case when $%[5]d <= n / 2 then $%[4]d else 0 end from list) offset $%[5]d) a
	    union all
	    select z.id, -row_number() over () from (%[3]s
	      limit (select case when $%[5]d > n / 2 then greatest(0, least($%[4]d, n - $%[5]d)) else 0 end from list)
	      offset (select greatest(0, n - $%[5]d - $%[4]d) from list)) z) u
	  order by nth`, q.total, q.ids, q.back, n+1, n+2)
}

// queue adds a page and the total of the list to the batch.
func (q query) queue(b *pgx.Batch, rows *[]row, total *int64, limit, offset int) {
	args := append(append([]any{}, q.args...), limit, offset)
	db.All(b, rows, rowsSQL(q.page(offset)), args...)
	db.Value(b, total, q.total, q.totalArgs...)
}

// answer returns a page of a list.
func answer(ctx context.Context, d *db.DB, list listing, s scope, in ListInput) (*httpapi.Page[Entry], error) {
	field, desc, err := s.order(in.Sorting)
	if err != nil {
		return nil, err
	}
	p := in.Of(in.Paging)
	var b pgx.Batch
	exists := true
	switch s.parent {
	case "Library":
		db.Value(&b, &exists, "select exists (select from library where tenant_id = app.tenant() and id = $1)", *s.library)
	case "Series":
		progress.QueueSeriesExists(&b, &exists, *s.series)
	}
	load := list(s, field, desc).queueEntries(&b, p, in.Full)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if !exists {
		return nil, fault.Missing(s.parent)
	}
	page, total, err := load()
	if err != nil {
		return nil, err
	}
	return httpapi.NewPage(ctx, p, page, total), nil
}

// scope narrows a list.
type scope struct {
	library, series *uuid.UUID
	parent          string // "Library" or "Series" if that must exist, else NotFound
	deleted         bool   // include books whose file is gone
	where           string // a compiled condition on b; its parameters come first
	args            []any
	find            *string // the search text for titles, normalized by naming.Normalize
}

// conditioned returns the scope of a condition: its library and series are those that the condition requires.
func conditioned(condition json.RawMessage, find *string) (scope, error) {
	where, args, err := Condition(condition, fields, 1)
	if err != nil {
		return scope{}, err
	}
	return scope{library: filter.Required(condition, "libraryId"), series: filter.Required(condition, "seriesId"), where: where, args: args, find: find}, nil
}

// order returns the field to sort by (one of sortFields, or the search rank) and whether it is descending.
func (s scope) order(by httpapi.Sorting) (field string, desc bool, err error) {
	if s.find == nil {
		return orderOf(by)
	}
	return orderOf(by.BestFirst(), httpapi.Relevance)
}

// listing returns a list ordered by a field that scope.order allows; "" selects its default order.
type listing func(s scope, field string, desc bool) query

// all lists books by title; the books of one series in the order of the series.
func all(s scope, field string, desc bool) query {
	switch {
	case field != "":
	case s.series != nil:
		field = inSeries
	default:
		field = "title"
	}
	return listBy(s, field, desc)
}

// listBy lists books by a field of sorts, or by inSeries.
func listBy(s scope, field string, desc bool) query {
	where, args := s.sql()
	switch {
	case s.find != nil:
		return found(s, field, desc)
	case s.series != nil && ranks[field].at != "":
		return query{ids: "select b.id from book b where " + where, args: args}.counted(s, where).by(field, desc)
	case ranks[field].at != "":
		return ranked(s, ranks[field], desc)
	case field == inSeries && s.series == nil:
		return bySeries(s, desc)
	}
	q := query{ids: "select b.id from book b where " + where + orderBy(field, desc), args: args}.counted(s, where)
	if s.where == "" && s.series == nil && !s.deleted && field != "number" { // null numbers are last in both directions
		q.back = "select b.id from book b where " + where + orderBy(field, !desc)
	}
	return q
}

// found lists the search results: one index lookup per result, titles only.
func found(s scope, field string, desc bool) query {
	where, args := s.sql()
	args = append(args, *s.find, s.library, s.series, s.deleted)
	n := len(args)
	from := fmt.Sprintf(`from app.find('book', $%d, $%d, $%d, $%d) f cross join lateral (
	  select * from book x where x.tenant_id = app.tenant() and x.id = f.id limit 1) b`, n-3, n-2, n-1, n)
	join, order := few(field, desc)
	return query{ids: "select b.id " + from + join + " where " + where + order, args: args, total: "select count(*) " + from + " where " + where, totalArgs: args}
}

// by sorts a short list by a field. It costs an index lookup per book of the list.
func (q query) by(field string, desc bool) query {
	if field != "" {
		join, order := few(field, desc)
		q.ids = "select b.id from (" + q.ids + `) l cross join lateral (
		  select x.id, x.series_id, x.key, x.title_sort, x.number, x.size, x.page_count, x.created_at, x.updated_at, x.release_day
		  from book x where x.tenant_id = app.tenant() and x.id = l.id limit 1) b` + join + order
	}
	return q
}

// sql returns the where clause on b and its parameters.
func (s scope) sql() (string, []any) {
	where := "b.tenant_id = app.tenant()"
	if !s.deleted {
		where += " and b.deleted_at is null"
	}
	narrow, args := s.narrow()
	return where + narrow, args
}

// narrow returns the clause on b for the condition, library and series, and its parameters.
func (s scope) narrow() (where string, args []any) {
	args = append(args, s.args...)
	if s.where != "" {
		where = " and " + s.where
	}
	for _, c := range []struct {
		column string
		id     *uuid.UUID
	}{{"library_id", s.library}, {"series_id", s.series}} {
		if c.id != nil {
			args = append(args, *c.id)
			where += fmt.Sprintf(" and b.%s = $%d", c.column, len(args))
		}
	}
	return where, args
}

// counted adds the total: from the counters if they know it, else by counting.
func (q query) counted(s scope, where string) query {
	switch {
	case s.deleted || s.where != "":
		q.total, q.totalArgs = "select count(*) from book b where "+where, q.args
	case s.series != nil:
		q.total = "select book_count from series where tenant_id = app.tenant() and id = $1"
		q.totalArgs = []any{*s.series}
		if s.library != nil {
			q.total += " and library_id = $2"
			q.totalArgs = append(q.totalArgs, *s.library)
		}
	case s.library != nil:
		q.total = "select app.total('books', $1)"
		q.totalArgs = []any{*s.library}
	default:
		q.total = "select app.total('books')"
	}
	return q
}

func reading(s scope, field string, desc bool) query      { return touched(s, true).by(field, desc) }
func recentlyRead(s scope, field string, desc bool) query { return touched(s, false).by(field, desc) }

// touched lists the books that the caller has progress in, latest first; open leaves out completed ones. The book comes
// from a subquery, one index lookup per progress row.
func touched(s scope, open bool) query {
	narrow, args := s.narrow()
	where := `from progress p where p.tenant_id = app.tenant() and p.account_id = app.account()`
	if open {
		where += " and not p.completed"
	}
	where += " and (select b.deleted_at is null" + narrow + " from book b where b.tenant_id = app.tenant() and b.id = p.book_id)"
	return query{
		ids:  "select p.book_id as id " + where + " order by p.updated_at desc, p.book_id",
		args: args, total: "select count(*) " + where, totalArgs: args,
	}
}

// onDeck lists the first unread book of each series in which the caller has completed a book and has none open, the
// series read last first. The caller's progress is aggregated once, as in rank.without, so that finding the first
// unread book of a series is fast.
func onDeck(s scope, field string, desc bool) query {
	narrow, args := s.narrow()
	decks := `with mine as materialized (
	  select p.book_id, p.updated_at, p.completed from progress p where p.tenant_id = app.tenant() and p.account_id = app.account()),
	read as materialized (
	  select b.series_id, max(p.updated_at) as at from mine p
	  cross join lateral (select b.series_id from book b
	    where b.tenant_id = app.tenant() and b.id = p.book_id and b.deleted_at is null` + narrow + ` limit 1) b
	  group by b.series_id having bool_and(p.completed))
	select next.id, read.at from read cross join lateral (
	  select b.id from book b
	  where b.tenant_id = app.tenant() and b.series_id = read.series_id and b.deleted_at is null
	    and b.id not in (select unnest(array(select book_id from mine)))
	  order by b.number, b.title_sort, b.id limit 1) next`
	return query{
		ids:  "select d.id from (" + decks + ") d order by d.at desc, d.id",
		args: args, total: "select count(*) from (" + decks + ") d", totalArgs: args,
	}.by(field, desc)
}

// InSeries returns a page of the books of one series; NotFound if there is no such series. deleted includes books whose
// file is gone.
func InSeries(ctx context.Context, d *db.DB, series uuid.UUID, deleted bool, in ListInput) (*httpapi.Page[Entry], error) {
	return answer(ctx, d, all, scope{series: &series, parent: "Series", deleted: deleted}, in)
}
