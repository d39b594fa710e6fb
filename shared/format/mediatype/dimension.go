package mediatype

import (
	"bytes"
	"encoding/binary"
	"math"
)

func be16(b []byte) uint16 { return binary.BigEndian.Uint16(b) }
func be32(b []byte) uint32 { return binary.BigEndian.Uint32(b) }
func le16(b []byte) uint16 { return binary.LittleEndian.Uint16(b) }
func le32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }

// Dimensions returns the pixel size in an image's header, as displayed: turned by the Exif orientation of a JPEG, or
// the rotation of a HEIF or AVIF. ok is false if head does not contain the header, if the type is not supported here
// (TIFF, documents), or if a side is zero or exceeds 31 bits.
func Dimensions(head []byte) (width, height int, ok bool) {
	switch Detect(head) {
	case JPEG:
		var turned bool
		if width, height, _, turned = scanJPEG(head); turned {
			width, height = height, width
		}
	case PNG:
		width, height = sizePNG(head)
	case GIF:
		if len(head) >= 10 {
			width, height = int(le16(head[6:])), int(le16(head[8:]))
		}
	case WebP:
		width, height = sizeWebP(head)
	case BMP:
		width, height = sizeBMP(head)
	case AVIF, HEIC:
		width, height = sizeHEIF(head)
	case JXL:
		width, height = sizeJXL(head)
	}
	if width <= 0 || height <= 0 || max(width, height) > math.MaxInt32 {
		return 0, 0, false
	}
	return width, height, true
}

// Progressive reports whether a JPEG is progressive or a PNG interlaced: such an image cannot be decoded line by line,
// so its decoder holds all of it.
func Progressive(head []byte) bool {
	switch Detect(head) {
	case JPEG:
		_, _, marker, _ := scanJPEG(head)
		switch marker {
		case 0xc2, 0xc6, 0xca, 0xce:
			return true
		}
	case PNG:
		return len(head) >= 29 && head[28] != 0
	}
	return false
}

// scanJPEG walks the marker segments to the first frame header (ITU T.81 B.2). It returns its size and marker, and
// whether Exif data before it turns the image on its side. Embedded thumbnails are inside segments and are skipped.
func scanJPEG(b []byte) (width, height int, marker byte, turned bool) {
	i := 2
	for i+4 <= len(b) {
		if b[i] != 0xff {
			return 0, 0, 0, false
		}
		m := b[i+1]
		switch {
		case m == 0xff: // fill byte
			i++
			continue
		case m == 0x01 || m >= 0xd0 && m <= 0xd8: // no payload
			i += 2
			continue
		case m == 0xd9 || m == 0xda: // end of image, or pixels before any frame header
			return 0, 0, 0, false
		case m >= 0xc0 && m <= 0xcf && m != 0xc4 && m != 0xc8 && m != 0xcc:
			if i+9 > len(b) {
				return 0, 0, 0, false
			}
			return int(be16(b[i+7:])), int(be16(b[i+5:])), m, turned
		}
		size := int(be16(b[i+2:]))
		if size < 2 {
			return 0, 0, 0, false
		}
		if m == 0xe1 && i+2+size <= len(b) {
			turned = turned || turns(b[i+4:i+2+size])
		}
		i += 2 + size
	}
	return 0, 0, 0, false
}

// turns reports whether the Exif data of a segment (CIPA DC-008, section 4.6) has an orientation that swaps the sides.
func turns(segment []byte) bool {
	tiff, ok := bytes.CutPrefix(segment, []byte("Exif\x00\x00"))
	if !ok || len(tiff) < 8 {
		return false
	}
	u16, u32 := be16, be32
	if tiff[0] == 'I' {
		u16, u32 = le16, le32
	}
	const orientation, entry = 0x112, 12
	at := int64(u32(tiff[4:]))
	if at > int64(len(tiff)-2) {
		return false
	}
	fields := tiff[at+2:]
	for range u16(tiff[at:]) {
		if len(fields) < entry {
			return false
		}
		if u16(fields) == orientation {
			return u16(fields[8:]) >= 5 && u16(fields[8:]) <= 8
		}
		fields = fields[entry:]
	}
	return false
}

func sizePNG(b []byte) (width, height int) {
	if len(b) < 24 || string(b[12:16]) != "IHDR" {
		return 0, 0
	}
	w, h := be32(b[16:]), be32(b[20:])
	if w > 1<<31-1 || h > 1<<31-1 {
		return 0, 0
	}
	return int(w), int(h)
}

func sizeBMP(b []byte) (width, height int) {
	if le32(b[14:]) == 12 {
		if len(b) < 22 {
			return 0, 0
		}
		return int(le16(b[18:])), int(le16(b[20:]))
	}
	if len(b) < 26 {
		return 0, 0
	}
	height = int(int32(le32(b[22:])))
	if height < 0 { // rows stored top down
		height = -height
	}
	return int(int32(le32(b[18:]))), height
}

func sizeWebP(b []byte) (width, height int) {
	if len(b) < 30 {
		return 0, 0
	}
	switch string(b[12:16]) {
	case "VP8 ":
		if b[23] != 0x9d || b[24] != 0x01 || b[25] != 0x2a {
			return 0, 0
		}
		return int(le16(b[26:]) & 0x3fff), int(le16(b[28:]) & 0x3fff)
	case "VP8L":
		if b[20] != 0x2f {
			return 0, 0
		}
		v := le32(b[21:])
		return int(v&0x3fff) + 1, int(v>>14&0x3fff) + 1
	case "VP8X":
		w := int(b[24]) | int(b[25])<<8 | int(b[26])<<16
		h := int(b[27]) | int(b[28])<<8 | int(b[29])<<16
		return w + 1, h + 1
	}
	return 0, 0
}
