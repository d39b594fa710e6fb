package series

import (
	"context"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// ScopeInput narrows a list to a library.
type ScopeInput struct {
	LibraryID string `query:"libraryId" format:"uuid"`
}

func (in ScopeInput) scope() scope { return scope{library: httpapi.OptionalID(in.LibraryID)} }

// markInput names the series whose books are marked.
type markInput struct {
	Body struct {
		SeriesIDs []uuid.UUID `json:"seriesIds" nullable:"false" maxItems:"100" doc:"Unknown ids are ignored"`
	}
}

// Routes registers the operations on series.
func Routes(a *httpapi.API, d *db.DB, publish events.Publish, added task.Added) {
	lists(a, d)
	searches(a, d)
	ownLists(a, d)
	dumps(a, d)
	groups(a, d)
	single(a, d)
	marks(a, d)
	commands(a, d, added)
	edits(a, d, publish, added)
}

var operation = httpapi.Group{Path: "/api/v1/series", Tag: "Series"}.Op

// ofLibrary describes a list of the series of one library.
func ofLibrary(path, id, summary string) httpapi.Op {
	return httpapi.Group{Path: "/api/v1/libraries/{id}/series", Tag: "Series"}.Op("GET", path, id, summary, auth.SeriesRead).Ahead()
}

// lists registers the lists of series, over all libraries and per library.
func lists(a *httpapi.API, d *db.DB) {
	httpapi.Register(a, operation("GET", "", "listSeries", "List series", auth.SeriesRead).Ahead(),
		func(ctx context.Context, in *struct {
			ScopeInput
			TermsInput
			book.ListInput
		}) (*httpapi.Page[Entry], error) {
			s, err := in.narrow(in.scope())
			if err != nil {
				return nil, err
			}
			return answer(ctx, d, all, s, in.ListInput)
		})
	httpapi.Register(a, ofLibrary("", "listLibrarySeries", "List the series of a library"),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			TermsInput
			book.ListInput
		}) (*httpapi.Page[Entry], error) {
			s, err := in.narrow(scope{library: &in.ID, named: true})
			if err != nil {
				return nil, err
			}
			return answer(ctx, d, all, s, in.ListInput)
		})
}

// searches adds the lists of series that meet what the body says.
func searches(a *httpapi.API, d *db.DB) {
	httpapi.Register(a, operation("POST", "/list", "filterSeries", "List series that meet a condition and match a title search", auth.SeriesRead),
		func(ctx context.Context, in *struct {
			book.ListInput
			Body struct{ book.ListBody }
		}) (*httpapi.Page[Entry], error) {
			s, err := conditioned(in.Body.Condition, in.Body.Find())
			if err != nil {
				return nil, err
			}
			return answer(ctx, d, all, s, in.ListInput)
		})
	httpapi.Register(a, operation("POST", "/search", "searchSeries", "Search series by words of their title, best matches first unless sort is given", auth.SeriesRead),
		func(ctx context.Context, in *struct {
			book.ListInput
			Body struct {
				Query     string     `json:"query" maxLength:"1000" doc:"Words that must all occur in the title; without words nothing is found"`
				LibraryID *uuid.UUID `json:"libraryId,omitempty" format:"uuid" nullable:"true"`
				Full      bool       `json:"full,omitempty" doc:"Same as full in the query"`
			}
		}) (*httpapi.Page[Entry], error) {
			words := naming.Normalize(in.Body.Query)
			in.Full = in.Full || in.Body.Full
			return answer(ctx, d, all, scope{library: in.Body.LibraryID, find: &words}, in.ListInput)
		})
}

