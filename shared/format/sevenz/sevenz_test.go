package sevenz_test

import (
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/format/sevenz"
	"github.com/longbox/longbox/shared/testkit"
)

// load reads one of the archives that 7-Zip wrote of two bitmaps: 1.bmp with a pattern, 2.bmp with 150,000 zeros.
func load(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".7z"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestMethods(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		pages int
		kind  archive.Kind
		text  string
	}{
		"lzma": {pages: 2}, "lzma2": {pages: 2}, "bzip2": {pages: 2}, "deflate": {pages: 2}, "notsolid": {pages: 2}, "folders": {pages: 2}, "delta": {pages: 2}, "programs": {pages: 2},
		"ppmd":            {kind: archive.Unsupported, text: "PPMd"},
		"bcj":             {kind: archive.Unsupported, text: "BCJ"},
		"encrypted":       {kind: archive.Encrypted, text: "password"},
		"encrypted-names": {kind: archive.Encrypted, text: "password"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := load(t, name)
			pages, err := pagesOf(b, archive.Limits{})
			if want.kind != "" {
				var problem *archive.Error
				if !errors.As(err, &problem) || problem.Kind != want.kind || !strings.Contains(problem.Msg, want.text) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil || len(pages) != want.pages {
				t.Fatalf("%d pages, %v", len(pages), err)
			}
			checkAll(t, b, pages)
		})
	}
}

func pagesOf(b []byte, lim archive.Limits) ([]archive.Entry, error) {
	dir, err := sevenz.ReadDirectory(bytes.NewReader(b), int64(len(b)), lim)
	if err != nil {
		return nil, err
	}
	pages := archive.Pages(dir.Entries)
	return pages, archive.CheckPages(pages)
}

func checkAll(t *testing.T, b []byte, pages []archive.Entry) {
	t.Helper()
	got := map[int64][]byte{}
	walked, err := walk(b, pages)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages {
		data := walked[p.Offset]
		if p.Direct() {
			data = b[p.Offset : p.Offset+p.Length]
		}
		if int64(len(data)) != p.Size || crc32.ChecksumIEEE(data) != p.CRC32 || string(data[:2]) != "BM" {
			t.Errorf("%s: %d bytes of %d", p.Name, len(data), p.Size)
		}
		got[p.Offset] = data
	}
}

func walk(b []byte, pages []archive.Entry) (map[int64][]byte, error) {
	wanted, got := map[int64]archive.Entry{}, map[int64][]byte{}
	for _, p := range pages {
		if !p.Direct() {
			wanted[p.Offset] = p
		}
	}
	open := func(off, n int64) (io.ReadCloser, error) {
		return io.NopCloser(io.NewSectionReader(bytes.NewReader(b), off, n)), nil
	}
	err := sevenz.Walk(bytes.NewReader(b), int64(len(b)), archive.Limits{}, open, wanted, func(n int64, r io.Reader) (err error) {
		got[n], err = io.ReadAll(r)
		return err
	})
	return got, err
}

func TestFixtures(t *testing.T) {
	t.Parallel()
	root := testkit.Fixtures(t)
	for name, want := range map[string]int{"archives/7zip.7z": 1, "archives/7zip-encrypted.7z": 0, "broken/encrypted.cb7": 0,
		"library/manga/ハルコさんの彼氏/ハルコさんの彼氏 v02.cb7": 4} {
		b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		pages, err := pagesOf(b, archive.Limits{})
		if want == 0 {
			if !errors.Is(err, &archive.Error{Kind: archive.Encrypted}) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || len(pages) != want {
			t.Fatalf("%s: %d pages, %v", name, len(pages), err)
		}
		walked, err := walk(b, pages)
		for _, p := range pages {
			if err != nil || !p.Direct() && int64(len(walked[p.Offset])) != p.Size {
				t.Errorf("%s: %s: %d bytes, %v", name, p.Name, len(walked[p.Offset]), err)
			}
		}
	}
}

// TestLimits checks limits by headers alone: what is just within a limit is accepted, what is just beyond is refused
// with its name.
func TestLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file string
		most int64
		lim  func(n int64) archive.Limits
		text string
	}{
		"entries":            {"lzma2", 2, func(n int64) archive.Limits { return archive.Limits{Entries: int(n)} }, "limit of 1"},
		"entries by folders": {"notsolid", 2, func(n int64) archive.Limits { return archive.Limits{Entries: int(n)} }, "limit of 1"},
		"page":               {"lzma2", 150_054, func(n int64) archive.Limits { return archive.Limits{EntryBytes: n} }, "limit is 150053"},
		"total":              {"lzma2", 151_260, func(n int64) archive.Limits { return archive.Limits{TotalBytes: n} }, "limit of 151259"},
		"directory":          {"lzma2", 86, func(n int64) archive.Limits { return archive.Limits{DirectoryBytes: n} }, "limit is 85"},
		"packed directory":   {"lzma", 102, func(n int64) archive.Limits { return archive.Limits{DirectoryBytes: n} }, "limit is 101"},
		"dictionary":         {"lzma", 151_260, func(n int64) archive.Limits { return archive.Limits{DictionaryBytes: n} }, "limit is 151259"},
		"name":               {"lzma2", 5, func(n int64) archive.Limits { return archive.Limits{NameBytes: int(n)} }, "limit of 4"},
	} {
		b := load(t, c.file)
		if pages, err := pagesOf(b, c.lim(c.most)); err != nil || len(pages) != 2 {
			t.Errorf("%s, just within: %d pages, %v", name, len(pages), err)
		}
		if _, err := pagesOf(b, c.lim(c.most-1)); !errors.Is(err, &archive.Error{Kind: archive.TooLarge}) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s, just beyond: %v", name, err)
		}
	}
}

