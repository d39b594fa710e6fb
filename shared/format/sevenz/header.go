package sevenz

import (
	"unicode/utf16"

	"github.com/longbox/longbox/shared/format/archive"
)

// Properties of a header (DOC/7zFormat.txt of the LZMA SDK).
const (
	idEnd             = 0x00
	idHeader          = 0x01
	idArchiveProps    = 0x02
	idAdditional      = 0x03
	idMainStreams     = 0x04
	idFiles           = 0x05
	idPackInfo        = 0x06
	idUnpackInfo      = 0x07
	idSubStreams      = 0x08
	idSize            = 0x09
	idCRC             = 0x0a
	idFolder          = 0x0b
	idUnpackSize      = 0x0c
	idNumUnpackStream = 0x0d
	idEmptyStream     = 0x0e
	idEmptyFile       = 0x0f
	idNames           = 0x11
	idAttributes      = 0x15
	idEncodedHeader   = 0x17
)

// cursor reads a header. bad is set once something is invalid; then it returns only zeros.
type cursor struct {
	b      []byte
	bad    bool
	beyond bool // a limit was exceeded
}

func (c *cursor) take(n uint64) []byte {
	if n > uint64(len(c.b)) {
		c.bad, c.b = true, nil
		return nil
	}
	v := c.b[:n]
	c.b = c.b[n:]
	return v
}

func (c *cursor) byte() byte {
	if b := c.take(1); b != nil {
		return b[0]
	}
	return 0
}

// number reads a 64-bit number. The leading ones of its first byte are the number of further bytes.
func (c *cursor) number() uint64 {
	first := c.byte()
	var v uint64
	for i := range 8 {
		mask := byte(0x80 >> i)
		if first&mask == 0 {
			return v | uint64(first&(mask-1))<<(8*i)
		}
		v |= uint64(c.byte()) << (8 * i)
	}
	return v
}

// count reads a number of elements. More than limit is bad.
func (c *cursor) count(limit int) int {
	n := c.number()
	if n > uint64(limit) {
		c.bad, c.b = true, nil
		return 0
	}
	return int(n)
}

// entries is count with a configurable limit. More entries than bytes mean damage.
func (c *cursor) entries(limit int) int {
	n := (&cursor{b: c.b}).number()
	c.beyond = n > uint64(limit) && n <= uint64(len(c.b))
	return c.count(limit)
}

// size reads a number of bytes.
func (c *cursor) size() int64 {
	n := c.number()
	if n > 1<<60 {
		c.bad, c.b = true, nil
		return 0
	}
	return int64(n)
}

func (c *cursor) bits(n int) []bool {
	raw := c.take(uint64(n+7) / 8)
	out := make([]bool, n)
	for i := range out {
		if raw != nil {
			out[i] = raw[i/8]&(0x80>>(i%8)) != 0
		}
	}
	return out
}

// defined reads a list of booleans, which may be stored as one "all".
func (c *cursor) defined(n int) []bool {
	if c.byte() == 0 {
		return c.bits(n)
	}
	out := make([]bool, n)
	for i := range out {
		out[i] = true
	}
	return out
}

// checksums calls set for each of n checksums that is present.
func (c *cursor) checksums(n int, set func(i int, crc uint32)) {
	for i, ok := range c.defined(n) {
		if !ok {
			continue
		}
		if b := c.take(4); b != nil {
			set(i, le.Uint32(b))
		}
	}
}

// streamsInfo is the location of the content and its division into streams.
type streamsInfo struct {
	folders []folder
	streams []stream
}

// streams reads a streams info: pack info, folders, and the streams of each.
func (c *cursor) streams(size int64, lim archive.Limits) (*streamsInfo, error) {
	s := &streamsInfo{}
	var packs []int64
	var packAt int64
	cut := false
	for {
		switch id := c.byte(); id {
		case idPackInfo:
			packAt, packs = c.packInfo(lim)
		case idUnpackInfo:
			s.folders = c.unpackInfo(lim)
		case idSubStreams:
			s.streams = c.subStreams(s.folders, lim)
			cut = true
		case idEnd:
			if c.bad {
				return nil, errDamaged
			}
			if !cut {
				for i, f := range s.folders {
					s.streams = append(s.streams, stream{i, f.size(), f.crc})
				}
			}
			return s, place(s.folders, packs, packAt, size)
		default:
			return nil, errDamaged
		}
		if c.beyond {
			return nil, archive.Errorf(archive.TooLarge, "the archive has more entries than the limit of %d", lim.Entries)
		}
		if c.bad {
			return nil, errDamaged
		}
	}
}

// place sets the folders' ranges of the file.
func place(folders []folder, packs []int64, at, size int64) error {
	at += startBytes
	for i := range folders {
		f := &folders[i]
		if f.packs > len(packs) {
			return errDamaged
		}
		f.offset, f.packed = at, packs[0]
		for _, n := range packs[:f.packs] {
			if at+n > size {
				return archive.Errorf(archive.Truncated, "the 7z archive is cut short; get a complete copy")
			}
			at += n
		}
		packs = packs[f.packs:]
	}
	return nil
}

