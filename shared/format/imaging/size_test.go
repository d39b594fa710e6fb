package imaging

import (
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/format/mediatype"
)

func TestLadder(t *testing.T) {
	t.Parallel()
	for in, want := range map[int]int{-1: 0, 0: 0, 1: 16, 15: 16, 16: 16, 99: 64, 150: 150, 199: 150, 1080: 1000, 1100: 1100, 2199: 2000, 3000: 3000, 3001: 3000, 1 << 40: 3000} {
		if got := Ladder(in); got != want {
			t.Errorf("Ladder(%d) = %d, want %d", in, got, want)
		}
	}
}

func TestLadderRoundsDownFromItsFirstStep(t *testing.T) {
	t.Parallel()
	for n := 1; n < 4000; n++ {
		if got := Ladder(n); got > max(n, 16) || got < min(n, 3000)/2 || Ladder(got) != got {
			t.Errorf("Ladder(%d) = %d", n, got)
		}
	}
}

func TestFit(t *testing.T) {
	t.Parallel()
	tests := []struct{ w, h, boxW, boxH, wantW, wantH int }{
		{1600, 2400, 300, 0, 300, 450},
		{1600, 2400, 0, 300, 200, 300},
		{1600, 2400, 300, 300, 200, 300},
		{1600, 2400, 3000, 3000, 1600, 2400},
		{1600, 2400, 0, 0, 1600, 2400},
		{1, 60000, 0, 100, 1, 100},
		{60000, 1, 100, 100, 100, 1},
		{4000, 60016, 1200, 16383, 1092, 16383},
	}
	for _, tt := range tests {
		if w, h := fit(tt.w, tt.h, tt.boxW, tt.boxH); w != tt.wantW || h != tt.wantH {
			t.Errorf("fit(%d x %d in %d x %d) = %d x %d, want %d x %d", tt.w, tt.h, tt.boxW, tt.boxH, w, h, tt.wantW, tt.wantH)
		}
	}
}

func TestShrinkOnLoad(t *testing.T) {
	t.Parallel()
	tests := []struct{ w, h, toW, toH, want int }{
		{1600, 2400, 300, 450, 4},
		{1600, 2400, 200, 300, 8},
		{1600, 2400, 100, 150, 8},
		{1600, 2400, 800, 1200, 2},
		{1600, 2400, 801, 1201, 1},
		{1600, 2400, 1600, 2400, 1},
		{16, 3000, 2, 300, 8},
	}
	for _, tt := range tests {
		if got := shrinkOnLoad(tt.w, tt.h, tt.toW, tt.toH); got != tt.want {
			t.Errorf("shrinkOnLoad(%d x %d to %d x %d) = %d, want %d", tt.w, tt.h, tt.toW, tt.toH, got, tt.want)
		}
	}
}

// TestWorkingSet pins which decoders are charged for the whole picture.
func TestWorkingSet(t *testing.T) {
	t.Parallel()
	strip := header{mediaType: mediatype.JPEG, width: 4000, height: 60016, orientation: 1, stream: true}
	if got := New(Config{}).workingSet(strip, 0, 1200, 18005, Spec{Format: JPEG}); got > 64<<20 {
		t.Errorf("a tall strip that is decoded by lines is charged %d MiB", got>>20)
	}
	strip.stream = false
	if got := New(Config{}).workingSet(strip, 0, 1200, 18005, Spec{Format: JPEG}); got < 1<<30 {
		t.Errorf("the same strip, progressive, is charged only %d MiB", got>>20)
	}
	for _, c := range []struct {
		name   string
		h      header
		format string
		fits   bool
	}{
		{"noise of 16,000 x 16,000", header{mediaType: mediatype.JPEG, width: 16000, height: 16000, bands: 3, stream: true}, PNG, false},
		{"a tall strip", header{mediaType: mediatype.JPEG, width: 4000, height: 60016, bands: 3, stream: true}, JPEG, true},
		{"a large page", header{mediaType: mediatype.JPEG, width: 4000, height: 6000, bands: 3, stream: true}, PNG, true},
		{"a large page with transparency", header{mediaType: mediatype.PNG, width: 4000, height: 6000, bands: 4, stream: true}, PNG, true},
		{"a large JPEG XL", header{mediaType: mediatype.JXL, width: 3000, height: 4000}, PNG, true},
	} {
		r := New(Config{})
		if got := r.workingSet(c.h, 16<<20, c.h.width, c.h.height, Spec{Format: c.format, Quality: usualQuality}); (got <= r.cfg.MemoryBytes) != c.fits {
			t.Errorf("%s as %s is charged %d MiB", c.name, c.format, got>>20)
		}
	}
	page := header{mediaType: mediatype.JPEG, width: 1600, height: 2400, orientation: 1, stream: true}
	if got := New(Config{}).workingSet(page, 1<<20, 300, 450, Spec{Format: JPEG}); got != floorBytes+1<<20 {
		t.Errorf("a common page is charged %d", got)
	}
}

func TestConfigValidate(t *testing.T) {
	t.Parallel()
	if err := (Config{MaxPixels: -7}).withDefaults().Validate(); err == nil || err.Error() != "RENDER_MAX_PIXELS: must be at least 1, is -7" {
		t.Errorf("%v", err)
	}
	for name, c := range map[string]Config{
		"RENDER_MEMORY":            {MemoryBytes: 1 << 20},
		"RENDER_MAX_PIXELS":        {MaxPixels: 100, MaxStreamPixels: 10},
		"RENDER_MAX_STREAM_PIXELS": {MaxStreamPixels: 1 << 40},
		"RENDER_JPEG_XL_MEMORY":    {JXLMemory: 1 << 20},
	} {
		if err := c.withDefaults().Validate(); err == nil || !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("%+v: %v, want an error about %s", c, err, name)
		}
	}
}
