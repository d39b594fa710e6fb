package archive

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"testing"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
)

func TestPages(t *testing.T) {
	t.Parallel()
	b := build(shape{}, part{name: "c10/1.jpg"}, part{name: "c2/"}, part{name: "c2/2.PNG"}, part{name: "c2/1.jpeg"},
		part{name: "ComicInfo.xml"}, part{name: "__MACOSX/._1.jpg"}, part{name: "__macosx/1.jpg"}, part{name: "c2/@eaDir/1.jpeg/SYNOPHOTO_THUMB_XL.jpg"}, part{name: ".hidden.jpg"},
		part{name: ".@__thumb/1.jpg"}, part{name: "c2/.AppleDouble/1.jpg"},
		part{name: "c1/._1.jpg"}, part{name: "Thumbs.db"}, part{name: "_first.jpg"}, part{name: "10.webp"}, part{name: "c2/3.jfif"}, part{name: "9.avif"},
		part{name: ".hack v01/002.jpg"}, part{name: "link.jpg", data: []byte("/etc/passwd"), creator: 3, attributes: 0xa1ff0000},
		part{name: "secret.jxl", flags: 1}, part{name: "folder.jpg/"}, part{name: "jpg"})
	pages := Pages(mustRead(t, b).Entries)
	want := []string{".hack v01/002.jpg", "9.avif", "10.webp", "_first.jpg", "c2/1.jpeg", "c2/2.PNG", "c2/3.jfif", "c10/1.jpg", "secret.jxl"}
	if got := names(pages); !slices.Equal(got, want) {
		t.Errorf("pages %q, want %q", got, want)
	}
	if err := CheckPages(pages); kindOf(err) != Encrypted {
		t.Errorf("CheckPages: %v", err)
	}
	if err := CheckPages(pages[:3]); err != nil {
		t.Errorf("CheckPages: %v", err)
	}
	if err := CheckPages(nil); kindOf(err) != NoPages {
		t.Errorf("CheckPages: %v", err)
	}
}

// Numbers before a colon count: they are no drives.
func TestPagesOfNumberedFolders(t *testing.T) {
	t.Parallel()
	b := build(shape{}, part{name: "10: c/1.jpg"}, part{name: "1: b/1.jpg"}, part{name: "2: a/1.jpg"})
	if got, want := names(Pages(mustRead(t, b).Entries)), []string{"1: b/1.jpg", "2: a/1.jpg", "10: c/1.jpg"}; !slices.Equal(got, want) {
		t.Errorf("pages %q, want %q", got, want)
	}
}

// Stored data about a book's pages is found by its fingerprint and the page numbers: another order of pages must have
// another fingerprint.
func TestFingerprintTellsTheOrderOfPages(t *testing.T) {
	t.Parallel()
	odd := []Entry{{Name: "page.png", CRC32: 1, Size: 1}, {Name: "page 2.png", CRC32: 2, Size: 1}, {Name: "page-3.png", CRC32: 3, Size: 1},
		{Name: "page!.png", CRC32: 4, Size: 1}, {Name: "page(4).jpg", CRC32: 5, Size: 1}, {Name: "page_5.png", CRC32: 6, Size: 1}}
	plain := slices.Clone(Pages(odd)) // the same pages in the same order, with unambiguous names
	for i := range plain {
		plain[i].Name = fmt.Sprintf("%03d.png", i)
	}
	print := Fingerprint(odd)
	if got := Fingerprint(plain); got != print {
		t.Errorf("%s for the pages in the order %q, want %s", got, names(Pages(odd)), print)
	}
	for i := range len(plain) - 1 {
		plain[i].Name, plain[i+1].Name = plain[i+1].Name, plain[i].Name
		if Fingerprint(plain) == print {
			t.Errorf("the same with pages %d and %d the other way round", i, i+1)
		}
		plain[i].Name, plain[i+1].Name = plain[i+1].Name, plain[i].Name
	}
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	stored := mustRead(t, stdZip(t, Stored, part{name: "1.jpg", data: textA}, part{name: "2.jpg", data: textB})).Entries
	packed := mustRead(t, stdZip(t, Deflated, part{name: "b/20.jpg", data: textB}, part{name: "x.txt"}, part{name: "b/3.jpg", data: textA})).Entries
	other := mustRead(t, stdZip(t, Stored, part{name: "1.jpg", data: textB}, part{name: "2.jpg", data: textA})).Entries
	if Fingerprint(stored) != Fingerprint(packed) || Fingerprint(stored) != Fingerprint(Pages(stored)) {
		t.Error("the same pages in two archives have two fingerprints")
	}
	if Fingerprint(stored) == Fingerprint(other) || len(Fingerprint(other)) != 64 {
		t.Error("another page order has the same fingerprint")
	}
	textOne := mustRead(t, stdZip(t, Stored, part{name: "a.txt", data: textA})).Entries
	textTwo := mustRead(t, stdZip(t, Stored, part{name: "a.txt", data: textB})).Entries
	if Fingerprint(textOne) == Fingerprint(textTwo) {
		t.Error("archives without images all have one fingerprint")
	}
	if ContentFingerprint(packed) == Fingerprint(packed) {
		t.Error("ContentFingerprint leaves out the text")
	}
}

