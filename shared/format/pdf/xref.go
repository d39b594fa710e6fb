package pdf

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/longbox/longbox/shared/format/archive"
)

const (
	tailBytes  = 2048    // range of the last words of a document
	longTail   = 1 << 20 // the same if something was appended to the file: zeros, or a page of a web server
	maxUpdates = 256     // linked tables
	tableBytes = 16 << 10
	entryBytes = 20
)

// readTables reads the cross-reference tables, the newest first (7.5.4, 7.5.8), and the key of encrypted data.
func (d *reader) readTables() error {
	if err := d.readChain(); err != nil {
		return err
	}
	return d.unlock()
}

func (d *reader) readChain() error {
	last, err := d.lastWords()
	if err != nil {
		return err
	}
	l := &lexer{b: last, end: true}
	next, err := l.integer()
	if err != nil {
		return damaged("it does not say where its cross-reference table is")
	}
	seen := map[int64]bool{}
	for range maxUpdates {
		if seen[next] {
			return nil
		}
		if err := d.ctx.Err(); err != nil {
			return err
		}
		seen[next], d.freed = true, nil
		trailer, err := d.readTable(next + d.shift)
		if err != nil {
			return err
		}
		if d.head == nil {
			d.head = trailer
		}
		if hybrid, ok := integer(trailer["XRefStm"]); ok && !seen[hybrid] {
			seen[hybrid] = true
			if err := d.readHidden(hybrid + d.shift); err != nil {
				return err
			}
		}
		previous, ok := integer(trailer["Prev"])
		if !ok {
			return nil
		}
		next = previous
	}
	return damaged("it has more than %d updates", maxUpdates)
}

// readHidden reads the cross-reference stream beside a table. It lists objects that are hidden from older programs, so
// the table reports them as free (7.5.8.4).
func (d *reader) readHidden(off int64) error {
	for _, n := range d.freed {
		d.xref[n] = place{}
	}
	_, err := d.readTable(off)
	for _, n := range d.freed {
		d.set(n, place{kind: free})
	}
	return err
}

// lastWords returns what follows the last startxref. Objects after it belong to an interrupted update.
func (d *reader) lastWords() ([]byte, error) {
	for _, n := range []int64{tailBytes, longTail} {
		tail := make([]byte, min(d.size, n))
		if err := d.readAt(tail, d.size-int64(len(tail))); err != nil {
			return nil, err
		}
		at := bytes.LastIndex(tail, []byte("startxref"))
		if at >= 0 && (n == tailBytes || !bytes.Contains(tail[at:], []byte(" 0 obj"))) {
			return tail[at+len("startxref"):], nil
		}
		if n == tailBytes && bytes.Contains(tail, []byte("trailer")) { // after all objects: none is missing
			return nil, damaged("it does not say where its cross-reference table is")
		}
	}
	return nil, archive.Errorf(archive.Truncated, "the end of the PDF document, where its directory is, is missing; get a complete copy")
}

// readTable reads one table or cross-reference stream and returns its trailer.
func (d *reader) readTable(off int64) (trailer dict, err error) {
	var isTable bool
	if err := d.parseAt(off, 64, 4096, func(l *lexer) error {
		v, err := l.object(0)
		isTable = v == opcode("xref")
		return err
	}); err != nil {
		return nil, err
	}
	if !isTable {
		return d.readStream(off)
	}
	most := int64(d.lim.Objects)*entryBytes + tableBytes
	err = d.parseAt(off, tableBytes, most, func(l *lexer) error {
		trailer, err = d.parseTable(l)
		return err
	})
	return trailer, err
}

// parseTable parses a table, from the word xref to the trailer.
func (d *reader) parseTable(l *lexer) (dict, error) {
	l.refs = false
	if _, err := l.object(0); err != nil {
		return nil, err
	}
	for {
		v, err := l.object(0)
		if err != nil {
			return nil, err
		}
		if v == opcode("trailer") {
			break
		}
		start, ok := integer(v)
		if !ok {
			return nil, errSyntax
		}
		count, err := l.integer()
		if err != nil {
			return nil, err
		}
		if err := d.readSection(l, start, count); err != nil {
			return nil, err
		}
	}
	l.refs = true
	v, err := l.object(0)
	trailer, ok := v.(dict)
	if err == nil && !ok {
		err = errSyntax
	}
	return trailer, err
}

