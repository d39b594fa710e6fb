package komga

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/collection"
	"github.com/longbox/longbox/shared/domain/series"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Collection is a collection of series.
type Collection struct {
	ID               string   `json:"id"`
	Name             string   `json:"name"`
	Ordered          bool     `json:"ordered"`
	SeriesIDs        []string `json:"seriesIds" nullable:"false" doc:"Of an automatic one none: ask for its series"`
	CreatedDate      string   `json:"createdDate"`
	LastModifiedDate string   `json:"lastModifiedDate"`
	Filtered         bool     `json:"filtered"`
}

// ReadList is a list of books.
type ReadList struct {
	ID               string   `json:"id"`
	Name             string   `json:"name"`
	Summary          string   `json:"summary"`
	Ordered          bool     `json:"ordered"`
	BookIDs          []string `json:"bookIds" nullable:"false"`
	CreatedDate      string   `json:"createdDate"`
	LastModifiedDate string   `json:"lastModifiedDate"`
	Filtered         bool     `json:"filtered"`
}

// What the caller wants to read is a collection of its series, and a read list of its books, before all others.
const (
	wantedID   = "want-to-read"
	wantedName = "Want to Read"
)

// The series and the books that the caller wants to read and that are there, and their order.
const (
	wantedSeries = " from wanted w where w.tenant_id = app.tenant() and w.account_id = app.account() and w.series_id is not null"
	wantedBooks  = ` from wanted w where w.tenant_id = app.tenant() and w.account_id = app.account() and w.book_id is not null
		and (select b.deleted_at is null from book b where b.tenant_id = app.tenant() and b.id = w.book_id)`
	wantedOrder = " order by w.place, w.id"
)

// namedRow is a collection or a read list.
type namedRow struct {
	ID        string    `db:"id"`
	Name      string    `db:"name"`
	Summary   string    `db:"summary"`
	Ordered   bool      `db:"ordered"`
	Members   []string  `db:"members"`
	CreatedAt time.Time `db:"created_at"`
	UpdatedAt time.Time `db:"updated_at"`
}

// maxNamed is how many collections, and how many members of each, are told of.
const maxNamed = "1000"

// wantedRow selects what the caller wants to read as a namedRow; no row where that is nothing.
func wantedRow(column, of string) string {
	return "select '" + wantedID + "' as id, '" + wantedName + "' as name, '' as summary, true as ordered, (array_agg(w." + column + "::text" + wantedOrder +
		"))[:" + maxNamed + "] as members, min(w.added_at) as created_at, max(w.added_at) as updated_at" + of + " having count(*) > 0"
}

// namedSQL selects collections of a kind as namedRows; there says of a member m that it is there.
func namedSQL(kind, column, there string) string {
	return `select c.id::text, c.name, coalesce(c.summary, '') as summary, c.ordered, array(select m.` + column + `::text from collection_member m
		  where m.tenant_id = app.tenant() and m.collection_id = c.id and ` + there + ` order by m.place, m.id limit ` + maxNamed + `) as members, c.created_at, c.updated_at
		from collection c where c.tenant_id = app.tenant() and c.kind = '` + kind + "'"
}

var (
	collectionSQL = namedSQL("series", "series_id", "true")
	readListSQL   = namedSQL("books", "book_id", "(select b.deleted_at is null from book b where b.tenant_id = app.tenant() and b.id = m.book_id)")
)

func (r namedRow) collection() Collection {
	return Collection{ID: r.ID, Name: r.Name, Ordered: r.Ordered, SeriesIDs: r.Members, CreatedDate: stamp(r.CreatedAt), LastModifiedDate: stamp(r.UpdatedAt)}
}

func (r namedRow) readList() ReadList {
	return ReadList{ID: r.ID, Name: r.Name, Summary: r.Summary, Ordered: r.Ordered, BookIDs: r.Members, CreatedDate: stamp(r.CreatedAt), LastModifiedDate: stamp(r.UpdatedAt)}
}