// ownLists adds the lists that have an order of their own, of all libraries and of one.
func ownLists(a *httpapi.API, d *db.DB) {
	for _, l := range []struct {
		path, id, inLibrary, summary string
		list                         listing
		latest                       string // the field of its default order, latest first; "" for any other order
	}{
		{path: "/in-progress", id: "listSeriesInProgress", inLibrary: "listLibrarySeriesInProgress",
			summary: "List series with a book that the caller has started and not finished, latest read first", list: inProgress},
		{path: "/recently-added", id: "listSeriesRecentlyAdded", inLibrary: "listLibrarySeriesRecentlyAdded",
			summary: "List all series, newest first unless sort is given", list: listBy, latest: "date_added"},
		{path: "/recently-updated", id: "listSeriesRecentlyUpdated", inLibrary: "listLibrarySeriesRecentlyUpdated",
			summary: "List all series, latest changed first unless sort is given", list: listBy, latest: "date_updated"},
	} {
		httpapi.Register(a, operation("GET", l.path, l.id, l.summary, auth.SeriesRead).Ahead(),
			func(ctx context.Context, in *struct {
				ScopeInput
				book.ListInput
			}) (*httpapi.Page[Entry], error) {
				in.Sorting = in.Unranked(score).LatestFirst(l.latest)
				return answer(ctx, d, l.list, in.scope(), in.ListInput)
			})
		httpapi.Register(a, ofLibrary(l.path, l.inLibrary, l.summary+"; limited to one library"),
			func(ctx context.Context, in *struct {
				httpapi.IDInput
				book.ListInput
			}) (*httpapi.Page[Entry], error) {
				in.Sorting = in.Unranked(score).LatestFirst(l.latest)
				return answer(ctx, d, l.list, scope{library: &in.ID, named: true}, in.ListInput)
			})
	}
}

// single registers the reads of one series.
func single(a *httpapi.API, d *db.DB) {
	for _, full := range []httpapi.Op{
		operation("GET", "/{id}", "getSeries", "Get a series", auth.SeriesRead),
		// For clients that know a shorter record.
		operation("GET", "/{id}/full", "getFullSeries", "Get a series; same as /series/{id}", auth.SeriesRead),
	} {
		httpapi.Register(a, full.Ahead(), func(ctx context.Context, in *httpapi.IDInput) (*Details, error) { return get(ctx, d, in.ID) })
	}
	httpapi.Register(a, operation("GET", "/{id}/books", "listSeriesBooks", "List the books of a series in order", auth.BooksRead).Ahead(),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			book.ListInput
			IncludeDeleted bool `query:"includeDeleted" doc:"Include books whose file is gone"`
		}) (*httpapi.Page[book.Entry], error) {
			return book.InSeries(ctx, d, in.ID, in.IncludeDeleted, in.ListInput)
		})
}

// marks registers the operations that mark the books of series as read or unread.
func marks(a *httpapi.API, d *db.DB) {
	httpapi.Register(a, operation("POST", "/{id}/read", "readSeries", "Mark all books of a series as read", auth.BooksRead),
		func(ctx context.Context, in *httpapi.IDInput) (*progress.Marked, error) {
			n, err := progress.ReadSeries(ctx, d, in.ID)
			return progress.MarkedAs("read", n, err)
		})
	httpapi.Register(a, operation("POST", "/{id}/unread", "unreadSeries", "Mark all books of a series as unread and clear the caller's progress", auth.BooksRead),
		func(ctx context.Context, in *httpapi.IDInput) (*progress.Marked, error) {
			n, err := progress.UnreadSeries(ctx, d, in.ID)
			return progress.MarkedAs("unread", n, err)
		})
	httpapi.Register(a, operation("POST", "/bulk/read", "readAllSeries", "Mark all books of several series as read", auth.BooksRead),
		func(ctx context.Context, in *markInput) (*progress.Marked, error) {
			n, err := progress.ReadAllSeries(ctx, d, in.Body.SeriesIDs)
			return progress.MarkedAs("read", n, err)
		})
	httpapi.Register(a, operation("POST", "/bulk/unread", "unreadAllSeries", "Mark all books of several series as unread and clear the caller's progress", auth.BooksRead),
		func(ctx context.Context, in *markInput) (*progress.Marked, error) {
			n, err := progress.UnreadAllSeries(ctx, d, in.Body.SeriesIDs)
			return progress.MarkedAs("unread", n, err)
		})
}
