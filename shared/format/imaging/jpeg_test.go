package imaging

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
)

// A JPEG without its last two bytes, the end marker, has all of its pixels; one that lacks more does not.
func TestUnendedJPEG(t *testing.T) {
	t.Parallel()
	whole := jpegOf(t, halves(64, 64, red, blue))
	for name, src := range map[string][]byte{"unended": whole[:len(whole)-2], "half a mark": whole[:len(whole)-1], "padded": append(bytes.Clone(whole), 0, 0)} {
		before := bytes.Clone(src)
		res := mustRender(t, src, Spec{Format: PNG})
		img := pixels(t, res)
		expectColour(t, img, 10, 60, red, 8)
		expectColour(t, img, 60, 60, blue, 8)
		if res.Width != 64 || res.Height != 64 || !bytes.Equal(src, before) {
			t.Errorf("%s: %d x %d", name, res.Width, res.Height)
		}
	}
	_, err := New(Config{}).Render(context.Background(), whole[:len(whole)-40], Spec{Format: PNG})
	if !errors.As(err, new(*Undecodable)) {
		t.Errorf("cut in its pixels: %v", err)
	}
}

// Errors that decoders only warn about do not cost a page.
func TestJPEGWithMistakes(t *testing.T) {
	t.Parallel()
	whole := jpegOf(t, halves(64, 64, red, blue))
	scan := bytes.Index(whole, []byte("\xff\xda"))
	tables := bytes.Index(whole, []byte("\xff\xc4"))
	body := scan + 2 + int(whole[scan+3]) // of one segment of less than 256 bytes
	for name, src := range map[string][]byte{
		"parameters of the scan": slices.Concat(whole[:body-3], []byte{0, 0, 0}, whole[body:]),
		"bytes between segments": slices.Concat(whole[:tables], []byte{0, 1, 2}, whole[tables:]),
		"bytes before the end":   slices.Concat(whole[:len(whole)-2], []byte{0, 1, 2}, whole[len(whole)-2:]),
	} {
		for _, spec := range []Spec{{Format: PNG}, {Width: 16, Format: PNG}} {
			res := mustRender(t, src, spec)
			img := pixels(t, res)
			expectColour(t, img, res.Width/4, res.Height/2, red, 8)
			expectColour(t, img, res.Width*3/4, res.Height/2, blue, 8)
			if res.SourceWidth != 64 {
				t.Errorf("%s: %+v", name, spec)
			}
		}
	}
}
