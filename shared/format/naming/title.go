package naming

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Stem returns the file name of a slash-separated key without folders and extension. An extension starts with a letter
// and has at most eight letters or digits, so that the fraction of "Emakimono 10.5" stays; or it is a book extension
// such as .7z.
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

// Line returns a title as people type it: in composed characters (NFC), because some file systems and programs write
// accents separately, and on one line without characters that change the text direction.
func Line(title string) string {
	return lineBreaks.Replace(norm.NFC.String(title))
}

var lineBreaks = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ", "\t", " ", "\u2028", " ", "\u2029", " ",
	"\u202a", "", "\u202b", "", "\u202c", "", "\u202d", "", "\u202e", "", "\u2066", "", "\u2067", "", "\u2068", "", "\u2069", "")

// Hidden reports whether a name must not contain a character: control characters, and those that change the text
// direction, so that a list would show another name (UAX #9, explicit embeddings, overrides and isolates). Joiners
// between the letters of many scripts are allowed.
func Hidden(r rune) bool {
	return unicode.IsControl(r) || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}

// Printable trims a single-line text, normalizes it to NFC as scans do, and reports whether it has at least one visible
// character and none that is Hidden.
func Printable(text *string) bool {
	*text = norm.NFC.String(strings.TrimSpace(*text))
	seen := func(r rune) bool { return !unicode.IsSpace(r) && !unicode.Is(unicode.Cf, r) }
	return strings.ContainsFunc(*text, seen) && !strings.ContainsFunc(*text, Hidden)
}

// Normalize returns a title in the form for searches: lower case, single spaces, no accents on Latin letters. The marks
// of other scripts, such as dakuten, have meaning and stay.
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

// SortTitle returns the default sort title of a series or book: the title in composed form, trimmed and with single
// spaces. Leading articles stay, because the API fills titleSort with the title.
func SortTitle(title string) string {
	return norm.NFC.String(strings.Join(strings.Fields(strings.ToValidUTF8(title, "")), " "))
}
