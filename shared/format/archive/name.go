package archive

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// clean makes a stored name safe for display: UTF-8, composed, '/' between its parts, no control or bidi characters, no
// drive, no root, no "." or ".." parts. An empty result becomes "unnamed". directory is true for a name that ends with
// a separator.
func clean(raw string) (name string, directory bool) {
	if isPlain(raw) {
		return raw, false
	}
	raw = strings.ToValidUTF8(raw, "\ufffd")
	raw = strings.Map(func(r rune) rune {
		switch {
		case r == '\\':
			return '/'
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\ufeff', r == '\u2028', r == '\u2029':
			return -1
		}
		return r
	}, raw)
	directory = strings.HasSuffix(raw, "/")
	parts := strings.Split(raw, "/")
	kept := parts[:0]
	for i, part := range parts {
		if i == 0 && isDrive(part) {
			continue
		}
		if part = strings.TrimSpace(part); part != "" && part != "." && part != ".." {
			kept = append(kept, part)
		}
	}
	if len(kept) == 0 {
		return "unnamed", directory
	}
	return norm.NFC.String(strings.Join(kept, "/")), directory
}

// isDrive reports whether the first part of a name is a drive (C:). "1: Winter" and "A: Beginning" are folders whose
// names tell their order.
func isDrive(part string) bool {
	return len(part) == 2 && part[1] == ':' && unicode.IsLetter(rune(part[0]))
}

// SetNames sets the cleaned names of entries from the names in another container. Names that are not UTF-8 are decoded
// together.
func SetNames(entries []Entry, raw []string) {
	var old legacyNames
	for i, name := range raw {
		if !utf8.ValidString(name) { // some may be marked as UTF-8, in RAR 4 and pax
			old.add(i, name)
		}
		clean, folder := clean(name)
		entries[i].Name, entries[i].Directory = clean, entries[i].Directory || folder
	}
	old.decode(entries)
}

// isPlain reports whether a name needs no cleaning, without allocating.
func isPlain(s string) bool {
	previous := byte('/')
	for i := range len(s) {
		c := s[i]
		switch {
		case c < ' ' || c > '~' || c == '\\' || c == ':':
			return false
		case previous == '/' && (c == '/' || c == '.' || c == ' '), c == '/' && previous == ' ':
			return false
		}
		previous = c
	}
	return previous != '/' && previous != ' '
}
