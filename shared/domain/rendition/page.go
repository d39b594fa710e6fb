package rendition

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"

	"github.com/longbox/longbox/shared/domain/page"
	"github.com/longbox/longbox/shared/format/imaging"
	"github.com/longbox/longbox/shared/format/mediatype"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// specOf parses width, height and format of a page request; ok is false if the original is wanted. Other parameters are
// ignored: clients add some to bypass their caches.
func specOf(q url.Values) (spec imaging.Spec, ok bool, err error) {
	var bad []fault.Field
	side := func(name string) int {
		v := q.Get(name)
		if v == "" {
			return 0
		}
		n, err := strconv.ParseInt(v, 10, 32)
		if err != nil || n < 1 {
			bad = append(bad, fault.Field{Field: name, Message: "must be a number of pixels from 1 to 2147483647"})
			return 0
		}
		return int(n)
	}
	w, h, format := side("width"), side("height"), q.Get("format")
	switch format {
	case "", imaging.JPEG, imaging.PNG, imaging.WebP:
	case "jpg":
		format = imaging.JPEG
	default:
		bad = append(bad, fault.Field{Field: "format", Message: "must be jpeg, png or webp"})
	}
	if err := fault.InvalidFields(bad); err != nil {
		return spec, false, err
	}
	if w == 0 && h == 0 && format == "" {
		return spec, false, nil
	}
	if format == "" {
		format = imaging.JPEG
	}
	return imaging.Spec{Width: imaging.Ladder(w), Height: imaging.Ladder(h), Format: format}, true, nil
}

// Page sends page n fitted into a box.
func (m *Maker) Page(w http.ResponseWriter, r *http.Request, i *page.Index, n int, spec imaging.Spec) error {
	ctx := r.Context()
	if _, err := i.Entry(n); err != nil {
		return err
	}
	t := httpapi.TenantOf(ctx)
	key := pageKey(t.ID, t.Secret, i, n, &spec)
	tag := i.Tag(n, form(&spec))
	if page.NotModified(w, r, tag, page.Immutable) {
		return nil
	}
	img, err := m.stored(ctx, key)
	if err != nil {
		return err
	}
	if img == nil {
		httpapi.Note(ctx, slog.Bool("rendered", true))
		img, err = m.render(ctx, key, spec, false, func(ctx context.Context) ([]byte, error) {
			return readable(m.Pages.Bytes(ctx, i, n))
		}, func(ctx context.Context, size int) bool { return m.secondMiss(ctx, t.ID, key, size) })
		if err != nil {
			return err
		}
	}
	return m.send(w, r, img, tag, page.Immutable)
}

func (m *Maker) send(w http.ResponseWriter, r *http.Request, img *image, tag, cache string) error {
	give := img.give
	if give == nil {
		var err error
		if give, err = m.Pages.Hold(r.Context(), int64(len(img.data)), page.Brief); err != nil {
			return err
		}
	}
	defer give()
	kind := img.kind
	if kind == "" {
		kind = mediatype.Detect(img.data)
	}
	h := w.Header()
	h.Set("ETag", tag)
	h.Set("Cache-Control", cache)
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(img.data)))
	if r.Method == http.MethodHead {
		return nil
	}
	page.CopyHeld(w, r, img.data)
	return nil
}
