package progress

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// book is what the rules need to know of a book.
type book struct {
	PageCount int32 `db:"page_count"`
	Paged     bool  `db:"paged"` // it has page images, so that its last page is known
}

// paged is the SQL that tells whether a book is analysed and has page images.
const paged = `b.analyzed and b.page_count > 0 and exists (select from page_index i
	where i.tenant_id = b.tenant_id and i.book_id = b.id and cardinality(i.names) > 0)`

func queueBook(b *pgx.Batch, dst **book, id uuid.UUID) {
	db.One(b, dst, "select b.page_count, "+paged+` as paged from book b
		where b.tenant_id = app.tenant() and b.id = $1 and b.deleted_at is null`, id)
}

// write is the SQL that stores progress for every row of source (book_id, current_page, percentage, completed).
// A pass ends where completed_at becomes this transaction's time; the unique index of completion makes sure
// that it is logged once.
func write(source string) string {
	return `with source as materialized (` + source + `),
	written as (
	  insert into progress as p (tenant_id, account_id, book_id, id, current_page, percentage, completed, completed_at)
	  select app.tenant(), app.account(), s.book_id, gen_random_uuid(), s.current_page, s.percentage, s.completed,
	    case when s.completed then now() end
	  from source s order by s.book_id
	  on conflict (tenant_id, account_id, book_id) do update set
	    current_page = excluded.current_page, percentage = excluded.percentage, completed = excluded.completed,
	    completed_at = case when excluded.completed then coalesce(p.completed_at, now()) end,
	    started_at = case when p.completed and not excluded.completed then now() else p.started_at end,
	    updated_at = now()
	  returning *),
	logged as (
	  insert into completion (tenant_id, id, account_id, book_id, started_at, completed_at)
	  select tenant_id, gen_random_uuid(), account_id, book_id, started_at, completed_at from written
	  where completed and completed_at = now()
	  on conflict (tenant_id, account_id, book_id, completed_at) do nothing)
	`
}

func get(ctx context.Context, d *db.DB, id uuid.UUID) (*Record, error) {
	var b pgx.Batch
	var found *book
	var out *Record
	queueBook(&b, &found, id)
	db.One(&b, &out, "select "+Columns("p", "b")+` from progress p
		join book b on b.tenant_id = p.tenant_id and b.id = p.book_id
		where p.tenant_id = app.tenant() and p.account_id = app.account() and p.book_id = $1`, id)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if found == nil {
		return nil, fault.Missing("Book")
	}
	return out, nil
}

// set stores progress in one book; a page beyond the last one changes nothing and is a BadRequest.
func set(ctx context.Context, d *db.DB, id uuid.UUID, u Update) (*Record, error) {
	var b pgx.Batch
	var found *book
	var out *Record
	queueBook(&b, &found, id)
	db.One(&b, &out, write(`select b.id as book_id, $2::integer as current_page, 
		  coalesce($3::double precision, case when b.paged then $2::double precision / b.page_count end) as percentage,
		  coalesce($4::boolean, $3 >= $5 or (b.paged or $3 is null) and b.page_count > 0 and $2 >= b.page_count, false) as completed
		from (select b.id, b.page_count, `+paged+` as paged from book b
		  where b.tenant_id = app.tenant() and b.id = $1 and b.deleted_at is null) b
		where not b.paged or $2 <= b.page_count`)+
		"select "+Columns("p", "b")+" from written p join book b on b.tenant_id = p.tenant_id and b.id = p.book_id",
		id, u.CurrentPage, u.ProgressPercentage, u.Completed, CompleteAt)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	switch {
	case found == nil:
		return nil, fault.Missing("Book")
	case out == nil:
		return nil, fault.Invalid("currentPage", "is %d, but the book has %d pages", u.CurrentPage, found.PageCount)
	}
	return out, nil
}

// all is the source of marking books as read.
const all = `select b.id as book_id, b.page_count as current_page, 1::double precision as percentage, true as completed
	from book b where b.tenant_id = app.tenant() and b.deleted_at is null and `

