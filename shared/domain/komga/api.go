package komga

import (
	"context"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// IDInput names an item.
type IDInput struct {
	At
	ID uuid.UUID `path:"id" format:"uuid"`
}

// ReadListInput names a read list.
type ReadListInput struct {
	At
	ID string `path:"id" maxLength:"36" doc:"Id of a read list, or want-to-read"`
}

// Routes registers the operations that respond with JSON.
func Routes(a *httpapi.API, d *db.DB, added task.Added) {
	users(a, d)
	libraries(a, d)
	seriesLists(a, d)
	oneOfSeries(a, d)
	bookLists(a, d)
	oneOfBooks(a, d, added)
	reading(a, d)
	values(a, d)
	lists(a, d)
}

// operation describes an operation of this interface: its path is below the tenant's prefix, and read operations also
// accept the session cookie.
func operation(method, path, id, summary, permission string) httpapi.Op {
	return httpapi.Op{Method: method, Path: "/{prefix}/api" + path, ID: "komga" + id, Summary: summary, Tag: "Komga-compatible", Permission: permission, Prefixed: true, Cookie: method == "GET"}
}

func seriesLists(a *httpapi.API, d *db.DB) {
	for _, l := range []struct {
		path, id, summary string
		order             httpapi.Sorting // by default
	}{
		{"", "ListSeries", "List the series, by default by title", httpapi.Sorting{}},
		{"/new", "ListNewSeries", "List the series, by default newest first", httpapi.Sorting{Sort: "date_added", Order: "desc"}},
		{"/latest", "ListLatestSeries", "List the series, by default most recently updated first", httpapi.Sorting{Sort: "date_updated", Order: "desc"}},
		{"/updated", "ListUpdatedSeries", "List the series, by default most recently updated first (alias of /series/latest)", httpapi.Sorting{Sort: "date_updated", Order: "desc"}},
	} {
		httpapi.Register(a, operation("GET", "/v1/series"+l.path, l.id, l.summary, auth.SeriesRead),
			func(ctx context.Context, in *struct {
				At
				SeriesFilter
				Paging
			}) (*Page[Series], error) {
				order := in.sorting(seriesSorts)
				if order.Sort == "" {
					order = l.order
				}
				return filteredSeries(ctx, d, in.SeriesFilter.split(), nil, words(&in.Search), order, in.Paging)
			})
	}
	httpapi.Register(a, operation("POST", "/v1/series/list", "FilterSeries", "List the series that meet a condition", auth.SeriesRead),
		func(ctx context.Context, in *struct {
			At
			Paging
			Body SeriesSearch
		}) (*Page[Series], error) {
			return filteredSeries(ctx, d, in.Body.filter(), in.Body.Condition, words(in.Body.FullTextSearch, in.Body.SearchTerm), in.sorting(seriesSorts), in.Paging)
		})
}

func oneOfSeries(a *httpapi.API, d *db.DB) {
	httpapi.Register(a, operation("GET", "/v1/series/{id}", "GetSeries", "Get a series", auth.SeriesRead),
		func(ctx context.Context, in *IDInput) (*Series, error) { return oneSeries(ctx, d, in.ID) })
	httpapi.Register(a, operation("GET", "/v1/series/{id}/books", "ListSeriesBooks", "List the books of a series, by default in order", auth.BooksRead),
		func(ctx context.Context, in *struct {
			IDInput
			BookFilter
			Paging
		}) (*Page[Book], error) {
			in.SeriesID = []string{in.ID.String()} // the id in the path takes precedence
			list, err := in.split().list(nil, words(&in.Search), in.sorting(bookSorts))
			if err != nil {
				return nil, err
			}
			return booksOf(ctx, d, in.ID, list, in.Paging)
		})
}

func bookLists(a *httpapi.API, d *db.DB) {
	for _, l := range []struct {
		path, id, summary string
		order             httpapi.Sorting // by default
	}{
		{"", "ListBooks", "List the books, by default by title", httpapi.Sorting{}},
		{"/latest", "ListLatestBooks", "List the books, by default most recently updated first", httpapi.Sorting{Sort: "modified_at", Order: "desc"}},
	} {
		httpapi.Register(a, operation("GET", "/v1/books"+l.path, l.id, l.summary, auth.BooksRead),
			func(ctx context.Context, in *struct {
				At
				BookFilter
				Paging
			}) (*Page[Book], error) {
				order := in.sorting(bookSorts)
				if order.Sort == "" {
					order = l.order
				}
				list, err := in.split().list(nil, words(&in.Search), order)
				if err != nil {
					return nil, err
				}
				return listBooks(ctx, d, list, in.Paging)
			})
	}
	httpapi.Register(a, operation("GET", "/v1/books/ondeck", "ListBooksOnDeck", "List the next book of each series that the caller reads, unless a book of it is in progress", auth.BooksRead),
		func(ctx context.Context, in *struct {
			At
			Paging
			LibraryID []string `query:"libraryId,explode"`
		}) (*Page[Book], error) {
			libraries := separated(in.LibraryID)
			if err := ids("libraryId", libraries); err != nil {
				return nil, err
			}
			return listBooks(ctx, d, book.ListOnDeck(libraries), in.Paging)
		})
	httpapi.Register(a, operation("POST", "/v1/books/list", "FilterBooks", "List the books that meet a condition", auth.BooksRead),
		func(ctx context.Context, in *struct {
			At
			Paging
			Body BookSearch
		}) (*Page[Book], error) {
			list, err := in.Body.filter().list(in.Body.Condition, words(in.Body.FullTextSearch, in.Body.SearchTerm), in.sorting(bookSorts))
			if err != nil {
				return nil, err
			}
			return listBooks(ctx, d, list, in.Paging)
		})
}

func oneOfBooks(a *httpapi.API, d *db.DB, added task.Added) {
	for _, o := range []struct {
		path, id, summary string
		list              func(uuid.UUID) *book.Listed
	}{
		{"", "GetBook", "Get a book", book.ListOne},
		{"/next", "GetNextBook", "Get the next book of the series", book.ListNext},
		{"/previous", "GetPreviousBook", "Get the previous book of the series", book.ListPrevious},
	} {
		httpapi.Register(a, operation("GET", "/v1/books/{id}"+o.path, o.id, o.summary, auth.BooksRead),
			func(ctx context.Context, in *IDInput) (*Book, error) { return one(ctx, d, o.list(in.ID)) })
	}
	httpapi.Register(a, operation("GET", "/v1/books/{id}/pages", "ListPages", "List the page images of a book", auth.PagesRead),
		func(ctx context.Context, in *IDInput) (*[]BookPage, error) { return pagesOf(ctx, d, added, in.ID) })
}

// reading registers the operations that write the caller's progress.
func reading(a *httpapi.API, d *db.DB) {
	httpapi.Register(a, operation("PATCH", "/v1/books/{id}/read-progress", "SetReadProgress", "Set the caller's page in a book, or mark the book as read", auth.BooksRead),
		func(ctx context.Context, in *struct {
			IDInput
			Body Turned
		}) (*httpapi.None, error) {
			return nil, in.Body.store(ctx, d, in.ID)
		})
	httpapi.Register(a, operation("DELETE", "/v1/books/{id}/read-progress", "ClearReadProgress", "Mark a book as unread", auth.BooksRead),
		func(ctx context.Context, in *IDInput) (*httpapi.None, error) {
			return nil, progress.Clear(ctx, d, in.ID)
		})
	httpapi.Register(a, operation("POST", "/v1/series/{id}/read-progress", "ReadSeries", "Mark every book of a series as read", auth.BooksRead),
		func(ctx context.Context, in *IDInput) (*httpapi.None, error) {
			_, err := progress.ReadSeries(ctx, d, in.ID)
			return nil, err
		})
	httpapi.Register(a, operation("DELETE", "/v1/series/{id}/read-progress", "UnreadSeries", "Mark every book of a series as unread", auth.BooksRead),
		func(ctx context.Context, in *IDInput) (*httpapi.None, error) {
			_, err := progress.UnreadSeries(ctx, d, in.ID)
			return nil, err
		})
	httpapi.Register(a, operation("GET", "/v2/series/{id}/read-progress/tachiyomi", "GetSeriesProgress", "Get the caller's progress in a series", auth.BooksRead),
		func(ctx context.Context, in *IDInput) (*SeriesProgress, error) { return seriesProgress(ctx, d, in.ID) })
	httpapi.Register(a, operation("PUT", "/v2/series/{id}/read-progress/tachiyomi", "SetSeriesProgress", "Mark the books of a series up to a number as read", auth.BooksRead),
		func(ctx context.Context, in *struct {
			IDInput
			Body struct {
				Last float64 `json:"lastBookNumberSortRead"`
			}
		}) (*httpapi.None, error) {
			return nil, readUpTo(ctx, d, in.ID, in.Body.Last)
		})
	httpapi.Register(a, operation("GET", "/v1/readlists/{id}/read-progress/tachiyomi", "GetReadListProgress", "Get the caller's progress in a read list", auth.ReadListsRead),
		func(ctx context.Context, in *ReadListInput) (*ReadListProgress, error) {
			return readListProgress(ctx, d, in.ID)
		})
	httpapi.Register(a, operation("PUT", "/v1/readlists/{id}/read-progress/tachiyomi", "SetReadListProgress", "Mark the first books of a read list as read", auth.ReadListsRead),
		func(ctx context.Context, in *struct {
			ReadListInput
			Body struct {
				Last int `json:"lastBookRead" minimum:"0" doc:"Number of books, in the order of the list"`
			}
		}) (*httpapi.None, error) {
			return nil, readFirst(ctx, d, in.ID, in.Body.Last)
		})
	where := operation("GET", "/v1/books/{id}/progression", "GetProgression", "Get the caller's last position in an e-book as a Readium locator; returns 204 if there is none", auth.BooksRead)
	where.MayBeEmpty = true
	httpapi.Register(a, where,
		func(ctx context.Context, in *IDInput) (*progress.Progression, error) {
			return progress.Place(ctx, d, in.ID)
		})
	httpapi.Register(a, operation("PUT", "/v1/books/{id}/progression", "SetProgression", "Set the caller's position in an e-book, which also updates the progress", auth.BooksRead),
		func(ctx context.Context, in *struct {
			IDInput
			Body progress.NewProgression
		}) (*httpapi.None, error) {
			return nil, progress.GoTo(ctx, d, in.ID, in.Body)
		})
}
