// Package isbn parses and checks ISBNs.
package isbn

import (
	"slices"
	"strings"

	"github.com/longbox/longbox/shared/lazyregexp"
)

// Parse returns the digits of a valid ISBN-10 or ISBN-13, or "". If nothing marks the value as an ISBN (named, or a
// prefix of its own), only an ISBN-13 is accepted.
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

// Named reports whether a value is marked as an ISBN by a prefix.
func Named(value string) bool {
	_, named := cutPrefix(value)
	return named
}

// Wrong reports whether a value is an invalid GTIN: it is marked as an ISBN and is none, or it is a number of 10, 12 or
// 13 digits with a wrong check digit. Other values are not checked: comics have 14 and 17 digits, which are 12 and a
// supplement.
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

// number matches a number with a check digit.
var number = lazyregexp.New(`^\d+[\dX]$`)

// prefix matches what marks a value as an ISBN, in the forms that people and programs write: "ISBN-13: ", "ISBN 10 ",
// "ISBN (13) ", "eISBN ". No ISBN has 10 or 13 as its first group, so with a separator after them they are the kind.
const prefix = `(?:urn:)?(?:e-?)?isbn(?:[- ]?(?:\(1[03]\)|1[03][:\s\x{a0}]))?[:\s\x{a0}]*`

// separator matches separators of digits, including typographic dashes and spaces.
const separator = `[- \x{2010}-\x{2013}\x{a0}]`

var beginning = lazyregexp.New(`(?i)^` + prefix)

// cutPrefix removes the prefix that marks an ISBN.
func cutPrefix(value string) (rest string, found bool) {
	value = strings.TrimSpace(value)
	at := beginning.FindStringIndex(value)
	if at == nil {
		return strings.ToUpper(value), false
	}
	return strings.ToUpper(value[at[1]:]), true
}

// digits removes separators.
func digits(v string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == ' ' || r >= '\u2010' && r <= '\u2013' || r == '\u00a0' {
			return -1
		}
		return r
	}, v)
}

// validGTIN checks a GTIN of any length; every ISBN-13 is one. Every second digit from the right counts three times.
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
		} else if d < 0 || d > 9 {
			return false
		}
		sum += d * (10 - i)
	}
	return sum%11 == 0
}

var written = lazyregexp.New(`(?i)\b(?:` + prefix + `)?(?:97[89]` + separator + `?)?\d(?:` + separator + `?\d){8}` + separator + `?[\dX]\b`)

// Find returns the digits of the ISBNs in a text, without duplicates.
func Find(text string) (found []string) {
	for _, v := range written.FindAllString(text, 100) {
		if n := Parse(v, false); n != "" && !slices.Contains(found, n) {
			found = append(found, n)
		}
	}
	return found
}
