package epub

import (
	"html"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/longbox/longbox/shared/format/xmllimit"
	"github.com/longbox/longbox/shared/lazyregexp"
)

var (
	// datePattern matches a date that starts with its year: 2012-05-01, 2012/5, 2012年5月1日, 20120501, with anything
	// after it.
	datePattern = lazyregexp.New(`^\s*(\d{4})(?:[-/.年](\d\d?)(?:[-/.月](\d\d?))?|(\d\d)(\d\d))?(?:\D|$)`)
	// yearPattern matches the year in other dates: May 2012, 1.5.2012, ©2012.
	yearPattern = lazyregexp.New(`(?:^|\D)(1[4-9]\d\d|20\d\d)(?:\D|$)`)
)

// readDate reads the publication date: the first usable one of those marked so, else of the unmarked ones, else of
// those of the original publication, else of the creation.
func (b *book) readDate(dates []*xmllimit.Node) {
	var published, unmarked, original, created []string
	for _, n := range dates {
		value := b.text(n)
		event := strings.ToLower(n.Attr("event"))
		switch {
		case strings.Contains(event, "original"):
			if m := datePattern.FindStringSubmatch(value); m != nil {
				b.pub.OriginalYear, _ = strconv.Atoi(m[1]) // four digits
			}
			original = append(original, value)
		case strings.Contains(event, "publication"):
			published = append(published, value)
		case event == "":
			unmarked = append(unmarked, value)
		case event == "creation":
			created = append(created, value)
		}
	}
	for _, value := range slices.Concat(published, unmarked, original, created) {
		if b.setDate(value) {
			return
		}
	}
}

// setDate reports whether the value has a year. One before 1000 is a placeholder of some program.
func (b *book) setDate(value string) bool {
	m := datePattern.FindStringSubmatch(value)
	if m == nil {
		if m = yearPattern.FindStringSubmatch(value); m == nil {
			b.warn("%s: %.60q is not a date", b.opfPath, value)
			return false
		}
		m = append(m, "", "", "", "")
	}
	year, _ := strconv.Atoi(m[1]) // the pattern leaves only digits
	month, _ := strconv.Atoi(m[2] + m[4])
	day, _ := strconv.Atoi(m[3] + m[5])
	if year < 1000 {
		return false
	}
	b.pub.Year = year
	if month < 1 || month > 12 {
		return true
	}
	b.pub.Month = month
	if day >= 1 && time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC).Day() == day {
		b.pub.Day = day
	}
	return true
}

var (
	hidden   = lazyregexp.New(`(?is)<(script|style|head)\b.*?(?:</(?:script|style|head)\s*>|$)|<!--.*?(?:-->|$)`)
	newLine  = lazyregexp.New(`(?i)</?(?:p|div|br|li|ul|ol|tr|h[1-6]|blockquote)\b[^<>]*>`)
	otherTag = lazyregexp.New(`</?[A-Za-z][^<>]*>`)
)

// PlainText converts a description, which is often HTML, to text: one line per paragraph, no markup. The result is
// text, not safe HTML: it must be escaped for display.
func PlainText(s string) string {
	s = hidden.ReplaceAllString(s, "")
	s = newLine.ReplaceAllString(s, "\n")
	s = html.UnescapeString(otherTag.ReplaceAllString(s, ""))
	var lines []string
	for line := range strings.Lines(s) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}
