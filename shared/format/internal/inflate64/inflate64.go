// Package inflate64 decompresses Deflate64 (method 9 of ZIP), which Windows writes for archives above 2 GiB: the blocks
// of RFC 1951 with a window of 64 KiB, two more distance codes and a length code with 16 bits. No maintained package
// reads it.
package inflate64

import (
	"bufio"
	"errors"
	"io"
	"math/bits"
)

// errCorrupt says that the data is not Deflate64.
var errCorrupt = errors.New("inflate64: the data is damaged")

const (
	window   = 1 << 16
	maxBits  = 15
	fast     = 9 // bits decoded with one table lookup
	endBlock = 256
)

// reader decodes into a ring buffer that is also the window.
type reader struct {
	in   io.ByteReader
	hold uint64 // unused bits, the next one lowest
	n    uint   // their number
	err  error

	ring       [window]byte
	at, unread int // write position; number of unread bytes before it

	last       bool // the running block is the last
	stored     int  // bytes left of a stored block
	copy, dist int  // rest of a match that did not fit
	inBlock    bool
	literals   code
	distances  code
}

// NewReader returns the plain bytes of r. It ends with io.EOF after the last block. It may read up to a buffer's length
// beyond it, unless r is an io.ByteReader.
func NewReader(r io.Reader) io.Reader {
	in, ok := r.(io.ByteReader)
	if !ok {
		in = bufio.NewReaderSize(r, 32<<10)
	}
	return &reader{in: in}
}

func (d *reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for d.unread == 0 && d.err == nil {
		d.fill()
	}
	total := 0
	for d.unread > 0 && total < len(p) {
		start := (d.at - d.unread + window) % window
		n := copy(p[total:], d.ring[start:min(window, start+d.unread)])
		total += n
		d.unread -= n
	}
	if total > 0 {
		return total, nil
	}
	return 0, d.err
}

// room is how much of the ring may be written before a read: the rest is the window.
const room = 32 << 10

// fill decodes until there are unread bytes, the data ends, or an error occurs.
func (d *reader) fill() {
	for d.unread < room && d.err == nil {
		switch {
		case d.copy > 0:
			d.repeat()
		case d.stored > 0:
			b, err := d.in.ReadByte()
			if err != nil {
				d.fail(err)
				return
			}
			d.put(b)
			d.stored--
		case d.inBlock:
			d.symbol()
		case d.last:
			d.err = io.EOF
		default:
			d.begin()
		}
	}
}

func (d *reader) put(b byte) {
	d.ring[d.at] = b
	d.at = (d.at + 1) % window
	d.unread++
}

// repeat copies as much of a match as possible. The window keeps at least 32 KiB of read bytes, but a distance may
// reach 64 KiB back: everything before the write position is the window, read or not.
func (d *reader) repeat() {
	for d.copy > 0 && d.unread < window/2 {
		d.put(d.ring[(d.at-d.dist+window)%window])
		d.copy--
	}
}

func (d *reader) fail(err error) {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if d.err == nil {
		d.err = err
	}
}

// need makes n bits available, at most 32.
func (d *reader) need(n uint) bool {
	for d.n < n {
		b, err := d.in.ReadByte()
		if err != nil {
			d.fail(err)
			return false
		}
		d.hold |= uint64(b) << d.n
		d.n += 8
	}
	return true
}

func (d *reader) bits(n uint) int {
	if !d.need(n) {
		return 0
	}
	v := int(d.hold & (1<<n - 1))
	d.hold >>= n
	d.n -= n
	return v
}

// begin reads the header of a block.
func (d *reader) begin() {
	d.last = d.bits(1) == 1
	switch kind := d.bits(2); {
	case d.err != nil:
	case kind == 0:
		d.bits(d.n % 8)
		size, check := d.bits(16), d.bits(16)
		if d.err == nil && size != check^0xffff {
			d.fail(errCorrupt)
			return
		}
		d.stored = size
		for d.n >= 8 && d.stored > 0 { // bytes that were read ahead
			d.put(byte(d.bits(8)))
			d.stored--
		}
	case kind == 1:
		d.literals, d.distances = fixedLiterals, fixedDistances
		d.inBlock = true
	case kind == 2:
		d.dynamic()
	default:
		d.fail(errCorrupt)
	}
}

