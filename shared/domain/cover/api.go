package cover

import (
	"context"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// ForceBody asks to make covers again that exist.
type ForceBody struct {
	Force bool `json:"force" required:"false" doc:"Whether to generate existing covers again"`
}

// oneInput names the owner of a cover.
type oneInput struct {
	ID   uuid.UUID  `path:"id" format:"uuid"`
	Body *ForceBody `required:"false"`
}

type booksInput struct {
	ForceBody
	BookIDs []uuid.UUID `json:"bookIds" minItems:"1" maxItems:"500" nullable:"false" doc:"Unknown ids are ignored"`
}

type seriesInput struct {
	ForceBody
	SeriesIDs []uuid.UUID `json:"seriesIds" minItems:"1" maxItems:"500" nullable:"false" doc:"Unknown ids are ignored"`
}

// chosenSeries names series or a library; if empty, all.
type chosenSeries struct {
	ForceBody
	SeriesIDs []uuid.UUID `json:"seriesIds" required:"false" minItems:"1" maxItems:"500" nullable:"true" doc:"Only these series; libraryId is then ignored"`
	LibraryID *uuid.UUID  `json:"libraryId" required:"false" nullable:"true" format:"uuid" doc:"All series of this library"`
}

func (c *chosenSeries) target() task.Target {
	switch {
	case c == nil:
		return task.OfAll()
	case c.SeriesIDs != nil:
		return task.OfSeveralSeries(c.SeriesIDs)
	case c.LibraryID != nil:
		return task.OfLibrary(*c.LibraryID)
	}
	return task.OfAll()
}

// chosenBooks names books, series or a library; if empty, all.
type chosenBooks struct {
	ForceBody
	BookIDs   []uuid.UUID `json:"bookIds" required:"false" minItems:"1" maxItems:"500" nullable:"true" doc:"Only these books; seriesIds, seriesId and libraryId are then ignored"`
	SeriesIDs []uuid.UUID `json:"seriesIds" required:"false" minItems:"1" maxItems:"500" nullable:"true" doc:"Books of these series; seriesId and libraryId are then ignored"`
	SeriesID  *uuid.UUID  `json:"seriesId" required:"false" nullable:"true" format:"uuid" doc:"Books of this series; libraryId is then ignored"`
	LibraryID *uuid.UUID  `json:"libraryId" required:"false" nullable:"true" format:"uuid" doc:"Books of this library"`
}

func (c *chosenBooks) target() task.Target {
	switch {
	case c == nil:
		return task.OfAll()
	case c.BookIDs != nil:
		return task.OfBooks(c.BookIDs)
	case c.SeriesIDs != nil:
		return task.OfSeveralSeries(c.SeriesIDs)
	case c.SeriesID != nil:
		return task.OfSeries(*c.SeriesID)
	case c.LibraryID != nil:
		return task.OfLibrary(*c.LibraryID)
	}
	return task.OfAll()
}

const (
	bookMessage   = "The generation of the books' covers is queued"
	seriesMessage = "The generation of the series' covers is queued"
)

// Routes registers the operations on covers: making them, uploading them and choosing among them.
func Routes(a *httpapi.API, d *db.DB, publish events.Publish, added task.Added) {
	makes(a, d, added)
	chooseRoutes(a, d, publish)
	uploads(a, d, publish, ofSeries, ids{upload: "uploadSeriesCover", list: "listSeriesCovers", choose: "selectSeriesCover", remove: "deleteSeriesCover",
		reset: "resetSeriesCover", image: "getSeriesCoverImage"}, func(r *row) OfSeries { return OfSeries{r.OwnerID, r.Picture} })
	uploads(a, d, publish, ofBook, ids{upload: "uploadBookCover", list: "listBookCovers", choose: "selectBookCover", remove: "deleteBookCover",
		reset: "resetBookCover", image: "getBookCoverImage"}, func(r *row) OfBook { return OfBook{r.OwnerID, r.Picture} })
}

// makes registers the operations that start the making of covers.
func makes(a *httpapi.API, d *db.DB, added task.Added) {
	op := func(path, id, summary, tag string) httpapi.Op {
		return httpapi.Op{Method: "POST", Path: "/api/v1" + path, ID: id, Summary: summary, Tag: tag, Permission: auth.TasksWrite}
	}
	start := func(ctx context.Context, typ string, force bool, t task.Target, message string) (*task.Started, error) {
		return task.Start(ctx, d, added, Making(typ, force), t, message)
	}
	for _, c := range []struct {
		path, id, summary, tag, typ, message string
		target                               func(uuid.UUID) task.Target
	}{
		{path: "/books/{id}/thumbnail/generate", id: "makeBookCover", summary: "Generate the cover of a book",
			tag: "Books", typ: task.BookCovers, message: "The generation of the book's cover is queued", target: task.OfBook},
		{path: "/series/{id}/thumbnail/generate", id: "makeSeriesCover", summary: "Generate the cover of a series",
			tag: "Series", typ: task.SeriesCovers, message: "The generation of the series' cover is queued", target: task.OfSeries},
		{path: "/libraries/{id}/books/thumbnails/generate", id: "makeBookCoversOfLibrary", summary: "Generate the covers of a library's books",
			tag: "Libraries", typ: task.BookCovers, message: bookMessage, target: task.OfLibrary},
		{path: "/libraries/{id}/series/thumbnails/generate", id: "makeSeriesCoversOfLibrary", summary: "Generate the covers of a library's series",
			tag: "Libraries", typ: task.SeriesCovers, message: seriesMessage, target: task.OfLibrary},
	} {
		httpapi.Register(a, op(c.path, c.id, c.summary, c.tag), func(ctx context.Context, in *oneInput) (*task.Started, error) {
			return start(ctx, c.typ, in.Body != nil && in.Body.Force, c.target(in.ID), c.message)
		})
	}
	httpapi.Register(a, op("/books/thumbnails/generate", "makeBookCovers", "Generate the covers of selected books or of all", "Books"),
		func(ctx context.Context, in *struct {
			Body *chosenBooks `required:"false"`
		}) (*task.Started, error) {
			return start(ctx, task.BookCovers, in.Body != nil && in.Body.Force, in.Body.target(), bookMessage)
		})
	httpapi.Register(a, op("/series/thumbnails/generate", "makeSeriesCovers", "Generate the covers of selected series or of all", "Series"),
		func(ctx context.Context, in *struct {
			Body *chosenSeries `required:"false"`
		}) (*task.Started, error) {
			return start(ctx, task.SeriesCovers, in.Body != nil && in.Body.Force, in.Body.target(), seriesMessage)
		})
	httpapi.Register(a, op("/books/bulk/thumbnails/generate", "makeSeveralBookCovers", "Generate the covers of several books", "Books"),
		func(ctx context.Context, in *struct{ Body booksInput }) (*task.Started, error) {
			return start(ctx, task.BookCovers, in.Body.Force, task.OfBooks(in.Body.BookIDs), bookMessage)
		})
	httpapi.Register(a, op("/series/bulk/thumbnails/generate", "makeSeveralSeriesCovers", "Generate the covers of several series", "Series"),
		func(ctx context.Context, in *struct{ Body seriesInput }) (*task.Started, error) {
			return start(ctx, task.SeriesCovers, in.Body.Force, task.OfSeveralSeries(in.Body.SeriesIDs), seriesMessage)
		})
	httpapi.Register(a, op("/series/bulk/thumbnails/books/generate", "makeBookCoversOfSeries", "Generate the covers of the books of several series", "Series"),
		func(ctx context.Context, in *struct{ Body seriesInput }) (*task.Started, error) {
			return start(ctx, task.BookCovers, in.Body.Force, task.OfSeveralSeries(in.Body.SeriesIDs), bookMessage)
		})
}
