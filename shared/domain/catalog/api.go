package catalog

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// input holds the parameters of a feed request.
type input struct {
	id     uuid.UUID // from the path
	paging paging
}

// Routes registers the feeds of both versions, and the extras of OPDS 1.2.
func Routes(a *httpapi.API, d *db.DB) {
	for _, f := range []struct {
		path, id, summary, permission string
		size                          int // page size; 0: the feed has no pages
		load                          func(ctx context.Context, d *db.DB, in input) (*feed, error)
	}{
		{"", "Catalog", "Get the root of the catalog", httpapi.SignedIn, 0, root},
		{"/libraries", "Libraries", "List the libraries", auth.LibrariesRead, 0, allLibraries},
		{"/libraries/{id}", "Library", "List the series of a library by title", auth.SeriesRead, defaultSize, ofLibrary},
		{"/series/{id}", "Series", "List the books of a series in order", auth.BooksRead, httpapi.MaxPageSize, ofSeries},
		{collections.path, "Collections", "List the collections by name", auth.CollectionsRead, defaultSize, lists(collections)},
		{collections.path + "/{id}", "Collection", "List the series of a collection", auth.CollectionsRead, defaultSize, ofCollection},
		{readLists.path, "ReadLists", "List the read lists by name", auth.ReadListsRead, defaultSize, lists(readLists)},
		{readLists.path + "/{id}", "ReadList", "List the books of a read list", auth.ReadListsRead, defaultSize, ofReadList},
		{"/recent", "Recent", "List all books, newest first", auth.BooksRead, defaultSize, recent},
	} {
		load := func(r *http.Request) (*feed, error) {
			in, err := inputOf(r, f.path, f.size)
			if err != nil {
				return nil, err
			}
			return f.load(r.Context(), d, in)
		}
		op := httpapi.Op{Method: "GET", Path: f.path, ID: f.id, Summary: f.summary, Permission: f.permission, Query: queryOf(f.size)}
		a.Handle(opds1(op), answer(load, writeAtom))
		a.Handle(opds2(op), answer(load, writeOPDS2))
		if f.path == "" {
			op.Path, op.ID = "/v1/catalog", "FirstCatalog" // alias
			a.Handle(opds1(op), answer(load, writeAtom))
		}
	}
	searches(a, d)
	ofOneBook(a, d)
}

// searches registers the search, whose parameter differs between the versions.
func searches(a *httpapi.API, d *db.DB) {
	load := func(name string) func(*http.Request) (*feed, error) {
		return func(r *http.Request) (*feed, error) {
			sent, find, err := words(r, name)
			if err != nil {
				return nil, err
			}
			f, err := search(r.Context(), d, sent, find)
			if err == nil {
				f.paging.query = url.Values{name: {sent}}
			}
			return f, err
		}
	}
	op := httpapi.Op{Method: "GET", Path: "/search", ID: "Search", Summary: "Search series and books by words of their titles; returns the 100 best matches of each",
		Permission: auth.BooksRead}
	sought := httpapi.Query{Name: "q", Text: true, Required: true, Doc: fmt.Sprintf("Words to search for, at most %d bytes", maxQuery)}
	op.Query = []httpapi.Query{sought}
	a.Handle(opds1(op), answer(load("q"), writeAtom))
	sought.Name = "query"
	op.Query = []httpapi.Query{sought}
	a.Handle(opds2(op), answer(load("query"), writeOPDS2))
	for _, part := range []struct {
		path, id, kind, permission string
		reads                      bool
	}{{"/series", "SearchSeries", "series", auth.SeriesRead, false}, {"/books", "SearchBooks", "books", auth.BooksRead, true}} {
		op.Path, op.ID, op.Permission = "/search"+part.path, part.id, part.permission
		op.Summary = "Search " + part.kind + " by words of their titles; returns the 100 best matches"
		a.Handle(opds2(op), answer(func(r *http.Request) (*feed, error) {
			f, err := load("query")(r)
			if err == nil {
				f.path, f.found, f.reads = "/search"+part.path, false, part.reads
			}
			return f, err
		}, writeOPDS2))
	}

	description := opds1(httpapi.Op{Method: "GET", Path: "/search.xml", ID: "SearchDescription", Summary: "Get the OpenSearch description of the search", Permission: httpapi.SignedIn})
	description.Media = openSearch
	a.Handle(description, func(w http.ResponseWriter, r *http.Request) error {
		var f feed
		if err := f.run(r.Context(), d, &pgx.Batch{}); err != nil {
			return err
		}
		return writeSearchDocument(w, f.site)
	})
}

// ofOneBook registers what each version has for a single book.
func ofOneBook(a *httpapi.API, d *db.DB) {
	one := opds2(httpapi.Op{Method: "GET", Path: "/books/{id}", ID: "Book", Summary: "Get a book as a publication of the catalog", Permission: auth.BooksRead})
	one.Media = opds2PublicationType
	a.Handle(one, func(w http.ResponseWriter, r *http.Request) error {
		id, err := httpapi.PathID(r)
		if err != nil {
			return err
		}
		p, err := oneBook(r.Context(), d, id)
		if err != nil {
			return err
		}
		return httpapi.WriteDocument(w, opds2PublicationType+";charset=utf-8", p.opds2())
	})

	op := httpapi.Op{Method: "GET", Path: "/books/{id}/pages", ID: "Pages", Summary: "List the pages of a book, one entry per page", Permission: auth.PagesRead,
		Query: queryOf(httpapi.MaxPageSize)}
	a.Handle(opds1(op), func(w http.ResponseWriter, r *http.Request) error {
		in, err := inputOf(r, op.Path, httpapi.MaxPageSize)
		if err != nil {
			return err
		}
		f, of, err := ofBook(r.Context(), d, in)
		if err != nil {
			return err
		}
		return writePages(w, in.id, f, of)
	})
}

// opds1 makes an operation of OPDS 1.2, opds2 one of OPDS 2.0.
func opds1(op httpapi.Op) httpapi.Op {
	op.Path, op.ID, op.Tag, op.Media = atomRoot+op.Path, "opds"+op.ID, "OPDS 1.2", "application/atom+xml"
	return op
}

func opds2(op httpapi.Op) httpapi.Op {
	op.Path, op.ID, op.Tag, op.Media = opds2Root+op.Path, "opds2"+op.ID, "OPDS 2.0", opds2Type
	return op
}

func queryOf(size int) []httpapi.Query {
	if size == 0 {
		return nil
	}
	return []httpapi.Query{{Name: "page"}, {Name: "pageSize"}}
}

// inputOf parses the parameters of a feed; size is its page size.
func inputOf(r *http.Request, path string, size int) (in input, err error) {
	if strings.Contains(path, "{id}") {
		if in.id, err = httpapi.PathID(r); err != nil {
			return in, err
		}
	}
	if size > 0 {
		in.paging, err = pagingOf(r, size)
	}
	return in, err
}

// answer loads a feed and writes it.
func answer(load func(*http.Request) (*feed, error), write func(http.ResponseWriter, *feed) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		f, err := load(r)
		if err != nil {
			return err
		}
		return write(w, f)
	}
}
