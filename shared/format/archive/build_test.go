package archive

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"testing"
)

// part is one entry of an archive for build, with all possible wrong values.
type part struct {
	name       string
	data       []byte
	deflate    bool
	descriptor bool
	zip64      bool
	flags      uint16
	method     uint16 // if not 0, the value in the headers
	size       *uint64
	compressed *uint64
	offset     *uint64
	crc        *uint32
	extra      []byte
	attributes uint32
	creator    byte
}

// shape describes how build writes the archive around the parts.
type shape struct {
	prefix  []byte
	gap     []byte // between directory and end record
	suffix  []byte
	comment string
	zip64   bool
	adjust  bool // offsets count the prefix
	count   *uint64
	dirSize *uint64
	dirOff  *uint64
}

func deflate(b []byte) []byte {
	var out bytes.Buffer
	w, _ := flate.NewWriter(&out, flate.BestCompression)
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Bytes()
}

func build(s shape, parts ...part) []byte {
	le := binary.LittleEndian
	out := bytes.Clone(s.prefix)
	shift := len(s.prefix)
	if s.adjust {
		shift = 0
	}
	var dir []byte
	for _, p := range parts {
		data, method, flags := p.data, Stored, p.flags
		if p.deflate {
			data, method = deflate(p.data), Deflated
		}
		if p.method != 0 {
			method = p.method
		}
		crc := crc32.ChecksumIEEE(p.data)
		if p.crc != nil {
			crc = *p.crc
		}
		size, compressed, offset := uint64(len(p.data)), uint64(len(data)), uint64(len(out)-shift)
		if p.size != nil {
			size = *p.size
		}
		if p.compressed != nil {
			compressed = *p.compressed
		}
		if p.offset != nil {
			offset = *p.offset
		}
		if p.descriptor {
			flags |= 8
		}
		out = append(out, "PK\x03\x04"...)
		out = le.AppendUint16(out, 45)
		out = le.AppendUint16(out, flags)
		out = le.AppendUint16(out, method)
		out = le.AppendUint32(out, 0)
		if p.descriptor {
			out = append(out, make([]byte, 12)...)
		} else {
			out = le.AppendUint32(out, crc)
			out = le.AppendUint32(out, uint32(compressed))
			out = le.AppendUint32(out, uint32(size))
		}
		local := []byte("xx\x04\x00abcd") // an extra field that only the local header has
		out = le.AppendUint16(out, uint16(len(p.name)))
		out = le.AppendUint16(out, uint16(len(local)))
		out = append(append(append(out, p.name...), local...), data...)
		if p.descriptor {
			out = append(out, "PK\x07\x08"...)
			out = le.AppendUint32(out, crc)
			out = le.AppendUint64(out, compressed)
			out = le.AppendUint64(out, size)
		}
		extra := bytes.Clone(p.extra)
		size32, compressed32, offset32 := uint32(size), uint32(compressed), uint32(offset)
		if p.zip64 {
			extra = append(extra, 1, 0, 24, 0)
			extra = le.AppendUint64(extra, size)
			extra = le.AppendUint64(extra, compressed)
			extra = le.AppendUint64(extra, offset)
			size32, compressed32, offset32 = math.MaxUint32, math.MaxUint32, math.MaxUint32
		}
		dir = append(dir, "PK\x01\x02"...)
		dir = append(dir, 45, p.creator, 45, 0)
		dir = le.AppendUint16(dir, flags)
		dir = le.AppendUint16(dir, method)
		dir = le.AppendUint32(dir, 0)
		dir = le.AppendUint32(dir, crc)
		dir = le.AppendUint32(dir, compressed32)
		dir = le.AppendUint32(dir, size32)
		dir = le.AppendUint16(dir, uint16(len(p.name)))
		dir = le.AppendUint16(dir, uint16(len(extra)))
		dir = append(dir, 0, 0, 0, 0, 0, 0)
		dir = le.AppendUint32(dir, p.attributes)
		dir = le.AppendUint32(dir, offset32)
		dir = append(append(dir, p.name...), extra...)
	}
	dirOff, dirSize, count := uint64(len(out)-shift), uint64(len(dir)), uint64(len(parts))
	if s.dirOff != nil {
		dirOff = *s.dirOff
	}
	if s.dirSize != nil {
		dirSize = *s.dirSize
	}
	if s.count != nil {
		count = *s.count
	}
	out = append(append(out, dir...), s.gap...)
	end := func(count uint16, size, off uint32) {
		out = append(out, "PK\x05\x06\x00\x00\x00\x00"...)
		out = le.AppendUint16(out, count)
		out = le.AppendUint16(out, count)
		out = le.AppendUint32(out, size)
		out = le.AppendUint32(out, off)
		out = le.AppendUint16(out, uint16(len(s.comment)))
		out = append(append(out, s.comment...), s.suffix...)
	}
	if !s.zip64 {
		end(uint16(count), uint32(dirSize), uint32(dirOff))
		return out
	}
	record := uint64(len(out) - shift)
	out = append(out, "PK\x06\x06"...)
	out = le.AppendUint64(out, 44)
	out = append(out, 45, 3, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	out = le.AppendUint64(out, count)
	out = le.AppendUint64(out, count)
	out = le.AppendUint64(out, dirSize)
	out = le.AppendUint64(out, dirOff)
	out = append(out, "PK\x06\x07\x00\x00\x00\x00"...)
	out = le.AppendUint64(out, record)
	out = le.AppendUint32(out, 1)
	end(0xffff, math.MaxUint32, math.MaxUint32)
	return out
}

// counter counts what ReadDirectory fetches.
type counter struct{ calls, bytes int }

func (c *counter) fetch(b []byte) func(off, n int64) ([]byte, error) {
	return func(off, n int64) ([]byte, error) {
		c.calls++
		c.bytes += int(n)
		if off < 0 || n < 0 || off+n > int64(len(b)) {
			return nil, fmt.Errorf("fetch outside the file: %d bytes at %d of %d", n, off, len(b))
		}
		return b[off : off+n], nil
	}
}

func read(b []byte, tail int) (*Directory, counter, error) {
	var c counter
	dir, err := ReadDirectory(b[max(0, len(b)-tail):], int64(len(b)), Limits{}, c.fetch(b))
	return dir, c, err
}

func mustRead(t testing.TB, b []byte) *Directory {
	t.Helper()
	dir, c, err := read(b, TailBytes)
	if err != nil {
		t.Fatal(err)
	}
	if c.calls > 1 {
		t.Fatalf("%d fetches", c.calls)
	}
	return dir
}

func section(b []byte, e Entry) io.Reader {
	return bytes.NewReader(b[e.Offset : e.Offset+e.Length])
}

func content(b []byte, e Entry) ([]byte, error) {
	r, err := e.Open(section(b, e), Limits{})
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

func kindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Kind(fmt.Sprint(err))
}

func names(entries []Entry) []string {
	out := []string{}
	for _, e := range entries {
		out = append(out, e.Name)
	}
	return out
}

// stdZip writes an archive with archive/zip.
func stdZip(t testing.TB, method uint16, files ...part) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		fw, err := w.CreateHeader(&zip.FileHeader{Name: f.name, Method: method})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fw.Write(f.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func crcOf(b []byte) uint32 { return crc32.ChecksumIEEE(b) }
