package pdf

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"github.com/longbox/longbox/shared/format/archive"
)

// chunkBytes is the size of a searched chunk.
const chunkBytes = 1 << 20

// marks are the apparent locations of what the table should have listed, in file order.
type marks struct {
	objects                             []mark
	trailers, streams, tables, catalogs []int64 // of objects: streams, cross-reference streams, catalogues
}

// mark is the start of an object.
type mark struct{ offset, number int64 }

// repair rebuilds the table from the objects themselves.
func (d *reader) repair() error {
	if d.size > d.lim.RepairBytes {
		return archive.Errorf(archive.TooLarge, "the PDF document is damaged and has %d bytes; the limit for a repair is %d", d.size, d.lim.RepairBytes)
	}
	m, err := d.search()
	if err != nil {
		return err
	}
	last := int64(-1)
	for _, o := range m.objects {
		last = max(last, o.number)
	}
	if err := d.room(0, last+1); err != nil {
		return err
	}
	for _, o := range m.objects { // the last one with a number is the newest
		d.xref[o.number] = place{offset: o.offset - d.shift, kind: direct}
	}
	if err := d.findTrailer(m); err != nil {
		return err
	}
	if err := d.unlock(); err != nil {
		return err
	}
	return d.openStreams(m)
}

// search reads the whole document.
func (d *reader) search() (*marks, error) {
	const longest = 64 // bytes of a mark: the end of a chunk is searched again with the next one
	m := &marks{}
	buffer := make([]byte, longest+chunkBytes)
	kept := 0
	for at := int64(0); at < d.size; {
		if err := d.ctx.Err(); err != nil {
			return nil, err
		}
		n := int(min(chunkBytes, d.size-at))
		chunk := buffer[:kept+n]
		if err := d.readAt(chunk[kept:], at); err != nil {
			return nil, err
		}
		if !m.add(chunk, at-int64(kept), d.lim.Objects) {
			return nil, archive.Errorf(archive.TooLarge, "the damaged PDF document has more objects than the limit of %d", d.lim.Objects)
		}
		at += int64(n)
		kept = copy(buffer, chunk[max(0, len(chunk)-longest):])
	}
	return m, nil
}

// add adds the marks of the chunk at an offset, except those that it shares with the previous one. It reports false if
// there are too many.
func (m *marks) add(chunk []byte, offset int64, most int) bool {
	each(chunk, "obj", func(i int) {
		start, number, ok := objectBefore(chunk[:i])
		at := offset + int64(start)
		if ok && (start > 0 || offset == 0) && (len(m.objects) == 0 || at > m.objects[len(m.objects)-1].offset) {
			m.objects = append(m.objects, mark{at, number})
		}
	})
	for word, to := range map[string]*[]int64{"trailer": &m.trailers, "/ObjStm": &m.streams, "/XRef": &m.tables, "/Catalog": &m.catalogs} {
		each(chunk, word, func(i int) {
			if at := offset + int64(i); len(*to) == 0 || at > (*to)[len(*to)-1] {
				*to = append(*to, at)
			}
		})
	}
	return max(len(m.objects), len(m.trailers), len(m.streams), len(m.tables), len(m.catalogs)) <= most
}

func each(b []byte, word string, found func(at int)) {
	for at := 0; ; at += len(word) {
		i := bytes.Index(b[at:], []byte(word))
		if i < 0 {
			return
		}
		at += i
		found(at)
	}
}

// objectBefore parses the two numbers before obj (7.3.10) at the end of b.
func objectBefore(b []byte) (start int, number int64, ok bool) {
	digits := func(end int) (from int, v int64) {
		from = end
		for unit := int64(1); from > 0 && end-from < 10 && b[from-1] >= '0' && b[from-1] <= '9'; unit *= 10 {
			from--
			v += unit * int64(b[from]-'0')
		}
		return from, v
	}
	space := func(end int) int {
		for end > 0 && isSpace(b[end-1]) {
			end--
		}
		return end
	}
	end := space(len(b))
	generation, _ := digits(end)
	gap := space(generation)
	start, number = digits(gap)
	ok = end < len(b) && generation < end && gap < generation && start < gap &&
		(start == 0 || isSpace(b[start-1]) || isDelimiter(b[start-1]) || b[start-1] == 'j')
	return start, number, ok
}

// holder returns the number of the object that contains an offset.
func (m *marks) holder(offset int64) (number int64, ok bool) {
	i, _ := slices.BinarySearchFunc(m.objects, offset, func(o mark, at int64) int { return cmp.Compare(o.offset, at) })
	if i == 0 {
		return 0, false
	}
	return m.objects[i-1].number, true
}

// look returns the object that contains an offset, and its number; nil if it is unreadable. Errors are those of the
// source.
func (d *reader) look(m *marks, offset int64) (number int64, v any, err error) {
	number, ok := m.holder(offset)
	if !ok {
		return 0, nil, nil
	}
	v, err = d.object(number)
	if errors.As(err, new(*archive.Error)) {
		return number, nil, nil
	}
	return number, v, err
}

// findTrailer takes the last trailer that names a catalog: one of a table, one of a cross-reference stream, or one made
// from the catalog.
func (d *reader) findTrailer(m *marks) error {
	for _, at := range slices.Backward(m.trailers) {
		if err := d.ctx.Err(); err != nil {
			return err
		}
		err := d.parseAt(at+int64(len("trailer")), objectBytes, maxObject, func(l *lexer) error {
			v, err := l.object(0)
			if t, ok := v.(dict); ok && t["Root"] != nil {
				d.head = t
			}
			return err
		})
		if d.head != nil {
			return nil
		}
		if err != nil && !errors.As(err, new(*archive.Error)) {
			return err
		}
	}
	for _, at := range slices.Backward(m.tables) {
		_, v, err := d.look(m, at)
		if err != nil {
			return err
		}
		if s, ok := v.(stream); ok && s.dict["Root"] != nil {
			d.head = s.dict
			return nil
		}
	}
	for _, at := range slices.Backward(m.catalogs) {
		number, v, err := d.look(m, at)
		if err != nil {
			return err
		}
		if c, ok := v.(dict); ok && c["Pages"] != nil {
			d.head = dict{"Root": ref{number: number}}
			return nil
		}
	}
	return damaged("it has no catalogue")
}

// openStreams adds the objects of object streams, unless the file has newer ones after the stream.
func (d *reader) openStreams(m *marks) error {
	last := map[int64]int64{} // mark of each stream: there may be many in one
	for _, at := range m.streams {
		if number, ok := m.holder(at); ok {
			last[number] = at
		}
	}
	for _, at := range m.streams {
		number, ok := m.holder(at)
		if !ok || last[number] != at {
			continue
		}
		if err := d.ctx.Err(); err != nil {
			return err
		}
		s, err := d.objectStream(number)
		var wrong *archive.Error
		switch {
		case errors.As(err, &wrong) && wrong.Kind != archive.TooLarge:
			continue // not really one, or damaged: others may do
		case err != nil:
			return err
		}
		highest := int64(-1)
		for _, o := range s.slots {
			highest = max(highest, o.number)
		}
		if err := d.room(0, highest+1); err != nil {
			return err
		}
		for _, o := range s.slots {
			if o.number < 0 {
				continue
			}
			if p := d.xref[o.number]; p.kind != direct || p.offset+d.shift < at {
				d.xref[o.number] = place{offset: number, kind: compressed}
			}
		}
	}
	return d.ctx.Err()
}
