package collection

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/series"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// automatic maps the orders of an automatic collection; its default is by title.
var automatic = map[string]string{"": "name", "title": "name", "added": "date_added", "year": "release_date"}

// manual is the order that people gave the members.
const manual = "manual"

// Series selects the series of a collection in an order (title, added, year, manual, or "" for its own) and direction;
// queue adds the list's statements to the batch. For an automatic collection queue is called twice, in two round trips:
// the condition must be read first. NotFound if there is no such collection.
func Series(ctx context.Context, d *db.DB, id uuid.UUID, sort, direction string, queue func(*pgx.Batch, *series.Listed)) error {
	var b pgx.Batch
	var of *row
	collections.queueGet(&b, &of, id)
	queue(&b, series.Selected(collections.ids(sort, direction), collections.total(), id))
	if err := d.Run(ctx, &b); err != nil {
		return err
	}
	switch {
	case of == nil:
		return fault.Missing(collections.What)
	case of.Condition == nil:
		return nil
	case sort == manual:
		return fault.Invalid("sort", "must not be manual for an automatic collection: its series have no manual order")
	}
	return of.meeting(ctx, d, sort, direction, queue)
}

// Automatic is Series in the collection's own order, for automatic collections only: it selects nothing if members are
// chosen.
func Automatic(ctx context.Context, d *db.DB, id uuid.UUID, queue func(*pgx.Batch, *series.Listed)) error {
	var b pgx.Batch
	var of *row
	collections.queueGet(&b, &of, id)
	if err := d.Run(ctx, &b); err != nil {
		return err
	}
	switch {
	case of == nil:
		return fault.Missing(collections.What)
	case of.Condition == nil:
		return nil
	}
	return of.meeting(ctx, d, "", "", queue)
}

// meeting selects the series that meet the condition.
func (of *row) meeting(ctx context.Context, d *db.DB, sort, direction string, queue func(*pgx.Batch, *series.Listed)) error {
	list, err := series.List(series.ListQuery{Condition: of.Condition, Sort: httpapi.Sorting{Sort: automatic[sort], Order: direction}})
	if err != nil {
		return err
	}
	var b pgx.Batch
	queue(&b, list)
	return d.Run(ctx, &b)
}

// Books selects the books of a read list in an order (release, title, added, manual, or "" for its own) and direction;
// queue adds the list's statements to the batch. NotFound if there is no such read list.
func Books(ctx context.Context, d *db.DB, id uuid.UUID, sort, direction string, queue func(*pgx.Batch, *book.Listed)) error {
	var b pgx.Batch
	var of *row
	readLists.queueGet(&b, &of, id)
	queue(&b, book.Selected(readLists.ids(sort, direction), readLists.total(), id))
	if err := d.Run(ctx, &b); err != nil {
		return err
	}
	if of == nil {
		return fault.Missing(readLists.What)
	}
	return nil
}
