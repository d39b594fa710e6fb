package scanner

import "testing"

func TestClip(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"": "", "short": "short", "a\x00b\xff": "ab", "0123456789": "0123456789", "012345678é": "012345678…", "01234567\x00é": "01234567…"} {
		if got := clip(in, 10); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}
