package archive

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
)

var (
	textA = []byte(strings.Repeat("first page ", 50))
	textB = []byte(strings.Repeat("second page ", 80))
)

func two() []part {
	return []part{{name: "1.jpg", data: textA}, {name: "2.jpg", data: textB, deflate: true}}
}

func TestReadDirectoryShapes(t *testing.T) {
	t.Parallel()
	fake := "PK\x05\x06 fake end record "
	// A fake end record that claims the two entries of the true directory, but at another place.
	lying := string(build(shape{count: new(uint64(2)), dirSize: new(uint64(102))}))
	descriptors := []part{{name: "1.jpg", data: textA, descriptor: true}, {name: "2.jpg", data: textB, deflate: true, descriptor: true}}
	z64 := []part{{name: "1.jpg", data: textA, zip64: true}, {name: "2.jpg", data: textB, deflate: true, zip64: true, descriptor: true}}
	tests := map[string][]byte{
		"plain":                    build(shape{}, two()...),
		"archive/zip stored":       stdZip(t, Stored, two()...),
		"archive/zip deflated":     stdZip(t, Deflated, two()...),
		"prefix":                   build(shape{prefix: bytes.Repeat([]byte("MZ"), 5000)}, two()...),
		"prefix, offsets adjusted": build(shape{prefix: bytes.Repeat([]byte("MZ"), 5000), adjust: true}, two()...),
		"prefix with signatures":   build(shape{prefix: []byte(strings.Repeat("PK\x03\x04PK\x05\x06PK\x01\x02", 40))}, two()...),
		"data descriptors":         build(shape{}, descriptors...),
		"zip64 entries":            build(shape{}, z64...),
		"zip64 end":                build(shape{zip64: true}, two()...),
		"zip64 end and prefix":     build(shape{zip64: true, prefix: make([]byte, 999)}, z64...),
		"zip64 end and comment":    build(shape{zip64: true, comment: "a comment"}, z64...),
		"comment":                  build(shape{comment: "made by hand"}, two()...),
		"longest comment":          build(shape{comment: strings.Repeat("x", 0xffff)}, two()...),
		"longest comment, zip64":   build(shape{zip64: true, comment: strings.Repeat("x", 0xffff)}, two()...),
		"comment of fake ends":     build(shape{comment: strings.Repeat(fake, 500)}, two()...),
		"comment is an empty zip":  build(shape{comment: string(build(shape{}))}, two()...),
		"comment lies":             build(shape{comment: lying}, two()...),
		"gap before the end":       build(shape{gap: []byte("0123456789")}, two()...),
		"bytes after the end":      build(shape{suffix: make([]byte, 100)}, two()...),
	}
	for name, b := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := mustRead(t, b)
			if len(dir.Entries) != 2 || dir.Size != int64(len(b)) {
				t.Fatalf("%d entries, size %d; want 2, %d", len(dir.Entries), dir.Size, len(b))
			}
			for i, want := range [][]byte{textA, textB} {
				got, err := content(b, dir.Entries[i])
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s: %d bytes, %v; want %d", dir.Entries[i].Name, len(got), err, len(want))
				}
			}
		})
	}
}

