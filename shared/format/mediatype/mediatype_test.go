package mediatype

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/testkit"
)

func encodedJPEG(t testing.TB, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, w, h)), nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func encodedPNG(t testing.TB, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func encodedGIF(t testing.TB, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	img := image.NewPaletted(image.Rect(0, 0, w, h), color.Palette{color.Black, color.White})
	if err := gif.Encode(&b, img, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// withSegment puts one application segment of the given size before the other
// segments of a JPEG.
func withSegment(b []byte, payload []byte) []byte {
	seg := append([]byte{0xff, 0xe1, byte((len(payload) + 2) >> 8), byte(len(payload) + 2)}, payload...)
	return append(append(bytes.Clone(b[:2]), seg...), b[2:]...)
}

func riff(chunk string, body ...byte) []byte {
	b := append([]byte("RIFF\x00\x00\x00\x00WEBP"+chunk), 0, 0, 0, 0)
	b = append(b, body...)
	return append(b, make([]byte, 16)...)
}

func isoBox(kind string, parts ...[]byte) []byte {
	body := bytes.Join(parts, nil)
	b := binary.BigEndian.AppendUint32(nil, uint32(8+len(body)))
	return append(append(b, kind...), body...)
}

func ispeBox(w, h uint32) []byte {
	b := binary.BigEndian.AppendUint32(make([]byte, 4), w)
	return isoBox("ispe", binary.BigEndian.AppendUint32(b, h))
}

// heif builds the headers of a file whose primary item 2 has the given
// properties (1-based numbers into props).
func heif(brand string, props [][]byte, assigned ...byte) []byte {
	ipma := append([]byte{0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 1, 1, 0, 2, byte(len(assigned))}, assigned...)
	meta := isoBox("meta", make([]byte, 4),
		isoBox("pitm", []byte{0, 0, 0, 0, 0, 2}),
		isoBox("iprp", isoBox("ipco", props...), isoBox("ipma", ipma)))
	return append(isoBox("ftyp", []byte(brand+"\x00\x00\x00\x00mif1miaf")), meta...)
}

// jxlBits packs (value, bits) pairs least significant bit first behind the
// codestream signature.
func jxlBits(pairs ...[2]int) []byte {
	out, at := make([]byte, 16), 0
	for _, p := range pairs {
		for i := range p[1] {
			if p[0]>>i&1 == 1 {
				out[at>>3] |= 1 << (at & 7)
			}
			at++
		}
	}
	return append([]byte{0xff, 0x0a}, out...)
}

func bmp(headerSize uint32, w, h int32) []byte {
	b := append([]byte("BM"), make([]byte, 12)...)
	b = binary.LittleEndian.AppendUint32(b, headerSize)
	if headerSize == 12 {
		b = binary.LittleEndian.AppendUint16(b, uint16(w))
		return binary.LittleEndian.AppendUint16(b, uint16(h))
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(w))
	return binary.LittleEndian.AppendUint32(b, uint32(h))
}

func exif(tiff string) []byte { return []byte("Exif\x00\x00" + tiff) }

// tiffOn has the orientation n as its only field.
func tiffOn(n byte) string {
	return "MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00" + string([]byte{n}) + "\x00\x00"
}

// behindStart puts bytes behind the first marker of a JPEG.
func behindStart(b []byte, more string) []byte {
	return append(append(bytes.Clone(b[:2]), more...), b[2:]...)
}

func changed(b []byte, from, to string) []byte { return bytes.Replace(b, []byte(from), []byte(to), 1) }

func TestDimensions(t *testing.T) {
	t.Parallel()
	plain := encodedJPEG(t, 31, 17)
	avif := heif("avif", [][]byte{ispeBox(64, 64), ispeBox(600, 837)}, 2)
	start := bytes.Index(avif, []byte("meta")) - 4
	open := append(append(bytes.Clone(avif[:start]), 0, 0, 0, 0), avif[start+4:]...)
	large := append(append(bytes.Clone(avif[:start]), "\x00\x00\x00\x01meta\x00\x00\x00\x00"...), avif[start:]...)
	copy(large[start+12:], []byte{0, 0, 1, 0}) // more than there is
	copy(large[start+16:], avif[start+8:])
	large = large[:len(avif)+8]
	wide := append(isoBox("ftyp", []byte("avif\x00\x00\x00\x00mif1")), isoBox("meta", make([]byte, 4),
		isoBox("pitm", []byte{1, 0, 0, 0, 0, 1, 0, 2}),
		isoBox("iprp", isoBox("ipco", ispeBox(640, 840), ispeBox(600, 837)),
			isoBox("ipma", []byte{1, 0, 0, 1, 0, 0, 0, 2, 0, 1, 0, 1, 1, 0x80, 1, 0, 1, 0, 2, 1, 0x80, 2})))...)
	inner := encodedJPEG(t, 8, 8)
	filled := append([]byte{0xff, 0xd8, 0xff}, plain[2:]...)
	progressive := bytes.Replace(plain, []byte{0xff, 0xc0}, []byte{0xff, 0xc2}, 1)
	interlaced := encodedPNG(t, 40, 50)
	interlaced[28] = 1
	tests := []struct {
		name        string
		head        []byte
		mediaType   string
		w, h        int
		progressive bool
	}{
		{"jpeg", plain, JPEG, 31, 17, false},
		{"jpeg with a thumbnail in its metadata", withSegment(plain, append([]byte("Exif\x00\x00"), inner...)), JPEG, 31, 17, false},
		{"jpeg upside down", withSegment(plain, exif("II*\x00\x08\x00\x00\x00\x02\x00"+strings.Repeat("\x01", 12)+"\x12\x01\x03\x00\x01\x00\x00\x00\x03\x00\x00\x00")), JPEG, 31, 17, false},
		{"jpeg on its side", withSegment(plain, exif("II*\x00\x08\x00\x00\x00\x02\x00"+strings.Repeat("\x01", 12)+"\x12\x01\x03\x00\x01\x00\x00\x00\x06\x00\x00\x00")), JPEG, 17, 31, false},
		{"jpeg on its other side", withSegment(plain, exif("MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x08\x00\x00")), JPEG, 17, 31, false},
		{"jpeg with fields that are cut", withSegment(plain, exif("MM\x00*\x00\x00\x00\x08\xff\xff\x01\x13")), JPEG, 31, 17, false},
		{"jpeg with fields elsewhere", withSegment(plain, exif("MM\x00*\xff\xff\xff\xff\x00\x01")), JPEG, 31, 17, false},
		{"jpeg with fill bytes", filled, JPEG, 31, 17, false},
		{"jpeg progressive", progressive, JPEG, 31, 17, true},
		{"jpeg cut before its frame header", plain[:12], JPEG, 0, 0, false},
		{"jpeg with a segment of size 1", []byte{0xff, 0xd8, 0xff, 0xe0, 0, 1, 0, 0}, JPEG, 0, 0, false},
		{"jpeg mirrored on its side", withSegment(plain, exif(tiffOn(5))), JPEG, 17, 31, false},
		{"jpeg of no known orientation", withSegment(plain, exif(tiffOn(9))), JPEG, 31, 17, false},
		{"jpeg on its side with more metadata", withSegment(withSegment(plain, []byte("http://ns.adobe.com/xap/1.0/")), exif(tiffOn(6))), JPEG, 17, 31, false},
		{"jpeg with metadata of another kind", withSegment(plain, []byte(tiffOn(6))), JPEG, 31, 17, false},
		{"jpeg with Exif data in another segment", changed(withSegment(plain, exif(tiffOn(6))), "\xff\xe1", "\xff\xe2"), JPEG, 31, 17, false},
		{"jpeg with markers alone", behindStart(plain, "\xff\x01\xff\xd0\xff\xd8"), JPEG, 31, 17, false},
		{"jpeg with tables that look like frames", behindStart(plain, "\xff\x02\x00\x09\x08\x00\x01\x00\x01\x01\x00"+
			"\xff\xc4\x00\x09\x08\x00\x01\x00\x01\x01\x00\xff\xc8\x00\x09\x08\x00\x01\x00\x01\x01\x00\xff\xcc\x00\x09\x08\x00\x01\x00\x01\x01\x00"), JPEG, 31, 17, false},
		{"jpeg of the last kind of frame", changed(plain, "\xff\xc0", "\xff\xcf"), JPEG, 31, 17, false},
		{"jpeg that ends before its frame", behindStart(plain, "\xff\xd9\x00\x02"), JPEG, 0, 0, false},
		{"jpeg with pixels before its frame", behindStart(plain, "\xff\xda\x00\x02"), JPEG, 0, 0, false},
		{"jpeg with nonsense before its frame", behindStart(plain, "\xff\xe0\x00\x02\x00\xe0\x00\x02"), JPEG, 0, 0, false},
		{"png", encodedPNG(t, 40, 50), PNG, 40, 50, false},
		{"png without a header", changed(encodedPNG(t, 40, 50), "IHDR", "IDAT"), PNG, 0, 0, false},
		{"png of absurd height", append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR"), 0, 0, 0, 9, 0xff, 0, 0, 0), PNG, 0, 0, false},
		{"png interlaced", interlaced, PNG, 40, 50, true},
		{"png of zero width", append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR"), 0, 0, 0, 0, 0, 0, 0, 9), PNG, 0, 0, false},
		{"png of absurd width", append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR"), 0xff, 0, 0, 0, 0, 0, 0, 9), PNG, 0, 0, false},
		{"gif", encodedGIF(t, 12, 13), GIF, 12, 13, false},
		{"webp lossy", riff("VP8 ", 0, 0, 0, 0x9d, 0x01, 0x2a, 0x58, 0x02, 0x45, 0x03), WebP, 600, 837, false},
		{"webp lossy without start code", riff("VP8 ", 0, 0, 0, 1, 2, 3, 0x58, 0x02, 0x45, 0x03), WebP, 0, 0, false},
		{"webp lossy with another first byte", riff("VP8 ", 0, 0, 0, 1, 0x01, 0x2a, 0x58, 0x02, 0x45, 0x03), WebP, 0, 0, false},
		{"webp lossy with another second byte", riff("VP8 ", 0, 0, 0, 0x9d, 2, 0x2a, 0x58, 0x02, 0x45, 0x03), WebP, 0, 0, false},
		{"webp lossy with another third byte", riff("VP8 ", 0, 0, 0, 0x9d, 0x01, 3, 0x58, 0x02, 0x45, 0x03), WebP, 0, 0, false},
		{"webp lossless without signature", riff("VP8L", 0x2e, 0x57, 0x02, 0xd1, 0x00), WebP, 0, 0, false},
		{"webp lossless", riff("VP8L", 0x2f, 0x57, 0x02, 0xd1, 0x00), WebP, 600, 837, false},
		{"webp extended", riff("VP8X", 0, 0, 0, 0, 0x57, 0x02, 0, 0x44, 0x03, 0), WebP, 600, 837, false},
		{"bmp", bmp(40, 20, 30), BMP, 20, 30, false},
		{"bmp top down", bmp(40, 20, -30), BMP, 20, 30, false},
		{"bmp of 1990", bmp(12, 20, 30), BMP, 20, 30, false},
		{"bmp too high", bmp(40, 20, math.MinInt32), BMP, 0, 0, false},
		{"avif", avif, AVIF, 600, 837, false},
		{"avif whose last box goes on to the end", open, AVIF, 600, 837, false},
		{"avif with a box of a large size", large, AVIF, 600, 837, false},
		{"avif with wide numbers", wide, AVIF, 600, 837, false},
		{"avif with a colour profile", heif("avif", [][]byte{ispeBox(600, 837), isoBox("colr", []byte("colr"))}, 1, 2), AVIF, 600, 837, false},
		{"avif turned by nothing", heif("avif", [][]byte{ispeBox(600, 837), isoBox("irot")}, 1, 2), AVIF, 600, 837, false},
		{"avif with the property 0", heif("avif", [][]byte{ispeBox(600, 837)}, 0x80), AVIF, 600, 837, false},
		{"heic whose largest size is its first", heif("heic", [][]byte{ispeBox(4032, 3024), ispeBox(512, 512), isoBox("clap", bytes.Repeat([]byte{1}, 12))}, 9), HEIC, 4032, 3024, false},
		{"heic of a version that looks like a brand", changed(heif("heic", [][]byte{ispeBox(9, 8)}, 1), "heic\x00\x00\x00\x00", "heicavif"), HEIC, 9, 8, false},
		{"avif turned", heif("avif", [][]byte{ispeBox(600, 837), isoBox("irot", []byte{1})}, 1, 0x82), AVIF, 837, 600, false},
		{"heic grid: the primary item counts, not the tile", heif("heic", [][]byte{ispeBox(512, 512), ispeBox(4032, 3024)}, 0x82), HEIC, 4032, 3024, false},
		{"heic whose association leads nowhere", heif("heic", [][]byte{ispeBox(512, 512), ispeBox(4032, 3024)}, 9), HEIC, 4032, 3024, false},
		{"generic brand that is compatible with avif", isoBox("ftyp", []byte("mif1\x00\x00\x00\x00avif")), AVIF, 0, 0, false},
		{"jxl by ratio", jxlBits([2]int{0, 1}, [2]int{0, 2}, [2]int{99, 9}, [2]int{7, 3}), JXL, 200, 100, false},
		{"jxl by both sides", jxlBits([2]int{0, 1}, [2]int{1, 2}, [2]int{836, 13}, [2]int{0, 3}, [2]int{1, 2}, [2]int{599, 13}), JXL, 600, 837, false},
		{"jxl small", jxlBits([2]int{1, 1}, [2]int{3, 5}, [2]int{1, 3}), JXL, 32, 32, false},
		{"jxl in a container", bytes.Join([][]byte{[]byte("\x00\x00\x00\x0cJXL \r\n\x87\n"), isoBox("ftyp", []byte("jxl \x00\x00\x00\x00jxl ")),
			isoBox("jxlc", jxlBits([2]int{1, 1}, [2]int{3, 5}, [2]int{1, 3}))}, nil), JXL, 32, 32, false},
		{"jxl in parts", bytes.Join([][]byte{[]byte("\x00\x00\x00\x0cJXL \r\n\x87\n"), isoBox("jxlp", make([]byte, 4), jxlBits([2]int{1, 1}, [2]int{3, 5}, [2]int{1, 3}))}, nil), JXL, 32, 32, false},
		{"jxl without the first byte", bytes.Join([][]byte{[]byte("\x00\x00\x00\x0cJXL \r\n\x87\n"), isoBox("jxlc", []byte{1, 0x0a, 0x47, 0, 0, 0})}, nil), JXL, 0, 0, false},
		{"jxl without the second byte", bytes.Join([][]byte{[]byte("\x00\x00\x00\x0cJXL \r\n\x87\n"), isoBox("jxlc", []byte{0xff, 1, 0x47, 0, 0, 0})}, nil), JXL, 0, 0, false},
		{"jxl too wide", jxlBits([2]int{0, 1}, [2]int{3, 2}, [2]int{1<<30 - 1, 30}, [2]int{7, 3}), JXL, 0, 0, false},
		{"jxl cut", []byte{0xff, 0x0a}, JXL, 0, 0, false},
		{"tiff has its size elsewhere", []byte("II*\x00\x08\x00\x00\x00"), TIFF, 0, 0, false},
		{"nothing", nil, "", 0, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := Detect(tt.head); got != tt.mediaType {
				t.Errorf("Detect = %q, want %q", got, tt.mediaType)
			}
			w, h, ok := Dimensions(tt.head)
			if w != tt.w || h != tt.h || ok != (tt.w > 0) {
				t.Errorf("Dimensions = %d, %d, %v, want %d, %d", w, h, ok, tt.w, tt.h)
			}
			if got := Progressive(tt.head); got != tt.progressive {
				t.Errorf("Progressive = %v, want %v", got, tt.progressive)
			}
			for n := range tt.head { // truncated anywhere, and with any byte changed
				checkHead(t, tt.head[:n:n])
				for _, c := range []byte{0, 1, 4, 0xff} {
					wrong := bytes.Clone(tt.head)
					wrong[n] = c
					checkHead(t, wrong[:len(wrong):len(wrong)])
				}
			}
		})
	}
}

func TestDetect(t *testing.T) {
	t.Parallel()
	epub := "PK\x03\x04" + strings.Repeat("\x00", 22) + "\x08\x00\x00\x00mimetypeapplication/epub+zip"
	tests := []struct {
		name, head, want string
	}{
		{"pdf", "%PDF-1.7\n", PDF},
		{"zip", "PK\x03\x04" + strings.Repeat("\x00", 40), ZIP},
		{"empty zip", "PK\x05\x06" + strings.Repeat("\x00", 18), ZIP},
		{"epub", epub, EPUB},
		{"epub with an extra field", epub[:28] + "\x02\x00mimetype\x00\x00application/epub+zip", EPUB},
		{"zip whose first entry is another mimetype", strings.Replace(epub, "epub", "oebp", 1), ZIP},
		{"zip cut inside the first name", epub[:34], ZIP},
		{"rar 4", "Rar!\x1a\x07\x00", RAR},
		{"rar 5", "Rar!\x1a\x07\x01\x00", RAR},
		{"7z", "7z\xbc\xaf\x27\x1c\x00\x04", SevZ},
		{"svg", `<svg xmlns="http://www.w3.org/2000/svg">`, SVG},
		{"svg behind mark, declaration, comment", "\xef\xbb\xbf \n<?xml version=\"1.0\"?><!-- x --><SVG>", SVG},
		{"svg with a prefixed root", `<s:g xmlns:s="http://www.w3.org/2000/svg"/>`, SVG},
		{"html with an inline drawing is not an image", "<!doctype html><html><body><svg></svg>", ""},
		{"jpeg that goes on as html", "\xff\xd8\xff\xe0<html><script>", JPEG},
		{"text that starts with BM", "BM is a short text without a bitmap header", ""},
		{"text", "hello", ""},
		{"text about svg", "use <svg> here", ""},
		{"sound", "RIFF\x00\x00\x00\x00WAVEfmt ", ""},
		{"webp without its container", "RIFX\x00\x00\x00\x00WEBPVP8 ", ""},
		{"bmp with another first letter", string(changed(bmp(40, 1, 1), "BM", "XM")), ""},
		{"bmp with another second letter", string(changed(bmp(40, 1, 1), "BM", "BX")), ""},
		{"one byte", "\xff", ""},
		{"video", "\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isomavc1", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := Detect([]byte(tt.head)); got != tt.want {
				t.Errorf("Detect = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestByExtensionAndServable(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, want string
		servable   bool
	}{
		{"a/b/001.JPG", JPEG, true}, {"x.jpeg", JPEG, true}, {"x.png", PNG, true}, {"x.webp", WebP, true},
		{"x.avif", AVIF, true}, {"x.jxl", JXL, true}, {"x.heif", HEIC, true}, {"x.gif", GIF, true},
		{"x.tif", TIFF, true}, {"x.bmp", BMP, true}, {"x.svg", SVG, false}, {"x.pdf", PDF, false},
		{"x.cbz", ZIP, false}, {"x.cb7", SevZ, false}, {"x.cbr", RAR, false}, {"x.epub", EPUB, false},
		{"jpg", "", false}, {"x.html", "", false}, {"", "", false}, {"dir.jpg/readme", "", false},
	}
	for _, tt := range tests {
		got := ByExtension(tt.name)
		if got != tt.want || Servable(got) != tt.servable {
			t.Errorf("ByExtension(%q) = %q, servable %v", tt.name, got, Servable(got))
		}
	}
}

// TestRealFiles reads the page formats of the shared fixtures where they exist.
func TestRealFiles(t *testing.T) {
	t.Parallel()
	z, err := zip.OpenReader(filepath.Join(testkit.Fixtures(t), "odd", "page formats.cbz"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		head, err := io.ReadAll(io.LimitReader(r, HeadBytes))
		if err != nil {
			t.Fatal(err)
		}
		if got := Detect(head); got != ByExtension(f.Name) {
			t.Errorf("%s: Detect = %q", f.Name, got)
		}
		w, h, ok := Dimensions(head)
		if want := Detect(head) != TIFF; ok != want || ok && (w != 600 || h != 837) {
			t.Errorf("%s: Dimensions = %d, %d, %v", f.Name, w, h, ok)
		}
	}
}

// FuzzHead asserts what callers rely on for any input: no panic, sizes only of
// images, always positive, and only types that this package names.
func FuzzHead(f *testing.F) {
	f.Add(encodedJPEG(f, 3, 4))
	f.Add(encodedPNG(f, 3, 4))
	f.Add(encodedGIF(f, 3, 4))
	f.Add(riff("VP8X", 0, 0, 0, 0, 1, 0, 0, 1, 0, 0))
	f.Add(heif("avif", [][]byte{ispeBox(600, 837), isoBox("irot", []byte{1})}, 1, 2))
	f.Add(jxlBits([2]int{1, 1}, [2]int{3, 5}, [2]int{1, 3}))
	f.Add(bmp(40, 1, -2))
	f.Add([]byte("<?xml?><svg/>"))
	f.Fuzz(func(t *testing.T, head []byte) { checkHead(t, head) })
}

func checkHead(t *testing.T, head []byte) {
	t.Helper()
	mt := Detect(head)
	w, h, ok := Dimensions(head)
	if ok && (!Servable(mt) || w <= 0 || h <= 0) {
		t.Fatalf("%q: %d x %d", mt, w, h)
	}
	if !ok && (w != 0 || h != 0) {
		t.Fatalf("size %d x %d without ok", w, h)
	}
	if Progressive(head) && mt != JPEG && mt != PNG {
		t.Fatalf("%q is progressive", mt)
	}
}
