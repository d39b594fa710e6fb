package book

import (
	"context"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// ScopeInput narrows a list to a library or series.
type ScopeInput struct {
	LibraryID string `query:"libraryId" format:"uuid"`
	SeriesID  string `query:"seriesId" format:"uuid"`
}

func (in ScopeInput) scope() scope {
	return scope{library: httpapi.OptionalID(in.LibraryID), series: httpapi.OptionalID(in.SeriesID)}
}

// ListInput says which page of a list is asked for, in which order, and whether with full records.
type ListInput struct {
	httpapi.Paging
	httpapi.Sorting
	FullInput
}

// InLibraryInput names the library of a list, and optionally one of its series.
type InLibraryInput struct {
	ID       uuid.UUID `path:"id" format:"uuid" doc:"Id of the library"`
	SeriesID string    `query:"seriesId" format:"uuid"`
}

func (in *InLibraryInput) scope() scope {
	return scope{library: &in.ID, series: httpapi.OptionalID(in.SeriesID), parent: "Library"}
}

// Routes registers the operations on books, including the list of books in progress.
func Routes(a *httpapi.API, d *db.DB, publish events.Publish, added task.Added) {
	lists(a, d)
	ownLists(a, d)
	single(a, d, added)
	analyses(a, d, added)
	edits(a, d, publish, added)
	unreadable(a, d, added)
}

var operation = httpapi.Group{Path: "/api/v1", Tag: "Books"}.Op

// lists registers the lists of books, over all libraries and per library.
func lists(a *httpapi.API, d *db.DB) {
	httpapi.Register(a, operation("GET", "/books", "listBooks", "List books", auth.BooksRead).Ahead(),
		func(ctx context.Context, in *struct {
			ScopeInput
			ListInput
			IncludeDeleted bool `query:"includeDeleted" doc:"Include books whose file is gone"`
		}) (*httpapi.Page[Entry], error) {
			s := in.scope()
			s.deleted = in.IncludeDeleted
			return answer(ctx, d, all, s, in.ListInput)
		})
	httpapi.Register(a, operation("GET", "/libraries/{id}/books", "listLibraryBooks", "List the books of a library", auth.BooksRead).Ahead(),
		func(ctx context.Context, in *struct {
			InLibraryInput
			ListInput
			IncludeDeleted bool `query:"includeDeleted" doc:"Include books whose file is gone"`
		}) (*httpapi.Page[Entry], error) {
			s := in.scope()
			s.deleted = in.IncludeDeleted
			return answer(ctx, d, all, s, in.ListInput)
		})
	httpapi.Register(a, operation("POST", "/books/list", "filterBooks", "List books that meet a condition and match a title search", auth.BooksRead),
		func(ctx context.Context, in *struct {
			ListInput
			Body struct {
				ListBody
				IncludeDeleted bool `json:"includeDeleted,omitempty" doc:"Include books whose file is gone"`
			}
		}) (*httpapi.Page[Entry], error) {
			s, err := conditioned(in.Body.Condition, in.Body.Find())
			if err != nil {
				return nil, err
			}
			s.deleted = in.Body.IncludeDeleted
			return answer(ctx, d, all, s, in.ListInput)
		})
}

// ownLists adds the lists that have an order of their own, of all libraries and of one.
func ownLists(a *httpapi.API, d *db.DB) {
	for _, l := range []struct {
		path, id  string
		inLibrary string // operation id of the same list of one library; "" if there is none
		summary   string
		list      listing
		latest    string // the field of its default order, latest first; "" for any other order
	}{
		{path: "/books/in-progress", id: "listBooksInProgress", inLibrary: "listLibraryBooksInProgress",
			summary: "List books that the caller has started and not finished, latest first", list: reading},
		{path: "/progress/currently-reading", id: "listCurrentlyReading", summary: "List books that the caller is reading, latest first", list: reading},
		{path: "/books/on-deck", id: "listBooksOnDeck", inLibrary: "listLibraryBooksOnDeck",
			summary: "List the next book of each series that the caller reads, unless a book of it is in progress", list: onDeck},
		{path: "/books/recently-read", id: "listBooksRecentlyRead", inLibrary: "listLibraryBooksRecentlyRead",
			summary: "List books that the caller has read in, latest first", list: recentlyRead},
		{path: "/books/recently-added", id: "listBooksRecentlyAdded", inLibrary: "listLibraryBooksRecentlyAdded",
			summary: "List all books, newest first unless sort is given", list: listBy, latest: "created_at"},
	} {
		httpapi.Register(a, operation("GET", l.path, l.id, l.summary, auth.BooksRead).Ahead(),
			func(ctx context.Context, in *struct {
				ScopeInput
				ListInput
			}) (*httpapi.Page[Entry], error) {
				in.Sorting = in.Unranked().LatestFirst(l.latest)
				return answer(ctx, d, l.list, in.scope(), in.ListInput)
			})
		if l.inLibrary == "" {
			continue
		}
		httpapi.Register(a, operation("GET", "/libraries/{id}"+l.path, l.inLibrary, l.summary+"; limited to one library", auth.BooksRead).Ahead(),
			func(ctx context.Context, in *struct {
				InLibraryInput
				ListInput
			}) (*httpapi.Page[Entry], error) {
				in.Sorting = in.Unranked().LatestFirst(l.latest)
				return answer(ctx, d, l.list, in.scope(), in.ListInput)
			})
	}
}

// single registers the reads of one book.
func single(a *httpapi.API, d *db.DB, added task.Added) {
	for _, full := range []httpapi.Op{
		operation("GET", "/books/{id}", "getBook", "Get a book", auth.BooksRead),
		// For clients that know a shorter record.
		operation("GET", "/books/{id}/full", "getFullBook", "Get a book; same as /books/{id}", auth.BooksRead),
	} {
		httpapi.Register(a, full.Ahead(), func(ctx context.Context, in *struct {
			httpapi.IDInput
			IncludeDeleted bool `query:"includeDeleted" doc:"Return the book even if its file is gone"`
		}) (*Details, error) {
			return get(ctx, d, in.ID, in.IncludeDeleted)
		})
	}
	httpapi.Register(a, operation("GET", "/books/{id}/adjacent", "getAdjacentBooks", "Get the books before and after a book in the order of its series", auth.BooksRead).Ahead(),
		func(ctx context.Context, in *httpapi.IDInput) (*Adjacent, error) { return adjacent(ctx, d, in.ID) })
	httpapi.Register(a, operation("GET", "/books/{id}/pages", "listPages", "List the page images of a book", auth.PagesRead),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			httpapi.Paging
		}) (*httpapi.Page[Page], error) {
			page, total, err := Pages(ctx, d, added, in.ID, in.Limit(), in.Offset())
			if err != nil {
				return nil, err
			}
			return httpapi.NewPage(ctx, in.Paging, page, total), nil
		})
}
