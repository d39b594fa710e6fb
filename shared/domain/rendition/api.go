package rendition

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/page"
	"github.com/longbox/longbox/shared/format/imaging"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// pageNumber parses a page number. One that is out of range counts as the number of a page that no book has. The result
// plus 1 still fits 32 bits, for interfaces that count pages from 0.
func pageNumber(s string) (int, error) {
	n, err := strconv.ParseInt(s, 10, 31)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, fault.Invalid("pageNumber", "must be a number from 1")
	}
	return int(n), nil
}

// Names in 404 messages.
const (
	collections = "Collection"
	readLists   = "Read list"
)

// pictures are further statuses of picture responses: a redirect to the CDN, or not modified.
var pictures = []int{http.StatusFound, http.StatusNotModified}

// Routes registers the images. Except below /opds, they accept the session cookie, since browsers fetch them by
// themselves.
func Routes(a *httpapi.API, m *Maker, s *page.Server, d Delivery) {
	pageRoutes(a, m, s, d)
	coverRoutes(a, m, d)
	komgaWanted(a, m, d)
}

// pageRoutes adds the pages, as they are or rendered, for all kinds of clients, and where they are.
func pageRoutes(a *httpapi.API, m *Maker, s *page.Server, d Delivery) {
	pageOp := httpapi.Op{Method: "GET", Path: "/api/v1/books/{id}/pages/{pageNumber}", ID: "getPage", Tag: "Pages",
		Summary:    "Get a page image: the original or, with width, height or format, a smaller one",
		Permission: auth.PagesRead, Cookie: true, StartsAhead: true, Media: "image/*", Also: pictures,
		Query: []httpapi.Query{{Name: "width"}, {Name: "height"}, {Name: "format", Values: []any{imaging.JPEG, imaging.PNG, imaging.WebP}}}}
	a.Handle(pageOp, func(w http.ResponseWriter, r *http.Request) error {
		n, err := pageNumber(httpapi.PathParam(r, "pageNumber"))
		if err != nil {
			return err
		}
		return servePage(w, r, s, d, n, r.URL.Query(), nil)
	})
	catalogPages(a, m, s, d, pageOp)
	komgaPages(a, s, d, pageOp)
	httpapi.Register(a, httpapi.Op{Method: "GET", Path: "/api/v1/books/{id}/pages/address", ID: "getPageAddress", Tag: "Pages",
		Summary: "Get URL templates of the pages of a book", Permission: auth.PagesRead},
		func(ctx context.Context, in *struct {
			ID uuid.UUID `path:"id" format:"uuid"`
		}) (*Address, error) {
			i, err := s.Finder.Find(ctx, in.ID, 0)
			if err != nil {
				return nil, err
			}
			return d.address(ctx, i)
		})
}

// covered is a kind of thing that has covers.
type covered struct {
	path, id, tag, permission string // of the operation
	what                      string // as clients call it
	exists                    string // SQL for true if there is the one with id $1
	queries                   []string
	borrowed                  bool
}

// coverRoutes adds the covers.
func coverRoutes(a *httpapi.API, m *Maker, d Delivery) {
	for _, c := range []covered{
		{path: "/api/v1/books/{id}/thumbnail", id: "getBookThumbnail", tag: "Books", what: "Book", permission: auth.BooksRead,
			exists: "select true from book where tenant_id = app.tenant() and id = $1 and deleted_at is null", queries: []string{bookCover}},
		{path: "/api/v1/series/{id}/thumbnail", id: "getSeriesThumbnail", tag: "Series", what: "Series", permission: auth.SeriesRead,
			exists: "select true from series where tenant_id = app.tenant() and id = $1", queries: seriesCovers},
		{path: "/api/v1/libraries/{id}/thumbnail", id: "getLibraryThumbnail", tag: "Libraries", what: "Library", permission: auth.LibrariesRead,
			exists: "select true from library where tenant_id = app.tenant() and id = $1", queries: []string{libraryCover}, borrowed: true},
		{path: "/api/v1/collections/{id}/thumbnail", id: "getCollectionThumbnail", tag: "Collections", what: collections, permission: auth.CollectionsRead,
			exists: "select true from collection where tenant_id = app.tenant() and kind = 'series' and id = $1", queries: []string{collectionCover}, borrowed: true},
		{path: "/api/v1/readlists/{id}/thumbnail", id: "getReadListThumbnail", tag: "Collections", what: readLists, permission: auth.ReadListsRead,
			exists: "select true from collection where tenant_id = app.tenant() and kind = 'books' and id = $1", queries: []string{readListCover}, borrowed: true},
	} {
		page.KomgaToo(a, httpapi.Op{Method: "GET", Path: c.path, ID: c.id, Tag: c.tag, Summary: "Get the cover image of a " + strings.ToLower(c.what), Permission: c.permission, Cookie: true,
			Media: "image/*", Also: pictures},
			func(w http.ResponseWriter, r *http.Request) error {
				id, err := httpapi.PathID(r)
				if err != nil {
					return err
				}
				return showCover(w, r, m, d, c, id)
			})
	}
}

// showCover sends the first cover of id that c.queries find. Without one, a list of members answers 404; anything else
// shows a placeholder.
func showCover(w http.ResponseWriter, r *http.Request, m *Maker, d Delivery, c covered, id uuid.UUID) error {
	row, err := m.findCover(r.Context(), c.what, c.exists, c.queries, id)
	if err != nil {
		return err
	}
	if row == nil && c.what == collections {
		if row, err = m.automaticCover(r.Context(), id); err != nil {
			return err
		}
	}
	switch {
	case row == nil && (c.what == collections || c.what == readLists):
		return fault.New(fault.NotFound, "It contains nothing with a cover that you may see")
	case row == nil:
		return placeholder(w, r, http.StatusOK)
	}
	row.borrowed = c.borrowed
	return d.cover(w, r, row)
}

// servePage sends page n as query asks for it; turned, if not nil, is called before that.
func servePage(w http.ResponseWriter, r *http.Request, s *page.Server, d Delivery, n int, query url.Values, turned func(context.Context, *page.Index, int)) error {
	id, err := httpapi.PathID(r)
	if err != nil {
		return err
	}
	spec, resized, err := specOf(query)
	if err != nil {
		return err
	}
	i, err := s.Finder.Find(r.Context(), id, n)
	if err != nil {
		return err
	}
	if turned != nil && r.Method == http.MethodGet && n >= 1 && n <= i.Count {
		turned(r.Context(), i, n)
	}
	if !resized {
		return d.page(w, r, i, n, nil)
	}
	if err := httpapi.Confirmed(r.Context()); err != nil {
		return err
	}
	return d.page(w, r, i, n, &spec)
}
