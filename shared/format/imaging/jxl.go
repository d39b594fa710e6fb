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

// readJXL makes a PNG of a JPEG XL, with a header of it: libvips calls its loader for it unsafe for untrusted input.
// The picture is upright, so its sides may be those of h swapped.
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

// sandbox is the memory in bytes that a JPEG XL may be decoded in. Pictures of 64 x 64 needed 6 to 7 MB, of 257 x 257
// up to 12.5; large ones up to 51 bytes for each pixel (lossy with transparency; 6 to 32 without).
func (r *Renderer) sandbox(h header) int64 { return min(h.pixels()*64+16<<20, r.cfg.JXLMemory) }

// afterHeader is where a PNG may have the profile of its colours: behind the signature and IHDR.
const afterHeader = 8 + 25

// withProfile gives a PNG the ICC profile of its colours (PNG, 11.3.3.3), unless that is empty.
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
