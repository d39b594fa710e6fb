package wanted

import (
	"context"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// mine selects the caller's visible entries: a book whose file is gone is hidden until it returns.
const mine = ` from wanted w where w.tenant_id = app.tenant() and w.account_id = app.account() and (w.book_id is null or
	(select b.deleted_at is null from book b where b.tenant_id = app.tenant() and b.id = w.book_id))`

// columns are the columns of an Entry.
const columns = "w.id, case when w.book_id is null then 'series' else 'book' end as item_type, w.series_id, w.book_id, w.added_at"

var orders = map[string]string{"newest": "w.added_at desc, w.id desc", "oldest": "w.added_at, w.id", "custom": "w.place, w.id"}

func list(ctx context.Context, d *db.DB, sort string, limit, offset int) ([]Entry, int64, error) {
	var b pgx.Batch
	var page []Entry
	var total int64
	db.All(&b, &page, "select "+columns+mine+" order by "+orders[sort]+" limit $1 offset $2", limit, offset)
	db.Value(&b, &total, "select count(*)"+mine)
	return page, total, d.Run(ctx, &b)
}

// lock serializes the writers of one user's list, so that no two entries get the same place.
const lock = "select from account where tenant_id = app.tenant() and id = app.account() for no key update"

// most is the maximum number of entries of a list.
const most = 10_000

// insert appends the existing ones of series $1 and books $2 in their given order, or none if the list would get more
// than $3 entries. Books are locked before series, both by id, like everywhere.
const insert = `with found as materialized (
	  select s.id as series_id, null::uuid as book_id, array_position($1::uuid[], s.id) as nth from series s
	  where s.tenant_id = app.tenant() and s.id = any($1)
	  union all
	  select null, b.id, cardinality($1) + array_position($2::uuid[], b.id) from book b
	  where b.tenant_id = app.tenant() and b.id = any($2) and b.deleted_at is null),
	present as materialized (
	  select count(*) as n, coalesce(max(w.place), 0) as place, count(*) filter (where w.series_id = any($1) or w.book_id in (select book_id from found)) as found
	  from wanted w where w.tenant_id = app.tenant() and w.account_id = app.account()),
	size as materialized (select p.place, p.n + (select count(*) from found) - p.found > $3 and (select count(*) from found) > p.found as is_full from present p),
	fresh as (
	  insert into wanted (tenant_id, account_id, id, series_id, book_id, place, added_at)
	  select app.tenant(), app.account(), gen_random_uuid(), f.series_id, f.book_id, f.nth + z.place,
	    statement_timestamp() + f.nth * interval '1 microsecond' from found f join size z on not z.is_full order by f.book_id, f.series_id
	  on conflict do nothing returning 1)
	select (select count(*) from fresh) as added, (select count(*) from found) - (select count(*) from fresh) as present, is_full from size`

// inserted is the result of insert.
type inserted struct {
	Added
	Full bool `db:"is_full"`
}

func (i *inserted) err() error {
	if i.Full {
		return fault.New(fault.Conflict, "A want-to-read list can have %d entries; remove some first", most)
	}
	return nil
}

func addAll(ctx context.Context, d *db.DB, items Items) (*Added, error) {
	var b pgx.Batch
	var out *inserted
	queueAdd(&b, &out, items)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	return &out.Added, out.err()
}

func queueAdd(b *pgx.Batch, dst **inserted, items Items) {
	b.Queue(lock)
	db.One(b, dst, insert, append([]uuid.UUID{}, items.SeriesIDs...), append([]uuid.UUID{}, items.BookIDs...), most)
}

// add appends one item; NotFound if there is no such series or book.
func add(ctx context.Context, d *db.DB, item Item) (*Entry, error) {
	var b pgx.Batch
	var added *inserted
	var out *Entry
	items, column, id, what := Items{}, "series_id", item.SeriesID, "Series"
	if item.BookID != nil {
		items.BookIDs, column, id, what = []uuid.UUID{*item.BookID}, "book_id", item.BookID, "Book"
	} else {
		items.SeriesIDs = []uuid.UUID{*item.SeriesID}
	}
	queueAdd(&b, &added, items)
	db.One(&b, &out, "select "+columns+mine+" and w."+column+" = $1", *id)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if err := added.err(); err != nil {
		return nil, err
	}
	if out == nil {
		return nil, fault.Missing(what)
	}
	return out, nil
}

// remove removes the item with the given id in column; NotFound if there is no such series or book.
func remove(ctx context.Context, d *db.DB, what, column string, id uuid.UUID) error {
	var b pgx.Batch
	var exists bool
	db.Value(&b, &exists, "select exists (select from "+strings.ToLower(what)+" where tenant_id = app.tenant() and id = $1)", id)
	b.Queue("delete from wanted where tenant_id = app.tenant() and account_id = app.account() and "+column+" = $1", id)
	if err := d.Run(ctx, &b); err != nil {
		return err
	}
	if !exists {
		return fault.Missing(what)
	}
	return nil
}

// order puts the entries in ids first and the others after them in their old order, using the places that they hold
// together. Hidden entries, and books whose file is gone, keep their places. If two have the same place, the later one
// moves on.
func order(ctx context.Context, d *db.DB, ids []uuid.UUID) error {
	var b pgx.Batch
	b.Queue(lock)
	b.Queue(`with entry as materialized (
		  select x.id, x.place, row_number() over (order by x.place, x.id) as was, row_number() over (order by u.nth nulls last, x.place, x.id) as n
		  from (select w.id, w.place`+mine+`) x
		  left join (select id, min(nth) as nth from unnest($1::uuid[]) with ordinality as u(id, nth) group by id) u using (id))
		update wanted w set place = p.place from entry e
		  join (select was, was + max(place - was) over (order by was) as place from entry) p on p.was = e.n
		where w.tenant_id = app.tenant() and w.account_id = app.account() and w.id = e.id and w.place <> p.place`, ids)
	return d.Run(ctx, &b)
}