func (d *reader) readSection(l *lexer, start, count int64) error {
	if err := d.room(start, count); err != nil {
		return err
	}
	if int64(len(l.b)-l.at) < count*(entryBytes-2) && !l.end {
		return errMore
	}
	for i := start; i < start+count; i++ {
		off, err := l.integer()
		if err != nil {
			return err
		}
		generation, err := l.object(0)
		if err != nil {
			return err
		}
		k, err := l.object(0)
		if err != nil {
			return err
		}
		if i == 1 && start == 1 && generation == int64(65535) && k == opcode("f") {
			start, i = 0, 0 // only object 0 is free like this (7.5.4): some programs count from 1
		}
		switch k {
		case opcode("n"):
			d.set(i, place{offset: off, kind: direct})
		case opcode("f"):
			if d.xref[i].kind == unknown {
				d.freed = append(d.freed, i)
			}
			d.set(i, place{kind: free})
		default:
			return errSyntax
		}
	}
	return nil
}

// room enlarges the table, within the limit.
func (d *reader) room(start, count int64) error {
	limit := int64(d.lim.Objects)
	if start < 0 || count < 0 || start > limit || count > limit-start {
		return archive.Errorf(archive.TooLarge, "the PDF document has %d objects, the limit is %d", start+count, limit)
	}
	if n := int(start + count); n > len(d.xref) {
		grown := make([]place, n)
		copy(grown, d.xref)
		d.xref = grown
	}
	return nil
}

// set adds a place, unless a newer table had one.
func (d *reader) set(number int64, p place) {
	if d.xref[number].kind == unknown {
		d.xref[number] = p
	}
}

// readStream reads a cross-reference stream.
func (d *reader) readStream(off int64) (dict, error) {
	_, v, err := d.objectAt(off)
	if err != nil {
		return nil, err
	}
	s, ok := v.(stream)
	if !ok || s.dict["Type"] != name("XRef") {
		return nil, damaged("there is no cross-reference table at byte %d", off)
	}
	data, err := d.content(s, d.lim.StreamBytes, d.directly)
	if err != nil {
		return nil, d.asProblem(err)
	}
	widths, err := rowWidths(s.dict["W"])
	if err != nil {
		return nil, err
	}
	row := widths[0] + widths[1] + widths[2]
	index, _ := s.dict["Index"].(array)
	if len(index) == 0 {
		index = array{int64(0), s.dict["Size"]}
	}
	for ; len(index) >= 2; index = index[2:] {
		start, ok1 := integer(index[0])
		count, ok2 := integer(index[1])
		if !ok1 || !ok2 {
			return nil, damaged("a cross-reference stream has an invalid index")
		}
		count = min(count, int64(len(data)/row))
		if err := d.room(start, count); err != nil {
			return nil, err
		}
		for i := start; i < start+count; i++ {
			d.setRow(i, data, widths)
			data = data[row:]
		}
	}
	return s.dict, nil
}

// rowWidths returns the widths in bytes of the three fields of a row; one of them is not 0.
func rowWidths(v any) (widths [3]int, err error) {
	w, _ := v.(array)
	if len(w) < len(widths) {
		return widths, damaged("a cross-reference stream has no widths")
	}
	for i := range widths {
		n, ok := integer(w[i])
		if !ok || n < 0 || n > 8 {
			return widths, damaged("a cross-reference stream has a width of %v", w[i])
		}
		widths[i] = int(n)
	}
	if widths == [3]int{} {
		return widths, damaged("a cross-reference stream has no widths")
	}
	return widths, nil
}

// setRow adds the place in a row of a cross-reference stream (7.5.8.3). Its third field is not needed.
func (d *reader) setRow(number int64, row []byte, widths [3]int) {
	kind := uint64(1)
	if widths[0] > 0 {
		kind = bigEndian(row[:widths[0]])
	}
	at := int64(bigEndian(row[widths[0]:widths[0]+widths[1]]) & (1<<62 - 1))
	switch kind {
	case 0:
		d.set(number, place{kind: free})
	case 1:
		d.set(number, place{offset: at, kind: direct})
	case 2:
		d.set(number, place{offset: at, kind: compressed})
	}
}

func bigEndian(b []byte) (v uint64) {
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v
}

// fingerprint identifies the content, of which analysis reads little, by the places of all objects, the document's
// identifiers and its size.
func (d *reader) fingerprint() string {
	h := sha256.New()
	fmt.Fprintf(h, "pdf %d %q\n", d.size, d.identity())
	for i, p := range d.xref {
		fmt.Fprintf(h, "%d %d %d\n", i, p.offset, p.kind)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (d *reader) identity() []text {
	ids, _ := d.value(d.head["ID"]).(array)
	var out []text
	for _, id := range ids[:min(len(ids), 2)] {
		if s, ok := id.(text); ok {
			out = append(out, s)
		}
	}
	return out
}
