package imaging

import (
	"bytes"
	"context"
	"errors"
	"testing"
)

// A JPEG whose last two bytes, the mark of its end, are missing has all of its pixels; one that lacks more has not.
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
