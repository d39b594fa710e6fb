package imaging

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"path/filepath"
	"testing"

	"github.com/longbox/longbox/shared/format/mediatype"
	"github.com/longbox/longbox/shared/testkit"
)

// pngClaiming is a PNG whose header promises w x h and whose data are one
// short chunk.
func pngClaiming(w, h uint32) []byte {
	chunk := func(kind string, body []byte) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
		b = append(append(b, kind...), body...)
		return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
	}
	ihdr := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, w), h)
	ihdr = append(ihdr, 8, 0, 0, 0, 0)
	return bytes.Join([][]byte{[]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", ihdr),
		chunk("IDAT", []byte{0x78, 0x9c, 0x63, 0, 0, 0, 1, 0, 1}), chunk("IEND", nil)}, nil)
}

// patchedJPEG is a baseline JPEG whose frame header is overwritten.
func patchedJPEG(t *testing.T, marker byte, w, h uint16) []byte {
	t.Helper()
	b := bytes.Clone(jpegOf(t, halves(64, 64, red, blue)))
	at := bytes.Index(b, []byte{0xff, 0xc0, 0x00, 0x11})
	if at < 0 {
		t.Fatal("no frame header")
	}
	b[at+1] = marker
	binary.BigEndian.PutUint16(b[at+5:], h)
	binary.BigEndian.PutUint16(b[at+7:], w)
	return b
}

func TestRenderRefuses(t *testing.T) {
	t.Parallel()
	whole := jpegOf(t, comicPage(160, 240))
	png := pngOf(t, comicPage(160, 240))
	webp := mustRender(t, whole, Spec{Format: WebP}).Bytes
	badCRC := bytes.Clone(png)
	badCRC[len(png)/2] ^= 0xff
	const undecodableKind, pixelKind = "undecodable", "pixels"
	tests := []struct {
		name string
		src  []byte
		kind string
	}{
		{"nothing", nil, undecodableKind},
		{"text", []byte("not an image at all, only words"), undecodableKind},
		{"svg", []byte(`<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"/>`), undecodableKind},
		{"svg behind a comment", []byte("<!-- " + string(bytes.Repeat([]byte("x"), 900)) + " --><svg width='10' height='10'/>"), undecodableKind},
		{"pdf", []byte("%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj"), undecodableKind},
		{"windows icon", []byte("\x00\x00\x01\x00\x01\x00\x10\x10\x00\x00\x01\x00"), undecodableKind},
		{"photoshop", []byte("8BPS\x00\x01\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x01\x00\x00\x00\x01\x00\x08\x00\x03"), undecodableKind},
		{"jpeg cut in its header", whole[:20], undecodableKind},
		{"jpeg cut in its pixels", whole[:len(whole)/2], undecodableKind},
		{"jpeg of 3 bytes", whole[:3], undecodableKind},
		{"png cut", png[:len(png)/2], undecodableKind},
		{"png with a wrong byte", badCRC, undecodableKind},
		{"webp cut", webp[:len(webp)/2], undecodableKind},
		{"gif of its signature only", []byte("GIF89a\x10\x00\x10\x00\x00\x00\x00"), undecodableKind},
		{"png that promises more rows than it has", pngClaiming(500, 500), undecodableKind},
		{"png of 60000 x 60000", pngClaiming(60000, 60000), pixelKind},
		{"png of 2 billion squared", pngClaiming(1<<31-1, 1<<31-1), pixelKind},
		{"jpeg of 65500 x 65500", patchedJPEG(t, 0xc0, 65500, 65500), pixelKind},
		{"progressive jpeg of 8000 x 8000", patchedJPEG(t, 0xc2, 8000, 8000), pixelKind},
		{"baseline jpeg of 8000 x 8000 without the pixels", patchedJPEG(t, 0xc0, 8000, 8000), undecodableKind},
		{"gif of 65535 x 65535", []byte("GIF89a\xff\xff\xff\xff\x00\x00\x00\x2c\x00\x00\x00\x00\xff\xff\xff\xff\x00\x3b"), pixelKind},
		{"webp of 16 million squared", []byte("RIFF\x16\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff"), pixelKind},
	}
	r := New(Config{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := r.Render(context.Background(), tt.src, Spec{Width: 100, Format: JPEG})
			var bad *Undecodable
			var large *TooLarge
			switch {
			case tt.kind == undecodableKind && errors.As(err, &bad) && bad.Cause != nil && bad.MediaType == mediatype.Detect(tt.src):
			case tt.kind == pixelKind && errors.As(err, &large) && large.Limit == "pixels" && large.Value > large.Max:
			default:
				t.Errorf("got %T %v, want %s", err, err, tt.kind)
			}
		})
	}
}

