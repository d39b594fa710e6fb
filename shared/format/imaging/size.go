package imaging

import (
	"math"
	"slices"
)

// ladder holds the sizes, in pixels, that renditions are made in.
var ladder = []int{150, 300, 400, 600, 800, 1000, 1200, 1600, 2000, 2400, 3000}

// Sizes are the steps of Ladder.
func Sizes() []int { return slices.Clone(ladder) }

// Ladder rounds a requested width or height up to the fixed steps that
// renditions are made in, so that clients cannot fill the store with sizes;
// above the last step, down to it, since what is asked for is a maximum. For 0
// or less it returns 0: no bound but the original's own size.
func Ladder(width int) int {
	if width <= 0 {
		return 0
	}
	i, _ := slices.BinarySearch(ladder, width)
	return ladder[min(i, len(ladder)-1)]
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
