package imaging

import "github.com/longbox/longbox/shared/format/mediatype"

// floorBytes is charged for every render: the stack of its thread, and the heap that libvips, decoder and encoder use
// for any size (measured: 39 to 48 MB for a 1200 px WebP of a 1600 x 2400 page).
const floorBytes = 48 << 20

// workingSet estimates the peak memory of a render in bytes, rounded up: decoder, lines between the steps, encoder and
// the source itself.
func (r *Renderer) workingSet(h header, srcBytes int, outW, outH int, format string) int64 {
	const linesBetween = 512
	need := int64(h.width) * 4 * linesBetween
	need = min(need, h.pixels()*4)
	switch {
	case h.stream && h.orientation <= 2:
	case h.stream: // rotation needs the whole reduced image
		need += h.pixels() * 4
	case h.mediaType == mediatype.JPEG: // progressive: 2 bytes per coefficient, before any reduction
		need += h.pixels() * 4 * 2
	case h.mediaType == mediatype.AVIF, h.mediaType == mediatype.HEIC: // planes of 16 bits beside the interleaved image
		need += h.pixels() * 12
	case h.mediaType == mediatype.JXL: // the image and a PNG of it
		need += r.sandbox(h) + h.pixels()*8
	default: // the canvas and a copy of it
		need += h.pixels() * 8
	}
	if format == WebP { // the encoder holds the whole image in several forms
		need += int64(outW) * int64(outH) * 12
	}
	return max(need, floorBytes) + int64(srcBytes)
}
