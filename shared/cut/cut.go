// Package cut shortens texts that others wrote: to a length, and to what the database can store.
package cut

import "strings"

// Bytes is the beginning of s, at most so many bytes, without half a character at its end.
func Bytes(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}

// Brief is Bytes with an ellipsis where something is left out, for messages.
func Brief(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return Bytes(s, most) + "…"
}

// Chars is the beginning of s, at most so many characters.
func Chars(s string, most int) string {
	for i := range s {
		if most--; most < 0 {
			return s[:i]
		}
	}
	return s
}

// Storable is s as the database takes it: valid UTF-8 without NUL.
func Storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "")
}