func TestRenderLimits(t *testing.T) {
	t.Parallel()
	src := jpegOf(t, comicPage(320, 480))
	var large *TooLarge
	for name, tt := range map[string]struct {
		cfg   Config
		src   []byte
		limit string
	}{
		"bytes":         {Config{MaxBytes: 100}, src, "bytes"},
		"stream pixels": {Config{MaxPixels: 1000, MaxStreamPixels: 320*480 - 1}, src, "pixels"},
		"whole pixels":  {Config{MaxPixels: 100}, mustRender(t, src, Spec{Format: WebP}).Bytes, "pixels"},
		"memory":        {Config{MemoryBytes: 1 << 20}, src, "bytes of memory"},
	} {
		_, err := New(tt.cfg).Render(context.Background(), tt.src, Spec{Width: 100, Format: JPEG})
		if !errors.As(err, &large) || large.Limit != tt.limit {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New(Config{MaxPixels: 1000}).Render(context.Background(), src, Spec{Width: 100, Format: JPEG}); err != nil {
		t.Errorf("a page decoded by lines was held to the limit of whole pictures: %v", err)
	}
}

func TestRenderRejectsSpec(t *testing.T) {
	t.Parallel()
	for _, spec := range []Spec{{Format: "avif"}, {}, {Format: JPEG, Width: -1}, {Format: JPEG, Height: -1}, {Format: JPEG, Quality: 101}, {Format: JPEG, Quality: -1}} {
		if _, err := New(Config{}).Render(context.Background(), pageJPEG(), spec); err == nil {
			t.Errorf("%+v: accepted", spec)
		}
	}
}

func TestRenderAfterContextEnded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := New(Config{}).Render(ctx, pageJPEG(), Spec{Width: 100, Format: JPEG}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestRenderPolyglot renders a JPEG that is also a web page and a ZIP: nothing
// but its pixels may come out.
func TestRenderPolyglot(t *testing.T) {
	t.Parallel()
	script := []byte("<html><script>alert(1)</script></html>PK\x05\x06")
	src := withSegment(jpegOf(t, halves(80, 40, red, blue)), 0xfe, script)
	src = append(src, script...)
	for _, format := range []string{JPEG, PNG, WebP} {
		res := mustRender(t, src, Spec{Width: 40, Format: format})
		if bytes.Contains(res.Bytes, []byte("script")) || bytes.Contains(res.Bytes, []byte("PK\x05\x06")) {
			t.Errorf("%s: the output carries foreign content", format)
		}
	}
}

// TestRenderTallStrip renders a webtoon strip that is higher than WebP allows: the box is reduced.
func TestRenderTallStrip(t *testing.T) {
	t.Parallel()
	src := jpegOf(t, halves(200, 20000, red, blue))
	res := mustRender(t, src, Spec{Format: WebP})
	if res.Height != 16383 || res.Width != 164 {
		t.Errorf("%d x %d", res.Width, res.Height)
	}
	expectColour(t, pixels(t, res), 20, 9000, red, 12)
}

// TestRealFiles renders the page formats and damaged pages of the shared
// fixtures where they exist.
func TestRealFiles(t *testing.T) {
	t.Parallel()
	dir := testkit.Fixtures(t)
	r := New(Config{})
	for _, name := range []string{"odd/page formats.cbz", "broken/corrupt-page.cbz", "broken/huge-dimensions.cbz"} {
		z, err := zip.OpenReader(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		for _, f := range z.File {
			if mediatype.ByExtension(f.Name) == "" {
				continue
			}
			in, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			src, err := io.ReadAll(in)
			if err != nil {
				t.Fatal(err)
			}
			res, err := r.Render(context.Background(), src, Spec{Width: 300, Format: WebP})
			var bad *Undecodable
			var large *TooLarge
			switch {
			case err == nil && res.SourceWidth == 600 && res.SourceHeight == 837 && res.Width == 300 && res.Height == 419:
			case errors.As(err, &bad) && len(src) < 10000:
			case errors.As(err, &large) && large.Value == 3_600_000_000:
			default:
				t.Errorf("%s %s: %+v %v", name, f.Name, res, err)
			}
		}
	}
}

// An error text of libvips may contain errors of other images that fail at the same time, and a zero byte.
func TestUndecodableIsOneLine(t *testing.T) {
	t.Parallel()
	err := undecodable("image/jpeg", errors.New("VipsJpeg: a\nVipsJpeg: a\nsource: bad seek to 1\nb\x00c\xff\n\nStack:\ngoroutine 1"))
	if want := "image/jpeg cannot be decoded: VipsJpeg: a; bc"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	if got := undecodable("image/jpeg", errors.New("\x00\nStack:")).Error(); got != "image/jpeg cannot be decoded: the decoder gave no reason" {
		t.Errorf("%q", got)
	}
}
