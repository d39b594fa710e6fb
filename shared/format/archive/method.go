package archive

import (
	"bytes"
	"compress/bzip2"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz/lzma"

	"github.com/longbox/longbox/shared/format/internal/inflate64"
	"github.com/longbox/longbox/shared/format/rardecode"
)

// Supported compression methods of ZIP (APPNOTE 4.4.5).
const (
	Stored    uint16 = 0
	Deflated  uint16 = 8
	Deflate64 uint16 = 9
	BZip2     uint16 = 12
	LZMA      uint16 = 14
	OldZstd   uint16 = 20
	Zstd      uint16 = 93
	XZ        uint16 = 95
)

// Methods for entries of other containers. The numbers are ours and far from those of ZIP.
const (
	// Bare entries are the plain bytes of their range, without a header. A CRC32 of 0 means unknown.
	Bare uint16 = 0xffff
	// RAR4 and RAR5 entries are one file block of such an archive, compressed on its own.
	RAR4 uint16 = 0xfffe
	RAR5 uint16 = 0xfffd
	// SolidRAR and SevenZip entries can only be read by decompressing everything before them. Offset is their number in
	// the archive.
	SolidRAR uint16 = 0xfffc
	SevenZip uint16 = 0xfffb
	// PDFPage entries must be rendered. Offset is the page number, from 0.
	PDFPage uint16 = 0xfffa
)

// Direct reports whether the entry can be read from its own range of the object alone.
func (e Entry) Direct() bool {
	return e.Method != SolidRAR && e.Method != SevenZip && e.Method != PDFPage
}

// Heavy reports whether unpacking the entry needs the memory of a dictionary or a model: up to some hundred MB.
func (e Entry) Heavy() bool {
	switch e.Method {
	case Stored, Bare, Deflated, Deflate64, BZip2:
		return false
	}
	return true
}

var methodNames = map[uint16]string{1: "shrinking", 2: "reducing", 3: "reducing", 4: "reducing", 5: "reducing", 6: "imploding",
	10: "old imploding", 18: "IBM TERSE", 94: "MP3", 96: "a JPEG variant", 97: "WavPack", 98: "PPMd", 99: "AES encryption"}

func readable(method uint16) bool {
	switch method {
	case Stored, Deflated, Deflate64, BZip2, LZMA, OldZstd, Zstd, XZ:
		return true
	}
	return method >= PDFPage
}

// decompress returns the plain bytes of an entry from its stored bytes.
func (e Entry) decompress(raw *exact, lim Limits) (io.Reader, error) {
	switch e.Method {
	case Stored, Bare:
		return raw, nil
	case Deflated:
		return flate.NewReader(raw), nil
	case Deflate64:
		return inflate64.NewReader(raw), nil
	case BZip2:
		return bzip2.NewReader(raw), nil
	case LZMA:
		return e.openLZMA(raw, lim)
	case XZ:
		return newXZ(raw, e.Size, lim), nil
	case Zstd, OldZstd:
		// Without concurrency it starts no goroutine, so nothing needs closing.
		z, err := zstd.NewReader(raw, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(uint64(lim.DictionaryBytes)), zstd.WithDecoderMaxMemory(uint64(max(e.Size, lim.DictionaryBytes))))
		if err != nil {
			return nil, fmt.Errorf("zstd: %w", err)
		}
		return zstdReader{e, z}, nil
	case RAR4, RAR5:
		return e.openRAR(raw, lim)
	}
	return nil, fmt.Errorf("archive: %s cannot be read separately from its archive", e.Name)
}

// openLZMA reads method 14: a version, the properties with their length, and the stream (APPNOTE 5.8).
func (e Entry) openLZMA(raw *exact, lim Limits) (io.Reader, error) {
	var h [9]byte
	if _, err := io.ReadFull(raw, h[:]); err != nil {
		return nil, e.shortOr(err)
	}
	if n := le16(h[2:]); n != 5 {
		return nil, Errorf(Corrupt, "%s: %d bytes of LZMA properties instead of 5", e.Name, n)
	}
	if dict := int64(le32(h[5:])); dict > lim.DictionaryBytes && e.Size > lim.DictionaryBytes {
		return nil, tooLarge("dictionary of "+e.Name, dict, lim.DictionaryBytes)
	}
	// The header of an .lzma file: properties, and a size, which is unknown if the stream marks its end.
	size := uint64(e.Size)
	if raw.flags&flagEndMarked != 0 {
		size = 1<<64 - 1
	}
	head := binary.LittleEndian.AppendUint64(nil, size)
	dict := min(int64(le32(h[5:])), max(e.Size, lzma.MinDictCap))
	head = append(binary.LittleEndian.AppendUint32([]byte{h[4]}, uint32(dict)), head...)
	r, err := lzma.NewReader(io.MultiReader(bytes.NewReader(head), raw))
	if err != nil {
		return nil, e.damaged(err)
	}
	return r, nil
}

// Signature and main header, which make one file block a complete archive.
var (
	rar4Start = []byte("Rar!\x1a\x07\x00\xcf\x90\x73\x00\x00\x0d\x00\x00\x00\x00\x00\x00\x00")
	rar5Start = []byte("Rar!\x1a\x07\x01\x00\xc5\x1a32\x03\x01\x00\x00")
)

func (e Entry) openRAR(block io.Reader, lim Limits) (io.Reader, error) {
	start := rar5Start
	if e.Method == RAR4 {
		start = rar4Start
	}
	r, err := rardecode.NewReader(io.MultiReader(bytes.NewReader(start), block), 32<<10, lim.DictionaryBytes)
	if err == nil {
		_, err = r.Next()
	}
	switch {
	case errors.Is(err, rardecode.ErrDictionaryTooLarge):
		return nil, Errorf(TooLarge, "%s needs a dictionary larger than the limit of %d bytes", e.Name, lim.DictionaryBytes)
	case err != nil:
		return nil, e.damaged(err)
	}
	return r, nil
}

// zstdReader frees the decoder's memory at the end.
type zstdReader struct {
	entry Entry
	*zstd.Decoder
}

func (z zstdReader) Read(p []byte) (int, error) {
	n, err := z.Decoder.Read(p)
	if errors.Is(err, zstd.ErrWindowSizeExceeded) || errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		err = Errorf(TooLarge, "%s needs a larger window than the limit for dictionaries", z.entry.Name)
	}
	return n, err
}

func (e Entry) damaged(err error) *Error {
	return &Error{Kind: Corrupt, Msg: e.Name + ": its compressed data is damaged", Err: err}
}
