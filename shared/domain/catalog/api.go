package catalog

import (
	"net/http"
	"net/url"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// page are the parameters of a feed in pages.
var page = []httpapi.Query{{Name: "page"}, {Name: "pageSize"}}

// Routes adds the feeds of both versions, and what OPDS 1.2 has besides.
func Routes(a *httpapi.API, d *db.DB) {
	for _, f := range []struct {
		path, id, summary, permission string
		query                         []httpapi.Query
		load                          func(r *http.Request) (*feed, error)
	}{
		{"", "Catalog", "Where the catalog begins", httpapi.SignedIn, nil,
			func(r *http.Request) (*feed, error) { return root(r.Context(), d) }},
		{"/libraries", "Libraries", "The libraries", auth.LibrariesRead, nil,
			func(r *http.Request) (*feed, error) { return allLibraries(r.Context(), d) }},
		{"/libraries/{id}", "Library", "The series of a library, by title", auth.SeriesRead, page,
			func(r *http.Request) (*feed, error) {
				id, err := pathID(r)
				if err != nil {
					return nil, err
				}
				p, err := pagingOf(r, defaultSize, maxSize)
				if err != nil {
					return nil, err
				}
				return ofLibrary(r.Context(), d, id, p)
			}},
		{"/series/{id}", "Series", "The books of a series, in order", auth.BooksRead, page,
			func(r *http.Request) (*feed, error) {
				id, err := pathID(r)
				if err != nil {
					return nil, err
				}
				p, err := pagingOf(r, httpapi.MaxPageSize, httpapi.MaxPageSize)
				if err != nil {
					return nil, err
				}
				return ofSeries(r.Context(), d, id, p)
			}},
		{"/recent", "Recent", "All books, the newest first", auth.BooksRead, page,
			func(r *http.Request) (*feed, error) {
				p, err := pagingOf(r, defaultSize, maxSize)
				if err != nil {
					return nil, err
				}
				return recent(r.Context(), d, p)
			}},
	} {
		a.Handle(operation(1, f.path, f.id, f.summary, f.permission, f.query), answer(f.load, writeAtom))
		a.Handle(operation(2, f.path, f.id, f.summary, f.permission, f.query), answer(f.load, writeOPDS2))
	}
	a.Handle(operation(1, "/v1/catalog", "FirstCatalog", "The same as /opds", httpapi.SignedIn, nil),
		answer(func(r *http.Request) (*feed, error) { return root(r.Context(), d) }, writeAtom))
	for version, name := range map[int]string{1: "q", 2: "query"} {
		write := map[int]func(http.ResponseWriter, *feed) error{1: writeAtom, 2: writeOPDS2}[version]
		a.Handle(operation(version, "/search", "Search", "Series and books by words of their titles, the 100 best matches of each", auth.BooksRead,
			[]httpapi.Query{{Name: name, Text: true}}),
			answer(func(r *http.Request) (*feed, error) {
				sent, find, err := words(r, name)
				if err != nil {
					return nil, err
				}
				f, err := search(r.Context(), d, sent, find)
				if err == nil {
					f.paging.query = url.Values{name: {sent}}
				}
				return f, err
			}, write))
	}
	description := operation(1, "/search.xml", "SearchDescription", "How to search (OpenSearch)", httpapi.SignedIn, nil)
	description.Media = openSearch
	a.Handle(description, func(w http.ResponseWriter, r *http.Request) error {
		var f feed
		if err := f.run(r.Context(), d, &pgx.Batch{}); err != nil {
			return err
		}
		return writeSearchDocument(w, f.site)
	})
	a.Handle(operation(1, "/books/{id}/pages", "Pages", "The pages of a book, one entry each", auth.PagesRead, page),
		func(w http.ResponseWriter, r *http.Request) error {
			id, err := pathID(r)
			if err != nil {
				return err
			}
			p, err := pagingOf(r, httpapi.MaxPageSize, httpapi.MaxPageSize)
			if err != nil {
				return err
			}
			f, of, err := ofBook(r.Context(), d, id, p)
			if err != nil {
				return err
			}
			return writePages(w, id, f, of)
		})
}

// operation is a feed of a version of OPDS.
func operation(version int, path, id, summary, permission string, query []httpapi.Query) httpapi.Op {
	if version == 2 {
		return httpapi.Op{Method: "GET", Path: opds2Root + path, ID: "opds2" + id, Summary: summary, Tag: "OPDS 2.0", Permission: permission, Media: opds2Type, Query: query}
	}
	return httpapi.Op{Method: "GET", Path: atomRoot + path, ID: "opds" + id, Summary: summary, Tag: "OPDS 1.2", Permission: permission, Media: "application/atom+xml", Query: query}
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
