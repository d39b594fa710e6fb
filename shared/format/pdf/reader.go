package pdf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/longbox/longbox/shared/format/archive"
)

// reader finds the objects of a document, until its context ends. It is safe for concurrent use.
type reader struct {
	ctx   context.Context
	r     io.ReaderAt
	size  int64
	lim   Limits
	shift int64 // bytes before the document
	xref  []place
	freed []int64 // free entries of the current table
	head  dict    // the newest trailer
	key   *key    // nil if nothing is encrypted
	looks atomic.Int64

	mu       sync.Mutex      // held while an object stream is read, so that concurrent readers share it
	packed   []objectStream  // cached streams, the last used one at the end
	unpacked int64           // bytes of object streams that were read, including repeated reads
	broken   map[int64]error // errors of unreadable object streams
}

// place is the location of an object.
type place struct {
	offset int64 // or the number of the object stream
	kind   placeKind
}

type placeKind byte

const (
	unknown    placeKind = iota
	free                 // there is no such object
	direct               // at offset
	compressed           // in an object stream
)

// objectStream is a set of objects that are compressed together (7.5.7).
type objectStream struct {
	number int64
	data   []byte
	slots  []slot
}

// slot is the offset of an object in the data of its stream.
type slot struct{ number, offset int64 }

// bytes returns the memory that it takes.
func (s objectStream) bytes() int64 { return int64(len(s.data)) + 16*int64(len(s.slots)) }

// Multiples of the limit of one stream.
const (
	keptStreams = 2 // total size of cached object streams
	// unpackedStreams limits the total size of object streams that are read: a document whose objects are arranged so
	// that the cache never has them would take hours.
	unpackedStreams = 64
)

func (d *reader) readAt(b []byte, off int64) error {
	n, err := d.r.ReadAt(b, off)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the document: %w", err)
	}
	if n < len(b) {
		return archive.Errorf(archive.Truncated, "the PDF document is cut short; get a complete copy")
	}
	return nil
}

// parseAt calls parse with the data at off, and again with more data while it returns errMore.
func (d *reader) parseAt(off int64, first, most int64, parse func(l *lexer) error) error {
	if off < 0 || off >= d.size {
		return damaged("an object lies outside the file")
	}
	for n := first; ; n *= 4 {
		n = min(n, d.size-off)
		b := make([]byte, n)
		if err := d.readAt(b, off); err != nil {
			return err
		}
		l := &lexer{b: b, refs: true, end: n == d.size-off}
		err := parse(l)
		switch {
		case errors.Is(err, errMore) && n < most && !l.end:
			continue
		case errors.Is(err, errMore), errors.Is(err, errSyntax):
			return damaged("there is no object at byte %d", off)
		}
		return err
	}
}

const (
	objectBytes = 1 << 10 // most objects are smaller
	maxObject   = 4 << 20
)

// objectAt reads the indirect object at off: its number and value, which may be a stream. Texts are not decrypted.
func (d *reader) objectAt(off int64) (at ref, value any, err error) {
	err = d.parseAt(off, objectBytes, maxObject, func(l *lexer) error {
		l.refs = false
		var head [3]any
		for i := range head {
			if head[i], err = l.object(0); err != nil {
				return err
			}
		}
		l.refs = true
		var ok bool
		if at.number, ok = integer(head[0]); !ok || head[2] != opcode("obj") {
			return errSyntax
		}
		at.generation, _ = integer(head[1])
		if value, err = l.object(0); err != nil {
			return err
		}
		dictionary, ok := value.(dict)
		if !ok {
			return nil
		}
		end := l.at
		word, err := l.object(0)
		if errors.Is(err, errMore) {
			return err
		}
		if err != nil || word != opcode("stream") {
			l.at = end
			return nil
		}
		if l.at+2 > len(l.b) {
			return l.more()
		}
		if l.b[l.at] == '\r' {
			l.at++
		}
		if l.b[l.at] == '\n' {
			l.at++
		}
		value = stream{dictionary, off + int64(l.at), at}
		return nil
	})
	return at, value, err
}

// object returns the object with a number, or nil.
func (d *reader) object(number int64) (any, error) {
	if err := d.ctx.Err(); err != nil {
		return nil, err
	}
	if number < 0 || number >= int64(len(d.xref)) {
		return nil, nil
	}
	if d.looks.Add(1) > int64(d.lim.Requests) {
		return nil, archive.Errorf(archive.TooLarge, "the PDF document needs more objects to be read than the limit of %d", d.lim.Requests)
	}
	switch p := d.xref[number]; p.kind {
	case direct:
		at, v, err := d.objectAt(p.offset + d.shift)
		if err != nil {
			return nil, err
		}
		if at.number != number {
			return nil, damaged("object %d is not where its table says", number)
		}
		if d.key != nil {
			v = d.key.openTexts(v, at)
		}
		return v, nil
	case compressed:
		return d.fromStream(p.offset, number)
	}
	return nil, nil
}

