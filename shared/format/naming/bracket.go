package naming

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	bracketYear  = lazily(`(?:^|[\s,.\-])((?:19|20)\d\d)(?:$|[\s,.\-])`)
	bracketCount = lazily(`(?i)^(?:(\d{1,4})\s*)?(?:of|de|von|sur|из|di)\s*(\d{1,4})$`)
	bracketFix   = lazily(`(?i)^(?:v|r|rev\.?\s?|f)(\d)(?:\.\d)?$|^fix(?:ed)?$`)
	ending       = lazily(`^[esx]$`)
	edition      = lazily(`(?i)^v\d\.0$`) // in file names: "Dune (v5.0)"; "v01.5" is a volume
	bracketPlain = lazily(`^\d{1,4}(?:\.\d{1,2})?$`)
	bracketMark  = lazily(`(?i)^` + oneMark + `(?:[\s,]+` + oneMark + `)?$|^` + behindMark + `$|^` + unitMark + `(?:\s*` + unitMark + `)?$|^第\s*\d{1,4}$|^[卷巻]\s*\d{1,4}$`)
	bracketIssue = lazily(`(?i)^(?:` + issueWords + `|n|` + episodeWords + `|` + partWords + `|` + cyrillicIssues + `)\.?[\s#]*` + markNumber + `$|^(?:第|제)?\s*` + markNumber + `\s*(?:冊|册|章|장)$|^(?:第|제)\s*` + markNumber + `\s*(?:号|號|호|集|期)$|^[話话]` + markNumber + `$`)
	bracketHash  = lazily(`[\s,]#\s?(\d{1,4}(?:\.\d{1,2})?)$`)
	bracketBook  = lazily(`(?i)\pL[\s,]+(?:books?|bk|vol|volume|tome|tomo|band|buch|livre|libro|книга|том)\.?\s(\d{1,4}(?:\.\d{1,2})?)$`)
	ownNumber    = lazily(`\p{L}.*\d|^\s*(?:0\d|\d+\s*(?:$|[-.]))`) // not the number of "2061 Odyssey Three"
	bracketName  = lazily(`^\p{L}.*\s#?\d{1,3}(?:\.\d{1,2})?$`)
	coverMark    = lazily(`^c\d$`)
	coverOf      = lazily(`(?:^|[^\p{L}\p{N}])(#?\s?\d{1,4})\s*$`)
	halfIn       = lazily(`^(?:[上中下][巻卷冊册篇編编集]?|[前中後后][編篇编]|[상중하]권?)$`)
	event        = lazily(`^C\d{2,3}$`) // the fair at which a book was sold
	category     = lazily(`(?i)^(?:一般|成年)?(?:コミック|小説|雑誌|漫画|漫畫|manga|comics?|raw|同人誌|完|完結)$`)
)

// Parts of bracketMark: a marker before its number, a marker after it, and East Asian units.
const (
	markNumber = `\d{1,4}(?:\.\d{1,2})?(?:\s?[-~&+]\s?\pL{0,3}\.?\d{1,4})?`
	oneMark    = `(?:` + volumeWords + `|t|` + chapterWords + `|#|eps?|episodes?|issues?|no|` + cyrillicVolumes + `|` + cyrillicChapters + `)\.?\s?` + markNumber
	behindMark = `\d{1,4}(?:-\d{1,4})?(?:(?:-?[йя])?\s*(?:` + cyrillicBehind + `|глава|главы)|\.?\s*(?:kötet|cilt|díl))`
	unitMark   = `(?:第|제)?\s*\d{1,4}(?:\.\d{1,2})?(?:\s?[-~]\s?\d{1,4})?\s*(?:巻|卷|권|話|话|화|회|回)`
)

