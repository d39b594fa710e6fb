// Package mediatype detects a file's type from its first bytes and reads the pixel size from image headers. It is pure
// Go, decodes no pixels and never reads outside the given bytes.
package mediatype

import (
	"bytes"
	"path"
	"strings"
)

// Media types that Detect and ByExtension return.
const (
	JPEG = "image/jpeg"
	PNG  = "image/png"
	GIF  = "image/gif"
	WebP = "image/webp"
	AVIF = "image/avif"
	JXL  = "image/jxl"
	HEIC = "image/heic"
	TIFF = "image/tiff"
	BMP  = "image/bmp"
	SVG  = "image/svg+xml"
	PDF  = "application/pdf"
	EPUB = "application/epub+zip"
	ZIP  = "application/zip"
	RAR  = "application/vnd.rar"
	SevZ = "application/x-7z-compressed"
)

// OfBook returns the media type of a whole book of a format, as readers know it, or application/octet-stream.
func OfBook(format string) string {
	switch format {
	case "cbz":
		return ZIP
	case "cbr":
		return "application/x-rar-compressed"
	case "epub":
		return EPUB
	case "pdf":
		return PDF
	}
	return "application/octet-stream"
}

// HeadBytes is enough for Detect, and for Dimensions of nearly every image (a JPEG may have larger metadata before its
// frame header; then more is needed).
const HeadBytes = 64 << 10

var prefixes = []struct{ magic, mediaType string }{
	{"\xff\xd8\xff", JPEG},
	{"\x89PNG\r\n\x1a\n", PNG},
	{"GIF87a", GIF},
	{"GIF89a", GIF},
	{"\xff\x0a", JXL},
	{"\x00\x00\x00\x0cJXL \r\n\x87\n", JXL},
	{"II*\x00", TIFF},
	{"MM\x00*", TIFF},
	{"%PDF-", PDF},
	{"Rar!\x1a\x07", RAR},
	{"7z\xbc\xaf\x27\x1c", SevZ},
}

// Detect returns the media type of a file from its first bytes, or "" if it is unknown. File names are ignored.
func Detect(head []byte) string {
	for _, p := range prefixes {
		if bytes.HasPrefix(head, []byte(p.magic)) {
			return p.mediaType
		}
	}
	switch {
	case len(head) >= 12 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP":
		return WebP
	case len(head) >= 12 && string(head[4:8]) == "ftyp":
		return detectBrand(head)
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")):
		return detectZIP(head)
	case isBMP(head):
		return BMP
	case isSVG(head):
		return SVG
	}
	return ""
}

// detectBrand distinguishes AVIF from HEIC by the brands of an ISO media file. The generic brand mif1 says nothing, so
// it also reads the compatible brands.
func detectBrand(head []byte) string {
	size := min(int(be32(head)), len(head), 256)
	found := ""
	for i := 8; i+4 <= size; i += 4 {
		if i == 12 { // the minor version
			continue
		}
		switch string(head[i : i+4]) {
		case "avif", "avis":
			return AVIF
		case "heic", "heix", "hevc", "hevx", "heim", "heis", "hevm", "hevs", "mif1", "msf1":
			found = HEIC
		}
	}
	return found
}

func detectZIP(head []byte) string {
	const nameAt, name = 30, "mimetype"
	if len(head) >= nameAt+len(name) && string(head[nameAt:nameAt+len(name)]) == name {
		extra := int(le16(head[28:]))
		at := nameAt + len(name) + extra
		if at <= len(head) && bytes.HasPrefix(head[at:], []byte(EPUB)) {
			return EPUB
		}
	}
	return ZIP
}

func isBMP(head []byte) bool {
	if len(head) < 18 || head[0] != 'B' || head[1] != 'M' {
		return false
	}
	switch le32(head[14:]) { // two letters prove little: require a known header size too
	case 12, 16, 40, 52, 56, 64, 108, 124:
		return true
	}
	return false
}

// isSVG looks for an svg element after anything that may precede it: byte order mark, XML declaration, comments,
// document type. In doubt it reports true, because SVG is refused.
func isSVG(head []byte) bool {
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	head = bytes.TrimLeft(head, " \t\r\n")
	if len(head) == 0 || head[0] != '<' {
		return false
	}
	head = bytes.ToLower(head[:min(len(head), 4096)])
	at := bytes.Index(head, []byte("<svg"))
	if at < 0 {
		return bytes.Contains(head, []byte("http://www.w3.org/2000/svg"))
	}
	return !bytes.Contains(head[:at], []byte("<html"))
}

var byExtension = map[string]string{
	".jpg": JPEG, ".jpeg": JPEG, ".jpe": JPEG, ".jfif": JPEG,
	".png": PNG, ".gif": GIF, ".webp": WebP, ".avif": AVIF, ".jxl": JXL,
	".heic": HEIC, ".heif": HEIC, ".tif": TIFF, ".tiff": TIFF, ".bmp": BMP, ".svg": SVG,
	".pdf": PDF, ".epub": EPUB, ".cbz": ZIP, ".zip": ZIP, ".cbr": RAR, ".rar": RAR, ".cb7": SevZ, ".7z": SevZ,
}

// ByExtension returns the media type for a file name's extension, or "". It ignores case.
func ByExtension(name string) string {
	return byExtension[strings.ToLower(path.Ext(name))]
}

// Servable reports whether content of this type may be sent to a browser as a page: raster images only, never SVG,
// which can contain scripts.
func Servable(mt string) bool {
	switch mt {
	case JPEG, PNG, GIF, WebP, AVIF, JXL, HEIC, TIFF, BMP:
		return true
	}
	return false
}
