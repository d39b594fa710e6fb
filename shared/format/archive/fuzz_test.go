package archive

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzReadDirectory(f *testing.F) {
	f.Add(build(shape{}, two()...), 100)
	f.Add(build(shape{zip64: true, prefix: []byte("prefix"), comment: "PK\x05\x06"}, two()...), 300)
	f.Add(build(shape{gap: []byte("gap")}, part{name: "../\x8a.jpg", data: textA, zip64: true, descriptor: true}), 1000)
	f.Fuzz(func(t *testing.T, b []byte, tail int) {
		if tail <= 0 || tail > len(b) {
			tail = len(b)
		}
		dir, c, err := read(b, tail)
		if c.calls > 2 || c.calls > 1 && tail >= TailBytes {
			t.Errorf("%d fetches", c.calls)
		}
		if err != nil {
			if dir != nil || err.Error() == "" {
				t.Errorf("directory %v with error %q", dir, err)
			}
			return
		}
		var sum int64
		for i, e := range dir.Entries {
			if e.Offset < 0 || e.Length < localLen+e.CompressedSize || e.Offset+e.Length > dir.Size || e.CompressedSize < 0 || e.Size < 0 {
				t.Fatalf("entry outside the file: %+v of %d", e, dir.Size)
			}
			sum += e.Length
			if e.Name == "" || !utf8.ValidString(e.Name) || strings.ContainsAny(e.Name, "\x00\\") || strings.Contains("/"+e.Name+"/", "/../") || e.Name[0] == '/' {
				t.Fatalf("name %q", e.Name)
			}
			if i > 20 {
				continue
			}
			r, err := e.Open(bytes.NewReader(b[e.Offset:e.Offset+e.Length]), Limits{EntryBytes: 1 << 20})
			if err != nil {
				continue
			}
			if n, err := io.Copy(io.Discard, r); n > e.Size || err == nil && n != e.Size {
				t.Fatalf("%d bytes of %d, %v", n, e.Size, err)
			}
		}
		if sum > dir.Size {
			t.Fatalf("entries of %d bytes in a file of %d", sum, dir.Size)
		}
		CheckPages(Pages(dir.Entries))
		Fingerprint(dir.Entries)
	})
}

func BenchmarkReadDirectory(b *testing.B) {
	parts := make([]part, 200)
	for i := range parts {
		parts[i] = part{name: fmt.Sprintf("Page Blanche/PageBlanche_Page_%03d.jpg", i), data: make([]byte, 1000)}
	}
	data := build(shape{}, parts...)
	tail := data[max(0, len(data)-TailBytes):]
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ReadDirectory(tail, int64(len(data)), Limits{}, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPages(b *testing.B) {
	var entries []Entry
	for i := range 200 {
		entries = append(entries, Entry{Name: fmt.Sprintf("Page Blanche/PageBlanche_Page_%d.jpg", i*7%200)})
	}
	b.ReportAllocs()
	for b.Loop() {
		Pages(entries)
	}
}
