package catalog

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/collection"
	"github.com/longbox/longbox/shared/domain/progress"
	serieslist "github.com/longbox/longbox/shared/domain/series"
	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// maxSummary is the length of summaries in characters: a function's response is limited to 6 MB, and a feed has up to
// 500 books.
const maxSummary = "2000"

// queueSeries adds a page of series to the batch. ids is a select of ids in order, whose last two parameters are limit
// and offset.
func queueSeries(b *pgx.Batch, dst *[]series, ids string, args ...any) {
	db.All(b, dst, "with page as materialized (select id, row_number() over () as pos from ("+ids+`) x)
		select s.id, s.library_id, s.title, left(s.summary, `+maxSummary+`) as summary, s.book_count, s.updated_at from page
		cross join lateral (select * from series x where x.tenant_id = app.tenant() and x.id = page.id limit 1) s
		order by page.pos`, args...)
}

// queueBooks is queueSeries for books.
func queueBooks(b *pgx.Batch, dst *[]publication, ids string, args ...any) {
	db.All(b, dst, "with page as materialized (select id, row_number() over () as pos from ("+ids+`) x)
		select b.id, b.series_id, s.title as series_title, b.title, b.number, left(m.metadata ->> 'summary', `+maxSummary+`) as summary,
		  m.metadata ->> 'publisher' as publisher, m.metadata ->> 'languageIso' as language,
		  coalesce(nullif(m.metadata -> 'authors', 'null'), '[]') as authors, b.format, b.size, b.page_count,
		  case when b.analyzed then coalesce(i.images, 0) else 0 end as images, b.created_at, b.updated_at,
		  p.current_page, `+progress.PercentageSQL+` as percentage, p.completed, p.updated_at as read_at
		from page
		cross join lateral (select * from book x where x.tenant_id = app.tenant() and x.id = page.id limit 1) b
		cross join lateral (select x.title from series x where x.tenant_id = app.tenant() and x.id = b.series_id limit 1) s
		left join lateral (select x.metadata from book_metadata x where x.tenant_id = app.tenant() and x.book_id = page.id limit 1) m on true
		left join lateral (select cardinality(x.names) as images from page_index x
		  where x.tenant_id = app.tenant() and x.book_id = page.id limit 1) i on true
		left join lateral (select * from progress x
		  where x.tenant_id = app.tenant() and x.account_id = app.account() and x.book_id = page.id limit 1) p on true
		order by page.pos`, args...)
}

// run reads the feed and the server's name.
func (f *feed) run(ctx context.Context, d *db.DB, b *pgx.Batch) error {
	setting.Value(b, setting.ApplicationName, &f.site)
	return d.Run(ctx, b)
}

func root(ctx context.Context, d *db.DB, _ input) (*feed, error) {
	f := &feed{name: "root", places: places}
	if err := f.run(ctx, d, &pgx.Batch{}); err != nil {
		return nil, err
	}
	f.title = f.site
	return f, nil
}

func allLibraries(ctx context.Context, d *db.DB, _ input) (*feed, error) {
	f := &feed{name: "libraries", title: "Libraries", path: "/libraries"}
	var b pgx.Batch
	db.All(&b, &f.libraries, `select l.id, l.name, app.total('series', l.id) as series, l.updated_at from library l
		where l.tenant_id = app.tenant() order by l.name collate natural_order, l.id`)
	return f, f.run(ctx, d, &b)
}

// ofLibrary lists the series of a library by title.
func ofLibrary(ctx context.Context, d *db.DB, in input) (*feed, error) {
	id, p := in.id, in.paging
	f := &feed{name: "library-" + id.String(), path: "/libraries/" + id.String(), up: "/libraries", paging: p}
	var b pgx.Batch
	var name *string
	db.Value(&b, &name, "select name from library where tenant_id = app.tenant() and id = $1", id)
	queueSeries(&b, &f.series, "select s.id from series s where s.tenant_id = app.tenant() and s.library_id = $1 order by s.title_sort, s.id limit $2 offset $3",
		id, p.size, p.offset())
	db.Value(&b, &f.total, "select app.total('series', $1)", id)
	if err := f.run(ctx, d, &b); err != nil {
		return nil, err
	}
	if name == nil {
		return nil, fault.Missing("Library")
	}
	f.title = *name
	return f, nil
}

// ofSeries lists the books of a series in order.
func ofSeries(ctx context.Context, d *db.DB, in input) (*feed, error) {
	id, p := in.id, in.paging
	f := &feed{name: "series-" + id.String(), path: "/series/" + id.String(), reads: true, paging: p}
	var b pgx.Batch
	var of *series
	db.One(&b, &of, "select id, library_id, title, summary, book_count, updated_at from series where tenant_id = app.tenant() and id = $1", id)
	queueBooks(&b, &f.books, `select b.id from book b where b.tenant_id = app.tenant() and b.series_id = $1 and b.deleted_at is null
		order by b.number, b.title_sort, b.id limit $2 offset $3`, id, p.size, p.offset())
	if err := f.run(ctx, d, &b); err != nil {
		return nil, err
	}
	if of == nil {
		return nil, fault.Missing("Series")
	}
	f.title, f.total, f.up = of.Title, of.Books, "/libraries/"+of.LibraryID.String()
	return f, nil
}

