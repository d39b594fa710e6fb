package imaging

import "github.com/longbox/longbox/shared/format/mediatype"

// floorBytes is charged to every render: its thread's stack, the heap that
// libvips, the decoder and the encoder take whatever the size (measured: 39 to
// 48 MB for a 1200 px WebP of a 1600 x 2400 page).
const floorBytes = 48 << 20

// workingSet estimates the bytes that a render needs at its peak, rounded up
// rather than down: the decoder, the lines between the steps, the encoder and
// the source itself.
func (r *Renderer) workingSet(h header, srcBytes int, outW, outH int, format string) int64 {
	const linesBetween = 512
	need := int64(h.width) * 4 * linesBetween
	need = min(need, h.pixels()*4)
	switch {
	case h.stream && h.orientation <= 2:
	case h.stream: // to turn it, the shrunken image is held
		need += h.pixels() * 4
	case h.mediaType == mediatype.JPEG: // progressive: 2 bytes for each coefficient, before any shrinking
		need += h.pixels() * 4 * 2
	case h.mediaType == mediatype.AVIF, h.mediaType == mediatype.HEIC: // planes of 16 bits beside the interleaved picture
		need += h.pixels() * 12
	case h.mediaType == mediatype.JXL: // the picture and a PNG of it
		need += r.sandbox(h) + h.pixels()*8
	default: // the canvas and a copy of it
		need += h.pixels() * 8
	}
	if format == WebP { // its encoder takes the whole picture in several forms
		need += int64(outW) * int64(outH) * 12
	}
	return max(need, floorBytes) + int64(srcBytes)
}
