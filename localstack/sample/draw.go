package sample

import (
	"image"
	"image/color"
	"math"
	"strconv"
)

// Size of a page, in pixels.
const (
	width  = 800
	height = 1200
)

// draw paints a page: a sky that darkens from page to page, waves, and the book's and the page's number.
func draw(hue float64, book, page, pages int) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	dusk := float64(page-1) / float64(pages)
	sea := float64(height) * (0.62 + 0.03*float64(book))
	var surface [width]float64
	for x := range surface {
		surface[x] = sea + 14*math.Sin(float64(x)/70+float64(page)) + 6*math.Sin(float64(x)/23+float64(book*page))
	}
	for y := range height {
		sky := tint(hue, 0.35+0.3*dusk, (1-0.55*dusk)*(0.65+0.35*float64(y)/height))
		water := tint(hue+0.04, 0.55, (0.75-0.4*dusk)*(1-0.4*(float64(y)-sea)/height))
		for x := range width {
			if float64(y) < surface[x] {
				img.SetRGBA(x, y, sky)
			} else {
				img.SetRGBA(x, y, water)
			}
		}
	}
	paper := color.RGBA{250, 248, 240, 255}
	digits(img, strconv.Itoa(book), width/2, 240, 60, paper)
	digits(img, strconv.Itoa(page), width/2, 1020, 24, paper)
	return img
}

// tint returns a colour with the given hue (turns), saturation and brightness (0 to 1).
func tint(hue, saturation, value float64) color.RGBA {
	value = min(max(value, 0), 1)
	channel := func(shift float64) uint8 {
		k := math.Mod(shift+hue*6, 6)
		return uint8(255 * (value - value*saturation*max(0, min(k, 4-k, 1))))
	}
	return color.RGBA{channel(5), channel(3), channel(1), 255}
}

// glyphs are the digits as rasters of 3 × 5, row by row.
var glyphs = [10]string{
	"111101101101111", "010110010010111", "111001111100111", "111001111001111", "101101111001001",
	"111100111001111", "111100111101111", "111001010010010", "111101111101111", "111101111001111",
}

// digits paints a number around (cx, cy) in squares of the given size.
func digits(img *image.RGBA, text string, cx, cy, square int, c color.RGBA) {
	left := cx - (4*len(text)-1)*square/2
	top := cy - 5*square/2
	for i, digit := range text {
		for bit, on := range glyphs[digit-'0'] {
			if on != '1' {
				continue
			}
			x, y := left+(4*i+bit%3)*square, top+bit/3*square
			for dy := range square {
				for dx := range square {
					img.SetRGBA(x+dx, y+dy, c)
				}
			}
		}
	}
}