var (
	codeOrder = [19]int{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

	fixedLiterals, fixedDistances = fixed()
)

func fixed() (literals, distances code) {
	var l [288]byte
	for i := range l {
		switch {
		case i < 144:
			l[i] = 8
		case i < 256:
			l[i] = 9
		case i < 280:
			l[i] = 7
		default:
			l[i] = 8
		}
	}
	var dist [32]byte
	for i := range dist {
		dist[i] = 5
	}
	literals.build(l[:])
	distances.build(dist[:])
	return literals, distances
}

// dynamic reads the codes of a block (RFC 1951 section 3.2.7).
func (d *reader) dynamic() {
	nl, nd, nc := d.bits(5)+257, d.bits(5)+1, d.bits(4)+4
	if d.err != nil {
		return
	}
	var lengths [288 + 32]byte
	for i := range nc {
		lengths[codeOrder[i]] = byte(d.bits(3))
	}
	var meta code
	if d.err != nil || !meta.build(lengths[:19]) {
		d.fail(errCorrupt)
		return
	}
	clear(lengths[:19])
	for i := 0; i < nl+nd; {
		sym := d.decode(&meta)
		if d.err != nil {
			return
		}
		if sym < 16 {
			lengths[i] = byte(sym)
			i++
			continue
		}
		var value byte
		var times int
		switch sym {
		case 16:
			if i == 0 {
				d.fail(errCorrupt)
				return
			}
			value, times = lengths[i-1], 3+d.bits(2)
		case 17:
			times = 3 + d.bits(3)
		default:
			times = 11 + d.bits(7)
		}
		if i+times > nl+nd {
			d.fail(errCorrupt)
			return
		}
		for range times {
			lengths[i] = value
			i++
		}
	}
	if d.err != nil || nl > 288 || !d.literals.build(lengths[:nl]) || !d.distances.build(lengths[nl:nl+nd]) {
		d.fail(errCorrupt)
		return
	}
	d.inBlock = true
}

// symbol decodes a literal, a match or the end of the block.
func (d *reader) symbol() {
	sym := d.decode(&d.literals)
	switch {
	case d.err != nil:
		return
	case sym < endBlock:
		d.put(byte(sym))
		return
	case sym == endBlock:
		d.inBlock = false
		return
	}
	length := 0
	switch s := sym - 257; {
	case s < 8:
		length = 3 + s
	case s < 28:
		extra := uint(s/4 - 1)
		length = 3 + (4+s%4)<<extra + d.bits(extra)
	case s == 28: // Deflate64: 16 bits instead of the fixed 258
		length = 3 + d.bits(16)
	default:
		d.fail(errCorrupt)
		return
	}
	ds := d.decode(&d.distances)
	if d.err != nil {
		return
	}
	dist := ds + 1
	if ds >= 4 {
		extra := uint(ds/2 - 1)
		dist = (2+ds%2)<<extra + d.bits(extra) + 1
	}
	if d.err != nil {
		return
	}
	d.copy, d.dist = length, dist
}

// code is a prefix code: a table for short codes, counts for the others.
type code struct {
	table  [1 << fast]uint16 // symbol<<4 | length; 0: longer, or none
	counts [maxBits + 1]int
	sorted [288]uint16
}

// build makes the code for the lengths, and reports false if they form no code. An incomplete code is accepted: its
// missing codes are errors where they occur.
func (c *code) build(lengths []byte) bool {
	*c = code{}
	for _, l := range lengths {
		c.counts[l]++
	}
	c.counts[0] = 0
	left := 1
	var offsets, next [maxBits + 2]int
	for l := 1; l <= maxBits; l++ {
		left = left<<1 - c.counts[l]
		if left < 0 {
			return false
		}
		offsets[l+1] = offsets[l] + c.counts[l]
		next[l+1] = (next[l] + c.counts[l]) << 1
	}
	for sym, l := range lengths {
		if l == 0 {
			continue
		}
		c.sorted[offsets[l]] = uint16(sym)
		offsets[l]++
		value := next[l]
		next[l]++
		if l > fast {
			continue
		}
		reversed := int(bits.Reverse16(uint16(value)) >> (16 - l))
		for i := reversed; i < 1<<fast; i += 1 << l {
			c.table[i] = uint16(sym)<<4 | uint16(l)
		}
	}
	return true
}

func (d *reader) decode(c *code) int {
	for d.n < fast { // near the end there may be fewer
		b, err := d.in.ReadByte()
		if err != nil {
			break
		}
		d.hold |= uint64(b) << d.n
		d.n += 8
	}
	if e := c.table[d.hold&(1<<fast-1)]; e != 0 && uint(e&15) <= d.n {
		d.hold >>= e & 15
		d.n -= uint(e & 15)
		return int(e >> 4)
	}
	value, first, index := 0, 0, 0
	for l := 1; l <= maxBits; l++ {
		if !d.need(uint(l)) {
			return 0
		}
		value |= int(d.hold>>(l-1)) & 1
		if count := c.counts[l]; value-count < first {
			d.hold >>= uint(l)
			d.n -= uint(l)
			return int(c.sorted[index+value-first])
		} else {
			index += count
			first = (first + count) << 1
		}
		value <<= 1
	}
	d.fail(errCorrupt)
	return 0
}
