package imaging

import (
	"cmp"

	"github.com/longbox/longbox/shared/format/mediatype"
)

// floorBytes is charged for every render: the stack of its thread, and the heap that libvips, decoder and encoder use
// for any size (measured: 39 to 48 MB for a 1200 px WebP of a 1600 x 2400 page).
const floorBytes = 48 << 20

// workingSet estimates the peak memory of a render in bytes, rounded up: decoder, lines between the steps, encoder, its
// output and the source itself.
func (r *Renderer) workingSet(h header, srcBytes int, outW, outH int, spec Spec) int64 {
	const linesBetween = 512
	need := int64(h.width) * 4 * linesBetween
	need = min(need, h.pixels()*4)
	out := h.outputBytes(int64(outW)*int64(outH), spec)
	switch {
	case h.stream && h.orientation <= 2:
	case h.stream: // rotation needs the whole reduced image
		need += h.pixels() * 4
	case h.mediaType == mediatype.JPEG: // progressive: 2 bytes per coefficient, before any reduction
		need += h.pixels() * 4 * 2
	case h.mediaType == mediatype.AVIF, h.mediaType == mediatype.HEIC: // planes of 16 bits beside the interleaved image
		need += h.pixels() * 12
	case h.mediaType == mediatype.JXL: // the image and a PNG of it; the sandbox has ended before the output is made
		need += h.pixels() * 8
		out = max(out, r.sandbox(h))
	default: // the canvas and a copy of it
		need += h.pixels() * 8
	}
	return max(need+out, floorBytes) + int64(srcBytes)
}

// outputBytes estimates what the encoder and its output take: libvips holds the whole output, and then it is copied to
// Go. Measured with random noise; drawn pages take half of that or less. As a JPEG of usual quality, noise of pure
// black and white takes a quarter more, but a charge for it would refuse strips of 4000 x 60,016 pixels.
func (h header) outputBytes(pixels int64, spec Spec) int64 {
	bands := int64(cmp.Or(h.bands, 4))
	switch {
	case spec.Format == WebP: // the encoder holds the whole image in several forms
		return pixels * 12
	case spec.Format == PNG: // noise cannot be compressed
		return pixels * bands * 2
	case spec.Quality > usualQuality:
		return pixels * bands * 3
	}
	return pixels * 4 / 3
}
