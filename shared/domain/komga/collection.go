package komga

import (
	"context"
	"reflect"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/text/unicode/norm"

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
	SeriesIDs        []string `json:"seriesIds" nullable:"false" doc:"Empty for an automatic collection: list its series instead"`
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

// The caller's want-to-read list appears first, as a collection of its series and a read list of its books.
const (
	wantedID   = "want-to-read"
	wantedName = "Want to Read"
)

// kind holds the differences between collections and read lists.
type kind struct {
	path, id   string // of the operations
	permission string
	kind       string // column kind in the table
	table      string // table of the members
	column     string // column of the member's id
	own        string // SQL: default order of the members x
	wanted     string // SQL: existing items of the caller's want-to-read list
	there      string // SQL: the member m exists
}

const wantedOrder = " order by w.place, w.id"

var (
	collections = kind{path: "collections", id: "Collection", permission: auth.CollectionsRead, kind: "series", table: "series", column: "series_id", own: "x.title_sort",
		wanted: " from wanted w where w.tenant_id = app.tenant() and w.account_id = app.account() and w.series_id is not null", there: "true"}
	readLists = kind{path: "readlists", id: "ReadList", permission: auth.ReadListsRead, kind: "books", table: "book", column: "book_id", own: "x.release_day, x.title_sort",
		wanted: ` from wanted w where w.tenant_id = app.tenant() and w.account_id = app.account() and w.book_id is not null
		and (select b.deleted_at is null from book b where b.tenant_id = app.tenant() and b.id = w.book_id)`,
		there: "(select b.deleted_at is null from book b where b.tenant_id = app.tenant() and b.id = m.book_id)"}
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

// all selects the caller's want-to-read list, unless it is empty, and the manual lists, without members.
func (k kind) all() string {
	return "(select '" + wantedID + "' as id, '" + wantedName + "' as name, '' as summary, true as ordered, min(w.added_at) as created_at, max(w.added_at) as updated_at" +
		k.wanted + ` having count(*) > 0
		union all select c.id::text, c.name, coalesce(c.summary, ''), c.ordered, c.created_at, c.updated_at from collection c
		where c.tenant_id = app.tenant() and c.kind = '` + k.kind + "') c"
}

// rows selects a page of the lists that match where, each with at most $1 members.
func (k kind) rows(where, limits string) string {
	const order = " order by c.id <> '" + wantedID + "', c.name collate natural_order, c.id"
	return "with page as materialized (select * from " + k.all() + " where " + where + order + limits + `)
		select c.*, case when c.id = '` + wantedID + "' then array(select w." + k.column + "::text" + k.wanted + wantedOrder + " limit $1) else array(select m." + k.column +
		`::text from collection_member m where m.tenant_id = app.tenant() and m.collection_id = nullif(c.id, '` + wantedID + "')::uuid and " + k.there +
		" order by m.place, m.id limit $1) end as members from page c" + order
}

// order joins the order of the members of collection $n, or of the want-to-read list, for a list of their ids l.id.
func (k kind) order() string {
	return "join lateral (select * from " + k.table + " x where x.tenant_id = app.tenant() and x.id = l.id limit 1) x on true" +
		" left join collection c on c.tenant_id = app.tenant() and c.id::text = $n left join collection_member m on m.tenant_id = app.tenant() and m." + k.column +
		" = l.id and m.collection_id = c.id left join wanted w on $n = '" + wantedID + "' and w.tenant_id = app.tenant() and w.account_id = app.account() and w." + k.column +
		" = l.id order by case when c.ordered then m.place end, w.place, " + k.own + ", l.id"
}

// Maximum number of members per collection, and per response.
const maxMembers, maxAllMembers = 1000, 60_000

func (r namedRow) collection() Collection {
	return Collection{ID: r.ID, Name: r.Name, Ordered: r.Ordered, SeriesIDs: r.Members, CreatedDate: stamp(r.CreatedAt), LastModifiedDate: stamp(r.UpdatedAt)}
}

func (r namedRow) readList() ReadList {
	return ReadList{ID: r.ID, Name: r.Name, Summary: r.Summary, Ordered: r.Ordered, BookIDs: r.Members, CreatedDate: stamp(r.CreatedAt), LastModifiedDate: stamp(r.UpdatedAt)}
}

// lists registers collections and read lists.
func lists(a *httpapi.API, d *db.DB) {
	named(a, d, collections, namedRow.collection)
	named(a, d, readLists, namedRow.readList)
	collectionMembers(a, d)
	readListMembers(a, d)
	having(a, d, collections, "/v1/series/{id}/collections", "ListSeriesCollections", "List the collections that contain a series, without automatic ones", "Series",
		"select exists (select from series where tenant_id = app.tenant() and id = $1)", namedRow.collection)
	having(a, d, readLists, "/v1/books/{id}/readlists", "ListBookReadLists", "List the read lists that contain a book", "Book",
		"select exists (select from book where tenant_id = app.tenant() and id = $1 and deleted_at is null)", namedRow.readList)
}

// named registers the list of collections or read lists, and the single ones.
func named[T any](a *httpapi.API, d *db.DB, k kind, as func(namedRow) T) {
	httpapi.Register(a, operation("GET", "/v1/"+k.path, "List"+k.id+"s", "List the "+k.path+" by name, after the caller's want-to-read list", k.permission),
		func(ctx context.Context, in *struct {
			At
			Paging
			Search    string   `query:"search" maxLength:"1000" doc:"Only those whose name contains this text"`
			LibraryID []string `query:"libraryId,explode" doc:"Ignored: collections and read lists belong to no library"`
		}) (*Page[T], error) {
			var b pgx.Batch
			var rows []namedRow
			var total int64
			search := strings.ToLower(norm.NFC.String(in.Search))
			db.All(&b, &rows, k.rows("($2 = '' or strpos(lower(c.name), $2) > 0)", " limit $3 offset $4"), min(maxMembers, maxAllMembers/in.limit()), search, in.limit(), in.offset())
			db.Value(&b, &total, "select count(*) from "+k.all()+" where ($1 = '' or strpos(lower(c.name), $1) > 0)", search)
			if err := d.Run(ctx, &b); err != nil {
				return nil, err
			}
			return newPage(in.Paging, shown(rows, as), total), nil
		})
	single := func(ctx context.Context, id string) (*T, error) {
		row, err := db.Get[namedRow](ctx, d, k.rows("c.id = $2", ""), maxMembers, id)
		if err != nil {
			return nil, err
		}
		if row == nil {
			return nil, fault.Missing("List")
		}
		return new(as(*row)), nil
	}
	httpapi.Register(a, operation("GET", "/v1/"+k.path+"/"+wantedID, "GetWanted"+k.id, "Get the caller's want-to-read list; not found if it is empty", k.permission),
		func(ctx context.Context, _ *At) (*T, error) { return single(ctx, wantedID) })
	httpapi.Register(a, operation("GET", "/v1/"+k.path+"/{id}", "Get"+k.id, "Get one of the "+k.path, k.permission),
		func(ctx context.Context, in *IDInput) (*T, error) { return single(ctx, in.ID.String()) })
}

// ofList returns a page of the members of a list; NotFound if there is no such list.
func ofList[T any](ctx context.Context, d *db.DB, k kind, id string, queue func(*pgx.Batch) (load func() *Page[T])) (*Page[T], error) {
	var b pgx.Batch
	var exists bool
	db.Value(&b, &exists, "select $1 = '"+wantedID+"' or exists (select from collection where tenant_id = app.tenant() and kind = $2 and id::text = $1)", id, k.kind)
	load := queue(&b)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if !exists {
		return nil, fault.Missing("List")
	}
	return load(), nil
}

// collectionMembers registers the series of collections, in the collection's order unless a filter or sort is given.
func collectionMembers(a *httpapi.API, d *db.DB) {
	of := func(ctx context.Context, id string, f SeriesFilter, p Paging, all func() (*Page[Series], error)) (*Page[Series], error) {
		sort := p.sorting(seriesSorts)
		if reflect.ValueOf(f).IsZero() && sort.Sort == "" {
			return all()
		}
		f = f.split()
		f.CollectionID = []string{id}
		automatic, err := f.automatic(ctx, d)
		if err != nil {
			return nil, err
		}
		w, err := f.wanted(nil, automatic, words(&f.Search), sort)
		if err != nil {
			return nil, err
		}
		list, err := series.List(w)
		if err != nil {
			return nil, err
		}
		if sort.Sort == "" && automatic[id] == nil {
			list = list.Reordered(collections.order(), id)
		}
		return ofList(ctx, d, collections, id, func(b *pgx.Batch) func() *Page[Series] { return queueSeries(b, list, p) })
	}
	httpapi.Register(a, operation("GET", "/v1/collections/"+wantedID+"/series", "ListWantedSeries", "List the series that the caller wants to read, by default in the caller's order", auth.SeriesRead),
		func(ctx context.Context, in *struct {
			At
			SeriesFilter
			Paging
		}) (*Page[Series], error) {
			return of(ctx, wantedID, in.SeriesFilter, in.Paging, func() (*Page[Series], error) {
				return listSeries(ctx, d, series.Selected("select w.series_id as id"+collections.wanted+wantedOrder, "select count(*)"+collections.wanted), in.Paging)
			})
		})
	httpapi.Register(a, operation("GET", "/v1/collections/{id}/series", "ListCollectionSeries", "List the series of a collection", auth.CollectionsRead),
		func(ctx context.Context, in *struct {
			IDInput
			SeriesFilter
			Paging
		}) (*Page[Series], error) {
			return of(ctx, in.ID.String(), in.SeriesFilter, in.Paging, func() (page *Page[Series], err error) {
				var load func() *Page[Series]
				if err = collection.Series(ctx, d, in.ID, "", "", func(b *pgx.Batch, l *series.Listed) { load = queueSeries(b, l, in.Paging) }); err == nil {
					page = load()
				}
				return page, err
			})
		})
}

// wantedBooks selects the books that the caller wants to read, in the caller's order.
func wantedBooks() *book.Listed {
	return book.Selected("select w.book_id as id"+readLists.wanted+wantedOrder, "select count(*)"+readLists.wanted)
}

// readListMembers registers the books of read lists, in the list's order unless a filter or sort is given.
func readListMembers(a *httpapi.API, d *db.DB) {
	of := func(ctx context.Context, id string, f BookFilter, p Paging, all func() (*Page[Book], error)) (*Page[Book], error) {
		sort := p.sorting(bookSorts)
		if reflect.ValueOf(f).IsZero() && sort.Sort == "" {
			return all()
		}
		f = f.split()
		f.ReadListID = []string{id}
		list, err := f.list(nil, words(&f.Search), sort)
		if err != nil {
			return nil, err
		}
		if sort.Sort == "" {
			list = list.Reordered(readLists.order(), id)
		}
		return ofList(ctx, d, readLists, id, func(b *pgx.Batch) func() *Page[Book] { return queueBooks(b, list, p) })
	}
	httpapi.Register(a, operation("GET", "/v1/readlists/"+wantedID+"/books", "ListWantedBooks", "List the books that the caller wants to read, by default in the caller's order", auth.BooksRead),
		func(ctx context.Context, in *struct {
			At
			BookFilter
			Paging
		}) (*Page[Book], error) {
			return of(ctx, wantedID, in.BookFilter, in.Paging, func() (*Page[Book], error) {
				return listBooks(ctx, d, wantedBooks(), in.Paging)
			})
		})
	httpapi.Register(a, operation("GET", "/v1/readlists/{id}/books", "ListReadListBooks", "List the books of a read list", auth.ReadListsRead),
		func(ctx context.Context, in *struct {
			IDInput
			BookFilter
			Paging
		}) (*Page[Book], error) {
			return of(ctx, in.ID.String(), in.BookFilter, in.Paging, func() (page *Page[Book], err error) {
				var load func() *Page[Book]
				if err = collection.Books(ctx, d, in.ID, "", "", func(b *pgx.Batch, l *book.Listed) { load = queueBooks(b, l, in.Paging) }); err == nil {
					page = load()
				}
				return page, err
			})
		})
}

// having registers the lists that an item is a member of; exists is the query for the item.
func having[T any](a *httpapi.API, d *db.DB, k kind, path, id, summary, what, exists string, as func(namedRow) T) {
	httpapi.Register(a, operation("GET", path, id, summary, k.permission),
		func(ctx context.Context, in *IDInput) (*[]T, error) {
			var b pgx.Batch
			var there bool
			var rows []namedRow
			db.Value(&b, &there, exists, in.ID)
			db.All(&b, &rows, k.rows("c.id in (select m.collection_id::text from collection_member m where m.tenant_id = app.tenant() and m."+k.column+" = $2)", " limit $3"),
				maxAllMembers/maxUnpaged, in.ID, maxUnpaged)
			if err := d.Run(ctx, &b); err != nil {
				return nil, err
			}
			if !there {
				return nil, fault.Missing(what)
			}
			return new(shown(rows, as)), nil
		})
}
