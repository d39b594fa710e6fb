package pdfdraw_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/jpeg"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/format/pdfdraw"
)

// document is a PDF of n pages, each with a black square on white.
func document(n int) []byte {
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
	object("<</Type/Pages/Count %d/Kids[%s]/MediaBox[0 0 200 300]>>", n, kids.String())
	content := "50 100 100 100 re f"
	object("<</Length %d>>stream\n%s\nendstream", len(content), content)
	for range n {
		object("<</Type/Page/Parent 2 0 R/Contents 3 0 R>>")
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
	r := pdfdraw.New(pdfdraw.Config{Side: 600, CacheDir: t.TempDir()})
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

type failing struct{ err error }

func (f failing) ReadAt([]byte, int64) (int, error) { return 0, f.err }
