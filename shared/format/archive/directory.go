package archive

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// ReadDirectory reads the directory of a ZIP archive of size bytes, given its last bytes (TailBytes of them, or the
// whole file if that is shorter). It calls fetch at most once: for the part of the directory before the tail or, if the
// tail has no end record, to recognise a damaged archive. (A tail shorter than TailBytes without an end record is
// extended first, with one more call.) fetch returns exactly n bytes from off; its errors are passed on. Any problem of
// the archive itself is an *Error.
func ReadDirectory(tail []byte, size int64, lim Limits, fetch func(off, n int64) ([]byte, error)) (*Directory, error) {
	lim = lim.WithDefaults()
	if size == 0 {
		return nil, Errorf(NotArchive, "the file is empty")
	}
	if int64(len(tail)) > size {
		return nil, fmt.Errorf("archive: a tail of %d bytes for a file of %d", len(tail), size)
	}
	f := &file{tail: tail, size: size, fetch: fetch}
	ends, reason := findEnds(tail, size, lim)
	if len(ends) == 0 && reason == nil && int64(len(tail)) < min(size, TailBytes) {
		// The tail is shorter than requested: the end record may be before it.
		if err := f.extend(max(0, size-TailBytes)); err != nil {
			return nil, err
		}
		f.fetched = false
		ends, reason = findEnds(f.tail, size, lim)
	}
	if len(ends) == 0 {
		if reason != nil {
			return nil, reason
		}
		return nil, f.explain()
	}
	first := size
	for _, end := range ends {
		first = min(first, end.start)
	}
	for _, end := range ends {
		dir, err := f.parse(end, first, lim)
		if err == nil {
			return dir, nil
		}
		var problem *Error
		if !errors.As(err, &problem) {
			return nil, err
		}
		if reason == nil {
			reason = err
		}
	}
	return nil, reason
}

// file holds the known part of the archive: its end, which extend lengthens once.
type file struct {
	tail    []byte
	size    int64
	fetch   func(off, n int64) ([]byte, error)
	fetched bool
}

func (f *file) base() int64 { return f.size - int64(len(f.tail)) }

// extend makes the tail start at off.
func (f *file) extend(off int64) error {
	if off >= f.base() {
		return nil
	}
	head, err := f.get(off, f.base()-off)
	if err != nil {
		return err
	}
	f.tail = append(head[:len(head):len(head)], f.tail...)
	return nil
}

func (f *file) get(off, n int64) ([]byte, error) {
	if f.fetched || f.fetch == nil {
		return nil, Errorf(Corrupt, "the archive's directory is not where its end record says")
	}
	f.fetched = true
	b, err := f.fetch(off, n)
	if err != nil {
		return nil, fmt.Errorf("read the archive's directory: %w", err)
	}
	if int64(len(b)) != n {
		return nil, Errorf(Truncated, "the file ends early: %d of %d bytes at offset %d", len(b), n, off)
	}
	return b, nil
}

// parse reads the directory of one end record. first is the earliest directory start among all candidates, so that one
// fetch serves all.
func (f *file) parse(end endRecord, first int64, lim Limits) (*Directory, error) {
	if end.entries == 0 && end.size == 0 {
		return &Directory{Size: f.size}, nil
	}
	if end.start < f.base() {
		if err := f.extend(first); err != nil {
			return nil, err
		}
	}
	start, shift := end.start, end.start-end.claimed
	if !bytes.HasPrefix(f.tail[start-f.base():], headerSig) && end.claimed >= f.base() &&
		bytes.HasPrefix(f.tail[end.claimed-f.base():], headerSig) {
		// No prefix, but a gap between the directory and the end record.
		start, shift = end.claimed, 0
	}
	if shift != 0 && !end.exact {
		// Bytes before and bytes after: an archive stored inside another file.
		return nil, Errorf(Truncated, "the file contains an archive inside another one that is cut short: get a complete copy")
	}
	if start+end.size > f.size || shift < 0 {
		return nil, Errorf(Corrupt, "the archive's directory lies outside the file (offset %d, %d bytes)", end.claimed, end.size)
	}
	from := start - f.base()
	p := parser{raw: f.tail[from : from+end.size], start: start, shift: shift, size: f.size, lim: lim}
	entries, err := p.parse(end.entries)
	if err != nil {
		return nil, err
	}
	return &Directory{Entries: entries, Size: f.size}, nil
}

// explain returns why there is no end record, judging by the first bytes of the file.
func (f *file) explain() error {
	head := f.tail
	if f.base() > 0 {
		if f.fetched || f.fetch == nil {
			return Errorf(NotArchive, "the file does not end like a ZIP archive")
		}
		var err error
		if head, err = f.get(0, min(8, f.size)); err != nil {
			return err
		}
	}
	for _, known := range []struct{ magic, what string }{
		{"Rar!\x1a\x07", "a RAR archive"}, {"7z\xbc\xaf\x27\x1c", "a 7z archive"}, {"%PDF-", "a PDF document"},
	} {
		if bytes.HasPrefix(head, []byte(known.magic)) {
			return Errorf(NotArchive, "the file is %s, not a ZIP archive", known.what)
		}
	}
	if bytes.HasPrefix(head, localSig) {
		return Errorf(Truncated, "the archive is cut short: its directory, which lies at the end, is missing; get a complete copy")
	}
	return Errorf(NotArchive, "the file is not a ZIP archive")
}

// extents sets the Length of every entry: up to the next entry or the directory, but not more than an entry can need,
// so that unused space in the archive is not requested. Overlapping entries are refused: they only serve to make a
// small archive expand endlessly.
func extents(entries []Entry, directory int64) error {
	order := make([]int, len(entries))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(entries[a].Offset, entries[b].Offset), a-b)
	})
	for i, n := range order {
		e := &entries[n]
		next := directory
		if i+1 < len(order) {
			next = entries[order[i+1]].Offset
		}
		room := next - e.Offset
		if room < localLen || e.CompressedSize > room-localLen {
			return Errorf(Corrupt, "entries %q of the archive overlap: %d bytes where %d are needed", e.Name, room, e.CompressedSize+localLen)
		}
		e.Length = min(room, localLen+maxVariable+maxTrailer+e.CompressedSize)
	}
	return nil
}
