package jxl

import (
	"context"
	"image"
	"image/color"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	enough = Limits{Pixels: 1 << 20, Memory: 64 << 20, Time: time.Minute}
	red    = color.NRGBA{220, 30, 30, 255}
	green  = color.NRGBA{30, 180, 40, 255}
	blue   = color.NRGBA{30, 40, 200, 255}
	middle = color.NRGBA{128, 128, 128, 255}
)

func load(t testing.TB, name string) []byte {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("testdata", name+".jxl"))
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// Each is 96 x 64, with four colours: red, green, blue and grey from top left to bottom right.
func TestDecode(t *testing.T) {
	t.Parallel()
	quarters := [4]color.NRGBA{red, green, blue, middle}
	clear := [4]color.NRGBA{red, {30, 180, 40, 0}, blue, {128, 128, 128, 0}}
	for _, c := range []struct {
		name    string
		want    [4]color.NRGBA
		within  int
		profile bool
	}{
		{"lossy", quarters, 6, true},
		{"lossless", quarters, 0, true},
		{"progressive", quarters, 6, true},
		{"box", quarters, 6, true},
		{"jpeg", quarters, 6, true},                                   // a JPEG, recompressed
		{"deep", quarters, 0, true},                                   // 16 bits a channel
		{"anim", quarters, 0, true},                                   // two frames, the second one black
		{"alpha", clear, 0, true},                                     // the right half is transparent
		{"wide", quarters, 0, true},                                   // the primaries of DCI-P3
		{"turned", [4]color.NRGBA{blue, red, middle, green}, 6, true}, // orientation 6
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			img, profile, err := Decode(context.Background(), load(t, c.name), enough)
			if err != nil {
				t.Fatal(err)
			}
			w, h := 96, 64
			if c.name == "turned" {
				w, h = h, w
			}
			if img.Bounds() != image.Rect(0, 0, w, h) || (len(profile) > 128) != c.profile {
				t.Errorf("%v, profile of %d bytes", img.Bounds(), len(profile))
			}
			for i, want := range c.want {
				x, y := w/4+i%2*w/2, h/4+i/2*h/2
				got := color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)
				if far(got.R, want.R)+far(got.G, want.G)+far(got.B, want.B) > 3*c.within || got.A != want.A {
					t.Errorf("at %d, %d: %v, want %v", x, y, got, want)
				}
			}
		})
	}
}

func far(a, b uint8) int { return max(int(a)-int(b), int(b)-int(a)) }

func TestDecodeGrey(t *testing.T) {
	t.Parallel()
	img, _, err := Decode(context.Background(), load(t, "grey"), enough)
	if err != nil {
		t.Fatal(err)
	}
	grey, ok := img.(*image.Gray)
	if !ok || far(grey.GrayAt(72, 48).Y, 128) > 6 || grey.GrayAt(24, 48).Y > 90 {
		t.Errorf("%T, %v, %v", img, img.At(72, 48), img.At(24, 48))
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	src := load(t, "lossy")
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		name   string
		ctx    context.Context
		src    []byte
		limits Limits
		want   string
	}{
		{"pixels", context.Background(), src, Limits{96*64 - 1, enough.Memory, time.Minute}, "more pixels"},
		{"memory", context.Background(), src, Limits{enough.Pixels, least, time.Minute}, "more than 2097152 bytes of memory"},
		{"memory for nothing", context.Background(), src, Limits{enough.Pixels, least - 1, time.Minute}, "the decoder itself needs more than"},
		{"memory of the source", context.Background(), make([]byte, 3<<20), Limits{1, least, time.Minute}, "does not fit into 2097152 bytes"},
		{"time", context.Background(), src, Limits{enough.Pixels, enough.Memory, 1}, "longer than 1ns"},
		{"context", ended, src, enough, context.Canceled.Error()},
		{"nothing", context.Background(), nil, enough, "refuses"},
		{"other", context.Background(), []byte("\xff\x0anothing of the kind"), enough, "refuses"},
	} {
		if _, _, err := Decode(c.ctx, c.src, c.limits); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A file that is truncated anywhere is an error.
func TestDecodeCut(t *testing.T) {
	t.Parallel()
	src := load(t, "lossless")
	for n := range len(src) {
		if _, _, err := Decode(context.Background(), src[:n], enough); err == nil {
			t.Errorf("%d of %d bytes are an image", n, len(src))
		}
	}
}

// Concurrent decodes do not affect each other.
func TestDecodeAtOnce(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for range 8 {
		for name, want := range map[string]color.NRGBA{"lossless": red, "deep": red, "anim": red} {
			all.Go(func() {
				img, _, err := Decode(context.Background(), load(t, name), enough)
				if err != nil {
					t.Error(err)
				} else if got := img.At(24, 16); got != want {
					t.Errorf("%s: %v", name, got)
				}
			})
		}
	}
	all.Wait()
}

// For any bytes, the result is an image within the limits or an error.
func FuzzDecode(f *testing.F) {
	names, err := filepath.Glob("testdata/*.jxl")
	if err != nil || len(names) == 0 {
		f.Fatal(names, err)
	}
	for _, name := range names {
		f.Add(load(f, strings.TrimSuffix(filepath.Base(name), ".jxl")))
	}
	limits := Limits{Pixels: 1 << 16, Memory: 16 << 20, Time: 20 * time.Second}
	f.Fuzz(func(t *testing.T, src []byte) {
		began := time.Now()
		img, _, err := Decode(context.Background(), src, limits)
		if time.Since(began) > 30*time.Second {
			t.Errorf("it took %s", time.Since(began))
		}
		if err != nil {
			return
		}
		if size := img.Bounds(); size.Empty() || int64(size.Dx())*int64(size.Dy()) > limits.Pixels {
			t.Errorf("%v", size)
		}
	})
}