func (c *cursor) packInfo(lim archive.Limits) (at int64, sizes []int64) {
	at = c.size()
	n := c.entries(4 * lim.Entries)
	for {
		switch c.byte() {
		case idSize:
			sizes = make([]int64, 0, min(n, len(c.b)))
			for range n {
				if c.bad {
					break
				}
				sizes = append(sizes, c.size())
			}
		case idCRC:
			if n > len(c.b)*8 {
				c.bad = true
			} else {
				c.checksums(n, func(int, uint32) {})
			}
		case idEnd:
			c.bad = c.bad || len(sizes) != n
			return at, sizes
		default:
			c.bad = true
		}
		if c.bad {
			return 0, nil
		}
	}
}

func (c *cursor) unpackInfo(lim archive.Limits) []folder {
	if c.byte() != idFolder {
		c.bad = true
	}
	n := c.entries(lim.Entries)
	if c.byte() != 0 { // stored elsewhere: nobody writes that
		c.bad = true
	}
	var folders []folder
	for range n {
		if c.bad {
			return nil
		}
		folders = append(folders, c.folder())
	}
	if c.byte() != idUnpackSize || c.bad {
		c.bad = true
		return nil
	}
	for i := range folders {
		f := &folders[i]
		sizes := make([]int64, f.outs)
		for j := range sizes {
			sizes[j] = c.size()
		}
		if f.odd {
			f.coders[len(f.coders)-1].size = sizes[f.result] // all that is needed of an unsupported folder
			continue
		}
		ordered := make([]coder, len(f.order))
		for j, k := range f.order {
			ordered[j] = f.coders[k]
			ordered[j].size = sizes[k]
		}
		f.coders = ordered
	}
	for !c.bad {
		switch c.byte() {
		case idCRC:
			if len(folders) > len(c.b)*8 {
				c.bad = true
				return nil
			}
			c.checksums(len(folders), func(i int, crc uint32) { folders[i].hasCRC, folders[i].crc = true, crc })
		case idEnd:
			return folders
		default:
			c.bad = true
		}
	}
	return nil
}

func (c *cursor) subStreams(folders []folder, lim archive.Limits) []stream {
	counts := make([]int, len(folders))
	for i := range counts {
		counts[i] = 1
	}
	id := c.byte()
	total := len(folders)
	if id == idNumUnpackStream {
		total = 0
		for i := range counts {
			counts[i] = c.entries(lim.Entries)
			if c.bad {
				return nil
			}
			if total += counts[i]; total > lim.Entries {
				c.bad, c.beyond = true, true
				return nil
			}
		}
		id = c.byte()
	}
	streams := make([]stream, 0, total)
	known := make([]bool, 0, total)
	for i, n := range counts {
		left := folders[i].size()
		for j := range n {
			size := left
			if j < n-1 {
				if id != idSize {
					c.bad = true
					return nil
				}
				size = c.size()
			}
			if size > left || c.bad {
				c.bad = true
				return nil
			}
			left -= size
			streams = append(streams, stream{folder: i, size: size})
			known = append(known, n == 1 && folders[i].hasCRC)
			if known[len(known)-1] {
				streams[len(streams)-1].crc = folders[i].crc
			}
		}
	}
	if id == idSize {
		id = c.byte()
	}
	if id == idCRC {
		var unknown []int
		for i, ok := range known {
			if !ok {
				unknown = append(unknown, i)
			}
		}
		c.checksums(len(unknown), func(i int, crc uint32) { streams[unknown[i]].crc = crc })
		id = c.byte()
	}
	if id != idEnd {
		c.bad = true
	}
	return streams
}

// parse parses an unpacked header.
func parse(c *cursor, size int64, lim archive.Limits) (*header, error) {
	s := &streamsInfo{}
	for {
		switch c.byte() {
		case idArchiveProps:
			for c.byte() != idEnd && !c.bad {
				c.take(c.number())
			}
		case idAdditional:
			if _, err := c.streams(size, lim); err != nil {
				return nil, err
			}
		case idMainStreams:
			var err error
			if s, err = c.streams(size, lim); err != nil {
				return nil, err
			}
		case idFiles:
			return c.files(s, size, lim)
		case idEnd:
			if c.bad {
				return nil, errDamaged
			}
			return &header{}, nil
		default:
			return nil, errDamaged
		}
		if c.bad {
			return nil, errDamaged
		}
	}
}

// name decodes a zero-terminated UTF-16 name.
func (c *cursor) name(limit int) string {
	var units []uint16
	for {
		b := c.take(2)
		if b == nil {
			return ""
		}
		u := le.Uint16(b)
		if u == 0 {
			return string(utf16.Decode(units))
		}
		if len(units) == limit {
			c.bad, c.beyond = true, true
			return ""
		}
		units = append(units, u)
	}
}
