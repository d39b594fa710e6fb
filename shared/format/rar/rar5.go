package rar

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/longbox/longbox/shared/format/archive"
)

const (
	main5, file5, service5, encryption5, end5 = 1, 2, 3, 4, 5

	hasExtra5 = 0x01 // of any block
	hasData5  = 0x02
	split5    = 0x18

	folder5      = 0x01 // of a file block
	hasTime5     = 0x02
	hasCRC5      = 0x04
	sizeUnknown5 = 0x08

	notLast5 = 0x01 // of the end block

	extraEncryption5, extraHash5, extraLink5 = 1, 2, 5

	blake2 = 0 // of a hash

	hardLink5, fileCopy5 = 4, 5 // of a link
)

// fields reads the numbers of a header. bad is set once there are too few bytes.
type fields struct {
	b   []byte
	bad bool
}

func (f *fields) number() uint64 {
	v, n := binary.Uvarint(f.b)
	if n <= 0 {
		f.bad, f.b = true, nil
		return 0
	}
	f.b = f.b[n:]
	return v
}

func (f *fields) take(n uint64) []byte {
	if n > uint64(len(f.b)) {
		f.bad, f.b = true, nil
		return nil
	}
	v := f.b[:n]
	f.b = f.b[n:]
	return v
}

func (f *fields) uint32() uint32 {
	if b := f.take(4); b != nil {
		return le.Uint32(b)
	}
	return 0
}

// minBlock5 is the size of the checksum and the longest header size. No block is shorter.
const minBlock5 = 7

// header5 reads the header of the block at an offset.
func (d *reader) header5(at int64) ([]byte, error) {
	if h := d.copies[at]; h != nil {
		return h, nil
	}
	h, err := d.read(at, minBlock5)
	if err != nil {
		return nil, err
	}
	size, n := binary.Uvarint(h[4:])
	if n <= 0 || size == 0 || size > maxHeader {
		return nil, d.damaged()
	}
	return d.read(at, 4+n+int(size))
}

// block5 is a block of a version 5 archive.
type block5 struct {
	kind, flags uint64
	body        fields // of its kind
	extras      []byte
	data        int64 // bytes after the header
}

// parse5 parses a header. It reports false if it is damaged.
func parse5(h []byte) (b block5, ok bool) {
	_, n := binary.Uvarint(h[4:])
	f := fields{b: h[4+n:]}
	b.kind, b.flags = f.number(), f.number()
	var extra, data uint64
	if b.flags&hasExtra5 != 0 {
		extra = f.number()
	}
	if b.flags&hasData5 != 0 {
		data = f.number()
	}
	if f.bad || extra > uint64(len(f.b)) || data > 1<<60 || crc32.ChecksumIEEE(h[4:]) != le.Uint32(h) {
		return b, false
	}
	at := uint64(len(f.b)) - extra
	b.body, b.extras, b.data = fields{b: f.b[:at]}, f.b[at:], int64(data)
	return b, true
}

// walk5 reads the blocks of a version 5 archive, which always has an end block.
func (d *reader) walk5() error {
	for first := true; ; first = false {
		h, err := d.header5(d.at)
		if err != nil {
			return err
		}
		b, ok := parse5(h)
		if !ok || first && b.kind != main5 && b.kind != encryption5 {
			return d.damaged()
		}
		switch b.kind {
		case encryption5:
			return errEncrypted
		case main5:
			if first {
				if err := d.quickOpen(b.extras); err != nil {
					return err
				}
			}
		case end5:
			if b.body.number()&notLast5 != 0 {
				return errVolume
			}
			return nil
		case file5:
			if b.flags&split5 != 0 {
				return errVolume
			}
			if err := d.file5(&b.body, b.extras, int64(len(h)), b.data); err != nil {
				return err
			}
		}
		if d.at += int64(len(h)) + b.data; d.at > d.size {
			return d.cutShort()
		}
	}
}

func (d *reader) file5(f *fields, extras []byte, header, data int64) error {
	flags, unpacked := f.number(), f.number()
	f.number() // attributes
	if flags&hasTime5 != 0 {
		f.uint32()
	}
	var crc uint32
	if flags&hasCRC5 != 0 {
		crc = f.uint32()
	}
	compression := f.number()
	f.number() // system
	name := f.take(f.number())
	if f.bad || unpacked > 1<<60 {
		return d.damaged()
	}
	e := archive.Entry{Size: int64(unpacked), CRC32: crc, Directory: flags&folder5 != 0}
	same := "" // the file with the same content
	var hash []byte
	for x := (&fields{b: extras}); len(x.b) > 0 && !x.bad; {
		record := &fields{b: x.take(x.number())}
		switch record.number() {
		case extraEncryption5:
			e.Encrypted = true
		case extraHash5:
			if record.number() == blake2 {
				hash = record.take(32)
			}
		case extraLink5:
			e.Symlink = true
			if kind := record.number(); kind == hardLink5 || kind == fileCopy5 {
				record.number() // flags
				same = string(record.take(record.number()))
			}
		}
	}
	if flags&sizeUnknown5 != 0 {
		return archive.Errorf(archive.Unsupported, "the archive does not state the size of %.200s: pack it again", name)
	}
	stored := compression>>7&7 == 0
	if dict := int64(128<<10) << (compression >> 10 & 15); !stored && dict > d.lim.DictionaryBytes && !e.Directory {
		return archive.Errorf(archive.TooLarge, "dictionary of %.200s: %d bytes, the limit is %d", name, dict, d.lim.DictionaryBytes)
	}
	err := d.add(e, string(name), archive.RAR5, header, data, stored, compression&0x40 != 0)
	if at, ok := d.contents[same]; ok && err == nil {
		d.entries[len(d.entries)-1] = d.entries[at]
	} else if err == nil && flags&hasCRC5 == 0 && hash != nil {
		d.hashes[placeOf(d.entries[len(d.entries)-1])] = hash
	}
	return err
}
