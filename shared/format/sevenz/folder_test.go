package sevenz

import "testing"

// No stream refers beyond its beginning: a small archive made with a large dictionary is within the limits, and takes
// no more memory than it has content.
func TestDictionary(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		coder
		want int64
	}{
		{coder{idLZMA, []byte{93, 0, 0, 0, 16}, 1000}, 1000},
		{coder{idLZMA, []byte{93, 0, 0, 1, 0}, 1 << 30}, 64 << 10},
		{coder{idLZMA2, []byte{32}, 1000}, 1000},
		{coder{idLZMA2, []byte{19}, 1 << 30}, 3 << 20},
		{coder{idLZMA2, []byte{40}, 1 << 40}, 4 << 30},
	} {
		if got := c.dictionary(); got != c.want {
			t.Errorf("%x %v of %d bytes: %d, want %d", c.id, c.properties, c.size, got, c.want)
		}
	}
}
