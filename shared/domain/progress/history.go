package progress

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// maxReadings are shown of a history, the last ones.
const maxReadings = 500

// Readings says how often the caller has read something to its end, and when that was last.
type Readings struct {
	ReadCount       int64      `json:"readCount" db:"read_count" doc:"How often the caller completed it; all books of it, where it is a series"`
	LastCompletedAt *time.Time `json:"lastCompletedAt" db:"last_completed_at" doc:"When that was last"`
}

// History is what the caller has read to its end, the last time first.
type History struct {
	Entries []Reading `json:"entries" nullable:"false" doc:"At most 500"`
	Readings
}

// Reading is one time that the caller read something to its end.
type Reading struct {
	ID          *uuid.UUID `json:"id" db:"id" doc:"null for a series"`
	StartedAt   time.Time  `json:"startedAt" db:"started_at"`
	CompletedAt time.Time  `json:"completedAt" db:"completed_at"`
}

// remembered are the completions of the caller that are shown.
const remembered = "c.tenant_id = app.tenant() and c.account_id = app.account() and not c.forgotten"

// QueueReadings asks how often the caller has read a book.
func QueueReadings(b *pgx.Batch, dst **Readings, book uuid.UUID) {
	db.One(b, dst, "select count(*) as read_count, max(c.completed_at) as last_completed_at from completion c where "+remembered+" and c.book_id = $1", book)
}

// seriesReadings is the SQL of the times that the caller has read all books of series $1: as many as of the book that was read
// least often. The nth began when the first of them was begun for the nth time, and ended with the last.
const seriesReadings = `with done as (
	  select b.id, c.started_at, c.completed_at, row_number() over (partition by b.id order by c.completed_at) as nth, count(c.id) over (partition by b.id) as times
	  from book b left join completion c on ` + remembered + ` and c.book_id = b.id
	  where b.tenant_id = app.tenant() and b.series_id = $1 and b.deleted_at is null),
	readings as (
	  select nth, min(started_at) as started_at, max(completed_at) as completed_at from done
	  where nth <= (select min(times) from done) and completed_at is not null group by nth)
	`

// QueueSeriesReadings asks how often the caller has read all of a series: books that are added to it take from that.
func QueueSeriesReadings(b *pgx.Batch, dst **Readings, series uuid.UUID) {
	db.One(b, dst, seriesReadings+"select count(*) as read_count, max(completed_at) as last_completed_at from readings", series)
}

const bookReadings = "select c.id, c.started_at, c.completed_at from completion c where " + remembered + " and c.book_id = $1 order by c.completed_at desc, c.id limit $2"

func bookHistory(ctx context.Context, d *db.DB, book uuid.UUID) (*History, error) {
	var b pgx.Batch
	var exists bool
	var out History
	var all *Readings
	queueExists(&b, &exists, book)
	QueueReadings(&b, &all, book)
	db.All(&b, &out.Entries, bookReadings, book, maxReadings)
	return out.of("Book", &exists, &all, d.Run(ctx, &b))
}

func seriesHistory(ctx context.Context, d *db.DB, series uuid.UUID) (*History, error) {
	var b pgx.Batch
	var exists bool
	var out History
	var all *Readings
	queueSeriesExists(&b, &exists, series)
	QueueSeriesReadings(&b, &all, series)
	db.All(&b, &out.Entries, seriesReadings+"select null::uuid as id, started_at, completed_at from readings order by nth desc limit $2", series, maxReadings)
	return out.of("Series", &exists, &all, d.Run(ctx, &b))
}

// of is the history once the batch has run.
func (h *History) of(what string, exists *bool, all **Readings, err error) (*History, error) {
	if err != nil {
		return nil, err
	}
	if !*exists {
		return nil, fault.Missing(what)
	}
	h.Readings = **all
	return h, nil
}

const forgetSQL = "update completion c set forgotten = true where " + remembered

// ofSeriesBooks are the completions of books of series $1.
const ofSeriesBooks = " and c.book_id in (select b.id from book b where b.tenant_id = app.tenant() and b.series_id = $1)"

// forget takes readings out of the caller's history: those for which a condition on completion c holds. exists is what NotFound is
// answered without, or nil. Progress stays.
func forget(ctx context.Context, d *db.DB, what string, exists func(b *pgx.Batch, dst *bool), which string, args ...any) error {
	var b pgx.Batch
	there := true
	if exists != nil {
		exists(&b, &there)
	}
	b.Queue(forgetSQL+which, args...)
	if err := d.Run(ctx, &b); err != nil {
		return err
	}
	if !there {
		return fault.Missing(what)
	}
	return nil
}

func historyRoutes(a *httpapi.API, d *db.DB) {
	op := func(method, path, id, summary, permission string) httpapi.Op {
		return httpapi.Op{Method: method, Path: "/api/v1" + path, ID: id, Summary: summary, Tag: "Reading progress", Permission: permission}
	}
	httpapi.Register(a, op("GET", "/books/{id}/read-history", "getBookHistory", "When the caller read a book to its end", auth.BooksRead),
		func(ctx context.Context, in *BookInput) (*History, error) { return bookHistory(ctx, d, in.ID) })
	httpapi.Register(a, op("DELETE", "/books/{id}/read-history", "forgetBook", "Forget when the caller read a book; the progress stays", auth.BooksRead),
		func(ctx context.Context, in *BookInput) (*httpapi.None, error) {
			return nil, forget(ctx, d, "Book", func(b *pgx.Batch, dst *bool) { queueExists(b, dst, in.ID) }, " and c.book_id = $1", in.ID)
		})
	httpapi.Register(a, op("DELETE", "/books/{id}/read-history/{readingId}", "forgetReading", "Forget one time that the caller read a book", auth.BooksRead),
		func(ctx context.Context, in *struct {
			BookInput
			ReadingID uuid.UUID `path:"readingId" format:"uuid"`
		}) (*httpapi.None, error) {
			of := " and c.book_id = $1 and c.id = $2"
			return nil, forget(ctx, d, "Reading", func(b *pgx.Batch, dst *bool) {
				db.Value(b, dst, "select exists (select from completion c where "+remembered+of+")", in.ID, in.ReadingID)
			}, of, in.ID, in.ReadingID)
		})
	httpapi.Register(a, op("GET", "/series/{id}/read-history", "getSeriesHistory", "When the caller read all books of a series to their end", auth.SeriesRead),
		func(ctx context.Context, in *SeriesInput) (*History, error) { return seriesHistory(ctx, d, in.ID) })
	httpapi.Register(a, op("DELETE", "/series/{id}/read-history", "forgetSeries", "Forget when the caller read the books of a series; the progress stays", auth.SeriesRead),
		func(ctx context.Context, in *SeriesInput) (*httpapi.None, error) {
			return nil, forget(ctx, d, "Series", func(b *pgx.Batch, dst *bool) { queueSeriesExists(b, dst, in.ID) }, ofSeriesBooks, in.ID)
		})
	httpapi.Register(a, op("DELETE", "/user/read-history", "forgetAll", "Forget when the caller read anything; the progress stays", httpapi.SignedIn),
		func(ctx context.Context, _ *struct{}) (*httpapi.None, error) { return nil, forget(ctx, d, "", nil, "") })
}
