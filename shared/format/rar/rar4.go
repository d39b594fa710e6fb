package rar

import (
	"bytes"
	"strings"

	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/format/rardecode"
)

const (
	main4, file4, end4 = 0x73, 0x74, 0x7b

	hasData4       = 0x8000
	headersSealed4 = 0x0080 // of the main block
	split4         = 0x0003 // of a file block: continues from or in another volume
	encrypted4     = 0x0004
	solid4         = 0x0010
	folder4        = 0x00e0
	large4         = 0x0100
	unicode4       = 0x0200
	notLast4       = 0x0001 // of the end block

	store4    = 0x30
	fixed4    = 7  // of every block
	fileHead4 = 32 // of a file block, without its name
)

// walk4 reads the blocks of a version 4 archive. Some archives have no end block: they end with the file.
func (d *reader) walk4() error {
	for first := true; d.at < d.size; first = false {
		if d.size-d.at < fixed4 {
			return d.damaged()
		}
		h, err := d.read(d.at, fixed4)
		if err != nil {
			return err
		}
		kind, flags, size := h[2], le.Uint16(h[3:]), int64(le.Uint16(h[5:]))
		if size < fixed4 || first && kind != main4 {
			return d.damaged()
		}
		if kind == end4 {
			if flags&notLast4 != 0 {
				return errVolume
			}
			return nil
		}
		if h, err = d.read(d.at, int(size)); err != nil {
			return err
		}
		var data int64
		if flags&hasData4 != 0 {
			if size < fixed4+4 {
				return d.damaged()
			}
			data = int64(le.Uint32(h[fixed4:]))
		}
		switch kind {
		case main4:
			if flags&headersSealed4 != 0 {
				return errEncrypted
			}
		case file4:
			if checksum16(h[2:]) != le.Uint16(h) {
				return d.damaged()
			}
			if data, err = d.file4(h, flags, data); err != nil {
				return err
			}
		}
		d.at += size + data // at least the header's size, so the walk ends
	}
	return nil
}

// file4 adds a file block and returns the size of its data.
func (d *reader) file4(h []byte, flags uint16, data int64) (int64, error) {
	if len(h) < fileHead4 {
		return 0, d.damaged()
	}
	if flags&split4 != 0 {
		return 0, errVolume
	}
	unpacked, rest := int64(le.Uint32(h[11:])), h[fileHead4:]
	if flags&large4 != 0 {
		if len(rest) < 8 {
			return 0, d.damaged()
		}
		high, highUnpacked := le.Uint32(rest), le.Uint32(rest[4:])
		if high > 1<<20 || highUnpacked > 1<<20 {
			return 0, d.damaged()
		}
		data |= int64(high) << 32
		unpacked |= int64(highUnpacked) << 32
		rest = rest[8:]
	}
	n := int(le.Uint16(h[26:]))
	if n > len(rest) {
		return 0, d.damaged()
	}
	const unixHost, fileTypeLink = 3, 0xa
	attributes := le.Uint32(h[28:])
	e := archive.Entry{
		Size: unpacked, CRC32: le.Uint32(h[16:]), Encrypted: flags&encrypted4 != 0, Directory: flags&folder4 == folder4,
		Symlink: h[15] == unixHost && attributes>>12 == fileTypeLink,
	}
	return data, d.add(e, name4(rest[:n], flags), archive.RAR4, int64(len(h)), data, h[25] == store4, flags&solid4 != 0)
}

// name4 returns the name of a file block. The packed Unicode form is decoded by the decompression package.
func name4(raw []byte, flags uint16) string {
	if flags&unicode4 != 0 && bytes.IndexByte(raw, 0) >= 0 {
		return rardecode.DecodeName(raw, flags)
	}
	return strings.ReplaceAll(string(raw), "\\", "/")
}
