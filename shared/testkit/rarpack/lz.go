package rarpack

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

const (
	minMatch = 5    // bytes: three of them can be implied by the distance, and the stream states at least two
	maxMatch = 4097 // that the stream can state

	hashBits    = 18
	blockTokens = 1 << 16
)

// token is a literal (distance 0, the byte in length) or the repetition of length bytes from distance bytes back.
type token struct {
	length   uint16
	distance uint32
}

// finder finds repetitions in what it was given and what stood before.
type finder struct {
	reach int
	past  []byte // the file at hand and what stood before it
	start uint32 // of past in all that was given, modulo 2^32: only differences of places count
	table [1 << hashBits]uint32

	// The stream's memory, which outlives blocks and, in a solid archive, files.
	recent [4]uint32 // distances, the last one first
	length uint16    // of the last repetition
	code   [codes][]word
}

// forget makes the next file one that needs none before it.
func (f *finder) forget() {
	f.start += uint32(len(f.past))
	f.past = f.past[:0]
	f.recent, f.length = [4]uint32{}, 0
	f.code = [codes][]word{}
}

// take appends a file to the past, of which no more than the reach is kept, and returns where it begins there.
func (f *finder) take(data []byte) (at int) {
	if old := len(f.past) - f.reach; old > f.reach {
		f.past = slices.Delete(f.past, 0, old)
		f.start += uint32(old)
	}
	at = len(f.past)
	f.past = append(f.past, data...)
	return at
}

// seen remembers a place of the past and returns how far before it the same bytes may stand; 0 if nowhere.
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

// match is the repetition at a place of the past; 0 bytes where there is none.
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
		// Where nothing is found for long, as within a JPEG, fewer places are looked at: that is fast, and what stood
		// before is not crowded out of the table. In turns every place is, so that two passages meet however they lie.
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

// add appends a token to the block, after writing it if it is full: the last one of a file is written as such.
func (p *Writer) add(t token) {
	if len(p.tokens) == blockTokens {
		p.writeBlock(false)
	}
	p.tokens = append(p.tokens, t)
}

// The symbols of the main code above the 256 literals; 256 would begin a filter.
const (
	symbolAgain  = 257 // the last distance and the last length
	symbolRecent = 258 // to 261: one of the last four distances; the length follows in a code of its own
	symbolMatch  = 262 // to 305: the slot of the length; the distance follows
)

// symbols gives a token as the symbols of the four codes and the bits between them.
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
	// Such a repetition is worth its bits only from a length on, and what is stated is less by that.
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
	if n >= 4 { // The lowest four bits have a code of their own.
		extra(value>>4, n-4)
		emit(codeLow, int(value&15))
		return
	}
	extra(value, n)
}

// lengthSlot is a length as its slot and what is added within it: 0 to 7 are themselves, then four slots to a power of
// two.
func lengthSlot(length uint32) (slot int, extra uint32, n int) {
	v := length - 2
	if v < 8 {
		return int(v), 0, 0
	}
	n = bits.Len32(v) - 3
	return 4*(n+1) + int(v>>n&3), v & (1<<n - 1), n
}

// distanceSlot is a distance as its slot and what is added within it: 1 to 4 are themselves, then two slots to a power
// of two.
func distanceSlot(distance uint32) (slot int, extra uint32, n int) {
	v := distance - 1
	if v < 4 {
		return int(v), 0, 0
	}
	n = bits.Len32(v) - 2
	return 2*(n+1) + int(v>>n&1), v & (1<<n - 1), n
}
