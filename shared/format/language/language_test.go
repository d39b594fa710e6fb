package language_test

import (
	"testing"

	"github.com/longbox/longbox/shared/format/language"
)

func TestTag(t *testing.T) {
	for in, want := range map[string]string{"ja": "ja", "JA-jp": "ja-JP", "pt_br": "pt-BR", "eng": "en", " zh-Hant ": "zh-Hant", "Japanese": "ja",
		"日本語": "ja", "jp": "ja", "": "", "und": "", "klingonish": "", "xx-": "", "x": ""} {
		if got := language.Tag(in); got != want {
			t.Errorf("Tag(%q) = %q, want %q", in, got, want)
		}
	}
}
