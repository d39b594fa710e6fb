package testkit

import (
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
)

// RAROptions select invalid and unusual forms of an archive that RAR4 and RAR5 build.
type RAROptions struct {
	Split     bool // files continue in another volume
	Encrypted bool // the files' content
	Sealed    bool // the headers
	Unended   bool // no end block
	Quick     bool // copies of the headers at the end (version 5)
	Hashed    bool // a longer hash than the checksum (version 5): here SHA-256, in RAR itself BLAKE2sp
}

// RAR4 builds a version 4 archive with uncompressed files, which needs no packer.
func RAR4(o RAROptions, files ...File) []byte {
	le := binary.LittleEndian
	block := func(kind byte, flags uint16, rest []byte) []byte {
		h := []byte{0, 0, kind}
		h = le.AppendUint16(h, flags)
		h = le.AppendUint16(h, uint16(7+len(rest)))
		h = append(h, rest...)
		le.PutUint16(h, uint16(crc32.ChecksumIEEE(h[2:])))
		return h
	}
	mainFlags, fileFlags := uint16(0), uint16(0x8000)
	if o.Sealed {
		mainFlags |= 0x80
	}
	if o.Encrypted {
		fileFlags |= 4
	}
	if o.Split {
		mainFlags |= 1
		fileFlags |= 2
	}
	out := append([]byte("Rar!\x1a\x07\x00"), block(0x73, mainFlags, make([]byte, 6))...)
	for _, f := range files {
		h := le.AppendUint32(nil, uint32(len(f.Data)))
		h = le.AppendUint32(h, uint32(len(f.Data)))
		h = append(h, 3) // made on Unix
		h = le.AppendUint32(h, crc32.ChecksumIEEE(f.Data))
		h = le.AppendUint32(h, 0x4a21_0000)
		h = append(h, 20, 0x30)
		h = le.AppendUint16(h, uint16(len(f.Name)))
		h = le.AppendUint32(h, 0o100644)
		out = append(append(out, block(0x74, fileFlags, append(h, f.Name...))...), f.Data...)
	}
	if !o.Unended {
		out = append(out, block(0x7b, 0x4000, nil)...)
	}
	return out
}

// RAR5 builds a version 5 archive with uncompressed files. Package rarpack compresses them.
func RAR5(o RAROptions, files ...File) []byte {
	number := binary.AppendUvarint
	block := func(body []byte) []byte {
		h := append(number(nil, uint64(len(body))), body...)
		return append(binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(h)), h...)
	}
	out := []byte("Rar!\x1a\x07\x01\x00")
	if o.Sealed {
		return append(out, block([]byte{4, 0, 0, 0, 15})...)
	}
	var blocks []byte
	type place struct{ at, size int }
	var headers []place
	for _, f := range files {
		var extra []byte
		if o.Encrypted {
			extra = []byte{2, 1, 0}
		}
		if hash := sha256.Sum256(f.Data); o.Hashed {
			extra = append(append(extra, 34, 2, 0), hash[:]...)
		}
		flags := uint64(2)
		if len(extra) > 0 {
			flags |= 1
		}
		if o.Split {
			flags |= 0x10
		}
		h := number(number(nil, 2), flags)
		if len(extra) > 0 {
			h = number(h, uint64(len(extra)))
		}
		h = number(h, uint64(len(f.Data)))
		if o.Hashed {
			h = number(number(number(h, 0), uint64(len(f.Data))), 0o100644)
		} else { // has a checksum
			h = number(number(number(h, 4), uint64(len(f.Data))), 0o100644)
			h = binary.LittleEndian.AppendUint32(h, crc32.ChecksumIEEE(f.Data))
		}
		h = number(number(h, 0), 1) // stored; made on Unix
		h = append(append(number(h, uint64(len(f.Name))), f.Name...), extra...)
		h = block(h)
		headers = append(headers, place{len(blocks), len(h)})
		blocks = append(append(blocks, h...), f.Data...)
	}
	start := block([]byte{1, 0, 0})
	if o.Quick {
		var copies []byte
		for _, p := range headers {
			record := number(number([]byte{0}, uint64(len(blocks)-p.at)), uint64(p.size))
			copies = append(copies, block(append(record, blocks[p.at:p.at+p.size]...))...)
		}
		for size := 0; size != len(start); { // the size of the offset depends on its value
			size = len(start)
			record := number([]byte{1, 1}, uint64(size+len(blocks)))
			extra := append(number(nil, uint64(len(record))), record...)
			start = block(append(number([]byte{1, 1}, uint64(len(extra))), append([]byte{0}, extra...)...))
		}
		h := number(number([]byte{3, 2}, uint64(len(copies))), 0)
		h = append(number(h, uint64(len(copies))), 0, 0, 1, 2, 'Q', 'O') // no attributes, stored, made on Unix
		blocks = append(append(blocks, block(h)...), copies...)
	}
	out = append(append(out, start...), blocks...)
	if !o.Unended {
		out = append(out, block([]byte{5, 0, 0})...)
	}
	return out
}
