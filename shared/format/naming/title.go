package naming

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Stem returns the file name of a slash-separated key without its folders and
// without its extension. An extension starts with a letter and has at most
// eight letters or digits, so that the fraction of "Emakimono 10.5" stays; or
// it is that of a book, as .7z is.
func Stem(key string) string {
	key = strings.TrimRight(key, "/")
	name := key[strings.LastIndexByte(key, '/')+1:]
	dot := strings.LastIndexByte(name, '.')
	if dot <= 0 || !isExtension(name[dot+1:]) && Format(name) == "" {
		return name
	}
	return name[:dot]
}

func isExtension(s string) bool {
	if s == "" || len(s) > 8 || !isLatinLetter(rune(s[0])) {
		return false
	}
	for _, r := range s {
		if r >= unicode.MaxASCII || !isLatinLetter(r) && !unicode.IsDigit(r) {
			return false
		}
	}
	return true
}

// Line returns a title as people type it: composed characters (NFC) where a file system or a program has written
// letters and accents apart, and on one line that runs as its letters do.
func Line(title string) string {
	return lineBreaks.Replace(norm.NFC.String(title))
}

var lineBreaks = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ", "\t", " ", "\u2028", " ", "\u2029", " ",
	"\u202a", "", "\u202b", "", "\u202c", "", "\u202d", "", "\u202e", "", "\u2066", "", "\u2067", "", "\u2068", "", "\u2069", "")

// Hidden tells of a character that a name may not have: a control character, or one that turns the direction of what
// follows it, so that a list shows another name (UAX #9, explicit embeddings, overrides and isolates). Those between
// the letters of many scripts may stand.
func Hidden(r rune) bool {
	return unicode.IsControl(r) || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}

// Normalize returns the form of a title that searches compare: lower case,
// spaces collapsed, accents of Latin letters removed; the marks of other
// scripts, such as dakuten, carry meaning and stay.
func Normalize(title string) string {
	var b strings.Builder
	b.Grow(len(title))
	latin, space := false, false
	for _, r := range norm.NFD.String(strings.ToLower(strings.ToValidUTF8(title, ""))) {
		if unicode.IsSpace(r) {
			latin, space = false, true
			continue
		}
		if unicode.Is(unicode.Mn, r) {
			if latin {
				continue
			}
		} else {
			latin = unicode.Is(unicode.Latin, r)
		}
		if space && b.Len() > 0 {
			b.WriteByte(' ')
		}
		space = false
		b.WriteRune(r)
	}
	return norm.NFC.String(b.String())
}

// SortTitle returns the title a series or book is sorted by until somebody sets
// another: the title itself in composed form, trimmed and with single spaces.
// Articles stay in front, as the interface fills titleSort with the title.
func SortTitle(title string) string {
	return norm.NFC.String(strings.Join(strings.Fields(strings.ToValidUTF8(title, "")), " "))
}
