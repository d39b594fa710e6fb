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
	v := strings.ToUpper(strings.TrimSpace(value))
	for _, prefix := range []string{"URN:ISBN:", "ISBN:", "ISBN-13:", "ISBN-10:", "ISBN"} {
		if rest, ok := strings.CutPrefix(v, prefix); ok {
			v, named = rest, true
			break
		}
	}
	v = strings.Map(func(r rune) rune {
		if r == '-' || r == ' ' || r == '\u2010' || r == '\u2011' {
			return -1
		}
		return r
	}, v)
	switch {
	case len(v) == 13 && (strings.HasPrefix(v, "978") || strings.HasPrefix(v, "979")) && valid13(v):
		return v
	case len(v) == 10 && named && valid10(v):
		return v
	}
	return ""
}

func valid13(v string) bool {
	sum := 0
	for i := range 13 {
		d := int(v[i]) - '0'
		if d < 0 || d > 9 {
			return false
		}
		sum += d * (1 + 2*(i%2))
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
