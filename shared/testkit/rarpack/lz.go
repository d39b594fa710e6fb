package rarpack

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

const (
	minMatch = 5    // bytes: the distance can imply three of them, and the stream states at least two
	maxMatch = 4097 // maximum in the stream

	hashBits    = 18
	blockTokens = 1 << 16
)

// token is a literal (distance 0, the byte in length) or a repetition of length bytes from distance bytes back.
type token struct {
	length   uint16
	distance uint32
}

// finder finds repetitions in the current file and the data before it.
type finder struct {
	reach int
	past  []byte // the current file and the data before it
	start uint32 // offset of past in all data, modulo 2^32: only differences matter
	table [1 << hashBits]uint32

	// State of the stream, which persists across blocks and, in a solid archive, across files.
	recent [4]uint32 // distances, the latest one first
	length uint16    // of the last repetition
	code   [codes][]word
}

// forget makes the next file independent of earlier ones.
func (f *finder) forget() {
	f.start += uint32(len(f.past))
	f.past = f.past[:0]
	f.recent, f.length = [4]uint32{}, 0
	f.code = [codes][]word{}
}

// take appends a file to the past, which is limited to the reach, and returns its position there.
func (f *finder) take(data []byte) (at int) {
	if old := len(f.past) - f.reach; old > f.reach {
		f.past = slices.Delete(f.past, 0, old)
		f.start += uint32(old)
	}
	at = len(f.past)
	f.past = append(f.past, data...)
	return at
}

// seen records a position of the past and returns how far before it the same bytes may be, or 0.
func (f *finder) seen(at int) (distance uint32) {
	if len(f.past)-at < 8 {
		return 0
	}
	const prime = 0x9e3779b185ebca87
	slot := &f.table[binary.LittleEndian.Uint64(f.past[at:])<<(64-8*minMatch)*prime>>(64-hashBits)]
	place := f.start + uint32(at)
	distance, *slot = place-*slot, place
	if int64(distance) > int64(min(f.reach, at)) {
		return 0
	}
	return distance
}

// match returns the repetition at a position of the past, of 0 bytes if there is none.
func (f *finder) match(at int) (length int, distance uint32) {
	if distance = f.seen(at); distance == 0 {
		return 0, 0
	}
	here, before := f.past[at:min(at+maxMatch, len(f.past))], f.past[at-int(distance):]
	for length < len(here) && here[length] == before[length] {
		length++
	}
	if length < minMatch {
		return 0, 0
	}
	return length, distance
}

// pack compresses one file into blocks.
func (p *Writer) pack(data []byte) []byte {
	p.packed.bytes = p.packed.bytes[:0]
	at := p.take(data)
	for misses := 0; at < len(p.past); {
		// After many misses, as within a JPEG, fewer positions are checked. That is fast, and keeps earlier entries in
		// the table. From time to time every position is checked, so that two passages match at any alignment.
		const stride, longest = 32, 16
		step := min(1+misses/stride%longest, len(p.past)-at)
		if length, distance := p.match(at); length > 0 {
			p.add(token{uint16(length), distance})
			for i := 1; i < length; i++ {
				p.seen(at + i)
			}
			misses, step = 0, length
		} else {
			for _, c := range p.past[at : at+step] {
				p.add(token{length: uint16(c)})
			}
			misses++
		}
		at += step
	}
	p.writeBlock(true)
	return p.packed.bytes
}

// add appends a token to the block. It writes a full block first, so that the last block of a file is written as such.
func (p *Writer) add(t token) {
	if len(p.tokens) == blockTokens {
		p.writeBlock(false)
	}
	p.tokens = append(p.tokens, t)
}

// Symbols of the main code above the 256 literals; 256 would start a filter.
const (
	symbolAgain  = 257 // the last distance and length
	symbolRecent = 258 // to 261: one of the last four distances; the length follows in its own code
	symbolMatch  = 262 // to 305: the slot of the length; the distance follows
)

// symbols emits a token as symbols of the four codes and the bits between them.
func (f *finder) symbols(t token, emit func(code, symbol int), extra func(value uint32, n int)) {
	if t.distance == 0 {
		emit(codeMain, int(t.length))
		return
	}
	known := slices.Index(f.recent[:], t.distance)
	if known == 0 && t.length == f.length {
		emit(codeMain, symbolAgain)
		return
	}
	f.length = t.length
	if known >= 0 {
		copy(f.recent[1:], f.recent[:known])
		f.recent[0] = t.distance
		emit(codeMain, symbolRecent+known)
		slot, value, n := lengthSlot(uint32(t.length))
		emit(codeLength, slot)
		extra(value, n)
		return
	}
	copy(f.recent[1:], f.recent[:])
	f.recent[0] = t.distance
	length := uint32(t.length)
	// A repetition this far is only worth its bits above a minimum length, so the stated length is smaller.
	for _, far := range []uint32{0x100, 0x2000, 0x40000} {
		if t.distance > far {
			length--
		}
	}
	slot, value, n := lengthSlot(length)
	emit(codeMain, symbolMatch+slot)
	extra(value, n)
	slot, value, n = distanceSlot(t.distance)
	emit(codeDistance, slot)
	if n >= 4 { // The lowest four bits have their own code.
		extra(value>>4, n-4)
		emit(codeLow, int(value&15))
		return
	}
	extra(value, n)
}

// lengthSlot returns the slot of a length and its extra bits: 0 to 7 are slots themselves, then there are four slots
// per power of two.
func lengthSlot(length uint32) (slot int, extra uint32, n int) {
	v := length - 2
	if v < 8 {
		return int(v), 0, 0
	}
	n = bits.Len32(v) - 3
	return 4*(n+1) + int(v>>n&3), v & (1<<n - 1), n
}

// distanceSlot returns the slot of a distance and its extra bits: 1 to 4 are slots themselves, then there are two slots
// per power of two.
func distanceSlot(distance uint32) (slot int, extra uint32, n int) {
	v := distance - 1
	if v < 4 {
		return int(v), 0, 0
	}
	n = bits.Len32(v) - 2
	return 2*(n+1) + int(v>>n&1), v & (1<<n - 1), n
}
