package pdf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/longbox/longbox/shared/format/archive"
)

// Reader finds the objects of a document. It may be used by several goroutines.
type Reader struct {
	r     io.ReaderAt
	size  int64
	lim   Limits
	shift int64 // bytes before the document
	xref  []place
	head  dict // the newest trailer
	looks atomic.Int64

	mu     sync.Mutex
	packed []objectStream // the newest last
}

// place is where an object lies: from an offset, or as one of an object stream.
type place struct {
	offset int64 // or the number of the object stream
	index  int32
	kind   byte // 0: unknown, 1: free, 2: at offset, 3: in a stream
}

const (
	unknown byte = iota
	free
	direct
	compressed
)

// objectStream holds objects compressed together (7.5.7).
type objectStream struct {
	number int64
	data   []byte
	index  [][2]int64 // object numbers and offsets
}

// keptStreams bounds the object streams that are remembered.
const keptStreams = 4

func (d *Reader) readAt(b []byte, off int64) error {
	n, err := d.r.ReadAt(b, off)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the document: %w", err)
	}
	if n < len(b) {
		return problem(archive.Truncated, "the PDF document is cut short; get a complete copy")
	}
	return nil
}

// parseAt calls parse with what lies from off, and again with more until it says something else than errMore.
func (d *Reader) parseAt(off int64, first, most int64, parse func(l *lexer) error) error {
	if off < 0 || off >= d.size {
		return damaged("an object outside the file")
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
			return damaged("no object at byte %d", off)
		}
		return err
	}
}

const (
	objectBytes = 1 << 10 // most objects are smaller
	maxObject   = 4 << 20
)

// objectAt reads the indirect object at off: its number and value, which may be a stream.
func (d *Reader) objectAt(off int64) (number int64, value any, err error) {
	err = d.parseAt(off, objectBytes, maxObject, func(l *lexer) error {
		l.refs = false
		var head [3]any
		for i := range head {
			if head[i], err = l.object(0); err != nil {
				return err
			}
		}
		l.refs = true
		n, ok := integer(head[0])
		if !ok || head[2] != opcode("obj") {
			return errSyntax
		}
		if value, err = l.object(0); err != nil {
			return err
		}
		number = n
		dictionary, ok := value.(dict)
		if !ok {
			return nil
		}
		at := l.at
		word, err := l.object(0)
		if errors.Is(err, errMore) {
			return err
		}
		if err != nil || word != opcode("stream") {
			l.at = at
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
		value = stream{dictionary, off + int64(l.at)}
		return nil
	})
	return number, value, err
}

// object is the object with a number; nil where there is none.
func (d *Reader) object(number int64) (any, error) {
	if number < 0 || number >= int64(len(d.xref)) {
		return nil, nil
	}
	if d.looks.Add(1) > int64(d.lim.Requests) {
		return nil, problem(archive.TooLarge, "objects of the PDF document that must be looked at: more than the limit of %d", d.lim.Requests)
	}
	switch p := d.xref[number]; p.kind {
	case direct:
		n, v, err := d.objectAt(p.offset + d.shift)
		if err != nil {
			return nil, err
		}
		if n != number {
			return nil, damaged("object %d is not where its table says", number)
		}
		return v, nil
	case compressed:
		return d.fromStream(p.offset, number)
	}
	return nil, nil
}

// fromStream is an object of an object stream.
func (d *Reader) fromStream(container, number int64) (any, error) {
	s, err := d.objectStream(container)
	if err != nil {
		return nil, err
	}
	for _, at := range s.index {
		if at[0] != number {
			continue
		}
		if at[1] < 0 || at[1] > int64(len(s.data)) {
			break
		}
		l := &lexer{b: s.data[at[1]:], refs: true, end: true}
		v, err := l.object(0)
		if err != nil {
			return nil, damaged("object %d", number)
		}
		return v, nil
	}
	return nil, nil
}

func (d *Reader) objectStream(number int64) (objectStream, error) {
	d.mu.Lock()
	for _, s := range d.packed {
		if s.number == number {
			d.mu.Unlock()
			return s, nil
		}
	}
	d.mu.Unlock()
	if number < 0 || number >= int64(len(d.xref)) || d.xref[number].kind != direct {
		return objectStream{}, damaged("there is no object stream %d", number)
	}
	_, v, err := d.objectAt(d.xref[number].offset + d.shift)
	if err != nil {
		return objectStream{}, err
	}
	s, ok := v.(stream)
	if !ok {
		return objectStream{}, damaged("object %d is no stream", number)
	}
	data, err := d.content(s, d.lim.StreamBytes)
	if err != nil {
		return objectStream{}, d.asProblem(err)
	}
	n, _ := integer(s.dict["N"])
	first, _ := integer(s.dict["First"])
	if n < 0 || n > int64(d.lim.Objects) || n > int64(len(data)) || first < 0 || first > int64(len(data)) {
		return objectStream{}, damaged("object stream %d", number)
	}
	out := objectStream{number: number, data: data, index: make([][2]int64, 0, n)}
	l := &lexer{b: data[:first], end: true}
	for range n {
		a, err1 := l.object(0)
		b, err2 := l.object(0)
		object, ok1 := integer(a)
		at, ok2 := integer(b)
		if err1 != nil || err2 != nil || !ok1 || !ok2 {
			break
		}
		out.index = append(out.index, [2]int64{object, at + first})
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.packed) >= keptStreams {
		d.packed = d.packed[1:]
	}
	d.packed = append(d.packed[:len(d.packed):len(d.packed)], out)
	return out, nil
}

// value follows references. What cannot be found is null, as 7.3.10 says; trouble of the source shows up as a page
// that must be drawn, or in the next read.
func (d *Reader) value(v any) any {
	out, err := d.follow(v)
	if err != nil {
		return nil
	}
	return out
}

func (d *Reader) follow(v any) (any, error) {
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
	return nil, damaged("references in a circle")
}

// asProblem turns a filter that is not read into words for the owner.
func (d *Reader) asProblem(err error) error {
	if errors.Is(err, errFilter) {
		return problem(archive.Unsupported, "the structure of the PDF document is compressed in a way that is not read (%v): save it anew with another program", err)
	}
	return err
}

func newReader(r io.ReaderAt, size int64, lim Limits) (*Reader, error) {
	d := &Reader{r: r, size: size, lim: lim.withDefaults()}
	head := make([]byte, min(size, headBytes))
	if err := d.readAt(head, 0); err != nil {
		return nil, err
	}
	at := bytes.Index(head, []byte("%PDF-"))
	if at < 0 {
		return nil, problem(archive.NotArchive, "the file is no PDF document")
	}
	d.shift = int64(at)
	return d, d.readTables()
}
