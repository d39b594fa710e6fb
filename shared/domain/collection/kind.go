package collection

import (
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
)

// kind holds the differences between collections and read lists.
type kind struct {
	Name    string // column kind in the table, and the members in the path
	What    string // in messages
	Path    string
	ID      string // in operation ids
	Table   string // table of the members
	Column  string // column of the member's id
	There   string // SQL: the member x exists
	Out     string // SQL: release of member x
	Own     string // default order: title or release
	Reading string // permission to read one; the others are derived from it
	Writing string
	Removal string
}

var (
	collections = kind{Name: "series", What: "Collection", Path: "/collections", ID: "Collection", Table: "series", Column: "series_id",
		There: "true", Out: "x.year", Own: "title", Reading: auth.CollectionsRead, Writing: auth.CollectionsWrite, Removal: auth.CollectionsDelete}
	readLists = kind{Name: "books", What: "Read list", Path: "/readlists", ID: "ReadList", Table: "book", Column: "book_id",
		There: "x.deleted_at is null", Out: "x.release_day", Own: "release", Reading: auth.ReadListsRead, Writing: auth.ReadListsWrite, Removal: auth.ReadListsDelete}
)

// from joins the existing members of collection $1; x is the member.
func (k kind) from() string {
	return " from collection_member m cross join lateral (select * from " + k.Table + ` x where x.tenant_id = app.tenant() and x.id = m.` + k.Column + ` limit 1) x
		where m.tenant_id = app.tenant() and m.collection_id = $1 and ` + k.There
}

// members is SQL for the number of all members of collection c.
const members = "(select count(*) from collection_member m where m.tenant_id = app.tenant() and m.collection_id = c.id)"

// count is SQL for the number of existing members of one collection c. All series exist.
func (k kind) count() string {
	if k.Table == "series" {
		return members
	}
	return "(select count(*) from collection_member m where m.tenant_id = app.tenant() and m.collection_id = c.id and (select " + k.There +
		" from " + k.Table + " x where x.tenant_id = app.tenant() and x.id = m." + k.Column + "))"
}

// ids selects the members of collection $1 in an order; total counts them.
func (k kind) ids(sort, direction string) string {
	const own = "case when (select c.ordered from collection c where c.tenant_id = app.tenant() and c.id = $1) then m.place end"
	orders := map[string][]string{"title": {"x.title_sort"}, "added": {"m.added_at"}, "year": {k.Out}, "release": {k.Out, "x.title_sort"}, manual: {"m.place"}}
	by := orders[sort]
	if sort == "" {
		by = append([]string{own}, orders[k.Own]...)
	}
	if direction == "desc" {
		direction = " desc"
	} else {
		direction = ""
	}
	order := " order by "
	for _, column := range by {
		order += column + direction + " nulls last, "
	}
	return "select x.id" + k.from() + order + "m.place, m.id"
}

func (k kind) total() string { return "select count(*)" + k.from() }

// row is a collection or a read list.
type row struct {
	Collection
	Members int64 `db:"members"`
}

const columns = "c.id, c.name, c.summary, c.ordered, c.condition, c.created_at, c.updated_at, "

const mineOf = " from collection c where c.tenant_id = app.tenant() and c.kind = "

// queueGet adds the select of one by id to the batch.
func (k kind) queueGet(b *pgx.Batch, dst **row, id any) {
	db.One(b, dst, "select "+columns+k.count()+" as members"+mineOf+"'"+k.Name+"' and c.id = $1", id)
}

// listSQL selects lists; rest is the rest of the condition, and what follows it. It counts the few books that are gone
// for all lists at once, instead of looking at each member of each list.
func (k kind) listSQL(rest string) string {
	sql := "select " + columns + members
	if k.Table == "book" {
		sql = `with gone as materialized (
	  select m.collection_id, count(*) as members from book x join collection_member m on m.tenant_id = x.tenant_id and m.book_id = x.id
	  where x.tenant_id = app.tenant() and x.deleted_at is not null group by m.collection_id)
	` + sql + " - coalesce((select g.members from gone g where g.collection_id = c.id), 0)"
	}
	return sql + " as members" + mineOf + "'" + k.Name + "' " + rest
}
