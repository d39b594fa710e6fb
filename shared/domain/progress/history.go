package progress

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// maxReadings is the maximum number of readings in a history, newest first.
const maxReadings = 500

// Readings is how often the caller has completed something, and when last.
type Readings struct {
	ReadCount       int64      `json:"readCount" db:"read_count" doc:"How often the caller has completed the book, or all books of the series"`
	LastCompletedAt *time.Time `json:"lastCompletedAt" db:"last_completed_at" doc:"When the caller last completed it"`
}

// History lists the caller's readings, newest first.
type History struct {
	Entries []Reading `json:"entries" nullable:"false" doc:"Completed readings, newest first; at most 500"`
	Readings
}

// Reading is one completed reading.
type Reading struct {
	ID          *uuid.UUID `json:"id" db:"id" doc:"Null for a series"`
	StartedAt   time.Time  `json:"startedAt" db:"started_at"`
	CompletedAt time.Time  `json:"completedAt" db:"completed_at"`
}

// remembered is the condition for the caller's completions that are shown.
const remembered = "c.tenant_id = app.tenant() and c.account_id = app.account() and not c.forgotten"

// QueueReadings adds the select of the caller's readings of a book to the batch.
func QueueReadings(b *pgx.Batch, dst **Readings, book uuid.UUID) {
	db.One(b, dst, "select count(*) as read_count, max(c.completed_at) as last_completed_at from completion c where "+remembered+" and c.book_id = $1", book)
}

// BookReadings are the caller's readings of one book.
type BookReadings struct {
	BookID uuid.UUID `db:"book_id"`
	Readings
}

// QueueAllReadings adds the select of the caller's readings of several books to the batch; unread books have no row.
// books is SQL of an array of their ids, in parentheses.
func QueueAllReadings(b *pgx.Batch, dst *[]BookReadings, books string) {
	db.All(b, dst, "select c.book_id, count(*) as read_count, max(c.completed_at) as last_completed_at from completion c where "+remembered+
		" and c.book_id = any"+books+" group by c.book_id")
}

// seriesReadings is SQL for the caller's readings of all books of series $1: as many as the least-read book has. The
// nth began when the first book was begun for the nth time, and ended when the last one ended.
const seriesReadings = `with done as (
	  select b.id, c.started_at, c.completed_at, row_number() over (partition by b.id order by c.completed_at) as nth, count(c.id) over (partition by b.id) as times
	  from book b left join completion c on ` + remembered + ` and c.book_id = b.id
	  where b.tenant_id = app.tenant() and b.series_id = $1 and b.deleted_at is null),
	readings as (
	  select nth, min(started_at) as started_at, max(completed_at) as completed_at from done
	  where nth <= (select min(times) from done) and completed_at is not null group by nth)
	`

// QueueSeriesReadings adds the select of the caller's readings of a whole series to the batch; books added to the
// series lower the count.
func QueueSeriesReadings(b *pgx.Batch, dst **Readings, series uuid.UUID) {
	db.One(b, dst, seriesReadings+"select count(*) as read_count, max(completed_at) as last_completed_at from readings", series)
}

// SeriesReadings are the caller's readings of one series.
type SeriesReadings struct {
	SeriesID uuid.UUID `db:"series_id"`
	Readings
}

// QueueAllSeriesReadings is QueueSeriesReadings for several series; a series that the caller has never read completely
// has no row. series is SQL of an array of their ids, in parentheses.
func QueueAllSeriesReadings(b *pgx.Batch, dst *[]SeriesReadings, series string) {
	db.All(b, dst, `with done as materialized (
	  select b.series_id, c.completed_at, row_number() over (partition by b.id order by c.completed_at) as nth, count(c.id) over (partition by b.id) as times
	  from book b left join completion c on `+remembered+` and c.book_id = b.id
	  where b.tenant_id = app.tenant() and b.series_id = any`+series+` and b.deleted_at is null),
	whole as (select series_id, min(times) as times from done group by series_id)
	select w.series_id, w.times as read_count, max(d.completed_at) as last_completed_at from whole w
	join done d on d.series_id = w.series_id and d.nth <= w.times where w.times > 0 group by w.series_id, w.times`)
}

// subject is a kind of thing that has a history.
type subject struct {
	what, path, name string
	permission       string // to see it; forgetting it needs BooksRead
	exists           func(b *pgx.Batch, dst *bool, id uuid.UUID)
	readings         func(b *pgx.Batch, dst **Readings, id uuid.UUID)
	entries          string // SQL for the last $2 readings of $1
	books            string // condition on the books b whose readings are forgotten with $1
}

