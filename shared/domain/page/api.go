package page

import (
	"net/http"
	"strings"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Routes adds the files of books; the pages are added by package rendition, which also renders them. They take the
// session cookie, since browsers fetch them by themselves.
func Routes(a *httpapi.API, s *Server) {
	KomgaToo(a, httpapi.Op{Method: "GET", Path: "/api/v1/books/{id}/file", ID: "getBookFile", Tag: "Books",
		Summary: "Get the file of a book, or a range of it", Permission: auth.BooksRead, Cookie: true, Media: "application/*",
		Also: []int{http.StatusPartialContent, http.StatusNotModified}},
		func(w http.ResponseWriter, r *http.Request) error {
			id, err := httpapi.PathID(r)
			if err != nil {
				return err
			}
			i, err := s.Finder.Find(r.Context(), id, 0)
			if err != nil {
				return err
			}
			return s.File(w, r, i)
		})
	a.Handle(httpapi.Op{Method: "GET", Path: "/api/v1/series/{id}/download", ID: "downloadSeries", Tag: "Series",
		Summary: "Download the files of all books of a series as one archive", Permission: auth.BooksRead, Cookie: true, Media: "application/zip"},
		func(w http.ResponseWriter, r *http.Request) error {
			id, err := httpapi.PathID(r)
			if err != nil {
				return err
			}
			return s.Series(w, r, id)
		})
}

// KomgaToo adds an operation twice: as it is, and below the prefix of the Komga-compatible interface (package komga).
func KomgaToo(a *httpapi.API, op httpapi.Op, handle func(w http.ResponseWriter, r *http.Request) error) {
	a.Handle(op, handle)
	a.Handle(ForKomga(op), handle)
}

// ForKomga is the operation below the prefix.
func ForKomga(op httpapi.Op) httpapi.Op {
	op.Path, op.ID, op.Tag = "/{prefix}"+op.Path, "komga"+strings.ToUpper(op.ID[:1])+op.ID[1:], "Komga-compatible"
	op.Prefixed = true
	return op
}
