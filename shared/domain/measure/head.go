package measure

import (
	"bytes"
	"context"
	"io"

	"github.com/longbox/longbox/shared/domain/content"
	"github.com/longbox/longbox/shared/domain/page"
	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/format/mediatype"
	"github.com/longbox/longbox/shared/platform/blob"
)

const (
	// near contains the header of nearly every image, and the header of its entry in the archive.
	near = 4 << 10
	// far is read if the header is further back: after the metadata of a JPEG.
	far = mediatype.HeadBytes
	// block is read instead if the method may yield nothing before a block is complete: one of zstd has 128 KB.
	block = 256 << 10
	// deep is read of a JPEG whose header is even further back: after a printer's colour profile.
	deep = 1 << 20
	// enough detects a type, and the size in every format that has it at a fixed offset.
	enough = 32
)

// place is where a page can be read on its own.
type place struct {
	store  *blob.Store
	bucket string
	object blob.Object
	entry  archive.Entry
	packed bool // in the page pack
}

// place returns the place of page n, from 1. ok is false if there is none, or if it must be decompressed with others or
// drawn.
func (m *Measurer) place(i *page.Index, n int) (p place, ok bool) {
	if o, e, ok := i.InPack(n); ok {
		return place{m.Media, m.Bucket, o, e, true}, true
	}
	e, err := i.Entry(n)
	return place{m.Content.Store, i.Bucket, i.Object(), e, false}, err == nil && e.Direct()
}

// size returns the pixel size of the page, or -1 and -1 if it has none. An error is a failure of the store.
func (m *Measurer) size(ctx context.Context, p place) (width, height int32, err error) {
	second := int64(block)
	if streams(p.entry.Method) {
		second = far
	}
	for _, n := range []int64{near, second, deep} {
		n = min(n, p.entry.Length)
		if n < 1 {
			break
		}
		raw, err := p.store.ReadRange(ctx, p.bucket, p.object, p.entry.Offset, n)
		if err != nil && p.packed {
			err = lostPack{err}
		}
		if err != nil {
			return 0, 0, err
		}
		head, err := m.head(ctx, p.entry, raw)
		if err != nil {
			return 0, 0, err
		}
		if w, h, ok := mediatype.Dimensions(head); ok {
			return int32(w), int32(h), nil
		}
		if n == p.entry.Length || !further(head, n) {
			break
		}
	}
	return -1, -1, nil
}

// further reports whether reading beyond n bytes may yield the size.
func further(head []byte, n int64) bool {
	kind := mediatype.Detect(head)
	if n > near {
		return kind == mediatype.JPEG
	}
	switch kind {
	case mediatype.JPEG, mediatype.AVIF, mediatype.HEIC, mediatype.JXL:
		return true
	}
	return len(head) < enough
}

// streams reports whether a method yields each byte soon after it was read.
func streams(method uint16) bool {
	return method == archive.Stored || method == archive.Bare || method == archive.Deflated
}

// head returns the beginning of a page, from the first bytes of its range; less, or nothing, if it is damaged.
func (m *Measurer) head(ctx context.Context, e archive.Entry, raw []byte) ([]byte, error) {
	give, err := content.Room(ctx, e)
	if err != nil {
		return nil, err
	}
	defer give()
	r, err := e.Open(bytes.NewReader(raw), m.Content.Limits)
	if err != nil {
		return nil, nil
	}
	head, _ := io.ReadAll(io.LimitReader(r, deep)) // the error is expected: only the beginning was read
	return head, nil
}
