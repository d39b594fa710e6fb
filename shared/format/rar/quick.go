package rar

import (
	"errors"
	"hash/crc32"

	"github.com/longbox/longbox/shared/format/archive"
)

const (
	extraLocator5 = 1    // of the main block
	hasQuickOpen5 = 0x01 // of the locator
)

// quickOpen reads the copies of headers that a version 5 archive may have at its end ("quick open record" of the RAR
// 5.0 archive format; rar writes them by default). extras, of the main block at d.at, has their location. Without the
// copies each header costs a separate read. An archive without copies, or with invalid ones, is read header by header.
func (d *reader) quickOpen(extras []byte) error {
	at := d.at
	for x := (&fields{b: extras}); len(x.b) > 0 && !x.bad; {
		record := &fields{b: x.take(x.number())}
		if record.number() == extraLocator5 && record.number()&hasQuickOpen5 != 0 {
			at += int64(min(record.number(), uint64(d.size)))
		}
	}
	if at == d.at {
		return nil
	}
	data, err := d.service5(at)
	if err != nil {
		if errors.As(err, new(*archive.Error)) {
			return nil
		}
		return err
	}
	d.copies = map[int64][]byte{}
	for len(data) > 4 && len(d.copies) < d.lim.Entries {
		f := &fields{b: data[4:]}
		record := fields{b: f.take(f.number())}
		if f.bad || crc32.ChecksumIEEE(data[4:len(data)-len(f.b)]) != le.Uint32(data) {
			return nil
		}
		data = f.b
		record.number() // flags
		back := record.number()
		header := record.take(record.number())
		if record.bad || back > uint64(at) || !whole5(header) {
			return nil
		}
		d.copies[at-int64(back)] = header
	}
	return nil
}

// service5 reads the data of a service block.
func (d *reader) service5(at int64) ([]byte, error) {
	h, err := d.header5(at)
	if err != nil {
		return nil, err
	}
	b, ok := parse5(h)
	if !ok || b.kind != service5 || b.data > d.lim.DirectoryBytes {
		return nil, d.damaged()
	}
	return d.read(at+int64(len(h)), int(b.data))
}

// whole5 reports whether these bytes are one header.
func whole5(h []byte) bool {
	if len(h) < minBlock5 || len(h) > maxHeader {
		return false
	}
	f := &fields{b: h[4:]}
	size := f.number()
	return !f.bad && size == uint64(len(f.b)) && crc32.ChecksumIEEE(h[4:]) == le.Uint32(h)
}
