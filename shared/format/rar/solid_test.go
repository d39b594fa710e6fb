package rar_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/format/rar"
	"github.com/longbox/longbox/shared/testkit"
	"github.com/longbox/longbox/shared/testkit/rarpack"
)

func noise(seed byte, n int) []byte {
	b := make([]byte, n)
	random := rand.NewChaCha8([32]byte{seed})
	random.Read(b)
	return b
}

func pack(t testing.TB, o rarpack.Options, files ...rarpack.File) []byte {
	t.Helper()
	b, err := rarpack.Archive(o, files...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// compressed are pages of several blocks each. The third is the first again, and noise, so that its bytes can come from
// nowhere else.
func compressed() []rarpack.File {
	return []rarpack.File{{Name: "1.jpg", Data: noise(1, 2<<20)}, {Name: "2.jpg", Data: bytes.Repeat(noise(2, 1000), 500)},
		{Name: "3.jpg", Data: noise(1, 2<<20)}, {Name: "4.jpg"}, {Name: "5.jpg", Data: noise(5, 200<<10)}}
}

// TestSolid reads solid archives: only their first page has a range of its own.
func TestSolid(t *testing.T) {
	t.Parallel()
	for name, dictionary := range map[string]int64{"one dictionary": 16 << 20, "a dictionary smaller than a page": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := compressed()
			b := pack(t, rarpack.Options{Solid: true, Dictionary: dictionary}, files...)
			pages, err := read(b, archive.Limits{})
			if err != nil || len(pages) != len(files) {
				t.Fatalf("%+v, %v", pages, err)
			}
			if third := pages[2]; (third.CompressedSize < third.Size*3/4) != (dictionary > third.Size) {
				t.Fatalf("the third page takes %d bytes of %d: it does not need the first as it should", third.CompressedSize, third.Size)
			}
			for i, want := range []uint16{archive.RAR5, archive.SolidRAR, archive.SolidRAR, archive.Bare, archive.SolidRAR} {
				if pages[i].Method != want || pages[i].Size != int64(len(files[i].Data)) {
					t.Errorf("%+v", pages[i])
				}
			}
			r, err := pages[0].Open(bytes.NewReader(b[pages[0].Offset:pages[0].Offset+pages[0].Length]), archive.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, files[0].Data) {
				t.Errorf("first page: %d bytes, %v", len(got), err)
			}
			for _, wanted := range [][]int{{2}, {0, 1, 2, 3, 4}} {
				entries := map[int64]archive.Entry{}
				for _, i := range wanted {
					entries[int64(i)] = pages[i]
				}
				var seen []int
				err := rar.Walk(bytes.NewReader(b), archive.Limits{}, entries, func(n int64, content io.Reader) error {
					got, err := io.ReadAll(content)
					if !bytes.Equal(got, files[n].Data) {
						t.Errorf("of %v, page %d: %d bytes that are not its own", wanted, n, len(got))
					}
					seen = append(seen, int(n))
					return err
				})
				if err != nil || len(seen) != len(wanted) {
					t.Errorf("%v: %v, %v", wanted, seen, err)
				}
			}
		})
	}
}

// TestCompressedAlone reads each page of an archive that is not solid from its own range.
func TestCompressedAlone(t *testing.T) {
	t.Parallel()
	files := compressed()
	b := pack(t, rarpack.Options{Dictionary: 4 << 20}, files...)
	pages, err := read(b, archive.Limits{})
	if err != nil || len(pages) != len(files) {
		t.Fatalf("%+v, %v", pages, err)
	}
	for i, p := range pages {
		r, err := p.Open(bytes.NewReader(b[p.Offset:p.Offset+p.Length]), archive.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, files[i].Data) || !p.Direct() {
			t.Errorf("%+v: %d bytes, %v", p, len(got), err)
		}
	}
}

func TestDictionaryLimit(t *testing.T) {
	t.Parallel()
	_, files := small(t)
	b := pack(t, rarpack.Options{Solid: true, Dictionary: 128 << 20}, files...)
	if _, err := read(b, archive.Limits{}); kindOf(err) != archive.TooLarge {
		t.Errorf("of twice the limit: %v", err)
	}
	// The first page is smaller than its dictionary, which need not be had for it alone.
	err := rar.Walk(bytes.NewReader(b), archive.Limits{}, map[int64]archive.Entry{1: {}}, func(int64, io.Reader) error { return nil })
	if kindOf(err) != archive.TooLarge {
		t.Errorf("of twice the limit, walked: %v", err)
	}
	if _, err := read(b, archive.Limits{DictionaryBytes: 128 << 20}); err != nil {
		t.Errorf("at the limit: %v", err)
	}
}

// small is a solid archive of a few hundred bytes: for every byte of it, and for fuzzing.
func small(t testing.TB) (b []byte, files []rarpack.File) {
	files = []rarpack.File{{Name: "1.jpg", Data: []byte("first, and again first, and again and again first of all")}, {Name: "2.jpg", Data: noise(2, 100)},
		{Name: "3.jpg", Data: append([]byte("first, and again first, "), noise(2, 90)...)}}
	return pack(t, rarpack.Options{Solid: true}, files...), files
}

