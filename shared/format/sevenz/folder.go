package sevenz

import (
	"bytes"
	"compress/bzip2"
	"compress/flate"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz/lzma"

	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/format/internal/inflate64"
)

// Compressors by their numbers (DOC/Methods.txt of the LZMA SDK).
const (
	idCopy      = "00"
	idLZMA      = "030101"
	idLZMA2     = "21"
	idDeflate   = "040108"
	idDeflate64 = "040109"
	idBZip2     = "040202"
	idZstd      = "04f71101"
	idDelta     = "03"
	idAES       = "06f10701"
)

var coderNames = map[string]string{"030401": "PPMd", "03030103": "the filter BCJ for programs",
	"0303011b": "the filter BCJ2 for programs", "0a": "the filter ARM64 for programs", "04f71102": "Brotli", "04f71104": "LZ4"}

// coder is one step of a folder, with one input and one output stream.
type coder struct {
	id         string
	properties []byte
	size       int64 // of its output
}

// folder is a chain of coders over one range of the file: coders[0] reads the range.
type folder struct {
	offset, packed int64
	coders         []coder
	odd            bool // not a chain
	packs, outs    int  // streams that it reads from the file, and outputs of its coders
	result         int  // index of the output that no coder reads
	order          []int
	hasCRC         bool
	crc            uint32
}

func (f folder) size() int64 { return f.coders[len(f.coders)-1].size }

func (f folder) encrypted() bool {
	for _, c := range f.coders {
		if c.id == idAES {
			return true
		}
	}
	return false
}

func (f folder) stored() bool { return len(f.coders) == 1 && f.coders[0].id == idCopy }

// check returns an error if, judging by its header, the folder is unsupported or exceeds the limits. All its
// dictionaries are in memory at once.
func (f folder) check(lim archive.Limits) error {
	dict := int64(0)
	for _, c := range f.coders {
		switch c.id {
		case idCopy, idDeflate, idDeflate64, idBZip2:
		case idZstd: // its frames declare their size
			dict += min(c.size, lim.DictionaryBytes)
		case idDelta:
			if len(c.properties) != 1 {
				return errDamaged
			}
		case idLZMA:
			if len(c.properties) != 5 {
				return errDamaged
			}
			dict += c.dictionary()
		case idLZMA2:
			if len(c.properties) != 1 || c.properties[0] > 40 {
				return errDamaged
			}
			dict += c.dictionary()
		case idAES:
			return archive.Errorf(archive.Encrypted, "the archive is encrypted: remove its password")
		default:
			name := coderNames[c.id]
			if name == "" {
				name = "method " + c.id
			}
			return archive.Errorf(archive.Unsupported, "the 7z archive is compressed with %s: pack it again with LZMA2 or none", name)
		}
		if dict > lim.DictionaryBytes {
			return archive.Errorf(archive.TooLarge, "dictionary of the 7z archive: %d bytes, the limit is %d", dict, lim.DictionaryBytes)
		}
	}
	if f.odd {
		return archive.Errorf(archive.Unsupported, "the 7z archive is compressed in several streams at once: pack it again with LZMA2 or none")
	}
	return nil
}

// dictionary returns how far back an LZMA or LZMA2 stream may refer, in bytes: at most to the start of its content.
func (c coder) dictionary() int64 {
	if c.id == idLZMA {
		return min(int64(le.Uint32(c.properties[1:])), c.size)
	}
	p := c.properties[0]
	return min(int64(2|p&1)<<(p/2+11), c.size)
}

// open decompresses a folder that passed check.
func (f folder) open(packed io.Reader, lim archive.Limits) (io.Reader, error) {
	r := packed
	for _, c := range f.coders {
		var err error
		switch c.id {
		case idCopy:
		case idDelta:
			r = &delta{r: r, distance: int(c.properties[0]) + 1}
		case idDeflate:
			r = flate.NewReader(r)
		case idDeflate64:
			r = inflate64.NewReader(r)
		case idBZip2:
			r = bzip2.NewReader(r)
		case idZstd:
			r, err = zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
				zstd.WithDecoderMaxWindow(uint64(lim.DictionaryBytes)), zstd.WithDecoderMaxMemory(uint64(max(c.size, lim.DictionaryBytes))))
		case idLZMA:
			head := binary.LittleEndian.AppendUint32([]byte{c.properties[0]}, uint32(max(c.dictionary(), lzma.MinDictCap)))
			head = binary.LittleEndian.AppendUint64(head, uint64(c.size))
			r, err = lzma.NewReader(io.MultiReader(bytes.NewReader(head), r))
		case idLZMA2:
			r, err = lzma.Reader2Config{DictCap: int(max(c.dictionary(), lzma.MinDictCap))}.NewReader2(r)
		default:
			err = fmt.Errorf("coder %s", c.id)
		}
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// delta reverses the Delta filter, which stores the difference of each byte to an earlier one at a distance: in a
// bitmap, to the same colour of the previous pixel.
type delta struct {
	r            io.Reader
	distance, at int
	before       [256]byte
}

func (d *delta) Read(p []byte) (int, error) {
	n, err := d.r.Read(p)
	for i := range n {
		p[i] += d.before[d.at]
		d.before[d.at] = p[i]
		d.at = (d.at + 1) % d.distance
	}
	return n, err
}

// folder reads one folder's coders. Sizes and location follow later.
func (c *cursor) folder() folder {
	const maxCoders, maxStreams = 8, 64
	var f folder
	ins, plain := 0, true
	for range c.count(maxCoders) {
		one, in, out := c.coder()
		f.coders = append(f.coders, one)
		ins, f.outs = ins+in, f.outs+out
		plain = plain && in == 1 && out == 1
	}
	f.packs = ins - (f.outs - 1)
	if f.packs < 1 || f.outs < 1 || f.outs > maxStreams || len(f.coders) == 0 {
		c.bad = true
		return f
	}
	next := map[int]int{} // coder whose output it is → coder that reads it
	fed := map[int]bool{}
	for range f.outs - 1 {
		in, out := c.count(maxStreams), c.count(maxStreams)
		if _, twice := next[out]; twice || fed[in] || in >= ins || out >= f.outs {
			c.bad = true
			return f
		}
		next[out], fed[in] = in, true
	}
	if f.packs > 1 {
		for range f.packs {
			c.number()
		}
	}
	for _, read := next[f.result]; read; _, read = next[f.result] {
		f.result++
	}
	f.odd = !plain || f.packs != 1
	if !f.odd && !c.bad {
		f.order = chain(next, fed)
		c.bad = len(f.order) != len(f.coders)
	}
	return f
}

// coder reads one coder, and the numbers of its input and output streams.
func (c *cursor) coder() (one coder, in, out int) {
	flags := c.byte()
	one.id = hex.EncodeToString(c.take(uint64(flags & 15)))
	in, out = 1, 1
	if flags&0x10 != 0 {
		in, out = c.count(32), c.count(32)
	}
	if flags&0x20 != 0 {
		one.properties = c.take(c.number())
	}
	c.bad = c.bad || flags&0xc0 != 0
	return one, in, out
}

// chain returns the order of coders, starting with the one that reads no other. Each coder reads the output of exactly
// one other, so there is no cycle.
func chain(next map[int]int, fed map[int]bool) []int {
	at := 0
	for fed[at] {
		at++
	}
	order := []int{at}
	for follower, ok := next[at]; ok; follower, ok = next[at] {
		at = follower
		order = append(order, at)
	}
	return order
}
