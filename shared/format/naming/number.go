package naming

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	bareNumber = lazily(`\d+(?:\.\d{1,2})?`)
	behind     = lazily(`^\s+(?:(?i:annual)\s+)?(\d{1,4}(?:\.\d{1,2})?|[1-9]0{6})(?:$|[^\p{Latin}\p{N}.]|\.\p{L}|(?:([A-Ca-c])|` + events + `)(?:$|   ))`)
	inFront    = lazily(` - (\d{1,4}(?:\.\d{1,2})?)\s{2,}$|(?:^|[^\p{L}\p{N}.-])(0\d{1,2}(?:\.\d{1,2})?)\s\s$| - (\d{1,4}(?:\.\d{1,2})?) - $`)
	behindDash = lazily(`^\s+-\s+(0\d{1,3}(?:\.\d{1,2})?)()(?:$|   | - )`)
	second     = lazily(`^\s(\d{1,4}(?:\.\d{1,2})?)(?:$|   )`)
	countWords = lazily(`(?i)^\s*(?:of|de|von|sur|di|из)\s*(\d{1,4})(?:$|[^\p{L}\p{N}])`)
	lateFix    = lazily(`(?i)^\s?(?:v|rev\.?\s?)([1-9])(?:$|[^\p{L}\p{N}])`)
	// A number with leading zeros and the version after it: not "Eyeshield 21 v2", nor "07-Ghost v2", "Cyborg 009 v02".
	lateNumber  = lazily(`(?:^|[^\p{L}\p{N}-])0\d{1,2}(?:\.\d)?\s$`)
	lateVersion = lazily(`^v[2-4]\s*$|^v[2-4]   `)
	another     = lazily(`^(?:\s+|\s+-\s+0)(\d{1,4}(?:\.\d{1,2})?)(?:$|   )`) // three spaces: a removed bracket
	further     = lazily(`\s(0\d{1,3}(?:\.\d{1,2})?)(?:v\d|-\d{1,4})?(?:$|   | - |\s` + nearYear + `(?:$|\s))`)
	yearNext    = lazily(`^\s` + nearYear + `(?:$|\s)`)
	rangeEnd    = lazily(`^(?:\s?[-~&+]\s?|\s(?:to|à|bis|до)\s)(\d{1,4}(?:\.\d{1,2})?)(?:$|[^\p{Latin}\p{N}.])`)
	bareYear    = lazily(`(?:[\s.]|(?:^|\D)\d\d?-)((?:19|20)\d\d)(?:$|[^\p{L}\p{N}])`)
	padded      = lazily(`(?:^|[^\p{L}\p{N}])0\d+\s*$|(?i:copy|kopie|copie|copia|копия)\s*$`)
	hashes      = lazily(`(?i)[0-9a-f]{8,}|\d+[ -]in[ -]\d+`) // and "3 in 1"
	subIssue    = lazily(`^(?:([A-Da-d]|bis|ter)|` + events + `)(?:$|[^\p{L}\p{N}])`)
	rangeBegin  = lazily(`(\p{L}*)[^\s\d]*\s(\d{1,4}) - $`)
	seasons     = wordSet(`seasons?|saison|staffel|temporada|stagione|seizoen|sezon|сезон|시즌|シーズン|arc|saga|cycle|year`)
)

// events are suffixes of issue numbers in crossover events: "10AI" belongs to "Age of Ultron".
const events = `AI|AU|BEY|HU|INH|LR|MU|NOW|NU`

// copyOf reports whether the number in brackets marks a copy of a file: "Title 012 (1)", "Title 012 - Copy (2)".
func (r *reader) copyOf() bool {
	return padded.MatchString(r.text[:r.bracketAt.from]) && r.Count == nil
}

// behindVolume takes the number after a volume ("v2 012"): an issue of the second series. It has up to four digits, or
// is a round million. After a dash it has leading zeros and nothing beside it: "v2 - 012 - Title".
func (r *reader) behindVolume() bool {
	if r.volumeNumber == nil || r.last > len(r.text) {
		return false
	}
	m := behind.FindStringSubmatchIndex(r.text[r.last:])
	if m == nil && r.VolumeTo == nil {
		m = behindDash.FindStringSubmatchIndex(r.text[r.last:])
	}
	if m == nil || isYear(r.text[r.last+m[2]:r.last+m[3]]) {
		return false
	}
	r.Number = parse(r.text[r.last+m[2] : r.last+m[3]])
	r.take(span{r.last + m[2], r.last + max(m[3], m[5])})
	return true
}

// beforeVolume takes the number before a volume in brackets: "012 (v03)", or one between dashes: "Naruto - 700 (Vol.
// 72)". "Mob Psycho 100 (v03)" and "Cyborg 009 (2005) v03" have none.
func (r *reader) beforeVolume() bool {
	if r.volumeNumber == nil {
		return false
	}
	m := find(inFront, strings.ContainsAny(r.text[:r.first], "0123456789"), r.text[:r.first])
	if m == nil {
		return false
	}
	at := span{max(m[2], m[4], m[6]), max(m[3], m[5], m[7])}
	if isYear(r.text[at.from:at.to]) {
		return false
	}
	r.Number = parse(r.text[at.from:at.to])
	r.take(at)
	return true
}