// brackets reads the content of brackets and removes them from the text. A marker in brackets only loses the brackets.
// A bracket at the very start names a group.
func (r *reader) brackets() {
	groups := pairs(r.text)
	outside := r.text
	for _, g := range groups {
		outside = outside[:g.from] + strings.Repeat(" ", g.to-g.from) + outside[g.to:]
	}
	bare := strings.TrimSpace(outside) == ""
	kept := -1 // the bracket with the series, if there is nothing else
	for i, g := range groups {
		in := strings.TrimSpace(r.text[g.from+1 : g.to-1])
		front := strings.TrimSpace(r.text[:g.from]) == ""
		numberBefore := bareNumber.MatchString(outside[:g.from]) || r.bracket != nil
		plain, numbered := ascii(in), strings.ContainsAny(in, "0123456789") // most brackets need few of the expressions
		switch {
		case r.text[g.from] == '(' && ending.MatchString(in) && letterEnds(r.text[:g.from]):
			continue // "Uchronie(s)"
		case front && event.MatchString(in) && i+1 < len(groups) && strings.TrimSpace(r.text[g.to:groups[i+1].from]) == "":
		case !plain && total.MatchString(in):
			r.Count = whole(total.FindStringSubmatch(in)[1])
		case !plain && !front && (r.text[g.from] == '(' || in != "中") && halfIn.MatchString(in): // "[中]" is Chinese
			r.halved = true
			r.text = r.text[:g.from] + " " + r.text[g.from+1:g.to-1] + " " + r.text[g.to:]
			continue
		case numbered && edition.MatchString(in) && !numberBefore: // no information
		case numbered && r.cover(in, outside[:g.from]): // no information
		case numbered && !isYear(in) && bracketMark.MatchString(in) && !(bracketFix.MatchString(in) && numberBefore),
			numbered && !front && !bareNumber.MatchString(outside) && r.bracket == nil && bracketIssue.MatchString(in),
			numbered && r.text[g.from] == '[' && between(r.text, g) && bracketName.MatchString(in) && !bareNumber.MatchString(outside):
			r.text = r.text[:g.from] + " " + r.text[g.from+1:g.to-1] + " " + r.text[g.to:]
			continue
		case bracketFix.MatchString(in) && numberBefore:
			m := bracketFix.FindStringSubmatch(in)
			r.Revision = 2
			if n := whole(m[1]); n != nil && *n > 0 {
				r.Revision = *n
			}
		case bracketCount.MatchString(in):
			m := bracketCount.FindStringSubmatch(in)
			r.Count, r.countAt = whole(m[2]), g.from
			if m[1] != "" && r.bracket == nil {
				r.bracket, r.bracketAt = parse(m[1]), g
			}
		case isYear(in) || r.Year == nil && bracketYear.MatchString(in) && !bare:
			if m := bracketYear.FindStringSubmatch(in); m != nil && r.Year == nil {
				r.Year = whole(m[1])
			}
		// "Title (Series, #2)"
		case numbered && !front && r.bracket == nil && bracketHash.MatchString(in) && !ownNumber.MatchString(outside[:g.from]):
			r.bracket, r.bracketAt = parse(bracketHash.FindStringSubmatch(in)[1]), g
		// "Title (Series Book 2)"
		case numbered && !front && r.bracket == nil && bracketBook.MatchString(in) && !bareNumber.MatchString(outside):
			r.bracket, r.bracketAt = parse(bracketBook.FindStringSubmatch(in)[1]), g
		case bracketPlain.MatchString(in):
			if r.bracket == nil && !(front && strings.TrimSpace(outside) != "") {
				r.bracket, r.bracketAt = parse(in), g
			}
		case bare && kept < 0 && !category.MatchString(in):
			kept = i
			r.text = r.text[:g.from] + " " + r.text[g.from+1:g.to-1] + " " + r.text[g.to:]
			continue
		case front && r.Group == "" && r.text[g.from] == '[' && !category.MatchString(in) && !bare:
			r.Group = strings.TrimSpace(written(r.changes, r.text, span{g.from + 1, g.to - 1}))
		}
		r.kindOf(in)
		r.blank(g)
		r.tags = append(r.tags, g)
	}
}

func letterEnds(s string) bool {
	last, _ := utf8.DecodeLastRuneInString(s)
	return unicode.IsLetter(last)
}

// between reports whether a bracket is everything between two dashes: "Author - [Series 03] - Title".
func between(s string, at span) bool {
	return strings.HasSuffix(s[:at.from], " - ") && strings.HasPrefix(s[at.to:], " - ")
}

