package imaging

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"testing"

	"github.com/davidbyttow/govips/v2/vips"

	"github.com/longbox/longbox/shared/format/mediatype"
)

var (
	red   = color.NRGBA{255, 0, 0, 255}
	green = color.NRGBA{0, 255, 0, 255}
	blue  = color.NRGBA{0, 0, 255, 255}
	white = color.NRGBA{255, 255, 255, 255}
)

// halves is left on its left half and right on the other.
func halves(w, h int, left, right color.Color) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			c := left
			if x >= w/2 {
				c = right
			}
			img.Set(x, y, c)
		}
	}
	return img
}

func pngOf(t testing.TB, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func mustRender(t testing.TB, src []byte, spec Spec) Result {
	t.Helper()
	res, err := New(Config{}).Render(context.Background(), src, spec)
	if err != nil {
		t.Fatal(err)
	}
	if got := mediatype.Detect(res.Bytes); got != res.MediaType {
		t.Fatalf("bytes are %s, declared %s", got, res.MediaType)
	}
	if w, h, _ := mediatype.Dimensions(res.Bytes); w != res.Width || h != res.Height {
		t.Fatalf("bytes are %d x %d, declared %d x %d", w, h, res.Width, res.Height)
	}
	return res
}

// pixels decodes a rendition with the standard library; WebP goes through PNG.
func pixels(t testing.TB, res Result) image.Image {
	t.Helper()
	if res.MediaType == mediatype.WebP {
		res = mustRender(t, res.Bytes, Spec{Format: PNG})
	}
	img, _, err := image.Decode(bytes.NewReader(res.Bytes))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func expectColour(t testing.TB, img image.Image, x, y int, want color.NRGBA, tolerance int) {
	t.Helper()
	got := color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)
	far := func(a, b uint8) bool { d := int(a) - int(b); return d > tolerance || -d > tolerance }
	if far(got.R, want.R) || far(got.G, want.G) || far(got.B, want.B) || far(got.A, want.A) {
		t.Errorf("pixel %d,%d is %v, want %v", x, y, got, want)
	}
}

func TestRenderSizesAndFormats(t *testing.T) {
	t.Parallel()
	src := jpegOf(t, halves(400, 600, red, blue))
	tests := []struct {
		name string
		spec Spec
		w, h int
	}{
		{"width", Spec{Width: 150, Format: JPEG}, 150, 225},
		{"height", Spec{Height: 300, Format: WebP}, 200, 300},
		{"box", Spec{Width: 100, Height: 100, Format: PNG}, 67, 100},
		{"exactly a quarter", Spec{Width: 100, Format: JPEG}, 100, 150},
		{"free", Spec{Format: WebP, Quality: 50}, 400, 600},
		{"never enlarged", Spec{Width: 3000, Height: 3000, Format: JPEG}, 400, 600},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			res := mustRender(t, src, tt.spec)
			if res.Width != tt.w || res.Height != tt.h || res.SourceWidth != 400 || res.SourceHeight != 600 {
				t.Errorf("got %d x %d of %d x %d, want %d x %d", res.Width, res.Height, res.SourceWidth, res.SourceHeight, tt.w, tt.h)
			}
			img := pixels(t, res)
			expectColour(t, img, tt.w/4, tt.h/2, red, 8)
			expectColour(t, img, tt.w*3/4, tt.h/2, blue, 8)
		})
	}
}

func TestRenderQualityCounts(t *testing.T) {
	t.Parallel()
	for _, format := range []string{JPEG, WebP} {
		low := mustRender(t, pageJPEG(), Spec{Width: 300, Format: format, Quality: 20})
		high := mustRender(t, pageJPEG(), Spec{Width: 300, Format: format, Quality: 95})
		if len(low.Bytes)*2 > len(high.Bytes) {
			t.Errorf("%s: %d bytes at 20, %d at 95", format, len(low.Bytes), len(high.Bytes))
		}
	}
}