// candidate is a standalone number with its score.
type candidate struct {
	at    span
	score int
}

// standalone takes the standalone number with the highest score. These raise the score: being a whole segment between "
// - " other than the first, having a count, leading zeros, ending its segment, being in the first segment. Among equals
// the last one of its segment wins.
func (r *reader) standalone() {
	if s := strings.TrimSpace(r.text); s != "" && s == bareNumber.FindString(s) && len(s) <= maxDigits {
		r.Number = parse(s) // the whole name is a number: even if it could be a year
		r.take(span{0, len(r.text)})
		return
	}
	best := candidate{score: -1 << 30}
	hex := hashes.FindAllStringIndex(r.text, -1)
	for i, seg := range segments(r.text) {
		for _, m := range bareNumber.FindAllStringIndex(r.text[seg.from:seg.to], -1) {
			at := span{seg.from + m[0], seg.from + m[1]}
			if c := r.rate(at, seg, i, hex); c.score >= best.score && (c.score > best.score || i == 0) {
				best = c
			}
		}
	}
	if best.score == -1<<30 {
		return
	}
	best.at = r.begin(best.at)
	r.Number = parse(r.text[best.at.from:best.at.to])
	if m := subIssue.FindStringSubmatch(r.text[best.at.to:]); m != nil {
		r.take(span{best.at.from, best.at.to + len(m[1])})
		return
	}
	r.take(best.at)
	if m := rangeEnd.FindStringSubmatchIndex(r.text[best.at.to:]); m != nil {
		end := r.text[best.at.to+m[2] : best.at.to+m[3]]
		if to := parse(end); to != nil && r.Number != nil && *to > *r.Number && !isYear(end) &&
			!r.noRange(r.text[best.at.from:best.at.to], span{best.at.to, best.at.to + m[2]}, span{best.at.to + m[2], best.at.to + m[3]}) {
			r.NumberTo = to
			r.take(span{best.at.from, best.at.to + m[3]})
		}
	}
}

// counted reports whether a count follows directly: "3 of 6", "3 (of 6)".
func (r *reader) counted(at int) bool {
	if countWords.MatchString(r.text[at:]) {
		return true
	}
	return at <= r.countAt && strings.TrimSpace(r.text[at:r.countAt]) == ""
}

// pair reports whether another number follows directly and ends the segment. The first one then belongs to the series,
// even with leading zeros: "Cyborg 009 12".
func pair(after string) bool {
	m := second.FindStringSubmatch(after)
	return m != nil && !isYear(m[1])
}

// begin returns the first number of a range with a spaced dash, given the second: "Title 001 - 010". Such a range
// starts with 1, like 001 or 011. "Fantastic 4 - 012", "Cyborg 009 - 012" and "Season 1 - 12" are not ranges.
func (r *reader) begin(second span) span {
	m := rangeBegin.FindStringSubmatchIndex(r.text[:second.from])
	rest := r.text[second.to:]
	if m == nil || strings.TrimSpace(rest) != "" && !strings.HasPrefix(rest, "   ") && !strings.HasPrefix(rest, " - ") {
		return second
	}
	word, first, last := strings.ToLower(r.text[m[2]:m[3]]), r.text[m[4]:m[5]], r.text[second.from:second.to]
	from, to := parse(first), parse(last)
	switch {
	case seasons.has(word), isYear(last), from == nil, to == nil, *to <= *from:
		return second
	case *from == 1 && (last[0] != '0' || len(first) == len(last)), first[0] == '0' && strings.HasSuffix(first, "1") && len(first) == len(last):
		return span{m[4], m[5]}
	}
	return second
}

const (
	impossible = -1 << 30
	nearby     = 40 // bytes before a number that may show a range or a count
)

