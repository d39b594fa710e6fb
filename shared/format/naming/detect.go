package naming

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/longbox/longbox/shared/cut"
)

// maxName limits the length of a name, in bytes. Object keys have at most 1024.
const maxName = 1024

// Name is the information in a file name. Unknown values are nil, zero or "".
//
// Number is the first of these: "#N", a chapter marker, the number after a volume ("v2 012") or before one in brackets
// ("012 (v03)"), a volume marker, "issue N", "ep N", "part N", "(N)", the 1, 2, 3 of 上中下, a standalone number, and the
// issue after a year ("2019-14"). If a name has both a volume and a chapter, Number is the chapter, which distinguishes
// the books of one volume. A year (1900-2099) in parentheses or among other words is not a number. A fractional volume
// ("v01.5") gives a Number and no Volume.
type Name struct {
	Series             string // the text before the first marker or number, unchanged
	Title              string // the text after the last one
	Volume, VolumeTo   *int   // VolumeTo ends a range, like ChapterTo and NumberTo
	Chapter, ChapterTo *float64
	Number, NumberTo   *float64
	Count              *int // "(of 6)"
	Year               *int
	Kind               string // annual, one-shot, special, extra, tpb, omnibus, graphic-novel, prologue, epilogue
	Revision           int    // 2 in "c012v2"
	Group              string // the bracketed word at the start: a group or an author
}

// span is the part of the text of a marker or number.
type span struct{ from, to int }

// reader is the state of one Detect.
type reader struct {
	Name
	text          string   // prepared; brackets without further information are blanked
	changes       []change // the original text of replaced parts
	tags          []span   // where brackets were
	before        []string // words before numbers
	ascii         bool
	first         int      // start of the first marker or number, or -1
	last          int      // end of the last one
	chapterBehind bool     // the number precedes its marker
	volumeNumber  *float64 // also a fraction, which is no Volume
	volumeEnd     int
	bracket       *float64 // "(3)", at bracketAt
	bracketAt     span
	countAt       int      // position of "(of 6)"
	halved        bool     // "(상)": elsewhere such a letter is a word
	week          *float64 // of "2019-14", at weekAt
	weekAt        span
}

// Detect analyses a file name (or a key: it ignores folders and extension).
func Detect(filename string) Name {
	name := prepare(cut.Bytes(Stem(filename), maxName))
	r := reader{text: name.text, changes: name.changes, first: -1}
	r.brackets()
	r.dates()
	r.totals()
	r.before, r.ascii = wordsBefore(r.text), ascii(r.text)
	r.kind()
	r.chapter()
	r.volume()
	issue, issueTo := r.issue()
	switch {
	case issue != nil && issue.strong:
		r.Number, r.NumberTo = &issue.value, issueTo
	case r.Chapter != nil:
		r.Number, r.NumberTo = r.Chapter, r.ChapterTo
	case r.behindVolume(), r.beforeVolume():
	case r.volumeNumber != nil:
		r.Number = r.volumeNumber
		if r.VolumeTo != nil {
			r.NumberTo = new(float64(*r.VolumeTo))
		}
	case issue != nil:
		r.Number, r.NumberTo = &issue.value, issueTo
	case r.bracket != nil && !r.copyOf():
		r.Number = r.bracket
		r.take(r.bracketAt)
	case r.half():
	default:
		r.standalone()
		if r.Number == nil && r.week != nil {
			r.Number = r.week
			if strings.TrimSpace(r.text[:r.weekAt.from]) != "" { // otherwise the series follows
				r.take(r.weekAt)
			}
		}
	}
	r.count()
	r.revision()
	r.year()
	r.words()
	return r.Name
}

// take records a part of the text as a marker or number.
func (r *reader) take(s span) {
	if r.first < 0 || s.from < r.first {
		r.first = s.from
	}
	r.last = max(r.last, s.to)
}

// blank replaces a part of the text with spaces, so that positions stay valid.
func (r *reader) blank(s span) {
	r.text = r.text[:s.from] + strings.Repeat(" ", s.to-s.from) + r.text[s.to:]
}

const separators = " \t-–—:;,.·・|~!_#/"

var (
	quoted    = lazily(`^[「『«"“](.*?)[」』»"”]?$`)
	enclosing = lazily(`\s+`)
	sentence  = lazily(`\p{L}{4}\.$`) // "S.H.I.E.L.D." keeps its last dot
)

// words finds the series before the first marker and the title after the last one, each up to a bracket.
func (r *reader) words() {
	head, tail := span{0, len(r.text)}, span{}
	if r.first >= 0 {
		head, tail = span{0, r.first}, span{r.last, len(r.text)}
	}
	for _, t := range r.tags {
		switch {
		case strings.TrimSpace(r.text[:min(t.from, head.to)]) == "": // at the start: a group
		case t.from < head.to:
			head.to = t.from
		}
		if t.from >= tail.from && t.from < tail.to && strings.TrimSpace(r.text[tail.from:t.from]) != "" {
			tail.to = t.from
		}
	}
	r.Series, r.Title = tidy(written(r.changes, r.text, head)), tidy(written(r.changes, r.text, tail))
	if m := quoted.FindStringSubmatch(r.Title); m != nil {
		r.Title = strings.TrimSpace(m[1])
	}
}

func tidy(s string) string {
	s = enclosing.ReplaceAllString(strings.TrimSpace(s), " ")
	s = strings.TrimRight(s, " \t-–—:;,·・|~_#/([{（<〈《「『")
	s = strings.TrimLeft(s, " \t-–—:;,.·・|~_/#)]}>〉》」』")
	if strings.HasSuffix(s, ".") && (strings.Count(s, ".") == 1 || sentence.MatchString(s)) {
		s = strings.TrimRight(s, ".")
	}
	return strings.TrimSpace(s)
}

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

func isYear(n string) bool {
	return len(n) == 4 && (strings.HasPrefix(n, "19") || strings.HasPrefix(n, "20"))
}

// parse parses a number with a decimal point or comma. It returns nil if it is no number or too long.
func parse(n string) *float64 {
	n = strings.Replace(n, ",", ".", 1)
	whole, _, _ := strings.Cut(n, ".")
	if len(strings.TrimPrefix(whole, "-")) > maxDigits || len(n) > maxDigits+4 {
		return nil
	}
	f, err := strconv.ParseFloat(n, 64)
	if err != nil {
		return nil
	}
	return &f
}

func whole(n string) *int {
	if len(n) > maxDigits {
		return nil
	}
	i, err := strconv.Atoi(n)
	if err != nil {
		return nil
	}
	return &i
}
