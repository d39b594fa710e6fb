package sevenz

import (
	"errors"
	"testing"

	"github.com/longbox/longbox/shared/format/archive"
)

// No stream refers beyond its start: a small archive with a large declared dictionary is within the limits, and takes
// no more memory than its content.
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

// The dictionaries of a chain are in memory at the same time: eight of the maximum size took 512 MB.
func TestDictionariesOfAChain(t *testing.T) {
	t.Parallel()
	large, small := coder{idLZMA2, []byte{28}, 1 << 30}, coder{idLZMA2, []byte{28}, 1000}
	for name, c := range map[string]struct {
		coders []coder
		want   archive.Kind
	}{
		"one of the limit's size":    {[]coder{large}, ""},
		"with a filter":              {[]coder{{idDelta, []byte{2}, 1 << 30}, large}, ""},
		"two":                        {[]coder{large, large}, archive.TooLarge},
		"one and a small one":        {[]coder{small, large}, archive.TooLarge},
		"two small ones":             {[]coder{small, small}, ""},
		"Zstandard":                  {[]coder{{idZstd, nil, 1 << 30}}, ""},
		"Zstandard and another":      {[]coder{large, {idZstd, nil, 1 << 30}}, archive.TooLarge},
		"Zstandard, and a small one": {[]coder{{idZstd, nil, 1000}, small}, ""},
	} {
		var problem *archive.Error
		err := folder{coders: c.coders}.check(archive.Limits{}.WithDefaults())
		if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &problem) || problem.Kind != c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
