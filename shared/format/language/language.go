// Package language converts languages to BCP 47 tags.
package language

import (
	"strings"

	"golang.org/x/text/language"
)

// names are language names that files contain instead of tags.
var names = map[string]string{"english": "en", "japanese": "ja", "jp": "ja", "french": "fr", "german": "de", "spanish": "es",
	"italian": "it", "portuguese": "pt", "russian": "ru", "korean": "ko", "chinese": "zh", "cn": "zh", "dutch": "nl", "polish": "pl",
	"français": "fr", "deutsch": "de", "español": "es", "italiano": "it", "日本語": "ja", "한국어": "ko", "中文": "zh", "русский": "ru"}

// Tag returns the canonical tag of a language (pt_br is pt-BR, eng is en), also for a few names, or "" for anything
// else.
func Tag(s string) string {
	s = strings.TrimSpace(s)
	if code, ok := names[strings.ToLower(s)]; ok {
		return code
	}
	tag, err := language.Parse(s)
	if err != nil || tag == language.Und {
		return ""
	}
	return tag.String()
}

// IsCode tells whether a text has the form of an ISO 639-1 code: two small letters, such as en.
func IsCode(s string) bool { return len(s) == 2 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz") == "" }
