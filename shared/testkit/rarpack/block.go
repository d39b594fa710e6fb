package rarpack

import (
	"encoding/binary"
	"slices"
)

// Codes of a block, in the order of its table.
const (
	codeMain     = iota // literals, lengths and special symbols
	codeDistance        // slots of distances
	codeLow             // the lowest four bits of large distances
	codeLength          // slots of lengths after a known distance
	codes
)

var codeSize = [codes]int{306, 64, 16, 44}

const (
	longestCode = 15 // bits

	repeatFew, repeatMany = 16, 17 // in the table: repeat the previous length 3 to 10 or 11 to 138 times
	zeroFew, zeroMany     = 18, 19
	tableSymbols          = 20
)

// writeBlock writes the tokens as one block: header, the lengths of its four codes, unless those of the previous block
// (possibly of another file) are good enough, and symbols.
func (p *Writer) writeBlock(last bool) {
	var frequency [codes][]int
	for i, n := range codeSize {
		frequency[i] = make([]int, n)
	}
	recent, length := p.recent, p.length
	for _, t := range p.tokens {
		p.symbols(t, func(code, symbol int) { frequency[code][symbol]++ }, func(uint32, int) {})
	}
	p.recent, p.length = recent, length

	var table []uint8
	var code [codes][]word
	saved := -tableBits
	for i, f := range frequency {
		lengths := codeLengths(f)
		table = append(table, lengths...)
		code[i] = canonical(lengths)
		saved += cost(f, p.code[i]) - cost(f, code[i])
	}
	body := &p.packed
	start := body.begin()
	if saved > 0 {
		writeTable(body, table)
		p.code = code
	}
	for _, t := range p.tokens {
		p.symbols(t, func(c, symbol int) { body.word(p.code[c][symbol]) }, body.put)
	}
	body.end(start, last, saved > 0)
	p.tokens = p.tokens[:0]
}

// word is the code of a symbol.
type word struct {
	bits   uint32
	length uint8
}

// tableBits is the approximate size of a table: a small block keeps the previous one.
const tableBits = 1000

// cost returns how many bits symbols with these frequencies take in a code; very many if it lacks one of them.
func cost(frequency []int, code []word) (bits int) {
	for s, n := range frequency {
		if n > 0 && (code == nil || code[s].length == 0) {
			return 1 << 30
		}
		if n > 0 {
			bits += n * int(code[s].length)
		}
	}
	return bits
}

// codeLengths builds a Huffman code for symbols with these frequencies and returns the lengths, 0 for unused symbols.
// The code is always complete and has at least two symbols, because some readers accept no other.
func codeLengths(frequency []int) []uint8 {
	frequency = slices.Clone(frequency)
	var used []int
	for s, n := range frequency {
		if n > 0 {
			used = append(used, s)
		}
	}
	for s := 0; len(used) < 2; s++ {
		if frequency[s] == 0 {
			frequency[s] = 1
			used = append(used, s)
		}
	}
	for {
		lengths, longest := huffman(frequency, used)
		if longest <= longestCode {
			return lengths
		}
		for _, s := range used { // Flatten the frequencies until the rarest symbol is not too deep.
			frequency[s] = (frequency[s] + 1) / 2
		}
	}
}

func huffman(frequency, used []int) (lengths []uint8, longest uint8) {
	type node struct{ weight, parent int }
	slices.SortStableFunc(used, func(a, b int) int { return frequency[a] - frequency[b] })
	var nodes []node
	for _, s := range used {
		nodes = append(nodes, node{weight: frequency[s]})
	}
	// Leaves and joined nodes are two queues, each sorted by weight.
	leaf, joined := 0, len(used)
	lightest := func() int {
		if leaf < len(used) && (joined == len(nodes) || nodes[leaf].weight <= nodes[joined].weight) {
			leaf++
			return leaf - 1
		}
		joined++
		return joined - 1
	}
	for len(nodes) < 2*len(used)-1 {
		a, b := lightest(), lightest()
		nodes[a].parent, nodes[b].parent = len(nodes), len(nodes)
		nodes = append(nodes, node{weight: nodes[a].weight + nodes[b].weight})
	}
	depth := make([]uint8, len(nodes))
	for i := len(nodes) - 2; i >= 0; i-- {
		depth[i] = depth[nodes[i].parent] + 1
	}
	lengths = make([]uint8, len(frequency))
	for i, s := range used {
		lengths[s] = depth[i]
	}
	return lengths, slices.Max(depth)
}

