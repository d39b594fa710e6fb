package rendition

import (
	"crypto/subtle"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/cover"
	"github.com/longbox/longbox/shared/domain/page"
	"github.com/longbox/longbox/shared/format/imaging"
	"github.com/longbox/longbox/shared/platform/blob"
)

// A key names an object of the media bucket and, after a slash, its address at the CDN:
//
//	<tenant>/cover/<book or series>/<mac>/<size>-<quality>.jpeg
//	page/<tenant>/<book>/<mac>/<page>/<width>x<height>.<format>
//	page/<tenant>/<book>/<mac>/<page>/original    at the CDN only: its bytes are in the library
//
// mac is an HMAC, with the tenant's secret, of the kind, book and content, and for a cover of its form. So a key names
// content that never changes, and cannot be guessed without the secret. All pages of a book share one folder, so one
// signature covers them.
const (
	coverKind = cover.Kind
	pageKind  = cover.PageKind
	original  = "original"
)

// folder is the prefix of the objects of a book and kind. Pages begin with the prefix that the store lets expire.
func folder(tenant uuid.UUID, kind string, book uuid.UUID, mac string) string {
	if kind == pageKind {
		return blob.Expiring + tenant.String() + "/" + book.String() + "/" + mac
	}
	return cover.Folder(tenant) + book.String() + "/" + mac
}

// Cover holds how covers are made: the settings thumbnail.max_dimension and thumbnail.jpeg_quality.
type Cover struct {
	MaxDimension int `db:"cover_size"`
	Quality      int `db:"cover_quality"`
}

func (c Cover) spec() imaging.Spec {
	return imaging.Spec{Width: c.MaxDimension, Height: c.MaxDimension, Format: imaging.JPEG, Quality: c.Quality}
}

func (c Cover) form() string { return cover.Form(c.MaxDimension, c.Quality) }

// coverKey returns the key of a cover.
func coverKey(tenant, book uuid.UUID, secret []byte, fingerprint string, c Cover) string {
	return cover.Key(tenant, book, secret, fingerprint, c.MaxDimension, c.Quality)
}

// pagesFolder returns the prefix of all pages of a book.
func pagesFolder(tenant uuid.UUID, secret []byte, i *page.Index) string {
	return cover.PagesFolder(tenant, i.BookID, secret, i.Fingerprint)
}

// pageKey returns the key of page n; a nil spec is the original.
func pageKey(tenant uuid.UUID, secret []byte, i *page.Index, n int, spec *imaging.Spec) string {
	return pagesFolder(tenant, secret, i) + "/" + strconv.Itoa(n) + "/" + form(spec)
}

func form(spec *imaging.Spec) string {
	if spec == nil {
		return original
	}
	return side(spec.Width) + "x" + side(spec.Height) + "." + spec.Format
}

// side formats a bound in pixels; no bound is empty.
func side(pixels int) string {
	if pixels == 0 {
		return ""
	}
	return strconv.Itoa(pixels)
}

// parsed is a parsed key.
type parsed struct {
	tenant, book uuid.UUID
	kind, mac    string
	cover        Cover         // for a cover
	n            int           // for a page
	spec         *imaging.Spec // for a page; nil is the original
}

// parse parses a key. ok is false unless the key is spelled exactly as this package writes it, so that no two addresses
// mean the same object and no client can invent new ones.
func parse(key string) (p parsed, ok bool) {
	part := strings.Split(key, "/")
	if len(key) > 200 || len(part) < 5 {
		return p, false
	}
	if strings.HasPrefix(key, blob.Expiring) { // reorder to <tenant>/page, like the keys of covers
		part[0], part[1] = part[1], pageKind
	}
	var err1, err2 error
	p.tenant, err1 = uuid.Parse(part[0])
	p.book, err2 = uuid.Parse(part[2])
	p.kind, p.mac = part[1], part[3]
	if err1 != nil || err2 != nil {
		return p, false
	}
	again := folder(p.tenant, p.kind, p.book, p.mac)
	switch {
	case p.kind == coverKind && len(part) == 5:
		size, quality, _ := strings.Cut(strings.TrimSuffix(part[4], "."+imaging.JPEG), "-")
		p.cover = Cover{number(size), number(quality)}
		again += "/" + p.cover.form()
	case p.kind == pageKind && len(part) == 6:
		p.n = number(part[4])
		if part[5] != original {
			box, format, _ := strings.Cut(part[5], ".")
			w, h, _ := strings.Cut(box, "x")
			p.spec = &imaging.Spec{Width: imaging.Ladder(number(w)), Height: imaging.Ladder(number(h)), Format: format}
			if format != imaging.JPEG && format != imaging.PNG && format != imaging.WebP {
				return p, false
			}
		}
		again += "/" + strconv.Itoa(p.n) + "/" + form(p.spec)
	default:
		return p, false
	}
	return p, again == key
}

// number returns 0 for an invalid number.
func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 1_000_000 {
		return 0
	}
	return n
}

// authentic reports whether the mac is the tenant's for this content.
func (p parsed) authentic(secret []byte, fingerprint string) bool {
	what := p.kind
	if p.kind == coverKind {
		what += p.cover.form()
	}
	return fingerprint != "" && subtle.ConstantTimeCompare([]byte(p.mac), []byte(cover.MAC(secret, what, p.book, fingerprint))) == 1
}
