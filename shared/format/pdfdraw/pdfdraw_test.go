package pdfdraw_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"log"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/format/pdfdraw"
)

// compiled is the CacheDir of all tests, so that they compile once.
var compiled string

func TestMain(m *testing.M) {
	var err error
	if compiled, err = os.MkdirTemp("", "pdfdraw"); err != nil {
		log.Fatal(err)
	}
	code := m.Run()
	if err := os.RemoveAll(compiled); err != nil {
		log.Print(err)
	}
	os.Exit(code)
}

// document is a PDF of n pages, each with a black square on white.
func document(n int) []byte { return showing(n, "50 100 100 100 re f") }

// endless is a PDF with a page that takes minutes to draw: its content is a line over everything, again and again.
var endless = sync.OnceValue(func() []byte {
	return showing(1, "20 w\n"+strings.Repeat("0 0 m 200 300 0 300 200 0 c S\n", 2_000_000))
})

// showing is a PDF of n pages, each with the content.
func showing(n int, content string) []byte { return written(n, content, "") }

// written is a PDF of n pages, each with the content and entries, and of further objects.
func written(n int, content, entries string, objects ...string) []byte {
	var b bytes.Buffer
	var at []int
	object := func(format string, args ...any) {
		at = append(at, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n"+format+"\nendobj\n", append([]any{len(at)}, args...)...)
	}
	b.WriteString("%PDF-1.4\n")
	object("<</Type/Catalog/Pages 2 0 R>>")
	var kids strings.Builder
	for i := range n {
		fmt.Fprintf(&kids, "%d 0 R ", 4+i)
	}
	object("<</Type/Pages/Count %d/Kids[%s]/MediaBox[0 0 200 300]/Resources<</ExtGState<</Blend<</BM/Darken>>>>>>>>", n, kids.String())
	object("<</Length %d>>stream\n%s\nendstream", len(content), content)
	for range n {
		object("<</Type/Page/Parent 2 0 R/Contents 3 0 R%s>>", entries)
	}
	for _, o := range objects {
		object("%s", o)
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(at)+1)
	for _, o := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(&b, "trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", len(at)+1, start)
	return b.Bytes()
}

func TestDraw(t *testing.T) {
	r := pdfdraw.New(pdfdraw.Config{Side: 600, CacheDir: compiled})
	b := document(3)
	for _, n := range []int{0, 2} {
		out, err := r.Draw(t.Context(), bytes.NewReader(b), int64(len(b)), n)
		if err != nil {
			t.Fatal(err)
		}
		img, err := jpeg.Decode(bytes.NewReader(out))
		if err != nil || img.Bounds().Dx() != 400 || img.Bounds().Dy() != 600 {
			t.Fatalf("%v, %v", img.Bounds(), err)
		}
		dark, _, _, _ := img.At(200, 300).RGBA()
		light, _, _, _ := img.At(10, 10).RGBA()
		if dark > 0x2000 || light < 0xe000 {
			t.Errorf("page %d: %x in the square, %x beside it", n, dark, light)
		}
	}
	if _, err := r.Draw(t.Context(), bytes.NewReader(b), int64(len(b)), 3); !errors.As(err, new(*archive.Error)) {
		t.Errorf("a page that is not there: %v", err)
	}
	if _, err := r.Draw(t.Context(), strings.NewReader("no document"), 11, 0); !errors.As(err, new(*archive.Error)) {
		t.Errorf("no document: %v", err)
	}
	broken := errors.New("connection reset")
	if _, err := r.Draw(t.Context(), failing{broken}, int64(len(b)), 0); !errors.Is(err, broken) {
		t.Errorf("a store that fails: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Draw(ended, bytes.NewReader(b), int64(len(b)), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits: %v", err)
	}
}

// The background is white even if a page blends its colours.
func TestDrawBlended(t *testing.T) {
	img := drawn(t, showing(1, "/Blend gs 50 100 100 100 re f"))
	if dark, light := brightness(img, 200, 300), brightness(img, 10, 10); dark > 0x20 || light < 0xe0 {
		t.Errorf("%x in the square, %x beside it", dark, light)
	}
}

// Annotations are drawn with a page: a stamp, and a filled form field, but no hidden one.
func TestDrawAnnotations(t *testing.T) {
	for annotation, want := range map[string]bool{"/Subtype/Stamp/F 4": true, "/Subtype/Widget/FT/Tx/T(field)/F 4": true, "/Subtype/Stamp/F 2": false} {
		const square = "0 0 100 100 re f"
		form := fmt.Sprintf("<</Subtype/Form/BBox[0 0 100 100]/Length %d>>stream\n%s\nendstream", len(square), square)
		page := fmt.Sprintf("/Annots[<</Type/Annot%s/Rect[0 0 40 40]/AP<</N 5 0 R>>>>]", annotation)
		img := drawn(t, written(1, "", page, form))
		if dark := brightness(img, 20, 580) < 0x20; dark != want {
			t.Errorf("%s: drawn %t", annotation, dark)
		}
	}
}

// A form with many fields, which PDFium reads slowly, does not slow down pages without fields.
func TestDrawBesideForm(t *testing.T) {
	const fields = 20_000
	var list strings.Builder
	objects := make([]string, fields)
	for i := range fields {
		fmt.Fprintf(&list, "%d 0 R ", 6+i)
		objects[i] = fmt.Sprintf("<</Subtype/Widget/FT/Tx/T(%d)/Rect[1 1 2 2]>>", i)
	}
	form := fmt.Sprintf("<</Fields[%s]>>", list.String())
	b := bytes.Replace(written(1, "", "/Annots[<</Subtype/Stamp>>]", append([]string{form}, objects...)...), []byte("/Pages 2 0 R"), []byte("/AcroForm 5 0 R/Pages 2 0 R"), 1)
	r := pdfdraw.New(pdfdraw.Config{Side: 300, CacheDir: compiled, Timeout: 5 * time.Second})
	if _, err := r.Draw(t.Context(), bytes.NewReader(b), int64(len(b)), 0); err != nil {
		t.Error(err)
	}
}

// drawn is the first page of a document, 400 pixels wide and 600 high.
func drawn(t *testing.T, document []byte) image.Image {
	t.Helper()
	return drawnBy(t, pdfdraw.Config{Side: 600, CacheDir: compiled}, document)
}

func drawnBy(t *testing.T, c pdfdraw.Config, document []byte) image.Image {
	t.Helper()
	r := pdfdraw.New(c)
	out, err := r.Draw(t.Context(), bytes.NewReader(document), int64(len(document)), 0)
	if err != nil {
		t.Fatal(err)
	}
	img, err := jpeg.Decode(bytes.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// A cache only saves time: pages are drawn without it.
func TestCacheThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	drawnBy(t, pdfdraw.Config{Side: 300, CacheDir: filepath.Join(file, "cache")}, document(1))
	relative := pdfdraw.Config{Side: 300, Memory: 256 << 20, Timeout: time.Second, AtOnce: 1, Fonts: "/", CacheDir: "cache"}
	if err := relative.Validate(); err == nil || !strings.HasPrefix(err.Error(), "PDF_CACHE_DIR: ") {
		t.Errorf("a relative path: %v", err)
	}
}

func brightness(img image.Image, x, y int) uint8 {
	return color.GrayModel.Convert(img.At(x, y)).(color.Gray).Y
}

// Text in a font that is not embedded is drawn with a font of the machine, which make test installs.
func TestDrawMissingFont(t *testing.T) {
	const text = "BT /F 100 Tf 50 100 Td <6F2B753B> Tj ET" // 漫画
	page := "/Resources<</Font<</F<</Type/Font/Subtype/Type0/BaseFont/STSong-Light/Encoding/UniGB-UCS2-H/DescendantFonts[5 0 R]>>>>>>"
	b := written(1, text, page, "<</Type/Font/Subtype/CIDFontType0/BaseFont/STSong-Light/CIDSystemInfo<</Registry(Adobe)/Ordering(GB1)/Supplement 2>>/FontDescriptor 6 0 R>>",
		"<</Type/FontDescriptor/FontName/STSong-Light/Flags 4/FontBBox[0 -200 1000 900]/ItalicAngle 0/Ascent 900/Descent -200/CapHeight 700/StemV 80>>")
	for folder, want := range map[string]bool{"": true, "/nowhere": false} {
		img := drawnBy(t, pdfdraw.Config{Side: 600, CacheDir: compiled, Fonts: folder}, b)
		dark := 0
		for y := range img.Bounds().Dy() {
			for x := range img.Bounds().Dx() {
				if brightness(img, x, y) < 0x80 {
					dark++
				}
			}
		}
		if (dark > 5000) != want {
			t.Errorf("with fonts in %q %d pixels are dark", folder, dark)
		}
	}
}

// TestDrawEncrypted draws a document whose password for reading is empty.
func TestDrawEncrypted(t *testing.T) {
	b, err := os.ReadFile("../pdf/testdata/aes-256.pdf")
	if err != nil {
		t.Fatal(err)
	}
	r := pdfdraw.New(pdfdraw.Config{Side: 600, CacheDir: compiled})
	out, err := r.Draw(t.Context(), bytes.NewReader(b), int64(len(b)), 1)
	if err != nil {
		t.Fatal(err)
	}
	img, err := jpeg.Decode(bytes.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	if dark, _, _, _ := img.At(200, 300).RGBA(); dark > 0x2000 {
		t.Errorf("%x in the square", dark)
	}
}

type failing struct{ err error }

func (f failing) ReadAt([]byte, int64) (int, error) { return 0, f.err }

// begun reports when PDFium starts to read the document.
type begun struct {
	*bytes.Reader
	once  sync.Once
	begun chan struct{}
}

func beginning(b []byte) *begun {
	return &begun{Reader: bytes.NewReader(b), begun: make(chan struct{})}
}

func (s *begun) ReadAt(p []byte, off int64) (int, error) {
	s.once.Do(func() { close(s.begun) })
	return s.Reader.ReadAt(p, off)
}

// good draws a valid page.
func good(t *testing.T, r *pdfdraw.Renderer) {
	t.Helper()
	b := document(1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := r.Draw(ctx, bytes.NewReader(b), int64(len(b)), 0); err != nil {
		t.Errorf("a good page: %v", err)
	}
}

// tooLong draws a page that takes too long.
func tooLong(t *testing.T, r *pdfdraw.Renderer, source *begun) {
	t.Helper()
	var a *archive.Error
	if _, err := r.Draw(t.Context(), source, source.Size(), 0); !errors.As(err, &a) || a.Kind != archive.TooLarge {
		t.Errorf("a page that takes too long: %v", err)
	}
}

// A page that takes too long only affects its own reader.
func TestDrawAfterTooLong(t *testing.T) {
	r := pdfdraw.New(pdfdraw.Config{Side: 300, CacheDir: compiled, Timeout: 3 * time.Second})
	for range 2 {
		tooLong(t, r, beginning(endless()))
		good(t, r)
	}
}

// The wait behind a page that takes too long does not count as drawing time.
func TestDrawBehindTooLong(t *testing.T) {
	for _, atOnce := range []int{1, 2} {
		t.Run(fmt.Sprint(atOnce, " at once"), func(t *testing.T) {
			r := pdfdraw.New(pdfdraw.Config{Side: 300, CacheDir: compiled, Timeout: 3 * time.Second, AtOnce: atOnce})
			var wg sync.WaitGroup
			for range atOnce {
				source := beginning(endless())
				wg.Go(func() { tooLong(t, r, source) })
				select {
				case <-source.begun:
				case <-time.After(time.Minute):
					t.Fatal("the page that takes too long was not begun")
				}
			}
			for range 4 {
				wg.Go(func() { good(t, r) })
			}
			wg.Wait()
		})
	}
}

// A reader who leaves during a page or while waiting affects no other.
func TestDrawAfterLeaving(t *testing.T) {
	r := pdfdraw.New(pdfdraw.Config{Side: 300, CacheDir: compiled, Timeout: time.Minute})
	for range 2 {
		source := beginning(endless())
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			_, err := r.Draw(ctx, source, source.Size(), 0)
			left <- err
		}()
		select {
		case <-source.begun:
		case err := <-left:
			t.Fatalf("a page that takes long: %v", err)
		}
		impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := r.Draw(impatient, source, source.Size(), 0); !errors.As(err, new(*archive.Undrawn)) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a reader who does not wait: %v", err)
		}
		leave()
		if err := <-left; !errors.As(err, new(*archive.Undrawn)) || !errors.Is(err, context.Canceled) {
			t.Errorf("a reader who has left: %v", err)
		}
		good(t, r)
	}
}
