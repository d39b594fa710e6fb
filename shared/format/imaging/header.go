package imaging

import (
	"errors"
	"fmt"
	"math"

	"github.com/davidbyttow/govips/v2/vips"

	"github.com/longbox/longbox/shared/format/mediatype"
)

// header is what is known about a source before any pixel is decoded.
type header struct {
	mediaType     string
	width, height int // as stored
	orientation   int // EXIF, 1 upright; 5 to 8 swap the sides
	bands         int // at most, of the rendition; 0 = unknown
	stream        bool
	lenient       bool // decode in spite of minor errors
}

// upright returns the size after applying the EXIF orientation.
func (h header) upright() (width, height int) {
	if h.orientation >= 5 {
		return h.height, h.width
	}
	return h.width, h.height
}

func (h header) pixels() int64 { return int64(h.width) * int64(h.height) }

var vipsType = map[string]vips.ImageType{
	mediatype.JPEG: vips.ImageTypeJPEG, mediatype.PNG: vips.ImageTypePNG, mediatype.GIF: vips.ImageTypeGIF,
	mediatype.WebP: vips.ImageTypeWEBP, mediatype.AVIF: vips.ImageTypeAVIF, mediatype.HEIC: vips.ImageTypeHEIF,
	mediatype.TIFF: vips.ImageTypeTIFF,
}

// inspect checks a source against the limits by its header alone: with our parser first, then with libvips, which must
// agree.
func (r *Renderer) inspect(src []byte) (header, error) {
	if n := int64(len(src)); n > r.cfg.MaxBytes {
		return header{}, &TooLarge{"bytes", n, r.cfg.MaxBytes}
	}
	h := header{mediaType: mediatype.Detect(src), orientation: 1}
	if !mediatype.Servable(h.mediaType) {
		return header{}, &Undecodable{h.mediaType, errors.New("not a raster image of a known type")}
	}
	if len(src) < 16 || h.mediaType == mediatype.WebP && int64(len(src)) < riffSize(src) {
		return header{}, &Undecodable{h.mediaType, errors.New("the file is truncated")}
	}
	h.stream = (h.mediaType == mediatype.JPEG || h.mediaType == mediatype.PNG) && !mediatype.Progressive(src)
	stated := false
	h.width, h.height, stated = mediatype.Dimensions(src)
	if stated {
		if err := r.checkPixels(h); err != nil {
			return header{}, err
		}
	}
	switch h.mediaType {
	case mediatype.BMP:
		return h, checkBMP(src, h)
	case mediatype.JXL:
		if !stated {
			return header{}, &Undecodable{h.mediaType, errors.New("the header is broken")}
		}
		return h, nil
	}
	return r.openHeader(src, h, stated)
}

func (r *Renderer) openHeader(src []byte, h header, stated bool) (header, error) {
	// govips also detects the type, less strictly than mediatype. The results must match, so that a crafted file does
	// not reach another loader.
	if got := vips.DetermineImageType(src); got != vipsType[h.mediaType] {
		if !(h.mediaType == mediatype.AVIF || h.mediaType == mediatype.HEIC) || got != vips.ImageTypeHEIF && got != vips.ImageTypeAVIF {
			return header{}, &Undecodable{h.mediaType, errors.New("the header is ambiguous")}
		}
	}
	params := vips.NewImportParams()
	params.Access.Set(vips.AccessSequential)
	img, err := vips.LoadImageFromBuffer(src, params)
	if err != nil {
		return header{}, undecodable(h.mediaType, err)
	}
	defer img.Close()
	if stated && !sameSize(h, img.Width(), img.Height()) {
		return header{}, &Undecodable{h.mediaType,
			fmt.Errorf("the header says %d x %d, the decoder %d x %d", h.width, h.height, img.Width(), img.Height())}
	}
	h.width, h.height, h.bands = img.Width(), img.Height(), img.Bands()
	if img.HasICCProfile() && h.bands < 3 { // a grey profile makes grey three
		h.bands += 2
	}
	h.bands = min(h.bands, 4) // CMYK becomes sRGB
	if h.mediaType == mediatype.JPEG || h.mediaType == mediatype.TIFF || h.mediaType == mediatype.PNG || h.mediaType == mediatype.WebP {
		h.orientation = img.Orientation()
	}
	return h, r.checkPixels(h)
}

// sameSize compares the stated size with the decoder's. A GIF may draw beyond its stated screen, and other HEIF
// transformations swap the sides. Both were checked against the limits, so for them larger sides alone are no reason to
// refuse.
func sameSize(h header, w, ht int) bool {
	if w == h.width && ht == h.height || w == h.height && ht == h.width {
		return true
	}
	return h.mediaType == mediatype.GIF || h.mediaType == mediatype.HEIC || h.mediaType == mediatype.AVIF
}

func (r *Renderer) checkPixels(h header) error {
	limit := r.cfg.MaxPixels
	if h.stream {
		limit = r.cfg.MaxStreamPixels
	}
	if h.width <= 0 || h.height <= 0 {
		return &Undecodable{h.mediaType, errors.New("a side is zero")}
	}
	if int64(h.width) > math.MaxInt64/int64(h.height) || h.pixels() > limit {
		return &TooLarge{"pixels", h.pixels(), limit}
	}
	return nil
}

func riffSize(b []byte) int64 {
	return 8 + (int64(b[4]) | int64(b[5])<<8 | int64(b[6])<<16 | int64(b[7])<<24)
}
