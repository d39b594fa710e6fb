package imaging

import "bytes"

// brandAt is where an ISO media file has its major brand: what it is in the first place.
const brandAt = 8

// animatedAVIF tells of an AVIF that is a sequence in the first place, which libvips does not know as AVIF.
func animatedAVIF(src []byte) bool {
	return bytes.HasPrefix(src[min(4, len(src)):], []byte("ftypavis"))
}

// asStill is an animated AVIF as the picture that it holds besides, for readers that play nothing.
func asStill(src []byte) []byte {
	out := bytes.Clone(src)
	copy(out[brandAt:], "avif")
	return out
}
