package progress

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/cut"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// paged is an SQL condition: the book is analysed and has page images.
const paged = `b.analyzed and b.page_count > 0 and coalesce((select cardinality(i.names) > 0 from page_index i
	where i.tenant_id = b.tenant_id and i.book_id = b.id), false)`

func queueExists(b *pgx.Batch, dst *bool, id uuid.UUID) {
	db.Value(b, dst, "select exists (select from book b where b.tenant_id = app.tenant() and "+ofBook+")", id)
}

// QueueSeriesExists asks whether a series exists.
func QueueSeriesExists(b *pgx.Batch, dst *bool, id uuid.UUID) {
	db.Value(b, dst, "select exists (select from series where tenant_id = app.tenant() and id = $1)", id)
}

// OfSeries runs the statements that queue adds to the batch; NotFound if there is no such series.
func OfSeries(ctx context.Context, d *db.DB, id uuid.UUID, queue func(*pgx.Batch)) error {
	var b pgx.Batch
	var found bool
	QueueSeriesExists(&b, &found, id)
	queue(&b)
	if err := d.Run(ctx, &b); err != nil {
		return err
	}
	if !found {
		return fault.Missing("Series")
	}
	return nil
}

func get(ctx context.Context, d *db.DB, id uuid.UUID) (*Record, error) {
	var b pgx.Batch
	var exists bool
	var out *Record
	queueExists(&b, &exists, id)
	db.One(&b, &out, "select "+columns+` from progress p
		join book b on b.tenant_id = p.tenant_id and b.id = p.book_id
		where p.tenant_id = app.tenant() and p.account_id = app.account() and p.book_id = $1`, id)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if !exists {
		return nil, fault.Missing("Book")
	}
	return out, nil
}

// Conditions for the books that are written together.
const (
	ofBook  = "b.id = $1 and b.deleted_at is null"
	ofBooks = "b.id = any($1)"
)

// there excludes books whose file is gone.
func there(which string) string { return which + " and b.deleted_at is null" }

// Set stores progress in one book or its heir; a page beyond the last counts as the last.
func Set(ctx context.Context, d *db.DB, id uuid.UUID, u Update) (out *Record, err error) {
	err = orHeir(ctx, d, id, func(id uuid.UUID) error {
		out, err = set(ctx, d, id, u)
		return err
	})
	return out, err
}

func set(ctx context.Context, d *db.DB, id uuid.UUID, u Update) (*Record, error) {
	where := ofBook
	if u.fetched {
		where += " and not " + ahead("$2", "$6")
	}
	var b pgx.Batch
	var out *Record
	queueLog(&b, ofBook, id)
	b.Queue(note(ofBook, `select b.id as book_id, case when b.paged then least($2::integer, b.page_count) else $2 end as page,
		  coalesce($3::double precision, case when b.paged then least(1, $2::double precision / b.page_count) end) as percentage,
		  case when coalesce($4::boolean, $3 >= $5 or (b.paged or $3 is null) and b.page_count > 0 and $2 >= b.page_count) then 'completed' else 'progress' end as kind`+noPlace+`
		from (select b.id, b.page_count, `+paged+` as paged from book b
		  where b.tenant_id = app.tenant() and `+where+`) b`, "$6"),
		id, u.CurrentPage, u.ProgressPercentage, u.Completed, completeAt, device(ctx))
	db.One(&b, &out, fold(ofBook)+records, id)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if out == nil {
		return nil, fault.Missing("Book")
	}
	return out, nil
}

// Turned stores that the caller has reached a page of a book, from 1.
func Turned(ctx context.Context, d *db.DB, id uuid.UUID, page int) error {
	_, err := Set(ctx, d, id, Update{CurrentPage: int32(page)})
	return err
}

// Fetched stores that the caller has fetched a page of a book, from 1, without saying that it is being read. Clients
// fetch several pages at once and again after failures, so a page behind one of the last seconds changes nothing.
func Fetched(ctx context.Context, d *db.DB, id uuid.UUID, page int) error {
	_, err := Set(ctx, d, id, Update{CurrentPage: int32(page), fetched: true})
	return err
}

// ahead is SQL for whether the last plain write of the device, in the last pass of book $1, has a later page than the
// one in parameter page and is at most ten seconds old.
func ahead(page, device string) string {
	return "coalesce((select s.page > " + page + " and s.recorded_at > now() - interval '10 seconds' from reading_session s where " + mine("s", "$1") + `
	  and s.pass = (select max(x.pass) from reading_session x where ` + mine("x", "$1") + ") and s.device_id = " + device + ` and s.implied
	  order by s.ended_at desc, s.recorded_at desc, s.id desc limit 1), false)`
}

