package archive

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/ulikunitz/xz/lzma"
)

// xzReader reads one .xz stream block by block, because the xz package accepts any dictionary size that a block
// requests. It skips checksums of blocks: the archive has one for the whole entry.
type xzReader struct {
	in      *counting
	lim     Limits
	size    int64 // of the whole entry: no dictionary needs more
	spent   int64 // bytes of dictionaries so far: each block allocates its own
	check   int64 // bytes of checksum after each block
	block   io.Reader
	started bool
}

var errXZ = errors.New("not an .xz stream")

// maxDictionaries limits the dictionaries of all blocks of a stream, in multiples of the largest size. Streams with
// several blocks have smaller dictionaries.
const maxDictionaries = 64

func newXZ(r io.Reader, size int64, lim Limits) io.Reader {
	return &xzReader{in: &counting{r: bufio.NewReaderSize(r, 32<<10)}, size: size, lim: lim}
}

// counting counts bytes, for the padding to multiples of four.
type counting struct {
	r *bufio.Reader
	n int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

func (c *counting) ReadByte() (byte, error) {
	b, err := c.r.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}

func (x *xzReader) Read(p []byte) (int, error) {
	for {
		if x.block == nil {
			if err := x.next(); err != nil {
				return 0, err
			}
		}
		n, err := x.block.Read(p)
		if errors.Is(err, io.EOF) {
			x.block = nil
			padding := (4 - x.in.n%4) % 4
			if _, err := io.CopyN(io.Discard, x.in, padding+x.check); err != nil {
				return n, io.ErrUnexpectedEOF
			}
			err = nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// next reads the header of a block (first that of the stream). It returns io.EOF at the index.
func (x *xzReader) next() error {
	if !x.started {
		x.started = true
		var h [12]byte
		if _, err := io.ReadFull(x.in, h[:]); err != nil {
			return io.ErrUnexpectedEOF
		}
		if string(h[:6]) != "\xfd7zXZ\x00" || h[6] != 0 || h[7] > 15 {
			return errXZ
		}
		x.check = [16]int64{0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64}[h[7]]
	}
	size, err := x.in.ReadByte()
	if err != nil {
		return io.ErrUnexpectedEOF
	}
	if size == 0 { // the index
		_, err := io.Copy(io.Discard, x.in)
		if err == nil {
			err = io.EOF
		}
		return err
	}
	h := make([]byte, (int(size)+1)*4-1)
	if _, err := io.ReadFull(x.in, h); err != nil {
		return io.ErrUnexpectedEOF
	}
	flags, rest := h[0], h[1:len(h)-4]
	for _, bit := range []byte{0x40, 0x80} { // packed and plain size
		for more := flags&bit != 0; more; {
			if len(rest) == 0 {
				return errXZ
			}
			more, rest = rest[0]&0x80 != 0, rest[1:]
		}
	}
	// Only one filter, LZMA2 with one byte of properties, is used for images. Others are for programs.
	if flags&3 != 0 || len(rest) < 3 || rest[0] != 0x21 || rest[1] != 1 || rest[2] > 40 {
		return Errorf(Unsupported, "an .xz block with filters other than LZMA2: pack the archive again with deflate or none")
	}
	dict := max(min(int64(2|rest[2]&1)<<(rest[2]/2+11), x.size), lzma.MinDictCap)
	if dict > x.lim.DictionaryBytes {
		return tooLarge("dictionary of an .xz block", dict, x.lim.DictionaryBytes)
	}
	const models = 32 << 10 // memory of a block besides its dictionary
	if x.spent += dict + models; x.spent > maxDictionaries*(x.lim.DictionaryBytes+models) {
		return tooLarge("dictionaries of all blocks of an .xz stream", x.spent, maxDictionaries*(x.lim.DictionaryBytes+models))
	}
	x.block, err = lzma.Reader2Config{DictCap: int(dict)}.NewReader2(x.in)
	if err != nil {
		return fmt.Errorf("xz: %w", err)
	}
	return nil
}
