package imaging

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
)

// comicPage draws a page as comics have them, always the same one: panels with
// gradients, halftone, hatching, film grain and black lines.
func comicPage(w, h int) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	rnd := rand.New(rand.NewPCG(7, 11))
	const gutter = 40
	panelW, panelH := (w-gutter)/2, (h-gutter)/3
	for y := range h {
		for x := range w {
			px, py := x/panelW, y/panelH
			lx, ly := x%panelW, y%panelH
			c := color.RGBA{255, 255, 255, 255}
			if lx >= gutter && ly >= gutter && px < 2 && py < 3 {
				c = panelPixel(px+2*py, lx-gutter, ly-gutter, panelW-gutter, panelH-gutter, rnd)
			}
			img.SetRGBA(x, y, c)
		}
	}
	return img
}

func panelPixel(n, x, y, w, h int, rnd *rand.Rand) color.RGBA {
	if x < 6 || y < 6 || x >= w-6 || y >= h-6 {
		return color.RGBA{10, 10, 12, 255}
	}
	fx, fy := float64(x)/float64(w), float64(y)/float64(h)
	r, g, b := 90+120*fy, 120+80*fx, 200-90*fy
	switch n % 3 {
	case 0: // halftone, denser downwards
		dx, dy := math.Mod(float64(x+y), 9)-4.5, math.Mod(float64(x-y+9*h), 9)-4.5
		if math.Hypot(dx, dy) < 1+4.5*fy {
			r, g, b = 200, 60, 50
		}
	case 1: // cross-hatching
		if (x+2*y)%14 < 2 || (2*x-y+14*h)%22 < 2 {
			r, g, b = 30, 28, 35
		}
	case 2: // lettering-like strokes
		if y%26 < 14 && (x*7+y/26*131)%19 < 6 && y%26%5 != 3 {
			r, g, b = 20, 20, 20
		} else {
			r, g, b = 250, 246, 235
		}
	}
	// the outline of a figure
	if d := math.Abs(math.Hypot(fx-0.5, (fy-0.5)*1.3) - 0.3 - 0.05*math.Sin(12*math.Atan2(fy-0.5, fx-0.5))); d < 0.012 {
		r, g, b = 12, 10, 10
	}
	grain := rnd.NormFloat64() * 6
	clip := func(v float64) uint8 { return uint8(max(0, min(255, v+grain))) }
	return color.RGBA{clip(r), clip(g), clip(b), 255}
}

var pageJPEG = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, comicPage(1600, 2400), &jpeg.Options{Quality: 88}); err != nil {
		panic(err) // cannot fail into memory
	}
	return b.Bytes()
})

func jpegOf(t testing.TB, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
