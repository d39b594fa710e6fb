package imaging

import (
	"bytes"
	"fmt"
	"image"
	"image/png"

	"golang.org/x/image/bmp"

	"github.com/longbox/longbox/shared/format/mediatype"
)

// checkBMP compares the size from our header parser with the decoder's.
func checkBMP(src []byte, h header) error {
	c, err := bmp.DecodeConfig(bytes.NewReader(src))
	if err != nil {
		return &Undecodable{mediatype.BMP, err}
	}
	if c.Width != h.width || c.Height != h.height {
		return &Undecodable{mediatype.BMP, fmt.Errorf("the header says %d x %d, the decoder %d x %d", h.width, h.height, c.Width, c.Height)}
	}
	return nil
}

// readBMP converts a BMP to PNG: libvips would use ImageMagick, which is unsafe for untrusted input.
func readBMP(src []byte) ([]byte, error) {
	img, err := bmp.Decode(bytes.NewReader(src))
	if err != nil {
		return nil, &Undecodable{mediatype.BMP, err}
	}
	out, err := asPNG(img)
	if err != nil {
		return nil, &Undecodable{mediatype.BMP, err}
	}
	return out, nil
}

// asPNG encodes an image for libvips.
func asPNG(img image.Image) ([]byte, error) {
	var out bytes.Buffer
	size := img.Bounds()
	out.Grow(size.Dx()*size.Dy()*4 + size.Dy() + 64<<10)
	fast := png.Encoder{CompressionLevel: png.NoCompression}
	if err := fast.Encode(&out, img); err != nil {
		return nil, fmt.Errorf("convert to PNG: %w", err)
	}
	return out.Bytes(), nil
}
