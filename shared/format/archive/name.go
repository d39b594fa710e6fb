package archive

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/unicode/norm"
)

// clean turns a name as stored into one that is safe to show: UTF-8, composed,
// '/' between its parts, no control or direction-changing characters, no drive,
// no root, no "." or ".." parts. A name of which nothing is left is "unnamed".
// directory is true for a name that ends in a separator.
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
		if i == 0 && len(part) >= 2 && part[1] == ':' {
			part = part[2:] // C:
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

// SetNames gives entries their names as other containers store them, cleaned; those that are no UTF-8 are decoded
// together.
func SetNames(entries []Entry, raw []string) {
	var old legacyNames
	for i, name := range raw {
		old.add(i, name)
		clean, folder := clean(name)
		entries[i].Name, entries[i].Directory = clean, entries[i].Directory || folder
	}
	old.decode(entries)
}

// isPlain reports that a name needs no cleaning, without allocating.
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

// legacyNames collects the names that are neither marked nor valid as UTF-8.
// They are decoded together, as one program wrote them all.
type legacyNames struct {
	index []int
	names []string
}

func (l *legacyNames) add(index int, raw string) {
	if !utf8.ValidString(raw) {
		l.index = append(l.index, index)
		l.names = append(l.names, raw)
	}
}

// decode sets the names: Shift-JIS if all of them read as Japanese, else code
// page 437, which the format prescribes (APPNOTE appendix D).
func (l *legacyNames) decode(entries []Entry) {
	if len(l.index) == 0 {
		return
	}
	decoded, ok := shiftJIS(l.names)
	for i, n := range l.index {
		var name string
		if ok {
			name = decoded[i]
		} else {
			name, _ = charmap.CodePage437.NewDecoder().String(l.names[i]) // every byte is defined
		}
		clean, folder := clean(name)
		entries[n].Name, entries[n].Directory = clean, entries[n].Directory || folder
	}
}

// shiftJIS decodes names as Shift-JIS; ok if that gives Japanese.
//
// Accented letters of code page 437 followed by a letter are valid Shift-JIS
// too ("père" reads as p頁e), but give lone characters inside Latin words,
// where Japanese stands in runs or apart from Latin letters.
func shiftJIS(names []string) (decoded []string, ok bool) {
	good, bad := 0, 0
	for _, name := range names {
		s, err := japanese.ShiftJIS.NewDecoder().String(name)
		if err != nil || strings.ContainsRune(s, utf8.RuneError) {
			return nil, false
		}
		decoded = append(decoded, s)
		runes := []rune(s)
		for i, r := range runes {
			if r < utf8.RuneSelf {
				continue
			}
			inWord := i > 0 && isASCIILetter(runes[i-1]) || i+1 < len(runes) && isASCIILetter(runes[i+1])
			inRun := i > 0 && isJapanese(runes[i-1]) || i+1 < len(runes) && isJapanese(runes[i+1])
			if isJapanese(r) && (inRun || !inWord) {
				good++
			} else {
				bad++
			}
		}
	}
	return decoded, good > bad
}

func isJapanese(r rune) bool {
	return r >= '　' && r <= 'ヿ' || unicode.Is(unicode.Han, r)
}

func isASCIILetter(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' }
