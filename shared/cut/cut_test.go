package cut_test

import (
	"testing"

	"github.com/longbox/longbox/shared/cut"
)

func TestCut(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]struct{ bytes, brief, chars, storable string }{
		"":          {},
		"short":     {"short", "short", "shor", "short"},
		"ééé":       {"éé", "éé…", "ééé", "ééé"},
		"a\x00b":    {"a\x00b", "a\x00b", "a\x00b", "ab"},
		"ab\xffdef": {"abde", "abde…", "ab\xffd", "ab\ufffddef"},
		"日本語のタイトル":  {"日", "日…", "日本語の", "日本語のタイトル"},
	} {
		if got := cut.Bytes(in, 5); got != want.bytes {
			t.Errorf("%q of 5 bytes is %q, want %q", in, got, want.bytes)
		}
		if got := cut.Brief(in, 5); got != want.brief {
			t.Errorf("%q in brief is %q, want %q", in, got, want.brief)
		}
		if got := cut.Chars(in, 4); got != want.chars {
			t.Errorf("%q of 4 characters is %q, want %q", in, got, want.chars)
		}
		if got := cut.Storable(in); got != want.storable {
			t.Errorf("%q is stored as %q, want %q", in, got, want.storable)
		}
	}
}