// canonical numbers the words of each length in symbol order, like the reader.
func canonical(lengths []uint8) []word {
	out := make([]word, len(lengths))
	next := uint32(0)
	for n := uint8(1); n <= longestCode; n++ {
		next <<= 1
		for s, l := range lengths {
			if l == n {
				out[s] = word{next, n}
				next++
			}
		}
	}
	return out
}

// run is a symbol of the table with its extra bits.
type run struct {
	symbol, extra, bits int
}

// writeTable writes the lengths of the codes with a code of their own, whose lengths take four bits each.
func writeTable(w *bitWriter, table []uint8) {
	var runs []run
	for i := 0; i < len(table); {
		n := 1
		for i+n < len(table) && table[i+n] == table[i] && n < 138 {
			n++
		}
		few, many := repeatFew, repeatMany
		if table[i] == 0 {
			few, many = zeroFew, zeroMany
		} else if i == 0 || table[i-1] != table[i] {
			n = 1 // A repetition needs a length to repeat.
		}
		switch {
		case n >= 11:
			runs = append(runs, run{many, n - 11, 7})
		case n >= 3:
			runs = append(runs, run{few, n - 3, 3})
		default:
			n = 1
			runs = append(runs, run{symbol: int(table[i])})
		}
		i += n
	}
	frequency := make([]int, tableSymbols)
	for _, r := range runs {
		frequency[r.symbol]++
	}
	lengths := codeLengths(frequency)
	for i := 0; i < len(lengths); {
		zeros := 0
		for i+zeros < len(lengths) && lengths[i+zeros] == 0 && zeros < 17 {
			zeros++
		}
		switch {
		case zeros >= 3: // 15 and the count, less 2
			w.put(15, 4)
			w.put(uint32(zeros-2), 4)
			i += zeros
			continue
		case lengths[i] == 15: // 15 and a zero count
			w.put(15, 4)
			w.put(0, 4)
		default:
			w.put(uint32(lengths[i]), 4)
		}
		i++
	}
	code := canonical(lengths)
	for _, r := range runs {
		w.word(code[r.symbol])
		w.put(uint32(r.extra), r.bits)
	}
}

// bitWriter writes the highest bit of each byte first.
type bitWriter struct {
	bytes []byte
	acc   uint64
	n     int // bits in acc that are not yet written
}

func (w *bitWriter) word(c word) { w.put(c.bits, int(c.length)) }

// put writes the lowest n bits, at most 32, of v.
func (w *bitWriter) put(v uint32, n int) {
	w.acc = w.acc<<n | uint64(v)
	if w.n += n; w.n >= 32 {
		w.n -= 32
		w.bytes = binary.BigEndian.AppendUint32(w.bytes, uint32(w.acc>>w.n))
	}
}

// blockHeader is the maximum size: flags, checksum and three bytes of the block's size.
const blockHeader = 5

// begin reserves space for a block's header and returns its position.
func (w *bitWriter) begin() int {
	w.bytes = append(w.bytes, make([]byte, blockHeader)...)
	return len(w.bytes) - blockHeader
}

// end fills the last byte and writes the header: the used bits of that byte, the size of the block size, whether the
// file ends here, and whether the block starts with a table.
func (w *bitWriter) end(start int, last, table bool) {
	valid := w.n % 8
	if valid == 0 {
		valid = 8
	}
	for w.put(0, 8-valid); w.n > 0; {
		w.n -= 8
		w.bytes = append(w.bytes, byte(w.acc>>w.n))
	}
	const sizeBytes, isLast, hasTable = 3, 0x40, 0x80
	size := len(w.bytes) - start - blockHeader
	h := w.bytes[start:]
	h[0] = byte(valid-1) | (sizeBytes-1)<<3
	if last {
		h[0] |= isLast
	}
	if table {
		h[0] |= hasTable
	}
	h[2], h[3], h[4] = byte(size), byte(size>>8), byte(size>>16)
	h[1] = 0x5a ^ h[0] ^ h[2] ^ h[3] ^ h[4]
}