// toTheEnd is the source of note for marking books as read.
func toTheEnd(which string) string {
	return `select b.id as book_id, b.page_count as page, 1::double precision as percentage, 'completed' as kind` + noPlace + `
		from book b where b.tenant_id = app.tenant() and ` + there(which)
}

// Read marks a book or its heir as read; NotFound if there is none.
func Read(ctx context.Context, d *db.DB, id uuid.UUID) (out *Record, err error) {
	err = orHeir(ctx, d, id, func(id uuid.UUID) error {
		out, err = read(ctx, d, id)
		return err
	})
	return out, err
}

func read(ctx context.Context, d *db.DB, id uuid.UUID) (*Record, error) {
	var b pgx.Batch
	var out *Record
	queueLog(&b, ofBook, id)
	b.Queue(note(ofBook, toTheEnd(ofBook), "$2"), id, device(ctx))
	db.One(&b, &out, fold(ofBook)+records, id)
	err := d.Run(ctx, &b)
	if err == nil && out == nil {
		err = fault.Missing("Book")
	}
	return out, err
}

// Clear marks a book or its heir as unread; NotFound if there is none.
func Clear(ctx context.Context, d *db.DB, id uuid.UUID) error {
	return orHeir(ctx, d, id, func(id uuid.UUID) error { return unread(ctx, d, id) })
}

func unread(ctx context.Context, d *db.DB, id uuid.UUID) error {
	var b pgx.Batch
	var exists bool
	var n int64
	queueExists(&b, &exists, id)
	queueUnread(&b, &n, ofBook, device(ctx), id)
	if err := d.Run(ctx, &b); err != nil {
		return err
	}
	if !exists {
		return fault.Missing("Book")
	}
	return nil
}

// isRead is a condition on the book b: marking it as read again would change nothing but the time of its last update.
var isRead = "exists (select from progress p where " + mine("p", "b.id") + " and p.completed and p.current_page = b.page_count and p.percentage = 1)"

// noteRead is SQL that notes the completion of books that are not read yet. It reads the caller's progress in them at
// once: after hashing, isRead would read all of the caller's progress.
func noteRead(which string) string {
	return note(which, toTheEnd(which)+" and (b.id, b.page_count) not in (select p.book_id, p.current_page from progress p where "+
		rows("p", which)+" and p.completed and p.percentage = 1)", "$2")
}

// queueRead and queueUnread mark the books of ids and count them; unread counts only books that had progress.
func queueRead(b *pgx.Batch, n *int64, which, device string, ids any) {
	queueLog(b, which, ids)
	b.Queue(noteRead(which), ids, device)
	db.Value(b, n, fold(there(which))+"select count(*) from written", ids)
}

func queueUnread(b *pgx.Batch, n *int64, which, device string, ids any) {
	queueLog(b, which, ids)
	db.Value(b, n, reset(there(which)), ids, device)
	b.Queue(fold(there(which))+"select from written", ids)
}

// mark is a change of many books: queue marks some, and left is a condition on a book b that is not marked yet. With
// all, books that were marked before count, too.
type mark struct {
	queue func(b *pgx.Batch, n *int64, which, device string, ids any)
	left  string
	all   bool
}

var (
	asRead   = mark{queueRead, "not " + isRead, true}
	asUnread = mark{queueUnread, "exists (select from progress p where " + mine("p", "b.id") + ")", false}
)

// markAtOnce is how many books are marked per transaction, within the time limit for statements of requests; markTime
// is how long a request marks books.
const (
	markAtOnce = 1000
	markTime   = 20 * time.Second
)

var errManyBooks = &fault.Error{Code: fault.Unavailable, RetryAfter: time.Second,
	Message: "There are too many books to mark in one request; send it again to continue"}

// ReadSeries marks every book of a series as read and counts them; NotFound if there is no such series.
func ReadSeries(ctx context.Context, d *db.DB, series uuid.UUID) (int64, error) {
	return one(ctx, d, series, asRead)
}

// UnreadSeries clears the progress in every book of a series and counts the books that had any; NotFound if there is no
// such series.
func UnreadSeries(ctx context.Context, d *db.DB, series uuid.UUID) (int64, error) {
	return one(ctx, d, series, asUnread)
}

