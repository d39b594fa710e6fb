package book

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// Adjacent holds the previous and next book in a series; either is null at the ends.
type Adjacent struct {
	Prev *Book `json:"prev"`
	Next *Book `json:"next"`
}

// nextSQL and prevSQL select the neighbours of book $1 in the order of inSeries, where books without a number come
// last. Each reads at most two index rows: one among the numbered books, one among the others.
const (
	nextSQL = `select n.id from book c cross join lateral (
		  (select b.id, 1 as part from book b where b.tenant_id = app.tenant() and b.series_id = c.series_id and b.deleted_at is null
		    and (b.number, b.title_sort, b.id) > (c.number, c.title_sort, c.id) order by b.number, b.title_sort, b.id limit 1)
		  union all
		  (select b.id, 2 from book b where b.tenant_id = app.tenant() and b.series_id = c.series_id and b.deleted_at is null
		    and b.number is null and (c.number is not null or (b.title_sort, b.id) > (c.title_sort, c.id)) order by b.title_sort, b.id limit 1)
		  order by part limit 1) n
		where c.tenant_id = app.tenant() and c.id = $1 and c.deleted_at is null`
	prevSQL = `select n.id from book c cross join lateral (
		  (select b.id, 1 as part from book b where b.tenant_id = app.tenant() and b.series_id = c.series_id and b.deleted_at is null
		    and c.number is null and b.number is null and (b.title_sort, b.id) < (c.title_sort, c.id) order by b.title_sort desc, b.id desc limit 1)
		  union all
		  (select b.id, 2 from book b where b.tenant_id = app.tenant() and b.series_id = c.series_id and b.deleted_at is null
		    and (b.number, b.title_sort, b.id) < (coalesce(c.number, 'infinity'), c.title_sort, c.id)
		    order by b.number desc, b.title_sort desc, b.id desc limit 1)
		  order by part limit 1) n
		where c.tenant_id = app.tenant() and c.id = $1 and c.deleted_at is null`
)

func adjacent(ctx context.Context, d *db.DB, id uuid.UUID) (*Adjacent, error) {
	var b pgx.Batch
	var exists bool
	var prev, next []row
	db.Value(&b, &exists, "select exists (select from book where tenant_id = app.tenant() and id = $1 and deleted_at is null)", id)
	db.All(&b, &prev, pageSQL(prevSQL, 1), id, 1, 0)
	db.All(&b, &next, pageSQL(nextSQL, 1), id, 1, 0)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if !exists {
		return nil, fault.Missing("Book")
	}
	var out Adjacent
	for _, r := range prev {
		out.Prev = new(r.book())
	}
	for _, r := range next {
		out.Next = new(r.book())
	}
	return &out, nil
}
