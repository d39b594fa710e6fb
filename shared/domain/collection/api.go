package collection

import (
	"context"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/series"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// MemberInput names a member of a collection or a read list.
type MemberInput struct {
	httpapi.IDInput
	MemberID uuid.UUID `path:"memberId" format:"uuid" doc:"Id of the series or book"`
}

// Routes registers the operations on collections and read lists.
func Routes(a *httpapi.API, d *db.DB) {
	common(a, d, collections, row.collection)
	common(a, d, readLists, row.readList)
	httpapi.Register(a, collections.create201(),
		func(ctx context.Context, in *struct{ Body NewCollection }) (*Collection, error) {
			in.Body.CollectionChanges.Name = httpapi.Optional[string]{Set: true, Value: &in.Body.Name}
			p, err := in.Body.patch()
			if err != nil {
				return nil, err
			}
			return show(row.collection)(collections.create(ctx, d, p))
		})
	httpapi.Register(a, readLists.create201(),
		func(ctx context.Context, in *struct{ Body NewReadList }) (*ReadList, error) {
			in.Body.ReadListChanges.Name = httpapi.Optional[string]{Set: true, Value: &in.Body.Name}
			p, err := in.Body.patch()
			if err != nil {
				return nil, err
			}
			return show(row.readList)(readLists.create(ctx, d, p))
		})
	httpapi.Register(a, collections.operation("PATCH", "/{id}", "update", "Update a collection", auth.CollectionsWrite),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			Body CollectionChanges
		}) (*Collection, error) {
			p, err := in.Body.patch()
			if err != nil {
				return nil, err
			}
			return show(row.collection)(collections.update(ctx, d, in.ID, p))
		})
	httpapi.Register(a, readLists.operation("PATCH", "/{id}", "update", "Update a read list", auth.ReadListsWrite),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			Body ReadListChanges
		}) (*ReadList, error) {
			p, err := in.Body.patch()
			if err != nil {
				return nil, err
			}
			return show(row.readList)(readLists.update(ctx, d, in.ID, p))
		})
	seriesOf(a, d)
	booksOf(a, d)
}

// operation describes an operation on a kind; its id begins with verb.
func (k kind) operation(method, path, verb, summary, permission string) httpapi.Op {
	return httpapi.Op{Method: method, Path: "/api/v1" + k.Path + path, ID: verb + k.ID, Summary: summary, Tag: "Collections", Permission: permission}
}

func (k kind) create201() httpapi.Op {
	op := k.operation("POST", "", "create", "Create a "+strings.ToLower(k.What), k.Writing)
	op.Status = 201
	return op
}

// show converts a row to the response.
func show[T any](as func(row) T) func(*row, error) (*T, error) {
	return func(r *row, err error) (*T, error) {
		if err != nil {
			return nil, err
		}
		return new(as(*r)), nil
	}
}

func shown[T any](rows []row, as func(row) T) []T {
	out := make([]T, len(rows))
	for i, r := range rows {
		out[i] = as(r)
	}
	return out
}

// common registers the operations that both kinds share.
func common[T any](a *httpapi.API, d *db.DB, k kind, as func(row) T) {
	all := k.operation("GET", "", "list", "List "+strings.ToLower(k.What)+"s by name", k.Reading)
	all.ID += "s"
	httpapi.Register(a, all.Ahead(),
		func(ctx context.Context, in *struct{ httpapi.Paging }) (*httpapi.Page[T], error) {
			page, total, err := k.list(ctx, d, in.Limit(), in.Offset())
			if err != nil {
				return nil, err
			}
			return httpapi.NewPage(ctx, in.Paging, shown(page, as), total), nil
		})
	httpapi.Register(a, k.operation("GET", "/{id}", "get", "Get a "+strings.ToLower(k.What), k.Reading).Ahead(),
		func(ctx context.Context, in *httpapi.IDInput) (*T, error) { return show(as)(k.get(ctx, d, in.ID)) })
	httpapi.Register(a, k.operation("DELETE", "/{id}", "delete", "Delete a "+strings.ToLower(k.What)+"; its members are kept", k.Removal),
		func(ctx context.Context, in *httpapi.IDInput) (*httpapi.None, error) {
			return nil, k.remove(ctx, d, in.ID)
		})
	httpapi.Register(a, k.operation("DELETE", "/{id}/"+k.Name+"/{memberId}", "removeFrom", "Remove a "+k.Table+" from a "+strings.ToLower(k.What)+", if it is a member", k.Writing),
		func(ctx context.Context, in *MemberInput) (*httpapi.None, error) {
			return nil, k.drop(ctx, d, in.ID, in.MemberID)
		})
}

