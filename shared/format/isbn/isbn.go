// Package isbn reads and checks ISBNs.
package isbn

import (
	"regexp"
	"slices"
	"strings"
)

// Parse returns the digits of a valid ISBN-10 or ISBN-13, or "". Where nothing names the value an ISBN (named, or a
// prefix of its own), only an ISBN-13 is taken for one.
func Parse(value string, named bool) string {
	v, prefixed := cutPrefix(value)
	v = digits(v)
	switch {
	case len(v) == 13 && (strings.HasPrefix(v, "978") || strings.HasPrefix(v, "979")) && validGTIN(v):
		return v
	case len(v) == 10 && (named || prefixed) && valid10(v):
		return v
	}
	return ""
}

// Named tells whether a value says of itself that it is an ISBN.
func Named(value string) bool {
	_, named := cutPrefix(value)
	return named
}

// Wrong tells whether a value that names a trade item (GTIN) does not: it calls itself an ISBN and is none, or it is a
// number of 10, 12 or 13 digits with another check digit. Other values are not judged: comics have 14 and 17 digits,
// which are 12 and a supplement.
func Wrong(value string) bool {
	v, named := cutPrefix(value)
	v = digits(v)
	switch {
	case Parse(v, true) != "":
		return false
	case named:
		return true
	case !number.MatchString(v):
		return false
	}
	return len(v) == 10 || (len(v) == 12 || len(v) == 13) && !validGTIN(v)
}

// number is a number with a check digit.
var number = regexp.MustCompile(`^\d+[\dX]$`)

// cutPrefix takes away what names a value an ISBN.
func cutPrefix(value string) (rest string, found bool) {
	value = strings.ToUpper(strings.TrimSpace(value))
	for _, prefix := range []string{"URN:ISBN:", "ISBN:", "ISBN-13:", "ISBN-10:", "ISBN"} {
		if rest, ok := strings.CutPrefix(value, prefix); ok {
			return rest, true
		}
	}
	return value, false
}

// digits leaves out what only separates them.
func digits(v string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == ' ' || r == '\u2010' || r == '\u2011' {
			return -1
		}
		return r
	}, v)
}

// validGTIN checks a GTIN of any length, as every ISBN-13 is one: from the right, every second digit counts three times.
func validGTIN(v string) bool {
	sum := 0
	for i := range len(v) {
		d := int(v[i]) - '0'
		if d < 0 || d > 9 {
			return false
		}
		if (len(v)-i)%2 == 0 {
			d *= 3
		}
		sum += d
	}
	return sum%10 == 0
}

func valid10(v string) bool {
	sum := 0
	for i := range 10 {
		d := int(v[i]) - '0'
		if i == 9 && v[i] == 'X' {
			d = 10
		}
		if d < 0 || d > 9 && i < 9 || d > 10 {
			return false
		}
		sum += d * (10 - i)
	}
	return sum%11 == 0
}

var written = regexp.MustCompile(`(?i)\b(?:isbn(?:-1[03])?:?\s*)?(?:97[89][- \x{2010}\x{2011}]?)?\d(?:[- \x{2010}\x{2011}]?\d){8}[- \x{2010}\x{2011}]?[\dX]\b`)

// Find returns the digits of the ISBNs that a text names, each once.
func Find(text string) (found []string) {
	for _, v := range written.FindAllString(text, 100) {
		if n := Parse(v, false); n != "" && !slices.Contains(found, n) {
			found = append(found, n)
		}
	}
	return found
}
