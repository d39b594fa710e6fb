package komga

import (
	"context"
	"math"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/collection"
	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// Turned is the progress that a client sends.
type Turned struct {
	Page      *int32 `json:"page,omitempty" nullable:"true" minimum:"1" doc:"Page number, from 1; the last page completes the book"`
	Completed *bool  `json:"completed,omitempty" nullable:"true" doc:"true marks the book as read, regardless of the page"`
}

func (t Turned) store(ctx context.Context, d *db.DB, id uuid.UUID) error {
	switch {
	case t.Completed != nil && *t.Completed:
		_, err := progress.Read(ctx, d, id)
		return err
	case t.Page == nil:
		return fault.Invalid("page", "is missing: send a page, or completed true")
	}
	return progress.Turned(ctx, d, id, int(*t.Page))
}

// Counts says how many books the caller has read.
type Counts struct {
	Books  int64 `json:"booksCount" db:"books"`
	Read   int64 `json:"booksReadCount" db:"read"`
	Unread int64 `json:"booksUnreadCount" db:"unread"`
	Open   int64 `json:"booksInProgressCount" db:"open"`
}

// counts selects Counts from books with the caller's completed (null without progress).
const counts = `select count(*) as books, count(*) filter (where completed) as read, count(*) filter (where completed is null) as unread,
		  count(*) filter (where not completed) as open`

// SeriesProgress is the caller's progress in a series.
type SeriesProgress struct {
	Counts
	Last      float64 `json:"lastReadContinuousNumberSort" db:"last" doc:"Number of the last book that was read together with all books before it; 0 means none"`
	MaxNumber float64 `json:"maxNumberSort" db:"max"`
}

func seriesProgress(ctx context.Context, d *db.DB, id uuid.UUID) (out *SeriesProgress, err error) {
	return out, progress.OfSeries(ctx, d, id, func(b *pgx.Batch) {
		db.One(b, &out, `with book as materialized (
		  select b.number, (select p.completed from progress p
		    where p.tenant_id = app.tenant() and p.account_id = app.account() and p.book_id = b.id) as completed
		  from book b where b.tenant_id = app.tenant() and b.series_id = $1 and b.deleted_at is null)
		`+counts+`, coalesce(max(number), 0) as max,
		  coalesce(max(number) filter (where completed and number < coalesce((select min(number) from book where completed is not true), 'infinity')), 0) as last
		from book`, id)
	})
}

// readUpTo marks the books of a series up to number last as read. Books without a number, and books already read, stay
// as they are.
func readUpTo(ctx context.Context, d *db.DB, id uuid.UUID, last float64) error {
	var unread []uuid.UUID
	err := progress.OfSeries(ctx, d, id, func(b *pgx.Batch) {
		db.Values(b, &unread, `select b.id from book b where b.tenant_id = app.tenant() and b.series_id = $1 and b.deleted_at is null
		  and b.number <= $2 and (select p.completed from progress p
		    where p.tenant_id = app.tenant() and p.account_id = app.account() and p.book_id = b.id) is not true`, id, last)
	})
	if err != nil || len(unread) == 0 {
		return err
	}
	_, err = progress.ReadBooks(ctx, d, unread)
	return err
}

// ReadListProgress is the caller's progress in a read list.
type ReadListProgress struct {
	Counts
	Last int64 `json:"lastReadContinuousIndex" db:"last" doc:"Number of books at the beginning of the list that are all read"`
}

// queueReadList selects the books of a read list, or of the caller's want-to-read list, in the list's own order.
func queueReadList(ctx context.Context, d *db.DB, id string, queue func(*pgx.Batch, *book.Listed)) error {
	if id == wantedID {
		var b pgx.Batch
		queue(&b, wantedBooks())
		return d.Run(ctx, &b)
	}
	list, err := uuid.Parse(id)
	if err != nil {
		return fault.Invalid("id", "must be a UUID, or %s", wantedID)
	}
	return collection.Books(ctx, d, list, "", "", queue)
}

// mine is SQL for whether the caller has completed the book l.id; null without progress.
const mine = "(select p.completed from progress p where p.tenant_id = app.tenant() and p.account_id = app.account() and p.book_id = l.id)"

func readListProgress(ctx context.Context, d *db.DB, id string) (out *ReadListProgress, err error) {
	err = queueReadList(ctx, d, id, func(b *pgx.Batch, list *book.Listed) {
		ids, args := list.Page(math.MaxInt32, 0)
		db.One(b, &out, "with book as materialized (select row_number() over () as n, "+mine+" as completed from ("+ids+") l) "+
			counts+", coalesce(min(n) filter (where completed is not true) - 1, count(*)) as last from book", args...)
	})
	return out, err
}

// readFirst marks the first n books of a read list as read. The others, and books already read, stay as they are.
func readFirst(ctx context.Context, d *db.DB, id string, n int) error {
	var unread []uuid.UUID
	err := queueReadList(ctx, d, id, func(b *pgx.Batch, list *book.Listed) {
		ids, args := list.Page(min(n, math.MaxInt32), 0)
		db.Values(b, &unread, "select l.id from ("+ids+") l where "+mine+" is not true", args...)
	})
	if err == nil && !auth.CallerOf(ctx).May(auth.BooksRead) { // the operation asks for the permission to see the list
		err = fault.New(fault.Forbidden, "Missing required permission: %s", auth.BooksRead)
	}
	if err != nil || len(unread) == 0 {
		return err
	}
	_, err = progress.ReadBooks(ctx, d, unread)
	return err
}
