package progress

import (
	"context"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// BooksInput names books.
type BooksInput struct {
	Body struct {
		BookIDs []uuid.UUID `json:"bookIds" nullable:"false" maxItems:"1000" doc:"Unknown ids are ignored"`
	}
}

// Routes registers the operations on the caller's progress and history. Marking whole series is in package series, the
// list of books being read in package book.
func Routes(a *httpapi.API, d *db.DB) {
	op := httpapi.Group{Path: "/api/v1", Tag: "Reading progress"}.For(auth.BooksRead)
	one := op("GET", "/books/{id}/progress", "getProgress", "Get the caller's progress in a book; returns 204 if there is none")
	one.MayBeEmpty = true
	httpapi.Register(a, one.Ahead(),
		func(ctx context.Context, in *httpapi.IDInput) (*Record, error) { return get(ctx, d, in.ID) })
	httpapi.Register(a, op("PUT", "/books/{id}/progress", "setProgress", "Set the caller's progress in a book"),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			Body Update
		}) (*Record, error) {
			return Set(ctx, d, in.ID, in.Body)
		})
	httpapi.Register(a, op("DELETE", "/books/{id}/progress", "clearProgress", "Clear the caller's progress in a book"),
		func(ctx context.Context, in *httpapi.IDInput) (*httpapi.None, error) {
			return nil, Clear(ctx, d, in.ID)
		})
	where := op("GET", "/books/{id}/progression", "getProgression", "Get the caller's last position in an e-book as a Readium locator; returns 204 if there is none")
	where.MayBeEmpty = true
	httpapi.Register(a, where.Ahead(),
		func(ctx context.Context, in *httpapi.IDInput) (*Progression, error) { return Place(ctx, d, in.ID) })
	httpapi.Register(a, op("PUT", "/books/{id}/progression", "setProgression", "Set the caller's position in an e-book, which also sets the progress"),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			Body NewProgression
		}) (*httpapi.None, error) {
			return nil, GoTo(ctx, d, in.ID, in.Body)
		})
	httpapi.Register(a, op("POST", "/books/{id}/read", "readBook", "Mark a book as read"),
		func(ctx context.Context, in *httpapi.IDInput) (*Record, error) { return Read(ctx, d, in.ID) })
	httpapi.Register(a, op("POST", "/books/{id}/unread", "unreadBook", "Mark a book as unread and clear the caller's progress"),
		func(ctx context.Context, in *httpapi.IDInput) (*httpapi.None, error) {
			return nil, Clear(ctx, d, in.ID)
		})
	httpapi.Register(a, op("POST", "/books/bulk/read", "readBooks", "Mark several books as read"),
		func(ctx context.Context, in *BooksInput) (*Marked, error) {
			n, err := ReadBooks(ctx, d, in.Body.BookIDs)
			return MarkedAs("read", n, err)
		})
	httpapi.Register(a, op("POST", "/books/bulk/unread", "unreadBooks", "Mark several books as unread and clear the caller's progress"),
		func(ctx context.Context, in *BooksInput) (*Marked, error) {
			n, err := UnreadBooks(ctx, d, in.Body.BookIDs)
			return MarkedAs("unread", n, err)
		})
	httpapi.Register(a, op("POST", "/reading-sessions", "recordReadingSessions", "Record reading sessions of the caller, including past and offline ones"),
		func(ctx context.Context, in *struct {
			Body struct {
				Sessions []Session `json:"sessions" nullable:"false" maxItems:"500"`
			}
		}) (*Recorded, error) {
			return recordAll(ctx, d, in.Body.Sessions)
		})
	httpapi.Register(a, op("GET", "/progress", "listProgress", "List the caller's progress in all books, latest first").Ahead(),
		func(ctx context.Context, in *struct{ httpapi.Paging }) (*httpapi.Page[Record], error) {
			page, total, err := list(ctx, d, in.Limit(), in.Offset())
			if err != nil {
				return nil, err
			}
			return httpapi.NewPage(ctx, in.Paging, page, total), nil
		})
	historyRoutes(a, d)
}