func encode(t *testing.T, name string, japaneseNames bool) string {
	t.Helper()
	enc := charmap.CodePage437.NewEncoder()
	if japaneseNames {
		enc = japanese.ShiftJIS.NewEncoder()
	}
	s, err := enc.String(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNames(t *testing.T) {
	t.Parallel()
	unicodeField := func(raw, name string) []byte {
		b := binary.LittleEndian.AppendUint16(nil, 0x7075)
		b = binary.LittleEndian.AppendUint16(b, uint16(5+len(name)))
		b = append(b, 1)
		b = binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE([]byte(raw)))
		return append(b, name...)
	}
	tests := []struct {
		part part
		want string
		dir  bool
	}{
		{part{name: "Chapter 1/001.jpg"}, "Chapter 1/001.jpg", false},
		{part{name: "../../../etc/evil.jpg"}, "etc/evil.jpg", false},
		{part{name: "/abs.jpg"}, "abs.jpg", false},
		{part{name: `C:\win.jpg`}, "win.jpg", false},
		{part{name: "C:/win.jpg"}, "win.jpg", false},
		{part{name: "1: Winter/01.jpg"}, "1: Winter/01.jpg", false},
		{part{name: "A: Beginning/01.jpg"}, "A: Beginning/01.jpg", false},
		{part{name: "1:/01.jpg"}, "1:/01.jpg", false},
		{part{name: `..\..\win.jpg`}, "win.jpg", false},
		{part{name: "a/./b//c/../1.jpg"}, "a/b/c/1.jpg", false},
		{part{name: "a\x00b\x1f.jpg"}, "ab.jpg", false},
		{part{name: "evil\u202egpj.exe", flags: flagUTF8}, "evilgpj.exe", false},
		{part{name: "a\xffb.jpg", flags: flagUTF8}, "a\ufffdb.jpg", false},
		{part{name: "folder/"}, "folder", true},
		{part{name: `folder\`}, "folder", true},
		{part{name: ".."}, "unnamed", false},
		{part{name: "../"}, "unnamed", true},
		{part{name: ""}, "unnamed", false},
		{part{name: "漫画1.jpg", flags: flagUTF8}, "漫画1.jpg", false},
		{part{name: "漫画1.jpg"}, "漫画1.jpg", false},
		{part{name: "cafe\u0301.jpg"}, "café.jpg", false},
		{part{name: "old.jpg", extra: unicodeField("old.jpg", "漫画.jpg")}, "漫画.jpg", false},
		{part{name: "new.jpg", extra: unicodeField("old.jpg", "漫画.jpg")}, "new.jpg", false},
		{part{name: encode(t, "漫画1.jpg", true)}, "漫画1.jpg", false},
		{part{name: encode(t, "ソード 第1話 表.jpg", true)}, "ソード 第1話 表.jpg", false},
		{part{name: encode(t, "père noël.jpg", false)}, "père noël.jpg", false},
		{part{name: encode(t, "théâtre.jpg", false)}, "théâtre.jpg", false},
		{part{name: encode(t, "Ünïcödé.jpg", false)}, "Ünïcödé.jpg", false},
		{part{name: encode(t, "été/à 1.jpg", false)}, "été/à 1.jpg", false},
	}
	for _, tt := range tests {
		e := mustRead(t, build(shape{}, tt.part)).Entries[0]
		if e.Name != tt.want || e.Directory != tt.dir {
			t.Errorf("%q: %q, directory %v; want %q, %v", tt.part.name, e.Name, e.Directory, tt.want, tt.dir)
		}
	}
}

func TestDuplicateNames(t *testing.T) {
	t.Parallel()
	b := build(shape{}, part{name: "1.jpg", data: textA}, part{name: "1.jpg", data: textB}, part{name: "../1.jpg", data: textA})
	pages := Pages(mustRead(t, b).Entries)
	if len(pages) != 3 || pages[0].Offset >= pages[1].Offset || pages[1].Offset >= pages[2].Offset {
		t.Errorf("pages %+v", pages)
	}
}
