package naming

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A marker is a word that a number follows: "v", "vol.", "#".
// The expressions find candidates; find checks what stands around them, which
// RE2 cannot express without consuming it.
var (
	hashMarker    = regexp.MustCompile(`#\s?(\d+(?:\.\d+)?)`)
	volumeMarker  = regexp.MustCompile(`(?i)v(?:ol(?:ume)?)?\.?[\s_]*(\d+(?:\.\d+)?)`)
	chapterMarker = regexp.MustCompile(`(?i)c(?:h(?:apter)?)?\.?[\s_]*(\d+(?:\.\d+)?)`)
	partMarker    = regexp.MustCompile(`(?i)part\.?[\s_]*(\d+(?:\.\d+)?)`)
	episodeMarker = regexp.MustCompile(`(?i)ep(?:isode)?\.?[\s_]*(\d+(?:\.\d+)?)`)
	inParentheses = regexp.MustCompile(`\(\s*(\d+(?:\.\d+)?)\s*\)`)
	bracketed     = regexp.MustCompile(`\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}`)
	bareNumber    = regexp.MustCompile(`\d+(?:\.\d+)?`)
	chapterNext   = regexp.MustCompile(`^(?i)c(?:h(?:apter)?)?\.?\d`)
)

// maxName bounds the work on one name, in bytes; object keys are at most 1024.
const maxName = 4096

// maxDigits is the longest digit run that is read as a number; longer ones are
// dates, hashes or identifiers.
const maxDigits = 7

// Number returns the number of a book by its file name: the first of "#N", a
// chapter or volume marker, "part N", "ep N", "(N)" and a number standing
// alone. Where a name has both a volume and a chapter the chapter is the
// number, because it is what tells the books of one volume apart. A year
// (1900-2099) in parentheses or among other words is not a number. Of several
// numbers standing alone the last zero-padded one is taken, else the last.
func Number(filename string) (float64, bool) {
	name := clip(Stem(filename))
	if n, ok := find(name, hashMarker, false); ok {
		return parse(n)
	}
	if n, ok := find(name, chapterMarker, true); ok {
		return parse(n)
	}
	for _, marker := range []*regexp.Regexp{volumeMarker, partMarker, episodeMarker} {
		if n, ok := find(name, marker, true); ok {
			return parse(n)
		}
	}
	for _, m := range inParentheses.FindAllStringSubmatch(name, -1) {
		if !isYear(m[1]) && len(m[1]) <= maxDigits {
			return parse(m[1])
		}
	}
	return standalone(name)
}

// Volume returns the volume that a file name states with a marker ("v01",
// "vol. 1", "Volume 1"). A fractional volume ("v01.5") is none.
func Volume(filename string) (int, bool) {
	n, ok := find(clip(Stem(filename)), volumeMarker, true)
	if !ok {
		return 0, false
	}
	v, err := strconv.Atoi(n)
	return v, err == nil
}

// Chapter returns the chapter that a file name states with a marker ("c002",
// "ch. 2.5", "Chapter 2").
func Chapter(filename string) (float64, bool) {
	n, ok := find(clip(Stem(filename)), chapterMarker, true)
	if !ok {
		return 0, false
	}
	return parse(n)
}

// find returns the digits after the first true occurrence of a marker: one
// that, when it is a word, follows the start or neither a Latin letter nor a
// digit, and whose number is not glued to a letter ("c2c" is a scanner's note).
func find(name string, marker *regexp.Regexp, word bool) (string, bool) {
	for at := 0; at < len(name); {
		m := marker.FindStringSubmatchIndex(name[at:])
		if m == nil {
			return "", false
		}
		start, end := at+m[0], at+m[1]
		number := name[at+m[2] : at+m[3]]
		if len(number) <= maxDigits && (!word || startsWord(name, start)) && endsNumber(name[end:]) {
			return number, true
		}
		at = start + 1
	}
	return "", false
}

func startsWord(name string, at int) bool {
	r, _ := utf8.DecodeLastRuneInString(name[:at])
	return at == 0 || !isLatinLetter(r) && !unicode.IsDigit(r)
}

func endsNumber(rest string) bool {
	r, _ := utf8.DecodeRuneInString(rest)
	return rest == "" || !isLatinLetter(r) || chapterNext.MatchString(rest)
}

func standalone(name string) (float64, bool) {
	if whole := strings.TrimSpace(name); bareNumber.FindString(whole) == whole && whole != "" && len(whole) <= maxDigits {
		return parse(whole)
	}
	name = bracketed.ReplaceAllStringFunc(name, func(s string) string { return strings.Repeat(" ", len(s)) })
	best, padded := "", false
	for _, m := range bareNumber.FindAllStringIndex(name, -1) {
		n := name[m[0]:m[1]]
		if len(n) > maxDigits || isYear(n) || !startsWord(name, m[0]) || !endsNumber(name[m[1]:]) {
			continue
		}
		if strings.HasSuffix(strings.ToLower(strings.TrimRight(name[:m[0]], " ")), " of") {
			continue // "3 of 6": the second number is a count
		}
		zero := len(n) > 1 && n[0] == '0' && n[1] != '.'
		if zero || !padded {
			best, padded = n, padded || zero
		}
	}
	if best == "" {
		return 0, false
	}
	return parse(best)
}

func isYear(n string) bool {
	return len(n) == 4 && (strings.HasPrefix(n, "19") || strings.HasPrefix(n, "20"))
}

func isLatinLetter(r rune) bool { return unicode.IsLetter(r) && unicode.Is(unicode.Latin, r) }

func parse(n string) (float64, bool) {
	f, err := strconv.ParseFloat(n, 64)
	return f, err == nil
}

func clip(name string) string {
	if len(name) <= maxName {
		return name
	}
	return strings.ToValidUTF8(name[:maxName], "")
}
