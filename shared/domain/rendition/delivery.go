package rendition

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/longbox/longbox/shared/domain/page"
	"github.com/longbox/longbox/shared/format/imaging"
	"github.com/longbox/longbox/shared/platform/cdn"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Delivery delivers pictures that the caller may see; permission was checked before.
type Delivery interface {
	// page sends a page; a nil spec is the original.
	page(w http.ResponseWriter, r *http.Request, i *page.Index, n int, spec *imaging.Spec) error
	cover(w http.ResponseWriter, r *http.Request, row *coverRow) error
	address(ctx context.Context, i *page.Index) (*Address, error)
}

// Address holds the URL templates of a book's pages, with {pageNumber}, {width}, {height} and {format} to fill in.
type Address struct {
	Original  string     `json:"original" doc:"URL template of the original pages; {pageNumber} counts from 1"`
	Resized   string     `json:"resized" doc:"URL template of smaller pages: {width} and {height} are values of sizes, or empty for no limit; {format} is a value of formats"`
	Sizes     []int      `json:"sizes" doc:"Allowed values of {width} and {height}"`
	Formats   []string   `json:"formats" doc:"Allowed values of {format}"`
	PageCount int        `json:"pageCount"`
	ExpiresAt *time.Time `json:"expiresAt" doc:"Time by which to request the templates again; null means never"`
}

func addressOf(i *page.Index) *Address {
	return &Address{Sizes: imaging.Sizes(), Formats: []string{imaging.JPEG, imaging.PNG, imaging.WebP}, PageCount: i.Count}
}

// direct sends the bytes itself.
type direct struct {
	maker *Maker
	pages *page.Server
}

// Direct returns delivery by this function itself.
func Direct(m *Maker, s *page.Server) Delivery { return direct{m, s} }

func (d direct) page(w http.ResponseWriter, r *http.Request, i *page.Index, n int, spec *imaging.Spec) error {
	if spec == nil {
		return d.pages.Original(w, r, i, n)
	}
	return d.maker.Page(w, r, i, n, *spec)
}

func (d direct) cover(w http.ResponseWriter, r *http.Request, row *coverRow) error {
	return d.maker.Cover(w, r, row)
}

// address adds the version of the content, which the server ignores: browsers keep a page for a year (page.Immutable),
// but a new version has other addresses.
func (d direct) address(_ context.Context, i *page.Index) (*Address, error) {
	a := addressOf(i)
	pages, version := "/api/v1/books/"+i.BookID.String()+"/pages/{pageNumber}?", "v="+i.Fingerprint[:min(8, len(i.Fingerprint))]
	a.Original, a.Resized = pages+version, pages+"width={width}&height={height}&format={format}&"+version
	return a, nil
}

// redirect redirects to a signed address at the CDN. Nothing is read or rendered here.
type redirect struct {
	signer *cdn.Signer
	now    func() time.Time
}

// Redirect returns delivery by the CDN.
func Redirect(s *cdn.Signer, now func() time.Time) Delivery { return redirect{s, now} }

func (d redirect) page(w http.ResponseWriter, r *http.Request, i *page.Index, n int, spec *imaging.Spec) error {
	if _, err := i.Entry(n); err != nil {
		return err
	}
	t := httpapi.TenantOf(r.Context())
	return d.to(w, pageKey(t.ID, t.Secret, i, n, spec), maxKeep)
}

func (d redirect) cover(w http.ResponseWriter, r *http.Request, row *coverRow) error {
	t := httpapi.TenantOf(r.Context())
	most := maxKeep
	if row.borrowed {
		most = brief
	}
	return d.to(w, coverKey(t.ID, row.ID, t.Secret, row.Fingerprint, row.Cover), most)
}

// keepOff is how long before its expiry an address is no longer reused.
const keepOff = time.Minute

// maxKeep is longer than the lifetime of any address.
const maxKeep = 24 * time.Hour

// to answers 302. The browser may cache the redirect until shortly before the address expires, and for at most most;
// shared caches may not.
func (d redirect) to(w http.ResponseWriter, key string, most time.Duration) error {
	url, expires, err := d.signer.Object("/" + key)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Cache-Control", fmt.Sprintf("private, max-age=%d", int(min(expires.Sub(d.now())-keepOff, most)/time.Second)))
	h.Set("Location", url)
	w.WriteHeader(http.StatusFound)
	return nil
}

// address returns one signature for all pages of the book, so that a client that asks once needs no further permission
// check per page.
func (d redirect) address(ctx context.Context, i *page.Index) (*Address, error) {
	t := httpapi.TenantOf(ctx)
	a, folder := addressOf(i), "/"+pagesFolder(t.ID, t.Secret, i)
	var expires time.Time
	var err error
	if a.Original, expires, err = d.signer.Tree(folder, "{pageNumber}/"+original); err != nil {
		return nil, err
	}
	if a.Resized, _, err = d.signer.Tree(folder, "{pageNumber}/{width}x{height}.{format}"); err != nil {
		return nil, err
	}
	a.ExpiresAt = &expires
	return a, nil
}
