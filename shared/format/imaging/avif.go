package imaging

import "bytes"

// brandAt is the offset of the major brand in an ISO media file, which is its main type.
const brandAt = 8

// animatedAVIF reports whether the main type is an AVIF sequence, which libvips does not recognise as AVIF.
func animatedAVIF(src []byte) bool {
	return bytes.HasPrefix(src[min(4, len(src)):], []byte("ftypavis"))
}

// asStill turns an animated AVIF into the still image that it also contains, for readers without animation.
func asStill(src []byte) []byte {
	out := bytes.Clone(src)
	copy(out[brandAt:], "avif")
	return out
}
