package archive

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz/lzma"
)

// bitmap is 1.bmp of the files in testdata/method, which 7-Zip wrote; 2.bmp is the same header and 150,000 zeros.
func bitmap() (picture, zeros []byte) {
	le := binary.LittleEndian
	const w, h = 16, 24
	head := le.AppendUint32([]byte("BM"), 54+3*w*h)
	head = le.AppendUint32(le.AppendUint32(head, 0), 54)
	for _, v := range []uint32{40, w, h} {
		head = le.AppendUint32(head, v)
	}
	head = le.AppendUint16(le.AppendUint16(head, 1), 24)
	for _, v := range []uint32{0, 3 * w * h, 2835, 2835, 0, 0} {
		head = le.AppendUint32(head, v)
	}
	zeros = append(bytes.Clone(head), make([]byte, 150_000)...)
	for y := range h {
		for x := range w {
			head = append(head, byte(x*3+y), byte(y*5), byte(x^y))
		}
	}
	return head, zeros
}

func TestMethodsInTheWild(t *testing.T) {
	t.Parallel()
	picture, zeros := bitmap()
	for name, method := range map[string]uint16{"bzip2": BZip2, "deflate64": Deflate64, "lzma": LZMA, "xz": XZ, "ppmd": 98} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := os.ReadFile(filepath.Join("testdata", "method", name+".zip"))
			if err != nil {
				t.Fatal(err)
			}
			pages := Pages(mustRead(t, b).Entries)
			if len(pages) != 2 {
				t.Fatalf("%d pages", len(pages))
			}
			if name == "ppmd" {
				if err := CheckPages(pages); kindOf(err) != Unsupported || !strings.Contains(err.Error(), "PPMd") {
					t.Errorf("%v", err)
				}
				return
			}
			for i, want := range [][]byte{picture, zeros} {
				if pages[i].Method != method {
					t.Fatalf("method %d, want %d", pages[i].Method, method)
				}
				if got, err := content(b, pages[i]); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s: %d bytes, want %d, %v", pages[i].Name, len(got), len(want), err)
				}
				// Any damage is an error, never other content.
				for at := int64(40); at < pages[i].Length-1; at += 7 {
					raw := bytes.Clone(b[pages[i].Offset : pages[i].Offset+pages[i].Length])
					raw[at] ^= 0x55
					r, err := pages[i].Open(bytes.NewReader(raw), Limits{})
					if err == nil {
						var got []byte
						if got, err = io.ReadAll(r); err == nil && !bytes.Equal(got, want) {
							t.Fatalf("other content, no error (byte %d)", at)
						}
					}
					if err != nil && !errors.As(err, new(*Error)) {
						t.Fatalf("byte %d: %v", at, err)
					}
				}
			}
		})
	}
}

func zstdEntry(t *testing.T, data []byte, window int) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil, zstd.WithWindowSize(window), zstd.WithSingleSegment(false))
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(data, nil)
}

func TestZstandard(t *testing.T) {
	t.Parallel()
	_, zeros := bitmap()
	packed := zstdEntry(t, zeros, 1<<20)
	for _, method := range []uint16{Zstd, OldZstd} {
		size, n := uint64(len(zeros)), uint64(len(packed))
		b := build(shape{}, part{name: "1.bmp", data: packed, method: method, size: &size, compressed: &n, crc: new(crcOf(zeros))})
		if got, err := content(b, mustRead(t, b).Entries[0]); err != nil || !bytes.Equal(got, zeros) {
			t.Errorf("method %d: %d bytes, %v", method, len(got), err)
		}
	}
}

// TestDictionariesAreLimited requests more than the limit, which is refused before memory is allocated.
func TestDictionariesAreLimited(t *testing.T) {
	t.Parallel()
	big := make([]byte, 3<<20)
	lim := Limits{DictionaryBytes: 1 << 20}
	var out bytes.Buffer
	lw, err := lzma.WriterConfig{DictCap: 2 << 20, Size: int64(len(big)), SizeInHeader: true}.NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lw.Write(big); err != nil {
		t.Fatal(err)
	}
	if err := lw.Close(); err != nil {
		t.Fatal(err)
	}
	// Version and length of the properties, the properties, and the stream without its .lzma header.
	lz := append([]byte{9, 20, 5, 0}, out.Bytes()[:5]...)
	lz = append(lz, out.Bytes()[13:]...)
	for name, c := range map[string]struct {
		method uint16
		data   []byte
		ok     bool // with the default limit
	}{
		"LZMA":      {LZMA, lz, true},
		"Zstandard": {Zstd, zstdEntry(t, big, 4<<20), true},
		"xz":        {XZ, []byte("\xfd7zXZ\x00\x00\x04\x00\x00\x00\x00\x02\x00\x21\x01\x28\x00\x00\x00\x00\x00\x00\x00"), false},
	} {
		size, n := uint64(len(big)), uint64(len(c.data))
		b := build(shape{}, part{name: "1.bmp", data: c.data, method: c.method, size: &size, compressed: &n, crc: new(crcOf(big))})
		e := mustRead(t, b).Entries[0]
		r, err := e.Open(section(b, e), lim)
		if err == nil {
			_, err = io.ReadAll(r)
		}
		if kindOf(err) != TooLarge {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := content(b, e); c.ok && (err != nil || !bytes.Equal(got, big)) {
			t.Errorf("%s within the limit: %d bytes, %v", name, len(got), err)
		}
	}
}

// FuzzMethod opens arbitrary bytes with every method: an error or the stated size, in bounded memory.
func FuzzMethod(f *testing.F) {
	for i, name := range []string{"bzip2", "deflate64", "lzma", "xz"} {
		b, err := os.ReadFile(filepath.Join("testdata", "method", name+".zip"))
		if err != nil {
			f.Fatal(err)
		}
		e := mustRead(f, b).Entries[0]
		f.Add(b[e.Offset+localLen:e.Offset+e.Length], byte(i), uint32(e.Size))
	}
	methods := []uint16{BZip2, Deflate64, LZMA, XZ, Zstd, RAR4, RAR5, Deflated}
	f.Fuzz(func(t *testing.T, data []byte, which byte, size uint32) {
		e := Entry{Name: "1.jpg", Method: methods[int(which)%len(methods)], Size: int64(size % (1 << 20)), CompressedSize: int64(len(data)),
			Length: int64(len(data))}
		if e.Method < PDFPage {
			local := append([]byte("PK\x03\x04"), make([]byte, localLen-4)...)
			binary.LittleEndian.PutUint16(local[8:], e.Method)
			data = append(local, data...)
			e.Length = int64(len(data))
		}
		r, err := e.Open(bytes.NewReader(data), Limits{DictionaryBytes: 4 << 20})
		if err != nil {
			return
		}
		if n, err := io.Copy(io.Discard, r); n > e.Size || err == nil && n != e.Size {
			t.Fatalf("%d bytes of %d, %v", n, e.Size, err)
		}
	})
}