func TestRenderColourModels(t *testing.T) {
	t.Parallel()
	grey := image.NewGray16(image.Rect(0, 0, 40, 40))
	deep := image.NewNRGBA64(image.Rect(0, 0, 40, 40))
	for i := range 40 * 40 {
		grey.SetGray16(i%40, i/40, color.Gray16{0x8080})
		deep.SetNRGBA64(i%40, i/40, color.NRGBA64{0, 0xffff, 0, 0xffff})
	}
	mid := color.NRGBA{0x80, 0x80, 0x80, 255}
	clear := halves(40, 40, color.NRGBA{255, 0, 0, 0}, green)
	tests := []struct {
		name        string
		src         []byte
		format      string
		left, right color.NRGBA
	}{
		{"16 bit grey", pngOf(t, grey), JPEG, mid, mid},
		{"16 bit grey to webp", pngOf(t, grey), WebP, mid, mid},
		{"16 bit colour", pngOf(t, deep), JPEG, green, green},
		{"transparent on white", pngOf(t, clear), JPEG, white, green},
		{"palette", pngOf(t, paletted(red, blue)), WebP, red, blue},
		{"cmyk", cmykJPEG(t, halves(40, 40, white, color.Black)), JPEG, white, color.NRGBA{0, 0, 0, 255}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			img := pixels(t, mustRender(t, tt.src, Spec{Width: 20, Format: tt.format}))
			tolerance := 8
			if tt.name == "cmyk" {
				tolerance = 60 // ink black is not screen black
			}
			expectColour(t, img, 4, 10, tt.left, tolerance)
			expectColour(t, img, 16, 10, tt.right, tolerance)
		})
	}
}

func TestRenderKeepsTransparency(t *testing.T) {
	t.Parallel()
	src := pngOf(t, halves(40, 40, color.NRGBA{}, green))
	for _, format := range []string{PNG, WebP} {
		img := pixels(t, mustRender(t, src, Spec{Width: 20, Format: format}))
		if _, _, _, a := img.At(3, 10).RGBA(); a != 0 {
			t.Errorf("%s: alpha %d where the source is clear", format, a)
		}
		expectColour(t, img, 16, 10, green, 8)
	}
}

func TestRenderFirstFrameOnly(t *testing.T) {
	t.Parallel()
	anim := &gif.GIF{
		Image: []*image.Paletted{paletted(red, red), paletted(blue, blue), paletted(green, green)},
		Delay: []int{10, 10, 10},
	}
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, anim); err != nil {
		t.Fatal(err)
	}
	for name, src := range map[string][]byte{"gif": b.Bytes(), "webp": animatedWebP(t, b.Bytes())} {
		res := mustRender(t, src, Spec{Width: 20, Format: JPEG})
		if res.Width != 20 || res.Height != 20 || res.SourceHeight != 40 {
			t.Errorf("%s: %d x %d of height %d", name, res.Width, res.Height, res.SourceHeight)
		}
		expectColour(t, pixels(t, res), 10, 10, red, 8)
	}
}

func paletted(left, right color.Color) *image.Paletted {
	img := image.NewPaletted(image.Rect(0, 0, 40, 40), color.Palette{left, right})
	for i := range 40 * 40 {
		if i%40 >= 20 {
			img.SetColorIndex(i%40, i/40, 1)
		}
	}
	return img
}

// cmykJPEG and animatedWebP use libvips to make what the standard library cannot.
func cmykJPEG(t testing.TB, img image.Image) []byte {
	t.Helper()
	ref := vipsImage(t, pngOf(t, img), nil)
	defer ref.Close()
	if err := ref.ToColorSpace(vips.InterpretationCMYK); err != nil {
		t.Fatal(err)
	}
	out, _, err := ref.ExportJpeg(&vips.JpegExportParams{Quality: 95, StripMetadata: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := jpeg.Decode(bytes.NewReader(out)); err != nil {
		t.Fatal(err)
	}
	return out
}

func animatedWebP(t testing.TB, src []byte) []byte {
	t.Helper()
	params := vips.NewImportParams()
	params.NumPages.Set(-1)
	ref := vipsImage(t, src, params)
	defer ref.Close()
	out, _, err := ref.ExportWebp(vips.NewWebpExportParams())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(out, []byte("ANMF")) {
		t.Fatal("the fixture is not animated")
	}
	return out
}

func vipsImage(t testing.TB, src []byte, params *vips.ImportParams) *vips.ImageRef {
	t.Helper()
	if err := start(); err != nil {
		t.Fatal(err)
	}
	ref, err := vips.LoadImageFromBuffer(src, params)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}