// TestSolidDamage changes every byte: no page has wrong content without an error, even if an earlier page is damaged.
func TestSolidDamage(t *testing.T) {
	t.Parallel()
	b, files := small(t)
	dir, err := read(b, archive.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for at := range b {
		damaged := bytes.Clone(b)
		damaged[at] ^= 0x41
		err := rar.Walk(bytes.NewReader(damaged), archive.Limits{}, map[int64]archive.Entry{2: dir[2]}, func(_ int64, content io.Reader) error {
			got, err := io.ReadAll(content)
			if err == nil && !bytes.Equal(got, files[2].Data) {
				t.Errorf("byte %d: other content without an error", at)
			}
			return err
		})
		if err != nil && !errors.As(err, new(*archive.Error)) {
			t.Errorf("byte %d: %v", at, err)
		}
	}
	for n := range len(b) - 8 { // Without the end block the pages are complete.
		err := rar.Walk(bytes.NewReader(b[:n]), archive.Limits{}, map[int64]archive.Entry{2: dir[2]}, func(_ int64, content io.Reader) error {
			_, err := io.Copy(io.Discard, content)
			return err
		})
		if !errors.As(err, new(*archive.Error)) {
			t.Errorf("cut at %d of %d: %v", n, len(b), err)
		}
	}
}

// TestWalkOfHeaders gives Walk headers that ReadDirectory does not see: it may read copies of them, and skips blocks of
// other kinds.
func TestWalkOfHeaders(t *testing.T) {
	t.Parallel()
	block := func(body ...byte) []byte {
		b := append([]byte{byte(len(body))}, body...)
		return append(binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(b)), b...)
	}
	// A file of 10 bytes that are stored in so many.
	file := func(flags byte, stored uint64) []byte {
		h := append(binary.AppendUvarint([]byte{2, flags}, stored), 0, 10, 0, 0, 0, 5, '1', '.', 'j', 'p', 'g')
		return slices.Concat([]byte("Rar!\x1a\x07\x01\x00"), block(1, 0, 0), block(h...), make([]byte, 20))
	}
	ten := map[int64]archive.Entry{0: {Size: 10, Method: archive.SolidRAR}}
	content := func(_ int64, r io.Reader) error {
		_, err := io.ReadAll(r)
		return err
	}
	for name, b := range map[string][]byte{
		"a negative size":         file(2, 1<<64-9),
		"continued elsewhere":     file(2|0x10, 10),
		"continued from before":   file(2|0x08, 10),
		"bytes before the start":  append([]byte{0}, file(2, 10)...),
		"an old block of 7 bytes": slices.Concat(testkit.RAR4(testkit.RAROptions{Unended: true}), []byte{0, 0, 0x77, 0, 0, 7, 0}),
	} {
		err := rar.Walk(bytes.NewReader(b), archive.Limits{}, ten, content)
		if kindOf(err) != archive.Corrupt {
			t.Errorf("%s: %v", name, err)
		}
	}
	err := rar.Walk(bytes.NewReader(file(2, 10)), archive.Limits{}, ten, content)
	if err != nil {
		t.Error(err)
	}
}

// TestChecksumOfZero: to package archive, 0 is an unknown checksum, so the decompression must find that it is wrong.
func TestChecksumOfZero(t *testing.T) {
	t.Parallel()
	b, files := small(t)
	dir, err := read(b, archive.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	second := dir[0].Offset + dir[0].Length
	for i, at := range []int64{dir[0].Offset, second} {
		zeroed := bytes.Clone(b)
		h := zeroed[at : at+5+int64(b[at+4])]
		sum := binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(files[i].Data))
		copy(h[bytes.Index(h, sum):], make([]byte, len(sum)))
		binary.LittleEndian.PutUint32(h, crc32.ChecksumIEEE(h[4:]))
		pages, err := read(zeroed, archive.Limits{})
		if err != nil || pages[i].CRC32 != 0 {
			t.Fatalf("%+v, %v", pages, err)
		}
		err = rar.Walk(bytes.NewReader(zeroed), archive.Limits{}, map[int64]archive.Entry{int64(i): pages[i]}, func(_ int64, content io.Reader) error {
			_, err := io.ReadAll(content)
			return err
		})
		if kindOf(err) != archive.Corrupt {
			t.Errorf("page %d, walked: %v", i+1, err)
		}
		if !pages[i].Direct() {
			continue
		}
		r, err := pages[i].Open(bytes.NewReader(zeroed[at:second]), archive.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(r); kindOf(err) != archive.Corrupt {
			t.Errorf("page %d, alone: %v", i+1, err)
		}
	}
}

// TestWalkAfterDamage goes on after a page of a solid archive that could not be decompressed, as page packs do.
func TestWalkAfterDamage(t *testing.T) {
	t.Parallel()
	for name, packed := range map[string]string{"no data": "", "a model over the limit": "\xa4\xff and its data"} {
		b := testkit.RAR4(testkit.RAROptions{}, testkit.File{Name: "1.jpg", Data: []byte(packed)}, testkit.File{Name: "2.jpg", Data: []byte{0}})
		main, first := b[7:20], b[20:57]
		main[3] |= 0x08                 // solid
		first[11] = 1                   // byte
		first[24], first[25] = 29, 0x33 // compressed, for version 2.9
		for _, h := range [][]byte{main, first} {
			binary.LittleEndian.PutUint16(h, uint16(crc32.ChecksumIEEE(h[2:])))
		}
		err := rar.Walk(bytes.NewReader(b), archive.Limits{}, map[int64]archive.Entry{0: {Size: 1}, 1: {Size: 1}}, func(n int64, r io.Reader) error {
			if _, err := io.ReadAll(r); !errors.As(err, new(*archive.Error)) || n > 0 {
				t.Errorf("%s, page %d: %v", name, n+1, err)
			}
			return nil
		})
		if kindOf(err) != archive.Corrupt {
			t.Errorf("%s: %v", name, err)
		}
	}
}
