package imaging

import (
	"math"
	"slices"
)

// ladder holds the sizes, in pixels, that renditions are made in.
var ladder = []int{16, 32, 64, 100, 150, 200, 250, 300, 400, 500, 600, 700, 800, 900, 1000, 1100, 1200, 1300, 1400, 1500, 1600, 1700,
	1800, 1900, 2000, 2200, 2400, 2600, 2800, 3000}

// Sizes are the steps of Ladder.
func Sizes() []int { return slices.Clone(ladder) }

// Ladder rounds a requested width or height down to the fixed steps that renditions are made in, so that clients cannot
// fill the store with sizes: down, since what is asked for is a maximum. Below the first step it is as requested. For 0
// or less it returns 0: no bound but the original's own size.
func Ladder(width int) int {
	i, exact := slices.BinarySearch(ladder, width)
	switch {
	case exact:
		return width
	case i == 0:
		return max(0, width)
	}
	return ladder[i-1]
}

// fit returns the largest size with the aspect ratio of w x h that is inside
// the box and not larger than w x h; a bound of 0 is none. No side becomes 0.
func fit(w, h, boxW, boxH int) (int, int) {
	scale := 1.0
	if boxW > 0 {
		scale = min(scale, float64(boxW)/float64(w))
	}
	if boxH > 0 {
		scale = min(scale, float64(boxH)/float64(h))
	}
	side := func(n int) int { return max(1, int(math.Round(float64(n)*scale))) }
	return side(w), side(h)
}

// shrinkOnLoad returns the largest power of two, at most 8, by which a decoder
// may divide both sides without falling below the target.
func shrinkOnLoad(w, h, toW, toH int) int {
	shrink := 1
	for shrink < 8 && w/(shrink*2) >= toW && h/(shrink*2) >= toH {
		shrink *= 2
	}
	return shrink
}
