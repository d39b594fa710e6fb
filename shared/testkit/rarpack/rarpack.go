// Package rarpack writes compressed RAR 5.0 archives, solid or not, for tests and benchmarks: no free program does.
//
// The container follows the "RAR 5.0 archive format" technical note (https://www.rarlab.com/technote.htm). The note
// does not describe the compressed stream. lz.go and block.go write it as all readers of version 5.0 understand it:
// greedy matches, and Huffman codes per block for literals and lengths. Filters, encryption and volumes are not
// supported.
package rarpack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
	"slices"
)

// minDictionary is the smallest dictionary of the format (note, "Compression information").
const minDictionary = 128 << 10

// Options say how an archive is packed.
type Options struct {
	Solid      bool  // a file may repeat data of earlier files
	Dictionary int64 // bytes, a power of two, which readers must keep; 0 for minDictionary
	// Reach is how far back repetitions are searched. The maximum and default is the dictionary. A smaller reach packs
	// large files with few repetitions into an archive of about their size, whatever its dictionary.
	Reach int
	Extra []byte // the extra area of each file's header (note, "Extra area format")
}

// Writer packs files one after another. It holds one file and twice the reach of data before it.
type Writer struct {
	w     io.Writer
	o     Options
	files int // compressed files
	finder
	tokens []token // of the current block
	packed bitWriter
}

// NewWriter writes the signature and the main header.
func NewWriter(w io.Writer, o Options) (*Writer, error) {
	if o.Dictionary == 0 {
		o.Dictionary = minDictionary
	}
	if o.Dictionary < minDictionary || o.Dictionary > 4<<30 || bits.OnesCount64(uint64(o.Dictionary)) != 1 {
		return nil, fmt.Errorf("rarpack: a dictionary of %d bytes cannot be stated", o.Dictionary)
	}
	// A repetition from a full dictionary back would be copied from the byte that it overwrites.
	if o.Reach <= 0 || int64(o.Reach) >= o.Dictionary {
		o.Reach = int(o.Dictionary - 1)
	}
	const signature = "Rar!\x1a\x07\x01\x00"
	if _, err := io.WriteString(w, signature); err != nil {
		return nil, err
	}
	const main, solid = 1, 4
	flags := uint64(0)
	if o.Solid {
		flags = solid
	}
	p := &Writer{w: w, o: o, finder: finder{reach: o.Reach}}
	return p, p.header(main, 0, flags)
}

// Add packs one file. An empty one is stored, as packers do.
func (p *Writer) Add(name string, data []byte) error {
	const (
		file, hasExtra, hasData, hasCRC = 2, 1, 2, 4
		normal, solid, unix             = 3 << 7, 1 << 6, 1
	)
	var packed []byte
	var compression uint64
	if p.o.Solid && p.files > 0 {
		compression = solid
	} else {
		p.forget()
	}
	if len(data) > 0 {
		compression |= normal | uint64(bits.TrailingZeros64(uint64(p.o.Dictionary/minDictionary)))<<10
		p.files++
		packed = p.pack(data)
	}
	h := numbers(file, hasData)
	if len(p.o.Extra) > 0 {
		h = numbers(file, hasExtra|hasData, uint64(len(p.o.Extra)))
	}
	h = append(h, numbers(uint64(len(packed)), hasCRC, uint64(len(data)), 0o100644)...)
	h = binary.LittleEndian.AppendUint32(h, crc32.ChecksumIEEE(data))
	h = append(h, numbers(compression, unix, uint64(len(name)))...)
	if err := p.block(slices.Concat(h, []byte(name), p.o.Extra)); err != nil {
		return err
	}
	_, err := p.w.Write(packed)
	return err
}

// Close writes the end header. It does not close the underlying writer.
func (p *Writer) Close() error {
	const end = 5
	return p.header(end, 0, 0)
}

func (p *Writer) header(fields ...uint64) error { return p.block(numbers(fields...)) }

// block writes a header with its checksum and size (note, "General archive block format").
func (p *Writer) block(body []byte) error {
	h := append(numbers(uint64(len(body))), body...)
	_, err := p.w.Write(append(binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(h)), h...))
	return err
}

// numbers encodes vints: seven bits per byte, the lowest first (note, "Data types").
func numbers(fields ...uint64) (b []byte) {
	for _, n := range fields {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

// File is one file for Archive.
type File struct {
	Name string
	Data []byte
}

// Archive builds an archive in memory.
func Archive(o Options, files ...File) ([]byte, error) {
	var b bytes.Buffer
	p, err := NewWriter(&b, o)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		err = errors.Join(err, p.Add(f.Name, f.Data))
	}
	err = errors.Join(err, p.Close())
	return b.Bytes(), err
}