// TestDamage: for any wrong byte or truncation, the result is an error or the right content.
func TestDamage(t *testing.T) {
	t.Parallel()
	b := load(t, "lzma2")
	for at := range len(b) {
		for _, damaged := range [][]byte{append(bytes.Clone(b[:at]), append([]byte{b[at] ^ 0x5a}, b[at+1:]...)...), b[:at]} {
			pages, err := pagesOf(damaged, archive.Limits{})
			if err == nil && len(pages) > 0 {
				var got map[int64][]byte
				if got, err = walk(damaged, pages); err == nil {
					for _, p := range pages {
						if crc32.ChecksumIEEE(got[p.Offset]) != p.CRC32 {
							t.Fatalf("byte %d: other content without an error", at)
						}
					}
				}
			}
			if err != nil && !errors.As(err, new(*archive.Error)) {
				t.Fatalf("byte %d: %v", at, err)
			}
		}
	}
}

func TestStoreFailureIsNoDamage(t *testing.T) {
	t.Parallel()
	b := load(t, "lzma2")
	pages, err := pagesOf(b, archive.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("connection reset")
	wanted := map[int64]archive.Entry{pages[1].Offset: pages[1]}
	open := func(off, n int64) (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(io.NewSectionReader(bytes.NewReader(b), off, n/2), failing{broken})), nil
	}
	err = sevenz.Walk(bytes.NewReader(b), int64(len(b)), archive.Limits{}, open, wanted, func(_ int64, r io.Reader) error {
		_, err := io.Copy(io.Discard, r)
		return err
	})
	if !errors.Is(err, broken) || errors.As(err, new(*archive.Error)) {
		t.Errorf("%v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func FuzzReadDirectory(f *testing.F) {
	for _, name := range []string{"lzma", "lzma2", "notsolid", "folders", "encrypted", "encrypted-names", "bcj", "deflate"} {
		f.Add(load(f, name), true)
	}
	f.Fuzz(func(t *testing.T, b []byte, fix bool) {
		if fix && len(b) >= 32 { // else nearly everything ends at a checksum
			b = withChecksums(b)
		}
		lim := archive.Limits{DictionaryBytes: 1 << 20, EntryBytes: 1 << 20, TotalBytes: 2 << 20, DirectoryBytes: 1 << 16, Entries: 1000}
		pages, err := pagesOf(b, lim)
		if err != nil {
			if !errors.As(err, new(*archive.Error)) {
				t.Fatal(err)
			}
			return
		}
		for _, p := range pages {
			if p.Direct() && (p.Offset < 0 || p.Length < 0 || p.Offset+p.Length > int64(len(b))) {
				t.Fatalf("outside the file: %+v", p)
			}
		}
		if _, err := walk(b, pages); err != nil && !errors.As(err, new(*archive.Error)) {
			t.Fatal(err)
		}
	})
}

// withChecksums makes the two checksums of the start header right, and the header end with the file.
func withChecksums(b []byte) []byte {
	b = bytes.Clone(b)
	le := func(at int, v uint32) {
		b[at], b[at+1], b[at+2], b[at+3] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
	}
	offset := uint64(b[12]) | uint64(b[13])<<8 | uint64(b[14])<<16
	if 32+offset < uint64(len(b)) {
		le(20, uint32(uint64(len(b))-32-offset))
		le(28, crc32.ChecksumIEEE(b[32+offset:]))
	}
	le(8, crc32.ChecksumIEEE(b[12:32]))
	return b
}