func (r *reader) rate(at, seg span, index int, hex [][]int) candidate {
	n, before, after := r.text[at.from:at.to], r.text[seg.from:at.from], r.text[at.to:seg.to]
	for _, h := range hex {
		if at.from >= h[0] && at.to <= h[1] && len(n) < h[1]-h[0] {
			return candidate{at, impossible}
		}
	}
	near := before[max(0, len(before)-nearby):]
	last, _ := utf8.DecodeLastRuneInString(before)
	next, _ := utf8.DecodeRuneInString(after)
	switch {
	case parse(n) == nil, isYear(n), before != "" && (isLatinLetter(last) || unicode.IsDigit(last) || last == '.' || last == '$' || last == '\'' || last == '’'):
		return candidate{at, impossible}
	case glued(n, after): // "012a"
	case after != "" && isLatinLetter(next) && !lateFix.MatchString(after) && !countWords.MatchString(after), next == '%':
		return candidate{at, impossible}
	case n[0] != '0' && phrases.has(wordInFront(before)) && wordNext.MatchString(after): // "The 39 Steps"
		return candidate{at, impossible}
	case n[0] != '0' && at.from == 0 && unicode.IsLetter(next) && !isLatinLetter(next): // "100日後"
		return candidate{at, impossible}
	case ofCount.MatchString(near):
		return candidate{at, impossible} // "3 of 6": the second number is a count
	case rangeStart.MatchString(near):
		return candidate{at, impossible} // the end of a range is not a number of its own
	}
	score := 0
	text := strings.TrimSpace(before) == "" && strings.Trim(after, separators) == ""
	if text && index > 0 {
		score += 20
	}
	if r.counted(at.to) { // "The New 52 - Futures End 48 (of 48)"
		score += 15
	}
	if len(n) > 1 && n[0] == '0' && n[1] != '.' && (len(n) == 2 || !pair(after)) {
		score += 12
	}
	if ends(r.text[at.to:], after) {
		score += 10
	} else if index == 0 {
		score-- // "30 Days of Night - Dark Days 3"
	}
	if r.season(at.from) && strings.TrimSpace(before) != "" {
		score -= 11 // "Worm - Arc 12 - Plague 12.3"
	}
	if index == 0 {
		score += 5
	} else {
		score -= 5
	}
	if last == '-' && before != "" && !text {
		score -= 8 // "X-23"
	}
	return candidate{at, score}
}

var (
	phrases    = wordSet(`the|a|an|in|en|of|for|from|with|at|on|le|les|de|des|du|der|die|das|den|los|las|el|gli|i|os|as`)
	wordNext   = lazily(`^[\s-]\p{L}{2}`)
	ofCount    = lazily(`(?i)\d\s*(?:of|de|von|sur|di|из)\s*$`)
	rangeStart = lazily(`(?:^|[^\p{L}\p{N}-])\d{1,4}(?:\s?[-~&+]\s?|\s(?:to|à|bis|до)\s)$`)
)

// wordInFront returns the last word of a text, in lower case.
func wordInFront(text string) string {
	text = strings.TrimRight(text, " ")
	return strings.ToLower(text[strings.LastIndexByte(text, ' ')+1:])
}

// glued reports whether letters right after a number belong to it. Without leading zeros they must end their segment,
// and a D means dimensions.
func glued(n, after string) bool {
	m := subIssue.FindStringSubmatchIndex(after)
	if m == nil || n[0] == '0' {
		return m != nil
	}
	rest := after[m[1]:]
	return after[0] != 'D' && after[0] != 'd' && (strings.Trim(rest, separators) == "" || strings.HasPrefix(rest, "  "))
}

// ends reports whether a number ends its segment: nothing, a bracket, a count or a revision follows.
func ends(rest, after string) bool {
	switch {
	case strings.Trim(after, separators) == "":
		return true
	case strings.HasPrefix(after, "   "): // a removed bracket
		return true
	}
	return countWords.MatchString(rest) || lateFix.MatchString(rest) || strings.HasPrefix(after, ". ") || subIssue.MatchString(after) || rangeEnd.MatchString(rest) || yearNext.MatchString(rest)
}

// segments splits a text at spaced dashes, and after a number with a dot at the start.
func segments(s string) []span {
	var out []span
	from := 0
	for i := 0; i+2 < len(s); i++ {
		if s[i] == ' ' && s[i+1] == '-' && s[i+2] == ' ' {
			if i >= from { // otherwise the dashes share a space: "Title - - 012"
				out = append(out, span{from, i})
			}
			from = i + 3
		}
	}
	return append(out, span{from, len(s)})
}

// count reads "of 6" after the number.
func (r *reader) count() {
	if r.first < 0 {
		return
	}
	if m := countWords.FindStringSubmatchIndex(r.text[r.last:]); m != nil {
		if n := r.text[r.last+m[2] : r.last+m[3]]; isYear(n) { // "No. 3 de 2014"
			return
		}
		r.Count = whole(r.text[r.last+m[2] : r.last+m[3]])
		r.last += m[3]
	}
}

// revision reads "v2" right after a number or chapter: a new version of the book.
func (r *reader) revision() {
	if r.Number == nil || r.first < 0 {
		return
	}
	if m := lateFix.FindStringSubmatchIndex(r.text[r.last:]); m != nil {
		r.revise(r.text[r.last+m[2] : r.last+m[3]])
		r.last += m[3]
	}
}

// year takes a standalone year if no bracket has one. It stays in the series name.
func (r *reader) year() {
	if r.Year != nil || !strings.Contains(r.text, "19") && !strings.Contains(r.text, "20") {
		return
	}
	for _, m := range bareYear.FindAllStringSubmatchIndex(r.text, -1) {
		n := r.text[m[2]:m[3]]
		if taken := m[2] >= r.first && m[3] <= r.last && r.first >= 0; !taken && n >= "1930" && n <= "2039" {
			r.Year = whole(n)
			if m[2] >= r.last && r.first >= 0 {
				r.text = r.text[:m[2]] // remarks follow the number and the year
			}
			return
		}
	}
}

func isLatinLetter(r rune) bool { return unicode.IsLetter(r) && unicode.Is(unicode.Latin, r) }