// ReadBooks marks books as read and counts them; unknown ids are ignored.
func ReadBooks(ctx context.Context, d *db.DB, books []uuid.UUID) (int64, error) {
	return several(ctx, d, books, asRead, time.Now().Add(markTime))
}

// UnreadBooks clears the progress in books and counts those that had any; unknown ids are ignored.
func UnreadBooks(ctx context.Context, d *db.DB, books []uuid.UUID) (int64, error) {
	return several(ctx, d, books, asUnread, time.Now().Add(markTime))
}

// ReadBooksBy is ReadBooks with a device of its own.
func ReadBooksBy(ctx context.Context, d *db.DB, device string, books []uuid.UUID) error {
	var b pgx.Batch
	b.Queue(hashing)
	queueRead(&b, new(int64), ofBooks, cut.Chars(device, maxDevice), books)
	return d.Run(ctx, &b)
}

// ReadAllSeries is ReadSeries for several series; unknown ids are ignored.
func ReadAllSeries(ctx context.Context, d *db.DB, series []uuid.UUID) (int64, error) {
	n, _, err := wholeSeries(ctx, d, series, asRead, time.Now().Add(markTime))
	return n, err
}

// UnreadAllSeries is UnreadSeries for several series; unknown ids are ignored.
func UnreadAllSeries(ctx context.Context, d *db.DB, series []uuid.UUID) (int64, error) {
	n, _, err := wholeSeries(ctx, d, series, asUnread, time.Now().Add(markTime))
	return n, err
}

func one(ctx context.Context, d *db.DB, series uuid.UUID, as mark) (int64, error) {
	n, found, err := wholeSeries(ctx, d, []uuid.UUID{series}, as, time.Now().Add(markTime))
	if err == nil && !found {
		err = fault.Missing("Series")
	}
	return n, err
}

// wholeSeries marks the books of series that are not marked yet, until end; found tells whether there is any of the
// series.
func wholeSeries(ctx context.Context, d *db.DB, series []uuid.UUID, as mark, end time.Time) (n int64, found bool, err error) {
	var b pgx.Batch
	var books []uuid.UUID
	var all int64
	from := " from book b where b.tenant_id = app.tenant() and " + there("b.series_id = any($1)")
	db.Value(&b, &found, "select exists (select from series where tenant_id = app.tenant() and id = any($1))", series)
	db.Values(&b, &books, "select b.id"+from+" and "+as.left+" order by b.id", series)
	db.Value(&b, &all, "select count(*)"+from, series)
	if err := d.Run(ctx, &b); err != nil {
		return 0, false, err
	}
	n, err = several(ctx, d, books, as, end)
	if as.all {
		n += all - int64(len(books))
	}
	return n, found, err
}

// several marks books in several transactions, until end. If one fails, those before it stay.
func several(ctx context.Context, d *db.DB, books []uuid.UUID, as mark, end time.Time) (n int64, err error) {
	for some := range slices.Chunk(books, markAtOnce) {
		var b pgx.Batch
		var marked int64
		if n > 0 && time.Now().After(end) {
			return n, errManyBooks
		}
		b.Queue(hashing)
		as.queue(&b, &marked, ofBooks, device(ctx), some)
		if err := d.Run(ctx, &b); err != nil {
			return n, err
		}
		n += marked
	}
	return n, nil
}

// mineThere selects the caller's progress in books whose file is there, one index lookup per row.
const mineThere = ` from progress p where p.tenant_id = app.tenant() and p.account_id = app.account()
	  and (select b.deleted_at is null from book b where b.tenant_id = app.tenant() and b.id = p.book_id)`

// listSQL selects the caller's progress, latest first: $1 rows after $2.
const listSQL = `select ` + columns + ` from (
	  select p.*` + mineThere + ` order by p.updated_at desc, p.book_id limit $1 offset $2) p
	cross join lateral (select x.format, x.page_count from book x where x.tenant_id = app.tenant() and x.id = p.book_id limit 1) b
	order by p.updated_at desc, p.book_id`

const countSQL = "select count(*)" + mineThere

func list(ctx context.Context, d *db.DB, limit, offset int) ([]Record, int64, error) {
	var b pgx.Batch
	var out []Record
	var total int64
	db.All(&b, &out, listSQL, limit, offset)
	db.Value(&b, &total, countSQL)
	return out, total, d.Run(ctx, &b)
}