func TestReadDirectoryErrors(t *testing.T) {
	t.Parallel()
	plain := build(shape{}, two()...)
	many := make([]part, 1000)
	for i := range many {
		many[i] = part{name: fmt.Sprintf("%d.jpg", i)}
	}
	tests := map[string]struct {
		data []byte
		kind Kind
	}{
		"empty file":               {nil, NotArchive},
		"text":                     {[]byte(strings.Repeat("no archive ", 20000)), NotArchive},
		"short text":               {[]byte("x"), NotArchive},
		"RAR":                      {append([]byte("Rar!\x1a\x07\x00"), make([]byte, 100000)...), NotArchive},
		"cut in the data":          {plain[:200], Truncated},
		"cut in the directory":     {plain[:len(plain)-30], Truncated},
		"cut, large":               {append(bytes.Clone(plain[:200]), make([]byte, 200000)...), Truncated},
		"30,000 entries":           {build(shape{count: new(uint64(30000))}, many...), TooLarge},
		"2^63 entries":             {build(shape{zip64: true, count: new(uint64(1 << 63))}, many...), TooLarge},
		"count too high":           {build(shape{count: new(uint64(1001))}, many...), Corrupt},
		"count too low":            {build(shape{count: new(uint64(999))}, many...), Corrupt},
		"count cannot fit":         {build(shape{count: new(uint64(19999))}, two()...), Corrupt},
		"directory too large":      {build(shape{zip64: true, dirSize: new(uint64(9 << 20))}, two()...), TooLarge},
		"directory past the end":   {build(shape{dirOff: new(uint64(1 << 31))}, two()...), Corrupt},
		"directory of 2^64 bytes":  {build(shape{zip64: true, dirSize: new(uint64(math.MaxUint64))}, two()...), TooLarge},
		"directory at 2^64":        {build(shape{zip64: true, dirOff: new(uint64(math.MaxUint64))}, two()...), Corrupt},
		"directory before file":    {build(shape{dirSize: new(uint64(5000))}, two()...), Corrupt},
		"directory shifted":        {build(shape{dirSize: new(uint64(101))}, two()...), Corrupt},
		"entry past the end":       {build(shape{}, part{name: "1.jpg", data: textA, offset: new(uint64(1 << 30))}), Corrupt},
		"entry at 2^64":            {build(shape{}, part{name: "1.jpg", data: textA, zip64: true, offset: new(uint64(math.MaxUint64))}), Corrupt},
		"entry of 2^64 bytes":      {build(shape{}, part{name: "1.jpg", data: textA, zip64: true, size: new(uint64(math.MaxUint64))}), Corrupt},
		"entries of 2^62 bytes":    {build(shape{}, part{name: "1.txt", deflate: true, zip64: true, size: new(uint64(1 << 62))}, part{name: "2.txt", deflate: true, zip64: true, size: new(uint64(1 << 62))}), TooLarge},
		"compressed past the end":  {build(shape{}, part{name: "1.jpg", deflate: true, compressed: new(uint64(1 << 30))}), Corrupt},
		"zip64 sizes missing":      {build(shape{}, part{name: "1.jpg", size: new(uint64(math.MaxUint32))}), Corrupt},
		"stored sizes differ":      {build(shape{}, part{name: "1.jpg", data: textA, size: new(uint64(99))}), Corrupt},
		"page of 65 MiB":           {build(shape{}, part{name: "1.jpg", data: textA, deflate: true, size: new(uint64(65 << 20))}), TooLarge},
		"ratio":                    {build(shape{}, part{name: "1.txt", data: textA, deflate: true, size: new(uint64(70 << 20))}), TooLarge},
		"total":                    {build(shape{}, part{name: "1.txt", data: textA, deflate: true, zip64: true, size: new(uint64(5 << 30))}), TooLarge},
		"name of 64 KB":            {build(shape{}, part{name: strings.Repeat("n", 65000) + ".jpg"}), TooLarge},
		"same entry twice":         {build(shape{}, part{name: "1.jpg", data: textA}, part{name: "2.jpg", data: textA, offset: new(uint64(0))}), Corrupt},
		"entries overlap":          {build(shape{}, part{name: "1.jpg", data: textA, deflate: true, compressed: new(uint64(80))}, part{name: "2.jpg", data: textA}), Corrupt},
		"masked directory":         {build(shape{}, part{name: "1.jpg", flags: 1 << 13}), Encrypted},
		"inside another, cut":      {build(shape{prefix: []byte("PK\x03\x04"), suffix: []byte("more")}, two()...), Truncated},
		"end in the middle of RAR": {append([]byte("Rar!\x1a\x07\x00PK\x05\x06"), bytes.Repeat([]byte{0xff}, 100)...), NotArchive},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, tail := range []int{TailBytes, 64 << 10, 100} {
				dir, c, err := read(tt.data, tail)
				fetches := 1
				if tail < TailBytes {
					fetches = 2
				}
				if kindOf(err) != tt.kind || c.calls > fetches || c.bytes > 9<<20 {
					t.Errorf("tail %d: %v (kind %q, want %q), %d fetches of %d bytes, directory %v", tail, err, kindOf(err), tt.kind, c.calls, c.bytes, dir != nil)
				}
			}
		})
	}
}

