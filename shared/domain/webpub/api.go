package webpub

import (
	"net/http"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/page"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Media types of responses.
const (
	webpubType    = "application/webpub+json"
	divinaType    = "application/divina+json"
	positionsType = "application/vnd.readium.position-list+json"
)

// Routes registers the operations.
func Routes(a *httpapi.API, d *db.DB, s *page.Server) {
	add := func(path, id, summary, media string, answer func(r *http.Request, b *book) (kind string, document any, err error)) {
		a.Handle(operation(path, id, summary, media), func(w http.ResponseWriter, r *http.Request) error {
			id, err := httpapi.PathID(r)
			if err != nil {
				return err
			}
			b, err := load(r, d, s, id)
			if err != nil {
				return err
			}
			kind, document, err := answer(r, b)
			if err != nil {
				return err
			}
			w.Header().Set("Cache-Control", "private, no-cache")
			return httpapi.WriteDocument(w, kind, document)
		})
	}
	ofEPUB := func(r *http.Request, b *book) (string, any, error) {
		m, err := b.epub(r)
		return webpubType, m, err
	}
	ofPages := func(_ *http.Request, b *book) (string, any, error) {
		m, err := b.divina()
		return divinaType, m, err
	}
	add("/manifest", "komgaGetManifest", "Get the Readium Web Publication Manifest of a book: documents of an EPUB, pages of other books",
		webpubType+", "+divinaType, func(r *http.Request, b *book) (string, any, error) {
			if b.isEPUB() {
				return ofEPUB(r, b)
			}
			return ofPages(r, b)
		})
	add("/manifest/epub", "komgaGetEPUBManifest", "Get the manifest of an EPUB, with its documents", webpubType, ofEPUB)
	add("/manifest/divina", "komgaGetDivinaManifest", "Get the manifest of a book, with its page images", divinaType, ofPages)
	add("/positions", "komgaGetPositions", "List the positions in a book: its pages, or one per kilobyte of an EPUB's documents", positionsType,
		func(r *http.Request, b *book) (string, any, error) {
			p, err := b.positions(r)
			return positionsType, p, err
		})
	files := operation("/resource/{path}", "komgaGetResource", "Get a file inside an EPUB by its path", "application/*")
	files.Rest, files.Also = true, []int{http.StatusNotModified}
	a.Handle(files, func(w http.ResponseWriter, r *http.Request) error {
		id, err := httpapi.PathID(r)
		if err != nil {
			return err
		}
		i, err := s.Finder.Find(r.Context(), id, 0)
		if err != nil {
			return err
		}
		return s.Resource(w, r, i, httpapi.PathParam(r, "*"))
	})
}

func operation(path, id, summary, media string) httpapi.Op {
	return httpapi.Op{Method: "GET", Path: "/{prefix}/api/v1/books/{id}" + path, ID: id, Summary: summary, Tag: "Komga-compatible", Permission: auth.BooksRead,
		Prefixed: true, Cookie: true, Media: media}
}

// load returns a book with its pages; NotFound if there is none.
func load(r *http.Request, d *db.DB, s *page.Server, id uuid.UUID) (*book, error) {
	b := &book{server: s}
	if err := d.Run(r.Context(), b.queue(id)); err != nil {
		return nil, err
	}
	if b.index == nil || b.row == nil {
		return nil, fault.Missing("Book")
	}
	b.address = httpapi.Address(r.Context()) + "/" + httpapi.PathParam(r, "prefix") + "/api/v1/books/" + id.String()
	return b, nil
}
