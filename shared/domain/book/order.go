package book

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/longbox/longbox/shared/platform/httpapi"
)

// sorts maps sort fields to columns. Each has an index; number, which may be null, has one per direction. Fields that
// only some books have are in ranks.
var sorts = map[string]string{"title": "b.title_sort", "number": "b.number", "file_size": "b.size",
	"page_count": "b.page_count", "created_at": "b.created_at", "modified_at": "b.updated_at", "filename": "b.key"}

// inSeries is the order of the books within one series; across series, it orders by series first.
const inSeries = "series"

// rank is a sort field that only some books have: a column of the books b or, if from is set, of a few rows of the
// caller's. id is the book's id in it.
type rank struct {
	from, id, at string
}

// with is SQL for the listed books (where) that have the field.
func (r rank) with(where string) string {
	if r.from == "" {
		return "from book b where " + where + " and " + r.at + " is not null"
	}
	return "from " + r.from + " and (select true from book b where " + where + " and b.id = " + r.id + ")"
}

// without is SQL for the books b that lack the field. The caller's rows are collected into an array: the planner
// expects ten elements of it, and always hashes it.
func (r rank) without() string {
	if r.from == "" {
		return r.at + " is null"
	}
	return "b.id not in (select unnest(array(select " + r.id + " from " + r.from + ")))"
}

// ranks holds the fields that only some books have; books without the field follow by title.
var ranks = map[string]rank{
	"last_read":    {"progress p where p.tenant_id = app.tenant() and p.account_id = app.account()", "p.book_id", "p.updated_at"},
	"release_date": {"", "b.id", "b.release_day"},
}

var sortFields = []string{"title", "number", "file_size", "page_count", "created_at", "modified_at", inSeries, "filename", "last_read", "release_date"}

// sameFields maps aliases to sort fields.
var sameFields = map[string]string{"chapter_number": "number", "date_added": "created_at", "read_date": "last_read"}

// orderOf returns the field to sort by (one of sortFields or more; "" for the default order) and whether it is
// descending.
func orderOf(by httpapi.Sorting, more ...string) (field string, desc bool, err error) {
	if len(more) == 0 {
		by = by.Unranked()
	}
	names := append(append(more, sortFields...), slices.Sorted(maps.Keys(sameFields))...)
	field, desc, err = by.By(names...)
	if same := sameFields[field]; same != "" {
		field = same
	}
	return field, desc, err
}

// orderBy orders the books b by a field of sorts, or within one series.
func orderBy(field string, desc bool) string {
	columns := []string{sorts[field], "b.id"}
	switch {
	case field == inSeries:
		columns = []string{"b.number", "b.title_sort", "b.id"}
	case field == httpapi.Relevance && desc:
		return " order by f.score desc, b.title_sort, b.id"
	case field == httpapi.Relevance:
		return " order by f.score, b.title_sort, b.id"
	}
	return ordered(desc, columns...)
}

func ordered(desc bool, columns ...string) string {
	order := " order by " + strings.Join(columns, ", ")
	if desc {
		order = " order by " + strings.Join(columns, " desc, ") + " desc"
	}
	return strings.Replace(order, "b.number desc", "b.number desc nulls last", 1)
}

// few orders a short list of books b by any field; a join that it needs costs an index lookup per book.
func few(field string, desc bool) (join, order string) {
	r := ranks[field]
	switch {
	case field == inSeries:
		return " cross join lateral (select x.id, x.title_sort from series x where x.tenant_id = app.tenant() and x.id = b.series_id limit 1) t",
			ordered(desc, "t.title_sort", "t.id", "b.number", "b.title_sort", "b.id")
	case r.at == "":
		return "", orderBy(field, desc)
	}
	at := r.at
	if r.from != "" {
		join, at = " left join lateral (select "+r.at+" as at from "+r.from+" and "+r.id+" = b.id limit 1) r on true", "r.at"
	}
	if desc {
		return join, fmt.Sprintf(" order by %[1]s desc nulls last, case when %[1]s is null then b.title_sort end, case when %[1]s is not null then b.id end desc, b.id", at)
	}
	return join, fmt.Sprintf(" order by %[1]s nulls last, case when %[1]s is null then b.title_sort end, b.id", at)
}

// bySeries lists books by series title, then in series order. Series come from their index; their books are looked up
// until the page is full.
func bySeries(s scope, desc bool) query {
	where, args := s.sql()
	of := "t.tenant_id = app.tenant()"
	if s.library != nil {
		of += fmt.Sprintf(" and t.library_id = $%d", len(s.args)+1)
	}
	return query{ids: `select b.id from series t cross join lateral (
	  select b.id, b.number, b.title_sort from book b where ` + where + ` and b.series_id = t.id offset 0) b
	  where ` + of + ordered(desc, "t.title_sort", "t.id", "b.number", "b.title_sort", "b.id"), args: args}.counted(s, where)
}

// ranked lists books by a field that only some have (r); the others follow by title. The others are selected, and the
// books before them counted, only if the page has room for them.
func ranked(s scope, r rank, desc bool) query {
	where, args := s.sql()
	n := len(args) // limit and offset are $n+1 and $n+2
	ids := fmt.Sprintf(`with first as materialized (
	    select id, row_number() over () as nth from (select %[1]s as id %[2]s%[3]s limit $%[4]d offset $%[5]d) a)
	  select id from (
	    select id, 1 as part, nth from first
	    union all
	    select id, 2, row_number() over () from (
	      select b.id from book b where %[6]s and %[7]s order by b.title_sort, b.id
	      limit case when (select count(*) from first) < $%[4]d then $%[4]d else 0 end
	      offset case when (select count(*) from first) < $%[4]d then greatest(0, $%[5]d - (select count(*) %[2]s)) else 0 end) b) u
	  order by part, nth`, r.id, r.with(where), ordered(desc, r.at, r.id), n+1, n+2, where, r.without())
	return query{ids: ids, args: args, skips: true}.counted(s, where)
}
