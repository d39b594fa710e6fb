package library

import (
	"slices"
	"strings"

	"github.com/longbox/longbox/shared/format/naming"
)

// Selection returns which keys, relative to the library's root, are books, and the format that their name promises:
// no hidden files, none of another format than the allowed ones (no list allows all), none that a pattern excludes.
func Selection(formats []string, patterns string) (func(key string) (format string, ok bool), error) {
	excluded, err := Excluded(patterns)
	if err != nil {
		return nil, err
	}
	return func(key string) (string, bool) {
		format := naming.Format(key)
		if format == "" || Hidden(key) {
			return "", false
		}
		if len(formats) > 0 && !slices.ContainsFunc(formats, func(f string) bool { return strings.EqualFold(f, format) }) {
			return "", false
		}
		return format, !excluded(key)
	}, nil
}

// Hidden tells whether a key is a hidden file or lies in a hidden folder.
func Hidden(key string) bool {
	return strings.HasPrefix(key, ".") || strings.Contains(key, "/.") || strings.Contains("/"+key, "/__MACOSX/")
}
