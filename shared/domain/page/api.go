package page

import (
	"net/http"
	"strings"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Routes adds the files of books; the pages are added by package rendition, which also renders them. They take the
// session cookie, since browsers fetch them by themselves.
func Routes(a *httpapi.API, s *Server) {
	file := httpapi.Op{Method: "GET", Path: "/api/v1/books/{id}/file", ID: "getBookFile", Tag: "Books",
		Summary: "Get the file of a book, or a range of it", Permission: auth.BooksRead, Cookie: true, Media: "application/*",
		Also: []int{http.StatusPartialContent, http.StatusNotModified}}
	named := file
	named.Path, named.ID, named.Summary = file.Path+"/{name}", "getNamedBookFile", file.Summary+" (alias whose last part is any name, for readers that look at its extension)"
	for _, op := range []httpapi.Op{file, named} {
		KomgaToo(a, op, func(w http.ResponseWriter, r *http.Request) error {
			id, err := httpapi.PathID(r)
			if err != nil {
				return err
			}
			if len(httpapi.PathParam(r, "name")) > maxName {
				return fault.Invalid("name", "is longer than %d bytes", maxName)
			}
			i, err := s.Finder.Find(r.Context(), id, 0)
			if err != nil {
				return err
			}
			return s.File(w, r, i)
		})
	}
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

// maxName is the maximum length of the name in the address of a file, in bytes.
const maxName = 1000

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