// lists lists the collections or read lists by name.
func lists(k listKind) func(context.Context, *db.DB, input) (*feed, error) {
	return func(ctx context.Context, d *db.DB, in input) (*feed, error) {
		f := &feed{name: k.path[1:], title: k.name, path: k.path, paging: in.paging}
		const from = " from collection c where c.tenant_id = app.tenant() and c.kind = $1"
		var b pgx.Batch
		db.All(&b, &f.lists, "select c.id, c.name, left(c.summary, "+maxSummary+") as summary, c.updated_at"+from+" order by c.name collate natural_order, c.id limit $2 offset $3",
			k.kind, in.paging.size, in.paging.offset())
		db.Value(&b, &f.total, "select count(*)"+from, k.kind)
		err := f.run(ctx, d, &b)
		for i := range f.lists {
			f.lists[i].kind = k
		}
		return f, err
	}
}

// feed returns the empty feed of one collection or read list.
func (k listKind) feed(in input) *feed {
	id := in.id.String()
	return &feed{name: k.path[1:] + "-" + id, path: k.path + "/" + id, up: k.path, reads: k.reads, paging: in.paging}
}

// queueNames reads the names of the list and the server.
func (f *feed) queueNames(b *pgx.Batch, id uuid.UUID) {
	setting.Value(b, setting.ApplicationName, &f.site)
	db.Value(b, &f.title, "select name from collection where tenant_id = app.tenant() and id = $1", id)
}

// ofCollection lists the series of a collection in its order.
func ofCollection(ctx context.Context, d *db.DB, in input) (*feed, error) {
	f := collections.feed(in)
	return f, collection.Series(ctx, d, in.id, "", "", func(b *pgx.Batch, l *serieslist.Listed) {
		f.queueNames(b, in.id)
		ids, args := l.Page(in.paging.size, in.paging.offset())
		queueSeries(b, &f.series, ids, args...)
		count, args := l.Total()
		db.Value(b, &f.total, count, args...)
	})
}

// ofReadList lists the books of a read list in its order.
func ofReadList(ctx context.Context, d *db.DB, in input) (*feed, error) {
	f := readLists.feed(in)
	return f, collection.Books(ctx, d, in.id, "", "", func(b *pgx.Batch, l *book.Listed) {
		f.queueNames(b, in.id)
		ids, args := l.Page(in.paging.size, in.paging.offset())
		queueBooks(b, &f.books, ids, args...)
		count, args := l.Total()
		db.Value(b, &f.total, count, args...)
	})
}

// oneBook returns a book, unless its file is gone.
func oneBook(ctx context.Context, d *db.DB, id uuid.UUID) (*publication, error) {
	var b pgx.Batch
	var found []publication
	queueBooks(&b, &found, "select b.id from book b where b.tenant_id = app.tenant() and b.id = $1 and b.deleted_at is null", id)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fault.Missing("Book")
	}
	return &found[0], nil
}

// recent lists all books, newest first.
func recent(ctx context.Context, d *db.DB, in input) (*feed, error) {
	p := in.paging
	f := &feed{name: "recent", title: "Recently added", path: "/recent", reads: true, paging: p}
	var b pgx.Batch
	queueBooks(&b, &f.books, `select b.id from book b where b.tenant_id = app.tenant() and b.deleted_at is null
		order by b.created_at desc, b.id desc limit $1 offset $2`, p.size, p.offset())
	db.Value(&b, &f.total, "select app.total('books')")
	return f, f.run(ctx, d, &b)
}

// search lists the series and books that match best.
func search(ctx context.Context, d *db.DB, sent, find string) (*feed, error) {
	f := &feed{name: "search", title: "Search: " + sent, path: "/search", reads: true, found: true}
	var b pgx.Batch
	queueSeries(&b, &f.series, `select s.id from app.find('series', $1, null, null, false) f
		cross join lateral (select x.id, x.title_sort from series x where x.tenant_id = app.tenant() and x.id = f.id limit 1) s
		order by f.score desc, s.title_sort, s.id limit $2`, find, maxSize)
	queueBooks(&b, &f.books, `select b.id from app.find('book', $1, null, null, false) f
		cross join lateral (select x.id, x.title_sort from book x where x.tenant_id = app.tenant() and x.id = f.id limit 1) b
		order by f.score desc, b.title_sort, b.id limit $2`, find, maxSize)
	if err := f.run(ctx, d, &b); err != nil {
		return nil, err
	}
	if c := auth.CallerOf(ctx); !c.May(auth.SeriesRead) {
		f.series = nil
	}
	return f, nil
}

// pages are the pages of a book that can be shown one by one.
type pages struct {
	Title     string    `db:"title"`
	SeriesID  uuid.UUID `db:"series_id"`
	Total     int64     `db:"total"`
	Types     []string  `db:"types"` // from the offset on
	UpdatedAt time.Time `db:"updated_at"`
}

func ofBook(ctx context.Context, d *db.DB, in input) (f *feed, of *pages, err error) {
	id, p := in.id, in.paging
	f = &feed{name: "book-" + id.String(), path: "/books/" + id.String() + "/pages", reads: true, paging: p}
	var b pgx.Batch
	from := min(p.offset(), 1<<30) // beyond the end of every book
	db.One(&b, &of, `select b.title, b.series_id, coalesce(cardinality(i.names), 0)::bigint as total, coalesce(i.types[$2:$3], '{}') as types, b.updated_at
		from book b left join page_index i on i.tenant_id = b.tenant_id and i.book_id = b.id
		where b.tenant_id = app.tenant() and b.id = $1 and b.deleted_at is null`, id, from+1, from+p.size)
	if err := f.run(ctx, d, &b); err != nil {
		return nil, nil, err
	}
	if of == nil {
		return nil, nil, fault.Missing("Book")
	}
	f.title, f.total, f.up = of.Title, of.Total, "/series/"+of.SeriesID.String()
	return f, of, nil
}
