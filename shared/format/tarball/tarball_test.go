package tarball_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/format/tarball"
)

func build(t testing.TB, format tar.Format, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range []string{"c/", "c/2.jpg", "c/10.jpg", strings.Repeat("long/", 40) + "1.jpg", "link.jpg"} {
		h := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), Format: format, ModTime: time.Unix(1e9, 0)}
		switch {
		case strings.HasSuffix(name, "/"):
			h.Typeflag, h.Mode = tar.TypeDir, 0o755
		case name == "link.jpg":
			h.Typeflag, h.Linkname = tar.TypeSymlink, "/etc/passwd"
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, files[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var some = map[string]string{"c/2.jpg": "second", "c/10.jpg": strings.Repeat("tenth", 300), strings.Repeat("long/", 40) + "1.jpg": "long"}

func TestPagesAreRanges(t *testing.T) {
	t.Parallel()
	for _, format := range []tar.Format{tar.FormatGNU, tar.FormatPAX} {
		b := build(t, format, some)
		if !tarball.Is(b) || tarball.Is(make([]byte, 1024)) || tarball.Is([]byte("PK")) {
			t.Error("not told from other files")
		}
		dir, err := tarball.ReadDirectory(bytes.NewReader(b), int64(len(b)), archive.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		pages := archive.Pages(dir.Entries)
		if len(pages) != 3 || pages[0].Name != "c/2.jpg" || pages[1].Name != "c/10.jpg" {
			t.Fatalf("%+v", pages)
		}
		for _, p := range pages {
			r, err := p.Open(bytes.NewReader(b[p.Offset:p.Offset+p.Length]), archive.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(r); err != nil || string(got) != some[p.Name] {
				t.Errorf("%s: %q, %v", p.Name, got, err)
			}
		}
		if other, err := tarball.ReadDirectory(bytes.NewReader(b), int64(len(b)), archive.Limits{}); err != nil || other.Fingerprint != dir.Fingerprint || len(dir.Fingerprint) != 64 {
			t.Errorf("fingerprint %q", dir.Fingerprint)
		}
	}
}

// A hard link, which GNU tar writes for a file's second name, is the file. A symbolic link and a dangling link are not
// files.
func TestHardLinks(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range []tar.Header{{Name: "1.jpg", Size: 5}, {Name: "2.jpg", Typeflag: tar.TypeLink, Linkname: "1.jpg"}, {Name: "3.jpg", Typeflag: tar.TypeSymlink, Linkname: "1.jpg"},
		{Name: "4.jpg", Typeflag: tar.TypeLink, Linkname: "none.jpg"}, {Name: "5.jpg", Typeflag: tar.TypeLink, Linkname: "5.jpg"}} {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, "first"[:h.Size]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	dir, err := tarball.ReadDirectory(bytes.NewReader(b.Bytes()), int64(b.Len()), archive.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	pages := archive.Pages(dir.Entries)
	if len(pages) != 2 || pages[1].Name != "2.jpg" || pages[1].Offset != pages[0].Offset || pages[1].Length != 5 || pages[1].Size != 5 {
		t.Errorf("%+v", pages)
	}
}

// sparse turns the first header of a GNU archive into that of a file with a hole after its content, as tar -S writes
// it.
func sparse(b []byte, name string) []byte {
	const checksum, kind, holes, realSize = 148, 156, 386, 483
	b = bytes.Clone(b)
	h := b[:512]
	copy(h, name+"\x00")
	h[kind] = 'S'
	copy(h[holes:], "00000000000\x00"+string(h[124:136])) // all of its content, from the beginning
	copy(h[realSize:], "00000100000\x00")
	copy(h[checksum:], "        ")
	sum := 0
	for _, c := range h {
		sum += int(c)
	}
	copy(h[checksum:], fmt.Sprintf("%06o\x00 ", sum))
	return b
}

func TestRefused(t *testing.T) {
	t.Parallel()
	b := build(t, tar.FormatGNU, some)
	damaged := bytes.Clone(b)
	damaged[512] ^= 1
	for name, c := range map[string]struct {
		data []byte
		lim  archive.Limits
		kind archive.Kind
	}{
		"cut in a file": {b[:2200], archive.Limits{}, archive.Truncated},
		"damaged":       {damaged, archive.Limits{}, archive.Corrupt},
		"entries":       {b, archive.Limits{Entries: 4}, archive.TooLarge},
		"a page":        {b, archive.Limits{EntryBytes: 1499}, archive.TooLarge},
		"in all":        {b, archive.Limits{TotalBytes: 1509}, archive.TooLarge},
		"with holes":    {sparse(b, "1.jpg"), archive.Limits{}, archive.Unsupported},
		"a name":        {b, archive.Limits{NameBytes: 204}, archive.TooLarge},
	} {
		_, err := tarball.ReadDirectory(bytes.NewReader(c.data), int64(len(c.data)), c.lim)
		if !errors.Is(err, &archive.Error{Kind: c.kind}) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, lim := range []archive.Limits{{Entries: 5}, {EntryBytes: 1500}, {TotalBytes: 1510}, {NameBytes: 205}} {
		if _, err := tarball.ReadDirectory(bytes.NewReader(b), int64(len(b)), lim); err != nil {
			t.Errorf("just within %+v: %v", lim, err)
		}
	}
	b = sparse(b, "list.db")
	if dir, err := tarball.ReadDirectory(bytes.NewReader(b), int64(len(b)), archive.Limits{}); err != nil || len(archive.Pages(dir.Entries)) != 3 {
		t.Errorf("holes in what is no page: %+v, %v", dir, err)
	}
}

func TestStoreFailureIsNoDamage(t *testing.T) {
	t.Parallel()
	b := build(t, tar.FormatGNU, some)
	broken := errors.New("connection reset")
	if _, err := tarball.ReadDirectory(failing{broken}, int64(len(b)), archive.Limits{}); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

type failing struct{ err error }

func (f failing) ReadAt([]byte, int64) (int, error) { return 0, f.err }

func FuzzReadDirectory(f *testing.F) {
	f.Add(build(f, tar.FormatGNU, some))
	f.Add(build(f, tar.FormatPAX, some))
	f.Fuzz(func(t *testing.T, b []byte) {
		tarball.Is(b)
		dir, err := tarball.ReadDirectory(bytes.NewReader(b), int64(len(b)), archive.Limits{Entries: 1000, EntryBytes: 1 << 20})
		if err != nil {
			if !errors.As(err, new(*archive.Error)) {
				t.Fatal(err)
			}
			return
		}
		for _, p := range archive.Pages(dir.Entries) {
			if p.Offset < 0 || p.Length < 0 || p.Offset+p.Length > int64(len(b)) {
				t.Fatalf("outside the file: %+v", p)
			}
		}
	})
}

// cutStore ends its answers early from some place on.
type cutStore struct{ *bytes.Reader }

var errCut = fmt.Errorf("the answer ended early: %w", io.ErrUnexpectedEOF)

func (s cutStore) ReadAt(p []byte, off int64) (int, error) {
	if off > 1000 {
		return 0, errCut
	}
	return s.Reader.ReadAt(p, off)
}

func TestStoreThatIsCutIsNoDamage(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range []string{"1.jpg", "2.jpg", "3.jpg"} {
		if err := w.WriteHeader(&tar.Header{Name: name, Size: 1000, Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := tarball.ReadDirectory(cutStore{bytes.NewReader(b.Bytes())}, int64(b.Len()), archive.Limits{})
	if !errors.Is(err, errCut) || errors.As(err, new(*archive.Error)) {
		t.Errorf("%v", err)
	}
}