func TestReadDirectoryFetchesOnce(t *testing.T) {
	t.Parallel()
	parts := make([]part, 2000)
	for i := range parts {
		parts[i] = part{name: fmt.Sprintf("a rather long folder name/page number %06d.jpg", i), data: []byte{1}}
	}
	b := build(shape{comment: "with a comment"}, parts...)
	for _, tail := range []int{len(b), TailBytes, 64 << 10, 300} {
		dir, c, err := read(b, tail)
		if err != nil || len(dir.Entries) != 2000 {
			t.Fatalf("tail %d: %v", tail, err)
		}
		if want := min(1, len(b)-tail); c.calls != want {
			t.Errorf("tail %d: %d fetches, want %d", tail, c.calls, want)
		}
	}
	broken := errors.New("connection reset")
	_, err := ReadDirectory(b[len(b)-300:], int64(len(b)), Limits{}, func(int64, int64) ([]byte, error) { return nil, broken })
	var e *Error
	if !errors.Is(err, broken) || errors.As(err, &e) {
		t.Errorf("a failing fetch gives %v", err)
	}
	_, err = ReadDirectory(b[len(b)-300:], int64(len(b)), Limits{}, func(int64, int64) ([]byte, error) { return []byte("short"), nil })
	if kindOf(err) != Truncated {
		t.Errorf("a short fetch gives %v", err)
	}
	if _, err := ReadDirectory(b, 10, Limits{}, nil); err == nil {
		t.Error("a tail longer than the file is accepted")
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	b := build(shape{}, two()...)
	var name, page, total int
	for _, e := range mustRead(t, b).Entries {
		name, page, total = max(name, len(e.Name)), max(page, int(e.Size)), total+int(e.Size)
	}
	for what, c := range map[string]struct {
		most  int
		limit func(n int) Limits
	}{
		"entries":   {2, func(n int) Limits { return Limits{Entries: n} }},
		"directory": {int(le32(b[len(b)-endLen+12:])), func(n int) Limits { return Limits{DirectoryBytes: int64(n)} }},
		"name":      {name, func(n int) Limits { return Limits{NameBytes: n} }},
		"page":      {page, func(n int) Limits { return Limits{EntryBytes: int64(n)} }},
		"total":     {total, func(n int) Limits { return Limits{TotalBytes: int64(n)} }},
	} {
		if _, err := ReadDirectory(b, int64(len(b)), c.limit(c.most), nil); err != nil {
			t.Errorf("%s, just within: %v", what, err)
		}
		if _, err := ReadDirectory(b, int64(len(b)), c.limit(c.most-1), nil); kindOf(err) != TooLarge {
			t.Errorf("%s, just beyond: %v", what, err)
		}
	}
	if _, err := ReadDirectory(b, int64(len(b)), Limits{}, nil); err != nil {
		t.Errorf("defaults: %v", err)
	}
}

// The ratio is checked above 64 MiB.
func TestRatioIsLimited(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		unpacked, size int64
		kind           Kind
	}{{ratioFloor, 1, ""}, {ratioFloor + 1, 1, TooLarge}, {300 << 20, 100 << 20, ""}, {400 << 20, 100 << 20, TooLarge}} {
		entries := []Entry{{Name: "1.jpg", Method: Deflated, Size: c.unpacked / 2}, {Name: "2.jpg", Method: Deflated, Size: c.unpacked - c.unpacked/2}}
		if err := CheckSizes(entries, c.size, Limits{Ratio: 3, EntryBytes: 1 << 30}); err != nil && kindOf(err) != c.kind || (err != nil) != (c.kind != "") {
			t.Errorf("%d bytes in %d: %v, want kind %q", c.unpacked, c.size, err, c.kind)
		}
	}
}

// Unused space in an archive is not requested with the entry before it.
func TestLengthIsBounded(t *testing.T) {
	t.Parallel()
	hole := part{name: "old", data: make([]byte, 1<<20)}
	b := build(shape{}, part{name: "1.jpg", data: textA}, hole, part{name: "2.jpg", data: textB})
	// Drop the middle entry from the directory only.
	dir := mustRead(t, b)
	from := bytes.Index(b[dir.Entries[1].Offset+1<<20:], headerSig) + int(dir.Entries[1].Offset) + 1<<20
	second := from + headerLen + len("1.jpg")
	cut := append(bytes.Clone(b[:second]), b[second+headerLen+len("old"):]...)
	end := cut[len(cut)-endLen:]
	end[8], end[10] = 2, 2
	end[12] -= headerLen + byte(len("old"))
	dir = mustRead(t, cut)
	if len(dir.Entries) != 2 || dir.Entries[0].Length > 200_000 {
		t.Fatalf("%d entries, length %d", len(dir.Entries), dir.Entries[0].Length)
	}
	if got, err := content(cut, dir.Entries[0]); err != nil || !bytes.Equal(got, textA) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// Entries out of order in the directory still get the right ranges.
func TestEntriesOutOfOrder(t *testing.T) {
	t.Parallel()
	b := build(shape{}, two()...)
	dir := mustRead(t, b)
	at := bytes.Index(b, headerSig)
	size := headerLen + len("1.jpg")
	first := bytes.Clone(b[at : at+size])
	copy(b[at:], b[at+size:at+2*size])
	copy(b[at+size:], first)
	swapped := mustRead(t, b)
	if swapped.Entries[0] != dir.Entries[1] || swapped.Entries[1] != dir.Entries[0] {
		t.Errorf("entries %+v, want %+v swapped", swapped.Entries, dir.Entries)
	}
}

// A malicious archive needs no more memory than its directory.
func TestHostileMemory(t *testing.T) {
	many := make([]part, 19_999)
	for i := range many {
		many[i] = part{name: fmt.Sprintf("%d.jpg", i)}
	}
	fakes := strings.Repeat(string(build(shape{count: new(uint64(19_999)), dirSize: new(uint64(1 << 20))})), 2900)
	for name, b := range map[string][]byte{
		"most entries": build(shape{}, many...),
		"fake ends":    build(shape{comment: fakes, prefix: make([]byte, 2<<20)}, many...),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, _ = read(b, TailBytes)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
			t.Errorf("%s: %d MiB allocated in all", name, used>>20)
		}
	}
}
