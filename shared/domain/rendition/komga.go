package rendition

import (
	"net/http"
	"net/url"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/page"
	"github.com/longbox/longbox/shared/format/imaging"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// pageThumbnail is the box of a page thumbnail, in pixels.
const pageThumbnail = "300"

// komgaPages registers the pages at the paths that clients of Komga use. These clients report progress themselves.
func komgaPages(a *httpapi.API, s *page.Server, d Delivery, op httpapi.Op) {
	op = page.ForKomga(op)
	op.Summary = "Get a page image: the original or, with convert, a converted one"
	op.Query = []httpapi.Query{{Name: "convert", Values: []any{imaging.JPEG, imaging.PNG}}, {Name: "zeroBased", Values: []any{"true", "false"}}}
	a.Handle(op, func(w http.ResponseWriter, r *http.Request) error {
		n, err := pageNumber(httpapi.PathParam(r, "pageNumber"))
		if err != nil {
			return err
		}
		sent, query := r.URL.Query(), url.Values{}
		switch sent.Get("zeroBased") {
		case "true":
			n++
		case "", "false":
		default:
			return fault.Invalid("zeroBased", "must be true or false")
		}
		if convert := sent.Get("convert"); convert != "" {
			query.Set("format", convert)
		}
		return servePage(w, r, s, d, n, query, nil)
	})
	op.Path, op.ID, op.Summary, op.Query = op.Path+"/thumbnail", "komgaGetPageThumbnail", "Get the thumbnail of a page", nil
	a.Handle(op, func(w http.ResponseWriter, r *http.Request) error {
		n, err := pageNumber(httpapi.PathParam(r, "pageNumber"))
		if err != nil {
			return err
		}
		return servePage(w, r, s, d, n, url.Values{"width": {pageThumbnail}, "height": {pageThumbnail}, "format": {imaging.JPEG}}, nil)
	})
}

// komgaWanted registers the covers of the caller's want-to-read list, which Komga clients see as a collection and a
// read list.
func komgaWanted(a *httpapi.API, m *Maker, d Delivery) {
	for _, c := range []struct{ path, id, permission, query string }{
		{"collections", "komgaGetWantedCollectionThumbnail", auth.CollectionsRead, wantedSeriesCover},
		{"readlists", "komgaGetWantedReadListThumbnail", auth.ReadListsRead, wantedBookCover},
	} {
		a.Handle(httpapi.Op{Method: "GET", Path: "/{prefix}/api/v1/" + c.path + "/want-to-read/thumbnail", ID: c.id, Tag: "Komga-compatible", Summary: "Get the cover image of the caller's want-to-read list",
			Permission: c.permission, Prefixed: true, Cookie: true, Media: "image/*", Also: pictures},
			func(w http.ResponseWriter, r *http.Request) error {
				return showCover(w, r, m, d, covered{what: "List", exists: "select $1::uuid is not null", queries: []string{c.query}, borrowed: true}, uuid.Nil)
			})
	}
}
