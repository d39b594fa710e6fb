package imaging

// #cgo pkg-config: vips
// #include <vips/vips.h>
import "C"

import (
	"bytes"
	"slices"

	"github.com/longbox/longbox/shared/format/mediatype"
)

const endOfJPEG = "\xff\xd9"

// unendedJPEG reports whether a JPEG may lack its end marker (ITU T.81 B.1.1.3). It may have all of its pixels, and
// viewers show it, but libvips reports it as truncated.
func unendedJPEG(src []byte) bool {
	return mediatype.Detect(src) == mediatype.JPEG && !bytes.HasSuffix(src, []byte(endOfJPEG))
}

// ended appends the end marker to a JPEG. One with truncated pixels is refused anyway.
func ended(src []byte) []byte { return slices.Concat(src, []byte(endOfJPEG)) }

// pixelsOfByte is more than the pixels per byte of a JPEG: a block of 64 takes six bits if it equals the previous one.
const pixelsOfByte = 128

// forgivable reports whether a JPEG is decoded in spite of errors that decoders only warn about, such as a wrong scan
// parameter or bytes between segments: viewers show it. It must not be truncated, so it needs its end marker and a
// plausible size.
func forgivable(src []byte, h header) bool {
	return h.mediaType == mediatype.JPEG && !unendedJPEG(src) && h.pixels() <= pixelsOfByte*int64(len(src))
}

// forgetWarnings clears the error buffer of libvips, which would add them to the error of the next image.
func forgetWarnings() { C.vips_error_clear() }