// seriesOf registers the operations on the series of a collection.
func seriesOf(a *httpapi.API, d *db.DB) {
	httpapi.Register(a, collections.operation("GET", "/{id}/series", "listSeriesOf", "List the series of a collection", auth.CollectionsRead).Ahead(),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			httpapi.Paging
			Sort      string `query:"sort" enum:"title,added,year,manual" doc:"Defaults to manual for an ordered collection, else to title"`
			Direction string `query:"direction" enum:"asc,desc" default:"asc"`
		}) (*httpapi.Page[series.Series], error) {
			var load func() ([]series.Series, int64)
			err := Series(ctx, d, in.ID, in.Sort, in.Direction, func(b *pgx.Batch, l *series.Listed) { load = l.Queue(b, in.Limit(), in.Offset()) })
			if err != nil {
				return nil, err
			}
			page, total := load()
			return httpapi.NewPage(ctx, in.Paging, page, total), nil
		})
	httpapi.Register(a, collections.operation("POST", "/{id}/series", "addTo", "Add series to the end of a collection", auth.CollectionsWrite),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			Body struct {
				SeriesIDs []uuid.UUID `json:"seriesIds" nullable:"false" maxItems:"1000" doc:"Unknown ids are ignored"`
			}
		}) (*Collection, error) {
			return show(row.collection)(collections.add(ctx, d, in.ID, in.Body.SeriesIDs))
		})
	httpapi.Register(a, collections.operation("PUT", "/{id}/series", "order", "Reorder the series of a collection", auth.CollectionsWrite),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			Body struct {
				SeriesIDs []uuid.UUID `json:"seriesIds" nullable:"false" maxItems:"10000" doc:"Ids in the wanted order; members that are not listed follow in their current order"`
			}
		}) (*httpapi.None, error) {
			return nil, collections.order(ctx, d, in.ID, in.Body.SeriesIDs)
		})
	httpapi.Register(a, httpapi.Op{Method: "GET", Path: "/api/v1/series/{id}/collections", ID: "listCollectionsOfSeries",
		Summary: "List the collections that users have added a series to", Tag: "Collections", Permission: auth.CollectionsRead},
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			httpapi.Paging
		}) (*httpapi.Page[Collection], error) {
			rows, err := collections.having(ctx, d, "Series", in.ID)
			if err != nil {
				return nil, err
			}
			return httpapi.All(ctx, in.Paging, shown(rows, row.collection)), nil
		})
}

// booksOf adds what is about the books of read lists.
func booksOf(a *httpapi.API, d *db.DB) {
	httpapi.Register(a, readLists.operation("GET", "/{id}/books", "listBooksOf", "List the books of a read list", auth.ReadListsRead).Ahead(),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			httpapi.Paging
			Sort      string `query:"sort" enum:"release,title,added,manual" doc:"Defaults to manual for an ordered read list, else to release"`
			Direction string `query:"direction" enum:"asc,desc" default:"asc"`
		}) (*httpapi.Page[book.Book], error) {
			var load func() ([]book.Book, int64)
			err := Books(ctx, d, in.ID, in.Sort, in.Direction, func(b *pgx.Batch, l *book.Listed) { load = l.Queue(b, in.Limit(), in.Offset()) })
			if err != nil {
				return nil, err
			}
			page, total := load()
			return httpapi.NewPage(ctx, in.Paging, page, total), nil
		})
	httpapi.Register(a, readLists.operation("POST", "/{id}/books", "addTo", "Add books to the end of a read list", auth.ReadListsWrite),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			Body struct {
				BookIDs []uuid.UUID `json:"bookIds" nullable:"false" maxItems:"1000" doc:"Unknown ids are ignored"`
			}
		}) (*ReadList, error) {
			return show(row.readList)(readLists.add(ctx, d, in.ID, in.Body.BookIDs))
		})
	httpapi.Register(a, readLists.operation("PUT", "/{id}/books", "order", "Reorder the books of a read list", auth.ReadListsWrite),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			Body struct {
				BookIDs []uuid.UUID `json:"bookIds" nullable:"false" maxItems:"10000" doc:"Ids in the wanted order; members that are not listed follow in their current order"`
			}
		}) (*httpapi.None, error) {
			return nil, readLists.order(ctx, d, in.ID, in.Body.BookIDs)
		})
	httpapi.Register(a, httpapi.Op{Method: "GET", Path: "/api/v1/books/{id}/readlists", ID: "listReadListsOfBook",
		Summary: "List the read lists that contain a book", Tag: "Collections", Permission: auth.ReadListsRead},
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			httpapi.Paging
		}) (*httpapi.Page[ReadList], error) {
			rows, err := readLists.having(ctx, d, "Book", in.ID)
			if err != nil {
				return nil, err
			}
			return httpapi.All(ctx, in.Paging, shown(rows, row.readList)), nil
		})
}