// lists adds collections and read lists.
func lists(a *httpapi.API, d *db.DB) {
	named(a, d, "collections", "Collection", auth.CollectionsRead, wantedRow("series_id", wantedSeries), collectionSQL, namedRow.collection)
	named(a, d, "readlists", "ReadList", auth.ReadListsRead, wantedRow("book_id", wantedBooks), readListSQL, namedRow.readList)
	httpapi.Register(a, operation("GET", "/v1/collections/"+wantedID+"/series", "ListWantedSeries", "The series that the caller wants to read, in the caller's order", auth.SeriesRead),
		func(ctx context.Context, in *struct {
			At
			Paging
		}) (*Page[Series], error) {
			var b pgx.Batch
			load := queueSeries(&b, series.Selected("select w.series_id as id"+wantedSeries+wantedOrder, "select count(*)"+wantedSeries), in.Paging)
			if err := d.Run(ctx, &b); err != nil {
				return nil, err
			}
			return load(), nil
		})
	httpapi.Register(a, operation("GET", "/v1/readlists/"+wantedID+"/books", "ListWantedBooks", "The books that the caller wants to read, in the caller's order", auth.BooksRead),
		func(ctx context.Context, in *struct {
			At
			Paging
		}) (*Page[Book], error) {
			return listBooks(ctx, d, book.Selected("select w.book_id as id"+wantedBooks+wantedOrder, "select count(*)"+wantedBooks), in.Paging)
		})
	httpapi.Register(a, operation("GET", "/v1/collections/{id}/series", "ListCollectionSeries", "The series of a collection", auth.CollectionsRead),
		func(ctx context.Context, in *struct {
			IDInput
			Paging
		}) (*Page[Series], error) {
			var load func() *Page[Series]
			err := collection.Series(ctx, d, in.ID, "", "", func(b *pgx.Batch, l *series.Listed) { load = queueSeries(b, l, in.Paging) })
			if err != nil {
				return nil, err
			}
			return load(), nil
		})
	httpapi.Register(a, operation("GET", "/v1/readlists/{id}/books", "ListReadListBooks", "The books of a read list", auth.ReadListsRead),
		func(ctx context.Context, in *struct {
			IDInput
			Paging
		}) (*Page[Book], error) {
			var load func() *Page[Book]
			err := collection.Books(ctx, d, in.ID, "", "", func(b *pgx.Batch, l *book.Listed) { load = queueBooks(b, l, in.Paging) })
			if err != nil {
				return nil, err
			}
			return load(), nil
		})
	having(a, d, "/v1/series/{id}/collections", "ListSeriesCollections", "The collections that people put a series into", auth.CollectionsRead, "Series",
		"select exists (select from series where tenant_id = app.tenant() and id = $1)", collectionSQL, "series_id", namedRow.collection)
	having(a, d, "/v1/books/{id}/readlists", "ListBookReadLists", "The read lists that a book is in", auth.ReadListsRead, "Book",
		"select exists (select from book where tenant_id = app.tenant() and id = $1 and deleted_at is null)", readListSQL, "book_id", namedRow.readList)
}

// named adds the list of collections or read lists and each of them; wanted selects the caller's own.
func named[T any](a *httpapi.API, d *db.DB, path, id, permission, wanted, sql string, as func(namedRow) T) {
	httpapi.Register(a, operation("GET", "/v1/"+path, "List"+id+"s", "All by name, what the caller wants to read before them", permission),
		func(ctx context.Context, in *struct {
			At
			Paging
		}) (*Page[T], error) {
			var b pgx.Batch
			var rows, more []namedRow
			db.All(&b, &rows, wanted)
			db.All(&b, &more, sql+" order by lower(c.name), c.id limit "+maxNamed)
			if err := d.Run(ctx, &b); err != nil {
				return nil, err
			}
			return paged(in.Paging, shown(append(rows, more...), as)), nil
		})
	httpapi.Register(a, operation("GET", "/v1/"+path+"/"+wantedID, "GetWanted"+id, "What the caller wants to read; not found where that is nothing", permission),
		func(ctx context.Context, _ *At) (*T, error) { return single(ctx, d, wanted, as) })
	httpapi.Register(a, operation("GET", "/v1/"+path+"/{id}", "Get"+id, "One of them", permission),
		func(ctx context.Context, in *IDInput) (*T, error) {
			return single(ctx, d, sql+" and c.id = $1", as, in.ID)
		})
}

func single[T any](ctx context.Context, d *db.DB, sql string, as func(namedRow) T, args ...any) (*T, error) {
	row, err := db.Get[namedRow](ctx, d, sql, args...)
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, fault.Missing("List")
	}
	out := as(*row)
	return &out, nil
}

// having adds the collections or read lists that something is in; exists tells whether there is such a thing.
func having[T any](a *httpapi.API, d *db.DB, path, id, summary, permission, what, exists, sql, column string, as func(namedRow) T) {
	httpapi.Register(a, operation("GET", path, id, summary, permission),
		func(ctx context.Context, in *IDInput) (*[]T, error) {
			var b pgx.Batch
			var there bool
			var rows []namedRow
			db.Value(&b, &there, exists, in.ID)
			db.All(&b, &rows, sql+" and c.id in (select m.collection_id from collection_member m where m.tenant_id = app.tenant() and m."+column+" = $1) order by lower(c.name), c.id", in.ID)
			if err := d.Run(ctx, &b); err != nil {
				return nil, err
			}
			if !there {
				return nil, fault.Missing(what)
			}
			out := shown(rows, as)
			return &out, nil
		})
}

func shown[T any](rows []namedRow, as func(namedRow) T) []T {
	out := make([]T, len(rows))
	for i, r := range rows {
		out[i] = as(r)
	}
	return out
}
