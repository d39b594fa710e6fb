package imaging

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/longbox/longbox/shared/format/jxl"
	"github.com/longbox/longbox/shared/format/mediatype"
)

// readJXL converts a JPEG XL to PNG and returns the new header: libvips marks its own loader as unsafe for untrusted
// input. The image is upright, so its sides may be swapped.
func (r *Renderer) readJXL(ctx context.Context, src []byte, h header) ([]byte, header, error) {
	img, profile, err := jxl.Decode(ctx, src, jxl.Limits{Pixels: h.pixels(), Memory: r.sandbox(h), Time: r.cfg.JXLTimeout})
	if ctx.Err() != nil {
		return nil, h, ctx.Err()
	}
	if err != nil {
		return nil, h, &Undecodable{mediatype.JXL, err}
	}
	size := img.Bounds()
	if !sameSize(h, size.Dx(), size.Dy()) {
		return nil, h, &Undecodable{mediatype.JXL, fmt.Errorf("the header says %d x %d, the decoder %d x %d", h.width, h.height, size.Dx(), size.Dy())}
	}
	h.width, h.height = size.Dx(), size.Dy()
	out, err := asPNG(img)
	if err == nil {
		out, err = withProfile(out, profile)
	}
	if err != nil {
		return nil, h, &Undecodable{mediatype.JXL, err}
	}
	return out, h, nil
}

// sandbox returns the memory in bytes for decoding a JPEG XL. Images of 64 x 64 needed 6 to 7 MB, of 257 x 257 up to
// 12.5 MB. Large ones needed up to 51 bytes per pixel (lossy with transparency; 6 to 32 without).
func (r *Renderer) sandbox(h header) int64 { return min(h.pixels()*64+16<<20, r.cfg.JXLMemory) }

// afterHeader is the offset in a PNG for the colour profile: after the signature and IHDR.
const afterHeader = 8 + 25

// withProfile adds the ICC profile to a PNG (PNG, 11.3.3.3), unless it is empty.
func withProfile(png, profile []byte) ([]byte, error) {
	if len(profile) == 0 {
		return png, nil
	}
	chunk := bytes.NewBufferString("\x00\x00\x00\x00iCCPicc\x00\x00")
	z := zlib.NewWriter(chunk)
	if _, err := z.Write(profile); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	b := chunk.Bytes()
	binary.BigEndian.PutUint32(b, uint32(len(b)-8))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
	if len(png) < afterHeader {
		return nil, errors.New("the PNG has no header")
	}
	return bytes.Join([][]byte{png[:afterHeader], b, png[afterHeader:]}, nil), nil
}
