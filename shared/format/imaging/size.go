package imaging

import (
	"math"
	"slices"
)

// ladder holds the sizes of renditions, in pixels.
var ladder = []int{16, 32, 64, 100, 150, 200, 250, 300, 400, 500, 600, 700, 800, 900, 1000, 1100, 1200, 1300, 1400, 1500, 1600, 1700,
	1800, 1900, 2000, 2200, 2400, 2600, 2800, 3000}

// Sizes returns the steps of Ladder.
func Sizes() []int { return slices.Clone(ladder) }

// Ladder rounds a requested width or height down to a fixed step, so that similar requests share a stored picture. It
// rounds down because a request is a maximum; only below the first step it rounds up. For 0 or less it returns 0, which
// means no limit but the original's size.
func Ladder(width int) int {
	i, exact := slices.BinarySearch(ladder, width)
	switch {
	case width <= 0:
		return 0
	case exact || i == 0:
		return ladder[i]
	}
	return ladder[i-1]
}

// fit returns the largest size with the aspect ratio of w x h that fits into the box and is not larger than w x h. A
// bound of 0 means none. No side becomes 0.
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

// shrinkOnLoad returns the largest power of two, at most 8, by which a decoder may divide both sides without falling
// below the target.
func shrinkOnLoad(w, h, toW, toH int) int {
	shrink := 1
	for shrink < 8 && w/(shrink*2) >= toW && h/(shrink*2) >= toH {
		shrink *= 2
	}
	return shrink
}
