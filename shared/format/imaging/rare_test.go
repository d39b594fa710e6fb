package imaging

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"

	"github.com/longbox/longbox/shared/format/mediatype"
)

func bmpOf(t testing.TB, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := bmp.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestBMP(t *testing.T) {
	t.Parallel()
	grey := image.NewGray(image.Rect(0, 0, 90, 60))
	for i := range grey.Pix {
		grey.Pix[i] = 200
	}
	for _, c := range []struct {
		name        string
		src         image.Image
		left, right color.NRGBA
	}{
		{"24 bits", halves(90, 60, red, blue), red, blue},
		{"8 bits", grey, color.NRGBA{200, 200, 200, 255}, color.NRGBA{200, 200, 200, 255}},
	} {
		res := mustRender(t, bmpOf(t, c.src), Spec{Width: 30, Format: JPEG})
		if res.Width != 30 || res.Height != 20 || res.SourceWidth != 90 || res.SourceHeight != 60 {
			t.Errorf("%s: %d x %d of %d x %d", c.name, res.Width, res.Height, res.SourceWidth, res.SourceHeight)
		}
		expectColour(t, pixels(t, res), 5, 10, c.left, 12)
		expectColour(t, pixels(t, res), 25, 10, c.right, 12)
	}
}

func TestBrokenBMP(t *testing.T) {
	t.Parallel()
	whole := bmpOf(t, halves(90, 60, red, blue))
	packed := bytes.Clone(whole)
	packed[30] = 1 // run-length encoded
	huge := bytes.Clone(whole)
	copy(huge[18:], []byte{0, 0, 1, 0, 0, 0, 1, 0}) // 65,536 x 65,536
	var bad *Undecodable
	for name, src := range map[string][]byte{"cut in its header": whole[:30], "cut in its pixels": whole[:len(whole)/2], "packed": packed} {
		if _, err := New(Config{}).Render(context.Background(), src, Spec{Format: JPEG}); !errors.As(err, &bad) || bad.MediaType != mediatype.BMP {
			t.Errorf("%s: %v", name, err)
		}
	}
	var large *TooLarge
	if _, err := New(Config{}).Render(context.Background(), huge, Spec{Format: JPEG}); !errors.As(err, &large) {
		t.Errorf("huge: %v", err)
	}
}

func TestTIFF(t *testing.T) {
	t.Parallel()
	var bad *Undecodable
	for name, compression := range map[string]tiff.CompressionType{"stored": tiff.Uncompressed, "deflate": tiff.Deflate} {
		var b bytes.Buffer
		if err := tiff.Encode(&b, halves(90, 60, red, blue), &tiff.Options{Compression: compression}); err != nil {
			t.Fatal(err)
		}
		res := mustRender(t, b.Bytes(), Spec{Width: 30, Format: JPEG})
		if res.Width != 30 || res.Height != 20 || res.SourceWidth != 90 || res.SourceHeight != 60 {
			t.Errorf("%s: %d x %d of %d x %d", name, res.Width, res.Height, res.SourceWidth, res.SourceHeight)
		}
		expectColour(t, pixels(t, res), 5, 10, red, 12)
		expectColour(t, pixels(t, res), 25, 10, blue, 12)
		if _, err := New(Config{}).Render(context.Background(), b.Bytes()[:b.Len()/2], Spec{Format: JPEG}); !errors.As(err, &bad) || bad.MediaType != mediatype.TIFF {
			t.Errorf("%s, cut: %v", name, err)
		}
	}
}

func TestJPEGXL(t *testing.T) {
	t.Parallel()
	r := New(Config{})
	src, err := os.ReadFile("testdata/halves.jxl") // 90 x 60, red on the left, blue on the right
	if err != nil {
		t.Fatal(err)
	}
	res, err := r.Render(context.Background(), src, Spec{Width: 30, Format: JPEG})
	if err != nil || res.Width != 30 || res.Height != 20 || res.SourceWidth != 90 || res.SourceHeight != 60 {
		t.Fatalf("%+v, %v", res, err)
	}
	expectColour(t, pixels(t, res), 5, 10, red, 20)
	expectColour(t, pixels(t, res), 25, 10, blue, 20)
	var bad *Undecodable
	if _, err := r.Render(context.Background(), src[:len(src)/2], Spec{Format: JPEG}); !errors.As(err, &bad) || bad.MediaType != mediatype.JXL {
		t.Errorf("cut: %v", err)
	}
	var large *TooLarge
	if _, err := New(Config{MaxPixels: 90*60 - 1}).Render(context.Background(), src, Spec{Format: JPEG}); !errors.As(err, &large) {
		t.Errorf("too many pixels: %v", err)
	}
	slow := New(Config{JXLTimeout: time.Nanosecond})
	if _, err := slow.Render(context.Background(), src, Spec{Format: JPEG}); !errors.As(err, &bad) || !strings.Contains(err.Error(), "longer than 1ns") {
		t.Errorf("too slow: %v", err)
	}
}

// Images that are stored upright, rotated and in colours beyond sRGB come out upright and in sRGB.
func TestJPEGXLColoursAndOrientation(t *testing.T) {
	t.Parallel()
	r := New(Config{})
	for name, want := range map[string]struct {
		width, height int
		colour        color.NRGBA // of the first quarter
	}{
		"lossless": {96, 64, color.NRGBA{220, 30, 30, 255}},
		"turned":   {64, 96, color.NRGBA{30, 40, 200, 255}},
		"wide":     {96, 64, color.NRGBA{240, 0, 0, 255}}, // the same numbers with the primaries of DCI-P3
	} {
		src, err := os.ReadFile("../jxl/testdata/" + name + ".jxl")
		if err != nil {
			t.Fatal(err)
		}
		res, err := r.Render(context.Background(), src, Spec{Format: PNG})
		if err != nil || res.Width != want.width || res.Height != want.height {
			t.Errorf("%s: %d x %d, %v", name, res.Width, res.Height, err)
			continue
		}
		expectColour(t, pixels(t, res), want.width/4, want.height/4, want.colour, 8)
	}
}

// Of an animated AVIF the first frame is rendered, as of any animation.
func TestAnimatedAVIF(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("testdata/frames.avif")
	if err != nil {
		t.Fatal(err)
	}
	before := bytes.Clone(src)
	res := mustRender(t, src, Spec{Width: 30, Format: JPEG})
	if res.Width != 30 || res.Height != 20 || res.SourceWidth != 90 || res.SourceHeight != 60 || !bytes.Equal(src, before) {
		t.Errorf("%d x %d of %d x %d", res.Width, res.Height, res.SourceWidth, res.SourceHeight)
	}
	expectColour(t, pixels(t, res), 5, 10, red, 20)
	expectColour(t, pixels(t, res), 25, 10, blue, 20)
	var bad *Undecodable
	if _, err := New(Config{}).Render(context.Background(), []byte("\x00\x00\x00\x10ftypavis"), Spec{Format: JPEG}); !errors.As(err, &bad) {
		t.Errorf("nothing but its type: %v", err)
	}
}
