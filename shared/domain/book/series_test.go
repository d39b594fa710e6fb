package book_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

// The books of a series are listed as package series does; a missing or another tenant's series has none.
func TestBooksOfASeries(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, func(a *httpapi.API, d *db.DB) {
		httpapi.Register(a, httpapi.Op{Method: "GET", Path: "/api/v1/series/{id}/books", ID: "list", Summary: "Books", Tag: "Series", Permission: auth.BooksRead},
			func(ctx context.Context, in *struct {
				ID uuid.UUID `path:"id"`
				httpapi.Paging
			}) (*httpapi.Page[book.Entry], error) {
				return book.InSeries(ctx, d, in.ID, false, book.ListInput{Paging: in.Paging})
			})
	})
	reader := s.User(t, "one", "reader")
	saga, books := series(t, s, s.One, library(t, s, s.One, "a"), "Saga", 2)
	if got, total := ids(t, reader.Do("GET", "/api/v1/series/"+saga.String()+"/books", nil)); !slices.Equal(got, books) || total != 2 {
		t.Errorf("%v of %d, want %v", got, total, books)
	}
	foreign, _ := series(t, s, s.Two, library(t, s, s.Two, "b"), "Saga", 2)
	for _, id := range []uuid.UUID{uuid.New(), foreign} {
		reader.Do("GET", "/api/v1/series/"+id.String()+"/books", nil).Want(404)
	}
}
