package testkit

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
	"testing"
	"unicode/utf16"
)

// SevenZip builds a solid 7z archive. Its files are one deflated stream, so that each needs those before it.
func SevenZip(t testing.TB, files ...File) []byte {
	t.Helper()
	var plain, packed bytes.Buffer
	for _, f := range files {
		plain.Write(f.Data)
	}
	w, err := flate.NewWriter(&packed, 6)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(plain.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	var h []byte
	property := func(ids ...byte) { h = append(h, ids...) }
	number := func(n int) { h = le.AppendUint64(append(h, 0xff), uint64(n)) } // the longest encoding
	property(0x01, 0x04)                                                      // header: streams
	property(0x06, 0, 1, 0x09)                                                // one packed stream, at the start
	number(packed.Len())
	property(0)
	property(0x07, 0x0b, 1, 0, 1, 3, 0x04, 0x01, 0x08, 0x0c) // one folder of one coder: Deflate
	number(plain.Len())
	property(0)
	property(0x08, 0x0d) // the files in it
	number(len(files))
	property(0x09)
	for _, f := range files[:len(files)-1] { // the last one has the rest
		number(len(f.Data))
	}
	property(0x0a, 1)
	for _, f := range files {
		h = le.AppendUint32(h, crc32.ChecksumIEEE(f.Data))
	}
	property(0, 0, 0x05)
	number(len(files))
	names := []byte{0} // here, not in a separate stream
	for _, f := range files {
		for _, c := range append(utf16.Encode([]rune(f.Name)), 0) {
			names = le.AppendUint16(names, c)
		}
	}
	property(0x11)
	number(len(names))
	h = append(append(h, names...), 0, 0)

	start := le.AppendUint64(nil, uint64(packed.Len()))
	start = le.AppendUint64(start, uint64(len(h)))
	start = le.AppendUint32(start, crc32.ChecksumIEEE(h))
	out := le.AppendUint32([]byte("7z\xbc\xaf\x27\x1c\x00\x04"), crc32.ChecksumIEEE(start))
	return append(append(append(out, start...), packed.Bytes()...), h...)
}