// fromStream returns an object of an object stream.
func (d *reader) fromStream(container, number int64) (any, error) {
	s, err := d.objectStream(container)
	if err != nil {
		return nil, err
	}
	for _, at := range s.slots {
		if at.number != number {
			continue
		}
		if at.offset < 0 || at.offset > int64(len(s.data)) {
			break
		}
		l := &lexer{b: s.data[at.offset:], refs: true, end: true}
		v, err := l.object(0)
		if err != nil {
			return nil, damaged("object %d", number)
		}
		return v, nil
	}
	return nil, nil
}

// objectStream returns an object stream, from the cache or the file.
func (d *reader) objectStream(number int64) (objectStream, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, s := range d.packed {
		if s.number == number {
			d.packed = append(slices.Delete(d.packed, i, i+1), s)
			return s, nil
		}
	}
	if err := d.broken[number]; err != nil {
		return objectStream{}, err
	}
	if d.unpacked > unpackedStreams*d.lim.StreamBytes {
		return objectStream{}, archive.Errorf(archive.TooLarge, "the structure of the PDF document unpacks to more bytes than the limit of %d",
			unpackedStreams*d.lim.StreamBytes)
	}
	out, err := d.readObjectStream(number)
	if err != nil {
		if errors.As(err, new(*archive.Error)) {
			if d.broken == nil {
				d.broken = map[int64]error{}
			}
			d.broken[number] = err
			d.unpacked += d.lim.StreamBytes // the maximum that was read
		}
		return objectStream{}, err
	}
	d.unpacked += out.bytes()
	kept := out.bytes()
	for _, s := range d.packed {
		kept += s.bytes()
	}
	for len(d.packed) > 0 && kept > keptStreams*d.lim.StreamBytes {
		kept -= d.packed[0].bytes()
		d.packed = slices.Delete(d.packed, 0, 1)
	}
	d.packed = append(d.packed, out)
	return out, nil
}

func (d *reader) readObjectStream(number int64) (objectStream, error) {
	if number < 0 || number >= int64(len(d.xref)) || d.xref[number].kind != direct {
		return objectStream{}, damaged("there is no object stream %d", number)
	}
	_, v, err := d.objectAt(d.xref[number].offset + d.shift)
	if err != nil {
		return objectStream{}, err
	}
	s, ok := v.(stream)
	if !ok {
		return objectStream{}, damaged("object %d is not a stream", number)
	}
	data, err := d.content(s, d.lim.StreamBytes, d.directly)
	if err != nil {
		return objectStream{}, d.asProblem(err)
	}
	n, _ := integer(s.dict["N"])
	first, _ := integer(s.dict["First"])
	if n < 0 || n > int64(d.lim.Objects) || n > int64(len(data)) || first < 0 || first > int64(len(data)) {
		return objectStream{}, damaged("object stream %d", number)
	}
	out := objectStream{number: number, data: data, slots: make([]slot, 0, n)}
	l := &lexer{b: data[:first], end: true}
	for range n {
		number, err1 := l.integer()
		offset, err2 := l.integer()
		if err1 != nil || err2 != nil {
			break
		}
		out.slots = append(out.slots, slot{number, offset + first})
	}
	return out, nil
}

// value follows references. A missing object is null (7.3.10). An error of the source shows up as a page that must be
// drawn, or in the next read.
func (d *reader) value(v any) any {
	out, err := d.follow(v)
	if err != nil {
		return nil
	}
	return out
}

// directly is value for the attributes of an object stream, which must not be in an object stream (7.5.7): otherwise
// reading one would require reading another.
func (d *reader) directly(v any) any {
	r, ok := v.(ref)
	if !ok {
		return v
	}
	if r.number < 0 || r.number >= int64(len(d.xref)) || d.xref[r.number].kind != direct {
		return nil
	}
	out, err := d.object(r.number)
	if _, again := out.(ref); again || err != nil {
		return nil
	}
	return out
}

func (d *reader) follow(v any) (any, error) {
	for range 8 {
		r, ok := v.(ref)
		if !ok {
			return v, nil
		}
		var err error
		if v, err = d.object(r.number); err != nil {
			return nil, err
		}
	}
	return nil, damaged("its references form a cycle")
}

// asProblem describes an unsupported filter for the owner.
func (d *reader) asProblem(err error) error {
	if errors.Is(err, errFilter) {
		return archive.Errorf(archive.Unsupported, "the structure of the PDF document is compressed in an unsupported way (%v): save it again with another program", err)
	}
	return err
}

func newReader(ctx context.Context, r io.ReaderAt, size int64, lim Limits) (*reader, error) {
	d := &reader{ctx: ctx, r: r, size: size, lim: lim.withDefaults()}
	head := make([]byte, min(size, headBytes))
	if err := d.readAt(head, 0); err != nil {
		return nil, err
	}
	at := bytes.Index(head, []byte("%PDF-"))
	if at < 0 {
		return nil, archive.Errorf(archive.NotArchive, "the file is not a PDF document")
	}
	d.shift = int64(at)
	return d, nil
}
