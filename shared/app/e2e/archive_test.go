package e2e_test

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"testing"

	"github.com/longbox/longbox/shared/testkit"
)

// page is an entry of an archive. Pages are listed in the order in which they must be shown.
type page struct {
	name string
	data []byte
}

// built is an archive with its expected pages.
type built struct {
	file  string
	bytes []byte
	pages []page
}

func jpegs(t testing.TB, seed int, names ...string) []page {
	out := make([]page, len(names))
	for i, n := range names {
		out[i] = page{n, testkit.JPEG(t, 120+i, 180, seed*50+i)}
	}
	return out
}

func files(deflate bool, pages ...page) []testkit.File {
	var out []testkit.File
	for _, p := range pages {
		out = append(out, testkit.File{Name: p.name, Data: p.data, Deflate: deflate})
	}
	return out
}

// archives are ZIP files as different programs write them, each with its pages.
func archives(t testing.TB) []built {
	t.Helper()
	var out []built
	add := func(name string, data []byte, pages []page) {
		out = append(out, built{"Shapes/" + name + ".cbz", data, pages})
	}

	p := jpegs(t, 1, "1.jpg", "2.jpg", "3.jpg")
	add("stored 1", exactZip(t, zip.Store, p, false), p)
	p = jpegs(t, 2, "1.jpg", "2.jpg", "3.jpg")
	add("deflated 2", exactZip(t, zip.Deflate, p, false), p)
	p = jpegs(t, 3, "1.jpg", "2.jpg")
	add("stored with descriptors 3", testkit.Zip(t, files(false, p...)...), p)
	p = jpegs(t, 4, "1.jpg", "2.jpg")
	add("deflated with descriptors 4", testkit.Zip(t, files(true, p...)...), p)
	p = jpegs(t, 5, "a.jpg", "b.jpg", "c.jpg")
	add("zip64 5", exactZip(t, zip.Store, p, true), p)
	p = jpegs(t, 6, "a.jpg", "b.jpg")
	add("zip64 deflated 6", exactZip(t, zip.Deflate, p, true), p)
	p = jpegs(t, 7, "1.jpg", "2.jpg")
	add("prefix 7", append(bytes.Repeat([]byte("MZ not a zip yet "), 300), testkit.Zip(t, files(false, p...)...)...), p)
	p = jpegs(t, 8, "Chapter 1/1.jpg", "Chapter 1/2.jpg", "Chapter 2/1.jpg", "Chapter 10/1.jpg")
	add("nested 8", testkit.Zip(t, files(false, p[3], p[1], p[0], p[2])...), p)
	p = jpegs(t, 9, "1.jpg", "2.jpg", "9.jpg", "10.jpg", "11.jpg", "100.jpg")
	add("natural order 9", testkit.Zip(t, files(true, p[5], p[3], p[0], p[4], p[2], p[1])...), p)
	p = jpegs(t, 10, "p1.jpg", "p2.jpg")
	junk := []testkit.File{{Name: "__MACOSX/._p1.jpg", Data: []byte("fork")}, {Name: ".DS_Store", Data: []byte("x")}, {Name: "Thumbs.db", Data: []byte("x")},
		{Name: "readme.txt", Data: []byte("text"), Deflate: true}, {Name: ".hidden.jpg", Data: []byte("no image")}}
	add("junk 10", testkit.Zip(t, append(junk, files(false, p...)...)...), p)
	return out
}

// exactZip writes an archive without data descriptors. wide64 puts sizes and offsets into zip64 fields although they
// would fit into the normal ones.
func exactZip(t testing.TB, method uint16, pages []page, wide64 bool) []byte {
	t.Helper()
	var out, dir bytes.Buffer
	le := binary.LittleEndian
	for _, p := range pages {
		data := p.data
		if method == zip.Deflate {
			var b bytes.Buffer
			w, err := flate.NewWriter(&b, 6)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(p.data); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			data = b.Bytes()
		}
		packed, size, offset := uint32(len(data)), uint32(len(p.data)), uint32(out.Len())
		var local, central []byte
		if wide64 {
			local = le.AppendUint16(nil, 1)
			local = le.AppendUint16(local, 16)
			local = le.AppendUint64(le.AppendUint64(local, uint64(size)), uint64(packed))
			central = le.AppendUint16(nil, 1)
			central = le.AppendUint16(central, 24)
			central = le.AppendUint64(le.AppendUint64(le.AppendUint64(central, uint64(size)), uint64(packed)), uint64(offset))
			packed, size, offset = 0xffffffff, 0xffffffff, 0xffffffff
		}
		common := func(b []byte, extra int) []byte {
			for _, v := range []uint16{45, 0x800, method, 0, 0x21} { // version, flags (UTF-8), method, time, date
				b = le.AppendUint16(b, v)
			}
			for _, v := range []uint32{crc32.ChecksumIEEE(p.data), packed, size} {
				b = le.AppendUint32(b, v)
			}
			return le.AppendUint16(le.AppendUint16(b, uint16(len(p.name))), uint16(extra))
		}
		out.Write(common(le.AppendUint32(nil, 0x04034b50), len(local)))
		out.WriteString(p.name)
		out.Write(local)
		out.Write(data)
		h := common(le.AppendUint16(le.AppendUint32(nil, 0x02014b50), 45), len(central))
		h = append(h, make([]byte, 2+2+2+4)...) // comment, disk, attributes
		h = le.AppendUint32(h, offset)
		dir.Write(h)
		dir.WriteString(p.name)
		dir.Write(central)
	}
	at, size, n := uint64(out.Len()), uint64(dir.Len()), uint64(len(pages))
	out.Write(dir.Bytes())
	count, size32, at32 := uint16(n), uint32(size), uint32(at)
	if wide64 {
		end := uint64(out.Len())
		b := le.AppendUint64(le.AppendUint32(nil, 0x06064b50), 44)
		b = append(b, 45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0)
		for _, v := range []uint64{n, n, size, at} {
			b = le.AppendUint64(b, v)
		}
		b = le.AppendUint32(le.AppendUint32(b, 0x07064b50), 0)
		b = le.AppendUint32(le.AppendUint64(b, end), 1)
		out.Write(b)
		count, size32, at32 = 0xffff, 0xffffffff, 0xffffffff
	}
	b := append(le.AppendUint32(nil, 0x06054b50), 0, 0, 0, 0)
	b = le.AppendUint16(le.AppendUint16(b, count), count)
	b = le.AppendUint16(le.AppendUint32(le.AppendUint32(b, size32), at32), 0)
	out.Write(b)
	if r, err := zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len())); err != nil || len(r.File) != len(pages) {
		t.Fatalf("the built archive is wrong: %v", err)
	}
	return out.Bytes()
}

// entries returns the pages that the standard library reads from an archive, by name.
func entries(t testing.TB, data []byte) map[string][]byte {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for _, f := range r.File {
		rc, err := f.Open()
		if err != nil {
			t.Fatal(fmt.Errorf("%s: %w", f.Name, err))
		}
		var b bytes.Buffer
		if _, err := b.ReadFrom(rc); err != nil {
			t.Fatal(fmt.Errorf("%s: %w", f.Name, err))
		}
		rc.Close()
		out[f.Name] = b.Bytes()
	}
	return out
}