// cover reports whether a bracket is the number of a variant cover, not a chapter: "Title 005 (2020) (c1)". Before it
// there must be a number with a #, a year, or three digits that start with 0; "Title 2 (c1)" and "Title 02 (c1)" are
// chapters.
func (r *reader) cover(in, front string) bool {
	if !coverMark.MatchString(in) {
		return false
	}
	m := coverOf.FindStringSubmatch(front)
	if m == nil || isYear(m[1]) {
		return false
	}
	if r.Year == nil && !strings.HasPrefix(m[1], "#") && !(strings.HasPrefix(m[1], "0") && len(m[1]) > 2) {
		return false
	}
	before := wordsBefore(strings.TrimSpace(front))
	if strings.HasPrefix(m[1], "#") || len(before) == 0 {
		return true
	}
	word := before[len(before)-1]
	return !slices.ContainsFunc(volumeMarks, func(k marker) bool { return k.words.has(word) }) &&
		!slices.ContainsFunc(chapterMarks, func(k marker) bool { return k.words.has(word) })
}

// pairs returns the outermost brackets of a text, in order.
func pairs(s string) []span {
	closing := map[byte]byte{'(': ')', '[': ']', '{': '}'}
	var out []span
	for i := 0; i < len(s); i++ {
		end, opens := closing[s[i]]
		if !opens {
			continue
		}
		depth, j := 0, i
		for ; j < len(s); j++ {
			if s[j] == s[i] {
				depth++
			} else if s[j] == end {
				if depth--; depth == 0 {
					break
				}
			}
		}
		if j == len(s) {
			continue // never closed: an ordinary character
		}
		out = append(out, span{i, j + 1})
		i = j
	}
	return out
}

// kinds are words for a kind of book, each with letters that a name must contain for a match.
var kinds = []struct {
	has  []string
	word *pattern
	kind string
}{
	{[]string{"annual", "jahres"}, lazily(wordFrom + `annuals?|jahresband` + wordTo), "annual"},
	{[]string{"shot", "os", "読", "단편"}, lazily(`(?:^|[^\p{L}\p{N}])(?:one[ -]?shots?|os)(?:$|[^\p{L}\p{N}])|読み切り|読切|단편`), "one-shot"},
	{[]string{"tpb", "trade", "sammel", "intégr", "integr"}, lazily(wordFrom + `tpb|trade paperback|sammelband|intégrale|integrale` + wordTo), "tpb"},
	{[]string{"omnibus", "омнибус"}, lazily(wordFrom + `omnibus|омнибус` + wordTo), "omnibus"},
	{[]string{"gn", "graphic"}, lazily(wordFrom + `gn|ogn|graphic novel` + wordTo), "graphic-novel"},
	{[]string{"special", "sp", "hors", "hs", "sonder", "especial", "спец", "特", "특별"}, lazily(wordFrom + `specials?|sp\d+|hors[- ]?s[ée]rie|hs(?:\s?\d+)?|sonderband|sonderheft|especial|спецвыпуск` + wordTo + `|特別編|特别篇|특별편`), "special"},
	{[]string{"extra", "omake", "bonus", "side", "экстра", "番外", "外伝", "おまけ", "特典", "외전", "번외"}, lazily(wordFrom + `extras?|omake|bonus|side story|экстра` + wordTo + `|番外|外伝|おまけ|特典(?:[^付]|$)|외전|번외`), "extra"},
	{[]string{"prolog", "пролог", "序", "프롤"}, lazily(wordFrom + `prolog(?:ue|o)?|пролог` + wordTo + `|序章|序幕|프롤로그`), "prologue"},
	{[]string{"epilog", "эпилог", "終章", "最終", "에필"}, lazily(wordFrom + `epilog(?:ue|o)?|эпилог` + wordTo + `|終章|最終回|에필로그`), "epilogue"},
}

// Boundaries of words in Latin letters.
const (
	wordFrom = `(?:^|[^\p{L}\p{N}])(?:`
	wordTo   = `)(?:$|[^\p{L}])`
)

// kind detects the kind of book in the text.
func (r *reader) kind() { r.kindOf(r.text) }

func (r *reader) kindOf(s string) {
	s = strings.ToLower(s)
	for _, k := range kinds {
		if r.Kind == "" && slices.ContainsFunc(k.has, func(part string) bool { return strings.Contains(s, part) }) && k.word.MatchString(s) {
			r.Kind = k.kind
		}
	}
}