func read(ctx context.Context, d *db.DB, id uuid.UUID) (*Record, error) {
	out, err := db.Get[Record](ctx, d, write(all+"b.id = $1")+
		"select "+Columns("p", "b")+" from written p join book b on b.tenant_id = p.tenant_id and b.id = p.book_id", id)
	if err == nil && out == nil {
		err = fault.Missing("Book")
	}
	return out, err
}

func clear(ctx context.Context, d *db.DB, id uuid.UUID) error {
	var b pgx.Batch
	var found *book
	queueBook(&b, &found, id)
	b.Queue("delete from progress where tenant_id = app.tenant() and account_id = app.account() and book_id = $1", id)
	if err := d.Run(ctx, &b); err != nil {
		return err
	}
	if found == nil {
		return fault.Missing("Book")
	}
	return nil
}

// Which books are marked together: by their own ids or by those of their series.
const (
	ofBooks  = "b.id = any($1)"
	ofSeries = "b.series_id = any($1)"
)

// markRead and markUnread are the SQL that marks the books of $1 and counts them; unread counts those that had any progress.
func markRead(which string) string { return write(all+which) + "select count(*) from written" }

func markUnread(which string) string {
	return `with gone as (
		delete from progress p using book b
		where p.tenant_id = app.tenant() and p.account_id = app.account()
		  and b.tenant_id = app.tenant() and b.id = p.book_id and ` + which + ` returning 1)
		select count(*) from gone`
}

// ReadSeries marks every book of a series as read and counts them; NotFound where there is no such series.
func ReadSeries(ctx context.Context, d *db.DB, series uuid.UUID) (int64, error) {
	return one(ctx, d, series, markRead(ofSeries))
}

// UnreadSeries clears the progress in every book of a series and counts those that had any; NotFound where there
// is no such series.
func UnreadSeries(ctx context.Context, d *db.DB, series uuid.UUID) (int64, error) {
	return one(ctx, d, series, markUnread(ofSeries))
}

// ReadAllSeries is ReadSeries for several; ids that no series has are left out.
func ReadAllSeries(ctx context.Context, d *db.DB, series []uuid.UUID) (int64, error) {
	return mark(ctx, d, series, markRead(ofSeries))
}

// UnreadAllSeries is UnreadSeries for several; ids that no series has are left out.
func UnreadAllSeries(ctx context.Context, d *db.DB, series []uuid.UUID) (int64, error) {
	return mark(ctx, d, series, markUnread(ofSeries))
}

func one(ctx context.Context, d *db.DB, series uuid.UUID, sql string) (int64, error) {
	var b pgx.Batch
	var exists bool
	var n int64
	db.Value(&b, &exists, "select exists (select from series where tenant_id = app.tenant() and id = $1)", series)
	db.Value(&b, &n, sql, []uuid.UUID{series})
	if err := d.Run(ctx, &b); err != nil {
		return 0, err
	}
	if !exists {
		return 0, fault.Missing("Series")
	}
	return n, nil
}

func mark(ctx context.Context, d *db.DB, ids []uuid.UUID, sql string) (int64, error) {
	var b pgx.Batch
	var n int64
	db.Value(&b, &n, sql, ids)
	return n, d.Run(ctx, &b)
}

// listSQL is the caller's progress, the latest first: $1 rows after $2.
func listSQL() string {
	return `select ` + Columns("p", "b") + ` from (
	  select id, account_id, book_id, current_page, percentage, completed, completed_at, started_at, updated_at from progress
	  where tenant_id = app.tenant() and account_id = app.account()
	  order by updated_at desc, book_id limit $1 offset $2) p
	cross join lateral (select x.format, x.page_count from book x where x.tenant_id = app.tenant() and x.id = p.book_id limit 1) b
	order by p.updated_at desc, p.book_id`
}

const countSQL = "select count(*) from progress where tenant_id = app.tenant() and account_id = app.account()"

func list(ctx context.Context, d *db.DB, limit, offset int) ([]Record, int64, error) {
	var b pgx.Batch
	var out []Record
	var total int64
	db.All(&b, &out, listSQL(), limit, offset)
	db.Value(&b, &total, countSQL)
	return out, total, d.Run(ctx, &b)
}
