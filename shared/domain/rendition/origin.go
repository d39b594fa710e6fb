package rendition

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/page"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// originPrefix precedes the object's key in requests of the CDN to this function.
const originPrefix = "/cdn/"

// Origin answers the CDN's misses: originals, and renditions that were not made or not kept. It checks no permission:
// the CDN has verified the signature, which only those who may see the picture get. It checks that the request comes
// from the CDN, that the address is the tenant's own, and that the tenant is not suspended. Responses depend on the
// path alone, not on request headers.
type Origin struct {
	maker *Maker
	pages *page.Server
	cdn   httpapi.Origin
}

// NewOrigin makes an Origin that answers requests with a secret of cdn.
func NewOrigin(m *Maker, s *page.Server, cdn httpapi.Origin) *Origin {
	return &Origin{maker: m, pages: s, cdn: cdn}
}

// Routes registers the origin.
func (o *Origin) Routes(a *httpapi.API) { a.Outside(originPrefix, o.serve) }

func (o *Origin) serve(w http.ResponseWriter, r *http.Request) error {
	if !o.cdn.Shown(r) {
		return fault.New(fault.Forbidden, "Only the content delivery network may send this request")
	}
	// The path as it was sent: another spelling is another address.
	key, ok := parse(strings.TrimPrefix(r.URL.EscapedPath(), originPrefix))
	if !ok || r.URL.RawQuery != "" {
		return errNothing
	}
	r = r.WithContext(db.In(r.Context(), db.Tenant(key.tenant)))
	r.Header = http.Header{} // one response for all clients: whole, in one encoding, never 304
	w.Header().Del("X-Request-Id")
	if key.kind == coverKind {
		return o.cover(w, r, key)
	}
	return o.page(w, r, key)
}

var errNothing = fault.New(fault.NotFound, "Image not found")

// meant returns the cover that an authentic key names, or nil.
func meant(rows []coverRow, key parsed, owner *page.Owner) *coverRow {
	for i, r := range rows {
		if r.Offset != nil && key.authentic(owner.Secret, r.Fingerprint) {
			return &rows[i]
		}
	}
	return nil
}

// admit enters the tenant of an authentic key. It fails for any other key, and for a suspended tenant.
func admit(ctx context.Context, key parsed, owner *page.Owner, fingerprint string) error {
	if !key.authentic(owner.Secret, fingerprint) {
		return errNothing
	}
	t := owner.Tenant()
	httpapi.SetTenant(ctx, t)
	if t.Suspended {
		return httpapi.ErrSuspended
	}
	return nil
}

func (o *Origin) page(w http.ResponseWriter, r *http.Request, key parsed) error {
	fits := func(i *page.Index, owner *page.Owner) bool { return key.authentic(owner.Secret, i.Fingerprint) }
	i, owner, err := o.pages.Finder.Owned(r.Context(), key.tenant, key.book, key.n, fits)
	if fault.Is(err, fault.NotFound) {
		return errNothing
	}
	if err != nil {
		return err
	}
	if err := admit(r.Context(), key, owner, i.Fingerprint); err != nil {
		return err
	}
	if key.spec == nil {
		return o.pages.Plain(w, r, i, key.n)
	}
	return o.maker.Page(w, r, i, key.n, *key.spec)
}

func (o *Origin) cover(w http.ResponseWriter, r *http.Request, key parsed) error {
	ctx := r.Context()
	var b pgx.Batch
	var owner *page.Owner
	// Includes covers that were shown until recently: their addresses were valid then.
	var rows [4][]coverRow
	for i, q := range []string{fileCover, uploadedCovers("book"), uploadedCovers("series"), pictureCovers} {
		db.All(&b, &rows[i], q, key.book)
	}
	page.QueueOwner(&b, &owner)
	if err := o.maker.Database.Run(ctx, &b); err != nil {
		return err
	}
	if owner == nil {
		return errNothing
	}
	row := meant(slices.Concat(rows[:]...), key, owner)
	if row == nil {
		return errNothing
	}
	if err := admit(ctx, key, owner, row.Fingerprint); err != nil {
		return err
	}
	object := coverKey(key.tenant, key.book, owner.Secret, row.Fingerprint, key.cover)
	img, err := o.maker.coverImage(ctx, object, row, key.cover)
	if standsIn(err) {
		httpapi.Note(ctx, slog.String("placeholder", fault.Line(err.Error())))
		return placeholder(w, r, http.StatusNotFound) // shown anyway, but not cached
	}
	if err != nil {
		return err
	}
	return o.maker.send(w, r, img, row.tag(key.cover), page.Immutable)
}
