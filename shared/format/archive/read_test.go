package archive

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

func TestOpenChecksContent(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		part part
		kind Kind
	}{
		"stored, wrong checksum":   {part{data: textA, crc: new(uint32(1))}, Corrupt},
		"deflated, wrong checksum": {part{data: textA, deflate: true, crc: new(uint32(1))}, Corrupt},
		"more than stated":         {part{data: textA, deflate: true, size: new(uint64(10))}, Corrupt},
		"less than stated":         {part{data: textA, deflate: true, size: new(uint64(10000))}, Corrupt},
		"damaged data":             {part{data: bytes.Repeat([]byte{0xff}, 50), method: Deflated}, Corrupt},
		"encrypted":                {part{data: textA, flags: 1}, Encrypted},
		"no bzip2":                 {part{data: textA, method: BZip2}, Corrupt},
		"no LZMA":                  {part{data: textA, method: LZMA}, Corrupt},
		"no Zstandard":             {part{data: textA, method: Zstd}, Corrupt},
		"no .xz":                   {part{data: textA, method: XZ}, Corrupt},
		"no Deflate64":             {part{data: textA, method: Deflate64}, Corrupt},
		"PPMd":                     {part{data: textA, method: 98}, Unsupported},
		"a number of ours":         {part{data: textA, method: Bare}, Unsupported},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.part.name = "1.jpg"
			b := build(shape{}, tt.part)
			e := mustRead(t, b).Entries[0]
			got, err := content(b, e)
			if kindOf(err) != tt.kind {
				t.Errorf("%v, want kind %q", err, tt.kind)
			}
			if int64(len(got)) > e.Size {
				t.Errorf("%d bytes, the archive states %d", len(got), e.Size)
			}
		})
	}
}

func TestOpenTruncatedSource(t *testing.T) {
	t.Parallel()
	b := build(shape{}, two()...)
	broken := errors.New("connection reset")
	for _, e := range mustRead(t, b).Entries {
		whole, _ := io.ReadAll(section(b, e))
		needed := int(localLen+8+5) + int(e.CompressedSize)
		for n := range needed {
			r, err := e.Open(bytes.NewReader(whole[:n]), Limits{})
			if err == nil {
				_, err = io.ReadAll(r)
			}
			if kindOf(err) != Truncated || !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("%s cut after %d bytes: %v", e.Name, n, err)
			}
			r, err = e.Open(io.MultiReader(bytes.NewReader(whole[:n]), iotest.ErrReader(broken)), Limits{})
			if err == nil {
				_, err = io.ReadAll(r)
			}
			if !errors.Is(err, broken) {
				t.Fatalf("%s failing after %d bytes: %v", e.Name, n, err)
			}
		}
		if r, err := e.Open(iotest.OneByteReader(bytes.NewReader(whole[:needed])), Limits{}); err != nil {
			t.Error(err)
		} else if err := iotest.TestReader(r, [][]byte{textA, textB}[e.Method/8]); err != nil {
			t.Errorf("%s: %v", e.Name, err)
		}
	}
}

func TestLocalHeaderIsChecked(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]struct {
		at   int
		to   byte
		kind Kind
	}{
		"signature":   {0, 'X', Corrupt},
		"encrypted":   {6, 1, Encrypted},
		"method":      {8, 8, Corrupt},
		"name length": {27, 0xff, Corrupt},
	} {
		b := build(shape{}, two()...)
		e := mustRead(t, b).Entries[0]
		b[change.at] = change.to
		if _, err := content(b, e); kindOf(err) != change.kind {
			t.Errorf("%s: %v, want kind %q", name, err, change.kind)
		}
	}
}

func TestOpenLimit(t *testing.T) {
	t.Parallel()
	b := build(shape{}, part{name: "a.txt", data: textA})
	e := mustRead(t, b).Entries[0]
	if _, err := e.Open(section(b, e), Limits{EntryBytes: e.Size}); err != nil {
		t.Errorf("just within: %v", err)
	}
	if _, err := e.Open(section(b, e), Limits{EntryBytes: e.Size - 1}); kindOf(err) != TooLarge {
		t.Errorf("just beyond: %v", err)
	}
}

func TestRawAndGzip(t *testing.T) {
	t.Parallel()
	b := build(shape{}, two()...)
	entries := mustRead(t, b).Entries
	r, err := entries[0].Raw(section(b, entries[0]))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, textA) {
		t.Errorf("raw: %d bytes, %v", len(got), err)
	}
	if _, err := entries[0].Gzip(section(b, entries[0])); kindOf(err) != Unsupported {
		t.Errorf("gzip of a stored entry: %v", err)
	}
	r, err = entries[1].Gzip(section(b, entries[1]))
	if err != nil {
		t.Fatal(err)
	}
	framed, err := io.ReadAll(r)
	if err != nil || int64(len(framed)) != entries[1].GzipSize() {
		t.Fatalf("gzip: %d bytes, %v; want %d", len(framed), err, entries[1].GzipSize())
	}
	z, err := gzip.NewReader(bytes.NewReader(framed))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, textB) {
		t.Errorf("gunzip: %d bytes, %v", len(got), err)
	}
}
