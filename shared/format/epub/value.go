package epub

import (
	"html"
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

// readDate reads the publication date: from the elements marked so, otherwise from the first unmarked one. A year
// before 1000 is a placeholder of some program.
func (b *book) readDate(dates []*xmllimit.Node) {
	best, original, published := "", "", false
	for _, n := range dates {
		event := strings.ToLower(n.Attr("event"))
		switch {
		case strings.Contains(event, "original"):
			if m := datePattern.FindStringSubmatch(b.text(n)); m != nil {
				b.pub.OriginalYear, _ = strconv.Atoi(m[1]) // four digits
			}
			original = b.text(n)
		case strings.Contains(event, "publication"):
			b.setDate(b.text(n))
			best = ""
			published = true
		case event == "" && best == "" && !published:
			best = b.text(n)
		}
	}
	if best == "" && !published {
		best = original
	}
	if best != "" {
		b.setDate(best)
	}
}

func (b *book) setDate(value string) {
	m := datePattern.FindStringSubmatch(value)
	if m == nil {
		if m = yearPattern.FindStringSubmatch(value); m == nil {
			b.warn("%s: %.60q is not a date", b.opfPath, value)
			return
		}
		m = append(m, "", "", "", "")
	}
	year, _ := strconv.Atoi(m[1]) // the pattern leaves only digits
	month, _ := strconv.Atoi(m[2] + m[4])
	day, _ := strconv.Atoi(m[3] + m[5])
	if year < 1000 {
		return
	}
	b.pub.Year = year
	if month < 1 || month > 12 {
		return
	}
	b.pub.Month = month
	if day >= 1 && time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC).Day() == day {
		b.pub.Day = day
	}
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
