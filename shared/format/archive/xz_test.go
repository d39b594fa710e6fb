package archive

import (
	"bytes"
	"io"
	"runtime"
	"testing"

	"github.com/ulikunitz/xz/lzma"
)

// xzStream is an .xz stream of empty blocks and one of content, with dictionaries of a size that a property states.
func xzStream(t *testing.T, empty int, property byte, content []byte) []byte {
	t.Helper()
	header := []byte{2, 0, 0x21, 1, property, 0, 0, 0, 0, 0, 0, 0}
	block := append(bytes.Clone(header), 0, 0, 0, 0)
	out := append([]byte("\xfd7zXZ\x00\x00\x00\x00\x00\x00\x00"), bytes.Repeat(block, empty)...)
	var packed bytes.Buffer
	w, err := lzma.NewWriter2(&packed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	out = append(append(out, header...), packed.Bytes()...)
	out = append(out, make([]byte, -len(out)&3)...)
	return append(out, 0, 0, 0, 0, 0, 0, 0, 0)
}

// A block allocates a dictionary even if it is empty: it must not exceed the entry's size, and the number of blocks is
// limited.
func TestDictionariesOfXZAreBounded(t *testing.T) {
	picture, zeros := bitmap()
	const mb1, mb64 = 16, 28 // properties of these sizes
	for name, c := range map[string]struct {
		empty    int
		property byte
		plain    []byte
		lim      Limits
		want     Kind
		most     uint64 // bytes of memory
	}{
		"no empty block":                    {0, mb64, picture, Limits{}, "", 1 << 20},
		"small content, large dictionaries": {50, mb64, picture, Limits{}, "", 8 << 20},
		"a few blocks":                      {50, mb1, zeros, Limits{}, "", 32 << 20},
		"many blocks":                       {5000, mb1, bytes.Repeat(zeros, 8), Limits{DictionaryBytes: 1 << 20}, TooLarge, 80 << 20},
		"a dictionary beyond the limit":     {0, mb64, bytes.Repeat(zeros, 8), Limits{DictionaryBytes: 1 << 19}, TooLarge, 8 << 20},
		"of content within the limit":       {0, mb64, zeros, Limits{DictionaryBytes: 1 << 19}, "", 8 << 20},
	} {
		packed := xzStream(t, c.empty, c.property, c.plain)
		size, n := uint64(len(c.plain)), uint64(len(packed))
		b := build(shape{}, part{name: "1.bmp", data: packed, method: XZ, size: &size, compressed: &n, crc: new(crcOf(c.plain))})
		e := mustRead(t, b).Entries[0]
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := e.Open(section(b, e), c.lim)
		if err == nil {
			_, err = io.Copy(io.Discard, r)
		}
		runtime.ReadMemStats(&after)
		if c.want == "" && err != nil || c.want != "" && kindOf(err) != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > c.most {
			t.Errorf("%s: %d bytes of memory, want at most %d", name, took, c.most)
		}
	}
}
