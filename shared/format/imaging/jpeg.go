package imaging

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
