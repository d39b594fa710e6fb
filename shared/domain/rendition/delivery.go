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

// Delivery hands over pictures that the caller may see. Whether they may was checked before.
type Delivery interface {
	// page answers with a page; nil is the original.
	page(w http.ResponseWriter, r *http.Request, i *page.Index, n int, spec *imaging.Spec) error
	cover(w http.ResponseWriter, r *http.Request, row *coverRow) error
	address(ctx context.Context, i *page.Index) (*Address, error)
}

// Address is where the pages of a book are: addresses with {pageNumber}, {width}, {height} and {format} to fill in.
type Address struct {
	Original  string     `json:"original" doc:"Template of the original pages: {pageNumber} from 1"`
	Resized   string     `json:"resized" doc:"Template of smaller ones: {width} and {height} of sizes, or empty for no bound; {format} of formats"`
	Sizes     []int      `json:"sizes" doc:"What {width} and {height} may be"`
	Formats   []string   `json:"formats" doc:"What {format} may be"`
	PageCount int        `json:"pageCount"`
	ExpiresAt *time.Time `json:"expiresAt" doc:"Ask again by then; null: never"`
}

func addressOf(i *page.Index) *Address {
	return &Address{Sizes: imaging.Sizes(), Formats: []string{imaging.JPEG, imaging.PNG, imaging.WebP}, PageCount: i.Count}
}

// direct answers with the bytes themselves.
type direct struct {
	maker *Maker
	pages *page.Server
}

// Direct is delivery by this function itself.
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

func (d direct) address(_ context.Context, i *page.Index) (*Address, error) {
	a := addressOf(i)
	a.Original = "/api/v1/books/" + i.BookID.String() + "/pages/{pageNumber}"
	a.Resized = a.Original + "?width={width}&height={height}&format={format}"
	return a, nil
}

// redirect answers with a signed address at the CDN. Nothing is read or rendered here.
type redirect struct {
	signer *cdn.Signer
	now    func() time.Time
}

// Redirect is delivery by the CDN.
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

// keepOff is how long before its end an address is not used again.
const keepOff = time.Minute

// maxKeep is longer than any address lives.
const maxKeep = 24 * time.Hour

// to answers 302. The browser remembers the answer until shortly before the address ends, for most at the longest;
// nobody else may.
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

// address is signed for all pages of the book together, so that a client that asks for it once needs no permission
// of this function for each page.
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
