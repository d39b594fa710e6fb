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

// unendedJPEG tells of a JPEG that may lack the mark of its end (ITU T.81 B.1.1.3). All of its pixels may be there, and
// viewers show it, but libvips takes it for one that is cut short.
func unendedJPEG(src []byte) bool {
	return mediatype.Detect(src) == mediatype.JPEG && !bytes.HasSuffix(src, []byte(endOfJPEG))
}

// ended is a JPEG with the mark of its end. One whose pixels are cut short is refused all the same.
func ended(src []byte) []byte { return slices.Concat(src, []byte(endOfJPEG)) }

// pixelsOfByte are more than a byte of a JPEG stands for: a block of 64 has six bits where it is like the one before.
const pixelsOfByte = 128

// forgivable tells of a JPEG that is read in spite of mistakes that decoders only warn of, such as a wrong parameter of
// its scan or bytes between its segments: viewers show it. It is not cut short, since it has its end, nor much too
// small.
func forgivable(src []byte, h header) bool {
	return h.mediaType == mediatype.JPEG && !unendedJPEG(src) && h.pixels() <= pixelsOfByte*int64(len(src))
}

// forgetWarnings empties the buffer of libvips, in which the error of the next image would stand behind them.
func forgetWarnings() { C.vips_error_clear() }
