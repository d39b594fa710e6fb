package rar_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/format/rar"
	"github.com/longbox/longbox/shared/testkit"
	"github.com/longbox/longbox/shared/testkit/rarpack"
)

var writers = map[string]func(testkit.RAROptions, ...testkit.File) []byte{"4": testkit.RAR4, "5": testkit.RAR5}

func three() []testkit.File {
	return []testkit.File{{Name: "c/2.jpg", Data: []byte("second")}, {Name: "c/10.jpg", Data: bytes.Repeat([]byte("tenth"), 5000)},
		{Name: "c/漫画 1.jpg", Data: []byte("first")}}
}

func read(b []byte, lim archive.Limits) ([]archive.Entry, error) {
	dir, err := rar.ReadDirectory(bytes.NewReader(b), int64(len(b)), lim)
	if err != nil {
		return nil, err
	}
	pages := archive.Pages(dir.Entries)
	return pages, archive.CheckPages(pages)
}

func kindOf(err error) archive.Kind {
	var problem *archive.Error
	if errors.As(err, &problem) {
		return problem.Kind
	}
	return archive.Kind(fmt.Sprint(err))
}

func TestStoredPagesAreRanges(t *testing.T) {
	t.Parallel()
	zip := testkit.Zip(t, three()...)
	zipDir, err := archive.ReadDirectory(zip, int64(len(zip)), archive.Limits{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for version, build := range writers {
		for _, unended := range []bool{false, true} {
			if unended && version == "5" {
				continue // those always have one
			}
			b := build(testkit.RAROptions{Unended: unended}, three()...)
			pages, err := read(b, archive.Limits{})
			if err != nil || len(pages) != 3 || pages[0].Name != "c/2.jpg" || pages[1].Name != "c/10.jpg" || pages[2].Name != "c/漫画 1.jpg" {
				t.Fatalf("version %s: %+v, %v", version, pages, err)
			}
			for i, want := range []int{0, 1, 2} {
				p := pages[i]
				r, err := p.Open(bytes.NewReader(b[p.Offset:p.Offset+p.Length]), archive.Limits{})
				if err != nil {
					t.Fatal(err)
				}
				if got, err := io.ReadAll(r); err != nil || p.Method != archive.Bare || !bytes.Equal(got, three()[want].Data) {
					t.Errorf("version %s, %s: %d bytes, %v", version, p.Name, len(got), err)
				}
			}
			if archive.Fingerprint(pages) != archive.Fingerprint(zipDir.Entries) {
				t.Errorf("version %s: the same pages in a ZIP have another fingerprint", version)
			}
		}
	}
}

// Pages with a hash instead of a checksum are told apart by it; others need no fingerprint of their own.
func TestFingerprintOfHashes(t *testing.T) {
	t.Parallel()
	print := func(o testkit.RAROptions, pages ...string) string {
		t.Helper()
		var files []testkit.File
		for i, p := range pages {
			files = append(files, testkit.File{Name: fmt.Sprintf("%d.jpg", 10-i), Data: []byte(p)})
		}
		b := testkit.RAR5(o, files...)
		dir, err := rar.ReadDirectory(bytes.NewReader(b), int64(len(b)), archive.Limits{})
		if err != nil || len(dir.Entries) != len(files) {
			t.Fatalf("%+v, %v", dir, err)
		}
		return dir.Fingerprint
	}
	hashed := testkit.RAROptions{Hashed: true}
	first := print(hashed, "aa", "bb")
	if len(first) != 64 || print(hashed, "aa", "bb") != first || print(hashed, "aa", "bc") == first || print(hashed, "bb", "aa") == first {
		t.Errorf("%s; with other pages %s, in another order %s", first, print(hashed, "aa", "bc"), print(hashed, "bb", "aa"))
	}
	if got := print(testkit.RAROptions{}, "aa", "bb"); got != "" {
		t.Errorf("with checksums: %s", got)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for version, build := range writers {
		whole := build(testkit.RAROptions{}, three()...)
		for name, c := range map[string]struct {
			data []byte
			lim  archive.Limits
			kind archive.Kind
			text string
		}{
			"several volumes":   {build(testkit.RAROptions{Split: true}, three()...), archive.Limits{}, archive.Unsupported, "several files"},
			"encrypted content": {build(testkit.RAROptions{Encrypted: true}, three()...), archive.Limits{}, archive.Encrypted, "password"},
			"encrypted headers": {build(testkit.RAROptions{Sealed: true}, three()...), archive.Limits{}, archive.Encrypted, "password"},
			"cut in a file":     {whole[:200], archive.Limits{}, archive.Truncated, "complete copy"},
			"no pages":          {build(testkit.RAROptions{}, testkit.File{Name: "a.txt"}), archive.Limits{}, archive.NoPages, ""},
			"entries":           {whole, archive.Limits{Entries: 2}, archive.TooLarge, "limit of 2"},
			"a page":            {whole, archive.Limits{EntryBytes: 24_999}, archive.TooLarge, "limit is 24999"},
			"in all":            {whole, archive.Limits{TotalBytes: 25_010}, archive.TooLarge, "limit of 25010"},
			"a name":            {whole, archive.Limits{NameBytes: 13}, archive.TooLarge, "limit is 13"},
			"another file":      {[]byte("PK\x03\x04 no such archive"), archive.Limits{}, archive.NotArchive, ""},
			"nothing":           {whole[:5], archive.Limits{}, archive.Truncated, ""},
		} {
			_, err := read(c.data, c.lim)
			if kindOf(err) != c.kind || !strings.Contains(err.Error(), c.text) {
				t.Errorf("version %s, %s: %v", version, name, err)
			}
		}
		for _, lim := range []archive.Limits{{Entries: 3}, {EntryBytes: 25_000}, {TotalBytes: 25_011}, {NameBytes: 14}} {
			if _, err := read(whole, lim); err != nil {
				t.Errorf("version %s, just within %+v: %v", version, lim, err)
			}
		}
	}
}

func TestDamage(t *testing.T) {
	t.Parallel()
	for version, build := range writers {
		b := build(testkit.RAROptions{}, three()[:1]...)
		for at := range b {
			damaged := bytes.Clone(b)
			damaged[at] ^= 0x41
			pages, err := read(damaged, archive.Limits{})
			for _, p := range pages {
				if err != nil {
					break
				}
				var r io.Reader
				if r, err = p.Open(bytes.NewReader(damaged[p.Offset:p.Offset+p.Length]), archive.Limits{}); err == nil {
					var got []byte
					if got, err = io.ReadAll(r); err == nil && string(got) != "second" {
						t.Fatalf("version %s, byte %d: other content without an error", version, at)
					}
				}
			}
			if err != nil && !errors.As(err, new(*archive.Error)) {
				t.Fatalf("version %s, byte %d: %v", version, at, err)
			}
		}
	}
}

func TestStoreFailureIsNoDamage(t *testing.T) {
	t.Parallel()
	broken := errors.New("connection reset")
	for version, build := range writers {
		b := build(testkit.RAROptions{}, three()...)
		if _, err := rar.ReadDirectory(failingAt{bytes.NewReader(b), 60, broken}, int64(len(b)), archive.Limits{}); !errors.Is(err, broken) || errors.As(err, new(*archive.Error)) {
			t.Errorf("version %s: %v", version, err)
		}
		err := rar.Walk(io.MultiReader(bytes.NewReader(b[:30]), failing{broken}), archive.Limits{}, map[int64]archive.Entry{1: {}},
			func(int64, io.Reader) error { return nil })
		if !errors.Is(err, broken) || errors.As(err, new(*archive.Error)) {
			t.Errorf("version %s, walk: %v", version, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

type failingAt struct {
	io.ReaderAt
	from int64
	err  error
}

func (f failingAt) ReadAt(p []byte, off int64) (int, error) {
	if off >= f.from {
		return 0, f.err
	}
	return f.ReaderAt.ReadAt(p, off)
}

// readsAt records the offsets of reads.
type readsAt struct {
	io.ReaderAt
	places map[int64]bool
}

func (r readsAt) ReadAt(p []byte, off int64) (int, error) {
	r.places[off] = true
	return r.ReaderAt.ReadAt(p, off)
}

// The copies of headers at the end save reading each header separately. Invalid copies do no harm.
func TestQuickOpen(t *testing.T) {
	t.Parallel()
	var files []testkit.File
	for i := range 40 {
		files = append(files, testkit.File{Name: fmt.Sprintf("%02d.jpg", i), Data: bytes.Repeat([]byte{byte(i)}, 500+i)})
	}
	plain, err := read(testkit.RAR5(testkit.RAROptions{}, files...), archive.Limits{})
	if err != nil || len(plain) != 40 {
		t.Fatal(len(plain), err)
	}
	b := testkit.RAR5(testkit.RAROptions{Quick: true}, files...)
	r := readsAt{bytes.NewReader(b), map[int64]bool{}}
	dir, err := rar.ReadDirectory(r, int64(len(b)), archive.Limits{})
	if err != nil || len(r.places) > 6 {
		t.Fatalf("read at %d places, %v", len(r.places), err)
	}
	shift := dir.Entries[0].Offset - plain[0].Offset
	for i, e := range dir.Entries {
		if e.Offset -= shift; e != plain[i] {
			t.Errorf("%+v, without copies %+v", e, plain[i])
		}
	}
	end := dir.Entries[39].Offset + dir.Entries[39].Length
	for at := end; at < int64(len(b)-8); at++ { // all that is copied
		damaged := bytes.Clone(b)
		damaged[at] ^= 0x41
		pages, err := read(damaged, archive.Limits{})
		// The header counts the copies' own block.
		if block := at < end+20; err != nil && !block || err == nil && !slices.Equal(pages, dir.Entries) {
			t.Fatalf("byte %d: %d pages, %v", at, len(pages), err)
		}
	}
}

// linked adds a file that has no content of its own (RAR 5.0 archive format, "file system redirection record").
func linked(b []byte, name, target string, kind byte) []byte {
	number := binary.AppendUvarint
	record := append(number([]byte{5, kind, 0}, uint64(len(target))), target...)
	extra := append(number(nil, uint64(len(record))), record...)
	h := number([]byte{2, 1}, uint64(len(extra)))                            // a file block with an extra area
	h = append(number(append(h, 0, 0, 0, 0, 1), uint64(len(name))), name...) // of no bytes
	h = append(h, extra...)
	h = append(number(nil, uint64(len(h))), h...)
	end := len(b) - 8
	h = append(binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(h)), h...)
	return slices.Concat(b[:end], h, b[end:])
}

// WinRAR can store identical files once: all of them are pages. A symbolic link is not.
func TestFileCopies(t *testing.T) {
	t.Parallel()
	b := testkit.RAR5(testkit.RAROptions{}, three()...)
	for i, kind := range []byte{5, 4, 1} {
		b = linked(b, fmt.Sprintf("c/%d.jpg", 20+i), "c/2.jpg", kind)
	}
	b = linked(b, "c/30.jpg", "c/gone.jpg", 5)
	pages, err := read(b, archive.Limits{})
	if err != nil || len(pages) != 5 || pages[2].Name != "c/20.jpg" || pages[3].Name != "c/21.jpg" {
		t.Fatalf("%+v, %v", pages, err)
	}
	for _, p := range pages[2:4] {
		if p.Name = pages[0].Name; p != pages[0] {
			t.Errorf("%+v, want %+v", p, pages[0])
		}
	}
	if _, err := read(b, archive.Limits{Entries: 6}); kindOf(err) != archive.TooLarge {
		t.Error(err)
	}
	solid, _ := small(t)
	pages, err = read(linked(solid, "4.jpg", "2.jpg", 5), archive.Limits{})
	if err != nil || len(pages) != 4 || pages[3].Method != archive.SolidRAR || pages[3].Offset != pages[1].Offset || pages[3].CRC32 != pages[1].CRC32 {
		t.Errorf("in a solid archive: %+v, %v", pages, err)
	}
}

// A name in Unicode is a plain one and, after a 0, how its characters differ. The number of an old version is cut off
// such names only.
func TestNamesOfVersion4(t *testing.T) {
	t.Parallel()
	const unicode, version = 0x0200, 0x0800
	const packed = "c\\_.jpg;2\x00\x6f\xdc\x00\x2b\x04" // two characters as they are, U+6F2B, and the rest as it is
	for _, c := range []struct {
		raw   string
		flags uint16
		want  string
	}{
		{packed, unicode, "c/漫.jpg;2"},
		{packed, unicode | version, "c/漫.jpg"},
		{packed[:9], unicode | version, "c/_.jpg;2"},
		{packed[:9], version, "c/_.jpg;2"},
		{"c\\漫.jpg", unicode, "c/漫.jpg"},
		{"c\\漫.jpg", 0, "c/漫.jpg"},
		{packed[:11], unicode, "unnamed"},
	} {
		b := testkit.RAR4(testkit.RAROptions{}, testkit.File{Name: c.raw, Data: []byte("first")})
		h := b[20 : 20+32+len(c.raw)]
		binary.LittleEndian.PutUint16(h[3:], 0x8000|c.flags)
		binary.LittleEndian.PutUint16(h, uint16(crc32.ChecksumIEEE(h[2:])))
		dir, err := rar.ReadDirectory(bytes.NewReader(b), int64(len(b)), archive.Limits{})
		if err != nil || len(dir.Entries) != 1 || dir.Entries[0].Name != c.want {
			t.Errorf("%q, flags %x: %+v, %v, want %s", c.raw, c.flags, dir, err, c.want)
		}
	}
}

func FuzzReadDirectory(f *testing.F) {
	f.Add(testkit.RAR5(testkit.RAROptions{Quick: true}, three()...))
	for _, build := range writers {
		f.Add(build(testkit.RAROptions{}, three()...))
		f.Add(build(testkit.RAROptions{Encrypted: true}, three()...))
		f.Add(build(testkit.RAROptions{Split: true}, three()...))
	}
	solid, files := small(f)
	f.Add(solid)
	f.Add(pack(f, rarpack.Options{}, files...))
	f.Fuzz(func(t *testing.T, b []byte) {
		lim := archive.Limits{DictionaryBytes: 1 << 20, EntryBytes: 1 << 20, TotalBytes: 2 << 20, Entries: 1000}
		pages, err := read(b, lim)
		if err != nil {
			if !errors.As(err, new(*archive.Error)) {
				t.Fatal(err)
			}
			return
		}
		wanted := map[int64]archive.Entry{}
		for _, p := range pages {
			if !p.Direct() {
				wanted[p.Offset] = p
				continue
			}
			if p.Offset < 0 || p.Length < 0 || p.Offset+p.Length > int64(len(b)) {
				t.Fatalf("outside the file: %+v", p)
			}
			if r, err := p.Open(bytes.NewReader(b[p.Offset:p.Offset+p.Length]), lim); err == nil {
				if n, err := io.Copy(io.Discard, r); n > p.Size || err == nil && n != p.Size {
					t.Fatalf("%d bytes of %d, %v", n, p.Size, err)
				}
			}
		}
		err = rar.Walk(bytes.NewReader(b), lim, wanted, func(_ int64, r io.Reader) error {
			_, err := io.Copy(io.Discard, r)
			return err
		})
		if err != nil && !errors.As(err, new(*archive.Error)) {
			t.Fatal(err)
		}
	})
}
