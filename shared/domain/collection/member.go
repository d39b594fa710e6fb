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

// automatic are the orders of an automatic collection; its own is by title.
var automatic = map[string]string{"": "name", "title": "name", "added": "date_added", "year": "release_date"}

// manual is the order that people have given members.
const manual = "manual"

// Series asks for the series of a collection in an order (title, added, year, manual, or "" for its own) and direction:
// queue adds to the batch what is asked of the list. For an automatic one it is called a second time, for another round
// trip: which condition the series meet must be known first. NotFound where there is no such collection.
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
		return fault.Invalid("sort", "must not be manual for an automatic collection: nobody orders what meets its condition")
	}
	return of.meeting(ctx, d, sort, direction, queue)
}

// Automatic asks for the series of a collection like Series, in its own order, but for nothing of one whose members are
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

// meeting asks for the series that meet the condition.
func (of *row) meeting(ctx context.Context, d *db.DB, sort, direction string, queue func(*pgx.Batch, *series.Listed)) error {
	list, err := series.List(series.Wanted{Condition: of.Condition, Sort: httpapi.Sorting{Sort: automatic[sort], Order: direction}})
	if err != nil {
		return err
	}
	var b pgx.Batch
	queue(&b, list)
	return d.Run(ctx, &b)
}

// Books asks for the books of a read list in an order (release, title, added, manual, or "" for its own) and direction:
// queue adds to the batch what is asked of the list. NotFound where there is no such read list.
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