var subjects = []subject{{
	what: "a book", path: "/api/v1/books/{id}/read-history", name: "Book", permission: auth.BooksRead, exists: queueExists, readings: QueueReadings,
	entries: "select c.id, c.started_at, c.completed_at from completion c where " + remembered + " and c.book_id = $1 order by c.completed_at desc, c.id limit $2",
	books:   ofBook,
}, {
	what: "the books of a series", path: "/api/v1/series/{id}/read-history", name: "Series", permission: auth.SeriesRead, exists: QueueSeriesExists, readings: QueueSeriesReadings,
	entries: seriesReadings + "select null::uuid as id, started_at, completed_at from readings order by nth desc limit $2",
	books:   "b.series_id = $1",
}}

// history returns the caller's history of a book or series; NotFound if there is none.
func (s subject) history(ctx context.Context, d *db.DB, id uuid.UUID) (*History, error) {
	var b pgx.Batch
	var exists bool
	var out History
	var all *Readings
	s.exists(&b, &exists, id)
	s.readings(&b, &all, id)
	db.All(&b, &out.Entries, s.entries, id, maxReadings)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if !exists {
		return nil, fault.Missing(s.name)
	}
	out.Readings = *all
	return &out, nil
}

// forget removes the readings of a book or series from the caller's history; NotFound if there is none. Progress stays.
func (s subject) forget(ctx context.Context, d *db.DB, id uuid.UUID) error {
	for n := int64(forgetAtOnce); n == forgetAtOnce; {
		var b pgx.Batch
		var exists bool
		s.exists(&b, &exists, id)
		db.Affected(&b, &n, forgetSome(ofThese(s.books)), id)
		if err := d.Run(ctx, &b); err != nil {
			return err
		}
		if !exists {
			return fault.Missing(s.name)
		}
	}
	return nil
}

// forgetAtOnce is how many readings are forgotten per transaction, within the time limit for statements of requests.
const forgetAtOnce = 5000

const forgetSQL = "update completion c set forgotten = true where " + remembered

// ofThese is the condition for the readings of the books b that match a condition.
func ofThese(which string) string {
	return " and c.book_id in (select b.id from book b where b.tenant_id = app.tenant() and " + which + ")"
}

// forgetSome is SQL that forgets up to forgetAtOnce of the caller's readings.
func forgetSome(condition string) string {
	return forgetSQL + " and c.id = any(array(select c.id from completion c where " + remembered + condition + " limit " + strconv.Itoa(forgetAtOnce) + "))"
}

// forgetReading removes one reading of a book from the caller's history; NotFound if there is none.
func forgetReading(ctx context.Context, d *db.DB, book, reading uuid.UUID) error {
	n, err := db.Exec(ctx, d, forgetSQL+ofThese(ofBook)+" and c.id = $2", book, reading)
	if err == nil && n == 0 {
		return fault.Missing("Reading")
	}
	return err
}

// forgetAll forgets all readings of the caller, also of series that are hidden from them now.
func forgetAll(ctx context.Context, d *db.DB) error {
	for n := int64(forgetAtOnce); n == forgetAtOnce; {
		var err error
		if n, err = db.GetValue[int64](ctx, d, "select app.forget_history($1)", forgetAtOnce); err != nil {
			return err
		}
	}
	return nil
}

func historyRoutes(a *httpapi.API, d *db.DB) {
	op := httpapi.Group{Tag: "Reading progress"}.Op
	for _, s := range subjects {
		httpapi.Register(a, op("GET", s.path, "get"+s.name+"History", "List the caller's read history of "+s.what, s.permission),
			func(ctx context.Context, in *httpapi.IDInput) (*History, error) { return s.history(ctx, d, in.ID) })
		httpapi.Register(a, op("DELETE", s.path, "forget"+s.name, "Delete the caller's read history of "+s.what+"; the progress is kept", auth.BooksRead),
			func(ctx context.Context, in *httpapi.IDInput) (*httpapi.None, error) {
				return nil, s.forget(ctx, d, in.ID)
			})
	}
	httpapi.Register(a, op("DELETE", "/api/v1/books/{id}/read-history/{readingId}", "forgetReading", "Delete an entry from the caller's read history of a book", auth.BooksRead),
		func(ctx context.Context, in *struct {
			ID        uuid.UUID `path:"id" format:"uuid"`
			ReadingID uuid.UUID `path:"readingId" format:"uuid"`
		}) (*httpapi.None, error) {
			return nil, forgetReading(ctx, d, in.ID, in.ReadingID)
		})
	httpapi.Register(a, op("DELETE", "/api/v1/user/read-history", "forgetAll", "Delete the caller's whole read history; the progress is kept", auth.BooksRead),
		func(ctx context.Context, _ *struct{}) (*httpapi.None, error) { return nil, forgetAll(ctx, d) })
}
