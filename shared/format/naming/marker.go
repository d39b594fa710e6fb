package naming

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// maxDigits limits the digits of a number. Longer runs are dates, hashes or identifiers.
const maxDigits = 7

// Building blocks of the expressions. A marker in Latin letters must not follow a Latin letter or a digit (but may
// follow Japanese: "彼氏v02"); one in Cyrillic letters must not follow any letter. A letter must not follow the number
// directly ("c2c" is a scanner's note), except for a revision ("c012v2"), a part ("c010a", "c010x1", "c010p1", "v01b"),
// a chapter ("v01c002", "v01x02") or an issue ("v3n12").
const (
	latin   = `(^|[^\p{Latin}\p{N}])`
	single  = `(^|[^\p{Latin}\p{N}'’])` // before a single letter; the one in "Can't 03" is no marker
	letter  = `(^|[^\p{L}\p{N}])`
	apart   = `[\s#]{0,3}` // between a marker and its number; a removed bracket leaves more spaces: "V (1985) 012"
	num     = `(\d+(?:[.,]\d{1,3})?)`
	upTo    = `(?:(?:\s?[-~&+]\s?|\s(?:to|à|bis|до)\s)(?:` // the end of a range: upTo, the words of a marker, andNum
	andNum  = `)?\.?\s?` + num + `)?`
	revised = `(?:v(\d)|[ab]|[xp]\d)?(?:$|[^\p{Latin}\p{N}])`
)

const (
	volumeWords  = `volumes?|vols?|volumen|volumi|v|tomes?|tomos?|tomi|tom|band|bände|bd|books?|bk|livre|libro|buch|deel|cilt|kötet|svazek|díl|bok|boek|kniha|księga|volumul|jilid|tập`
	chapterWords = `chapters?|chapitres?|chaps?|chp|ch|c|capítulos?|capitulos?|capitolo|capitoli|cap|kapitel|kapittel|kap|hoofdstuk|luku|capitolul|rozdział|rozdz|kapitola|kapitoly|fejezet|bölüm|bab|chương`
	issueWords   = `issues?|iss|no|nr|n°|num|núm|numero|número|numéro|numéros|números|heft|hefte|ausgabe|ausgaben|edição|edicao|edición|edicion|albo|albi|zeszyt|zeszyty|nummer|numer|numărul|číslo|sayı|progs?`
	partWords    = `parts?|parte|partie|teil|pt|część|cz`
	episodeWords = `ep|eps|episodes?|épisodes?|episodio|episódio|folge|aflevering|act`

	cyrillicVolumes  = `тома|том|т|книга|кн`
	cyrillicChapters = `глава|главы|гл|розділ`
	cyrillicIssues   = `выпуски|выпуск|випуски|випуск|вып|номера|номер|часть|части|частина|ч|серия|серии|эпизод|епізод`
	cyrillicBehind   = `тома|томов|том|книга`

	// Greek, Arabic, Hebrew, and Thai, which has no spaces between words.
	otherVolumes  = `τόμοι|τόμος|المجلد|مجلد|כרך`
	otherChapters = `κεφάλαια|κεφάλαιο|κεφ|الفصل|فصل|פרק`
	otherIssues   = `τεύχη|τεύχος|العدد|عدد|חוברת|גיליון`
	thaiVolumes   = `เล่มที่|เล่ม`
	thaiChapters  = `ตอนที่|ตอน|บทที่`

	volumeUnits  = `巻|卷|권|冊|册`
	chapterUnits = `話|话|章|回|화|회|장`
)

var (
	// Groups: text before, number, end of the range, and for chapters and issues the revision.
	volumeMarks = []marker{
		{lazily(`(?i)` + latin + `v(\d{2,3})(?:-(\d{2,3}))?[deksw](?:$|[^\p{L}\p{N}])`), wordSet("v")}, // "v05s": a letter for where the pages are from
		{lazily(`(?i)` + latin + `(?:` + volumeWords + `)\.?` + apart + `-?` + num + upTo + volumeWords + andNum + `(?:$|[^\p{Latin}\p{N}]|[ab](?:$|[^\p{L}\p{N}])|c(?:h(?:ap(?:ter)?)?)?\.?\d|n(?:o|r)?\.?\d)`), wordSet(volumeWords)},
		{lazily(`(?i)` + letter + `(?:` + cyrillicVolumes + `)\.?\s*(?:no\.\s*)?` + num + upTo + `том|т` + andNum + `(?:$|[^\p{L}\p{N}]|гл)`), wordSet(cyrillicVolumes + "|no")},
		{lazily(`()(?:第|제)?\s*` + num + `\s*(?:` + volumeUnits + `)?` + upTo + `第|제` + andNum + `\s*(?:` + volumeUnits + `)(?:[bdeksw]\b)?`), nil},
		{lazily(`()[卷巻](?:\s*|[ノの之])` + num + `()`), nil},
		{lazily(`(?i)` + letter + `(?:` + otherVolumes + `)\.?\s*` + num + `(?:\s?-\s?` + num + `)?(?:$|[^\p{L}\p{N}])`), wordSet(otherVolumes)},
		{lazily(`()(?:` + thaiVolumes + `)\s*` + num + `(?:\s?-\s?` + num + `)?`), nil},
		{lazily(`(?i)` + single + `t(?:\.\s?|\s)?` + `(\d{1,3}(?:\.\d{1,2})?)` + `(?:(?:-|\s?à\s?)t?(\d{1,3}))?(?:$|[^\p{Latin}\p{N}])`), wordSet("t")},
		{lazily(`(?i)` + latin + `v(?:ol\.?)?(\d{1,3})()x\d`), wordSet("v|vol")},                           // "v05x12"
		{lazily(`(?i)((?:^|[^\p{Latin}\p{N}])p\d{1,2})v(\d{1,3})()(?:$|[^\p{Latin}\p{N}])`), wordSet("v")}, // "P5V12": part 5, volume 12
	}
	behindDot    = lazily(`(?i)` + latin + num + `()\.?\s*(?:kötet|cilt|díl)(?:$|[^\p{L}])`)
	volumeBehind = []marker{
		{lazily(`(?i)` + letter + num + `(?:\s?-\s?` + num + `)?(?:-?й)?\s*(?:` + cyrillicBehind + `)(?:$|[^\p{L}])`), nil},
		{behindDot, nil},
	}
	chapterMarks = []marker{
		{lazily(`(?i)(^|[^\p{Latin}\p{N}]|(?:v|vol|volume|tome|t)\.?\s?\d+)(?:` + chapterWords + `)\.?` + apart + `-?` + num + upTo + chapterWords + andNum + revised), wordSet(chapterWords)},
		{lazily(`(?i)(^|[^\p{L}\p{N}]|(?:^|[^\p{L}])(?:том|т)\.?\s?\d+)(?:` + cyrillicChapters + `)\.?\s*(?:no\.\s*)?` + num + upTo + `глава|гл` + andNum + `()(?:$|[^\p{L}\p{N}])`), wordSet(cyrillicChapters + "|no")},
		{lazily(`(?i)` + letter + `(?:` + otherChapters + `)\.?\s*` + num + `(?:\s?-\s?` + num + `)?()(?:$|[^\p{L}\p{N}])`), wordSet(otherChapters)},
		{lazily(`()(?:` + thaiChapters + `)\s*` + num + `(?:\s?-\s?` + num + `)?()`), nil},
		{lazily(`(?i)((?:^|[^\p{Latin}\p{N}])v(?:ol\.?)?\d{1,3}x)` + num + `(?:-(\d+))?()(?:$|[^\p{Latin}\p{N}])`), wordSet("x")},
		{lazily(`()(?:第|제)?\s*` + num + `\s*(?:` + chapterUnits + `)?` + upTo + `第|제` + andNum + `()\s*(?:` + chapterUnits + `)`), nil},
		{lazily(letter + `[話话]` + num + upTo + `話|话` + andNum + `()`), nil}, // "話001-005"
	}
	innerMark     = marker{lazily(`()(?:第|제)?\s*` + num + upTo + `第|제` + andNum + `()\s*(?:話|话|화)`), nil}
	arcMark       = lazily(`[章장]$`) // chapters that are divided into chapters
	chapterBehind = []marker{
		{lazily(`(?i)` + letter + num + `(?:\s?-\s?` + num + `)?()(?:-?я)?\s*глав[аы]?(?:$|[^\p{L}])`), nil},
	}
	hashMark   = marker{re: lazily(`(?i)(^|)(?:\b(?:issues?|iss|no|nr|heft)\.?\s*)?#\s?(-?\d+(?:[.,]\d{1,3})?)(?:\s?-\s?#?` + num + `)?(?:v(\d))?`)}
	issueMarks = []marker{
		{lazily(`(?i)` + latin + `(?:(?:issue|heft|ausgabe|edição|edición|выпуск|номер|часть)\s+)?(?:` + issueWords + `)\.?` + apart + num + upTo + issueWords + andNum + revised), wordSet(issueWords)},
		{lazily(`(?i)` + single + `(?:n(?:\.\s?|\s)|ed\.\s?)` + num + `()()(?:$|[^\p{Latin}\p{N}])`), wordSet("n|ed")},
		{lazily(`(?i)((?:v|vol|volume)\.?\s?\d+)n(?:o|r)?\.?\s?` + num + `()()(?:$|[^\p{Latin}\p{N}])`), wordSet("n|no|nr")},
		{lazily(`(?i)` + letter + `(?:` + cyrillicIssues + `)\.?\s*` + num + `(?:\s?-\s?` + num + `)?()(?:$|[^\p{L}\p{N}])`), wordSet(cyrillicIssues)},
		{lazily(`(?i)` + letter + `(?:` + otherIssues + `)\.?\s*` + num + `(?:\s?-\s?` + num + `)?()(?:$|[^\p{L}\p{N}])`), wordSet(otherIssues)},
		{lazily(`(?i)` + latin + num + `()()\.?\s*(?:rész|část)(?:$|[^\p{L}])`), nil},
		{lazily(`()(?:第|제)\s*` + num + `(?:\s?[-~]\s?` + num + `)?()\s*(?:月号|월호|号|號|호|集|部|弾|期|季|편|節|节|夜|$|[^\p{L}\p{N}])`), nil},
		{lazily(`()(?:その|其[のノ之])\s*` + num + `()()`), nil},
		{lazily(`(?i)` + latin + `s\d{1,2}\s?e` + num + `()()(?:$|[^\p{Latin}\p{N}])`), wordSet("e")},
		{lazily(`(?i)` + latin + `(?:` + episodeWords + `)\.?` + apart + num + upTo + episodeWords + andNum + revised), wordSet(episodeWords)},
		{lazily(`(?i)` + latin + `(?:` + partWords + `)\.?` + apart + num + upTo + partWords + andNum + revised), wordSet(partWords)},
		{lazily(`(?i)` + latin + `(?:hs|sp|hors[- ]?s[ée]rie|sonderband|sonderheft|specials?|extras?|omake)\.?\s?` + num + `()()(?:$|[^\p{Latin}\p{N}])`), wordSet("hs|sp|hors|série|serie|sonderband|sonderheft|special|specials|extra|extras|omake")},
		{lazily(`()(?:番外[編篇]?|외전|번외편?|特典|おまけ)\s*` + num + `()()`), nil},
	}
)

var kindWord = lazily(`(?i)^(?:hors|special|sonder|extra|omake)`)

var partSet = wordSet(partWords + "|" + episodeWords)

// Suffixes that belong to a number's marker; and a chapter or issue glued to a volume, which does not.
const behindNumber = "巻卷권冊册話话章回화회장号號호集部弾期季편節节夜"

var chapterNext = lazily(`(?i)^(?:[cn]|гл)`)

// marker is an expression and the words that must precede a number for it. Without words it needs non-ASCII letters.
// This check spares nearly every name nearly every expression.
type marker struct {
	re    *pattern
	words *words
}

// words is a list of words, split on first use.
type words struct {
	list string // in regexp syntax: "volumes?|v"
	once sync.Once
	set  map[string]bool
}

func wordSet(list string) *words { return &words{list: list} }

// has reports whether a word is in the list. A nil list has none.
func (ws *words) has(word string) bool {
	if ws == nil {
		return false
	}
	ws.once.Do(func() {
		ws.set = map[string]bool{}
		for w := range strings.SplitSeq(ws.list, "|") {
			w = strings.TrimSuffix(w, "°")
			ws.set[strings.TrimSuffix(w, "?")] = true // "volumes?" means volumes
			if short, ok := strings.CutSuffix(w, "s?"); ok {
				ws.set[short] = true
			}
		}
	})
	return ws.set[word]
}

func (k marker) possible(r *reader) bool {
	switch {
	case k.words != nil:
		return slices.ContainsFunc(r.before, k.words.has)
	case k.re == hashMark.re:
		return strings.Contains(r.text, "#")
	case k.re == behindDot && r.ascii:
		return strings.Contains(strings.ToLower(r.text), "cilt")
	}
	return !r.ascii
}

// wordsBefore returns the words before numbers, in lower case. A change of script between Latin and other letters ends
// a word.
func wordsBefore(s string) []string {
	var out []string
	for i := 0; i < len(s); i++ {
		if !digit(s[i]) || i > 0 && digit(s[i-1]) {
			continue
		}
		head := strings.TrimRight(s[:i], " .#-°\t\n")
		from := len(head)
		var latin, begun bool
		for from > 0 && len(head)-from < 40 {
			c, size := utf8.DecodeLastRuneInString(head[:from])
			if !unicode.IsLetter(c) || begun && latin != isLatinLetter(c) {
				break
			}
			latin, begun, from = isLatinLetter(c), true, from-size
		}
		if from < len(head) {
			out = append(out, strings.ToLower(head[from:]))
		}
	}
	return out
}

// mark finds the first marker of a kind. It returns number, end of the range, revision, and the part of the text.
func (r *reader) mark(all ...marker) (groups []string, at span) {
	for _, k := range all {
		if !k.possible(r) {
			continue
		}
		for _, m := range k.re.FindAllStringSubmatchIndex(r.text, -1) {
			g := make([]string, 3)
			for i := 2; i < len(m)/2; i++ {
				if m[2*i] >= 0 {
					g[i-2] = r.text[m[2*i]:m[2*i+1]]
				}
			}
			if parse(g[0]) == nil || r.initial(m[3]) || groups != nil && m[3] >= at.from {
				continue
			}
			end := m[5]
			if g[1] != "" && k.words == nil && r.season(m[3]) {
				// "시즌 2 - 第12話": the text before the second number belongs to that number's marker.
				from := m[5] + len(strings.TrimRight(r.text[m[5]:m[6]], "第제 "))
				g, m[3], end = []string{g[1], "", ""}, from, m[7]
			} else if g[1] != "" && r.noRange(g[0], span{m[5], m[6]}, span{m[6], m[7]}) {
				groups, at = []string{g[0], "", ""}, span{m[3], end}
				continue
			}
			for i := 3; i < len(m)/2; i++ {
				end = max(end, m[2*i+1])
			}
			tail := r.text[end:m[1]]
			last, size := utf8.DecodeLastRuneInString(tail)
			switch {
			case chapterNext.MatchString(tail): // glued: starts a marker of its own
			case unicode.IsDigit(last): // "c012x1"
				end = m[1]
			case !unicode.IsLetter(last):
				end = m[1] - size // the character that had to follow the number is not part of it
			case size < len(tail) || isLatinLetter(last) || strings.ContainsRune(behindNumber, last):
				end = m[1]
			}
			groups, at = g, span{m[3], end}
		}
	}
	return groups, at
}

// initial reports whether a letter belongs to a name: "Vitamin C 05", "Final Fantasy V 03". Such a letter is a capital
// with something before it and a space after it.
func (r *reader) initial(at int) bool {
	if oneLetter.MatchString(r.text[at:]) && shortened(r.text[:at]) { // "W.E.S.T. 3"
		return true
	}
	volume, chapter := strings.HasPrefix(r.text[at:], "V "), strings.HasPrefix(r.text[at:], "C ")
	both := strings.Contains(r.text, "V ") && strings.Contains(r.text, "C ") // "V 01 C 003"
	return (volume || chapter) && !both && strings.TrimSpace(r.text[:at]) != ""
}

var oneLetter = lazily(`^\p{Latin}[. ]`)

// shortened reports whether a text ends with a single letter and a dot.
func shortened(text string) bool {
	text, dot := strings.CutSuffix(text, ".")
	last, size := utf8.DecodeLastRuneInString(text)
	before, _ := utf8.DecodeLastRuneInString(text[:len(text)-size])
	return dot && unicode.IsLetter(last) && !unicode.IsLetter(before)
}

// season reports whether the number at this position is a season number. The word saga usually belongs to a series:
// "Vinland Saga".
func (r *reader) season(at int) bool {
	word := wordInFront(r.text[:at])
	return seasons.has(word) && word != "saga"
}

// perYear is the maximum number of a magazine's issues per year.
const perYear = 53

// noEnd matches after a number that belongs to a title: "100% Chance", "5-4 Victory", "4:30 AM".
var noEnd = lazily(`^(?:[%°'’]|[-/:]\d)`)

// noRange reports whether an apparent end of a range is a year ("No. 12 - 2014", "No. 12-2014") or starts a title
// ("Chapter 12 - 20 Years Later"): after a spaced dash, a number that cannot be the end, or one that is followed by
// words.
func (r *reader) noRange(first string, between, second span) bool {
	dash := r.text[between.from:between.to]
	n, rest := r.text[second.from:second.to], r.text[second.to:]
	from, to := parse(first), parse(n)
	if dash == "-" && isYear(n) && from != nil && *from <= perYear {
		return true
	}
	if strings.Trim(dash, " -") != "" || !strings.HasPrefix(dash, " -") {
		return false
	}
	if noEnd.MatchString(rest) {
		return true
	}
	next, _ := utf8.DecodeRuneInString(strings.TrimPrefix(rest, " "))
	if from == nil || to == nil || n[0] == '0' && len(n) > len(first) { // "No. 8 - 012"
		return true
	}
	return *to <= *from || isYear(n) && !isYear(first) || strings.HasPrefix(rest, " ") && unicode.IsLetter(next)
}

func (r *reader) volume() {
	g, at := r.mark(volumeMarks...)
	if g == nil || r.chapterBehind && at.to > r.first && at.from < r.last {
		g, at = r.mark(volumeBehind...) // "1 том 5 глава"
	}
	if g == nil {
		g, at = r.roman()
	}
	if g == nil {
		return
	}
	if r.Chapter != nil && at.from >= r.last && strings.TrimSpace(r.text[r.last:at.from]) == "" && lateFix.MatchString(r.text[at.from:]) {
		r.revise(g[0]) // "c012 v2" is the second version of the chapter
		r.take(at)
		return
	}
	if r.Chapter == nil && lateVersion.MatchString(r.text[at.from:]) && lateNumber.MatchString(r.text[:at.from]) {
		return // "012 v2" is the second version of number 12
	}
	r.volumeNumber = parse(g[0])
	if r.Volume = whole(g[0]); r.Volume != nil && g[1] != "" {
		if to := whole(g[1]); to != nil && *to > *r.Volume {
			r.VolumeTo = to
		}
	}
	r.take(at)
	r.volumeEnd = at.to
}

var (
	romanMark  = lazily(`(?:^|[^\p{L}\p{N}])((?i:volumes?|vols?|volumen|tomes?|tomos?|tom|band|bände|bd|books?|buch|livre|libro|тома?)\.?\s+([IVX]+)(?:\s?-\s?([IVX]+))?)($|[^\p{L}\p{N}]+)`)
	wellFormed = lazily(`^X{0,3}(?:IX|IV|V?I{0,3})$`)
)

// roman finds a Roman numeral right after a volume marker: "Tome III". A single letter before a word does not count:
// "The Book I Wrote", "Book X-Men".
func (r *reader) roman() (groups []string, at span) {
	m := find(romanMark, strings.ContainsAny(r.text, "IVX"), r.text)
	if m == nil || m[5]-m[4] == 1 && m[6] < 0 && slices.Contains([]string{" ", "-", ".", "'", "’"}, r.text[m[8]:m[9]]) {
		return nil, span{}
	}
	groups = make([]string, 3)
	for i := range 2 {
		if from := m[4+2*i]; from >= 0 {
			n := r.text[from:m[5+2*i]]
			if !wellFormed.MatchString(n) {
				return nil, span{}
			}
			groups[i] = strconv.Itoa(romanValue(n))
		}
	}
	return groups, span{m[2], m[3]}
}

// romanValue returns the value of a well-formed numeral of I, V and X.
func romanValue(s string) int {
	values := map[byte]int{'I': 1, 'V': 5, 'X': 10}
	sum := 0
	for i := range len(s) {
		v := values[s[i]]
		if i+1 < len(s) && v < values[s[i+1]] {
			v = -v
		}
		sum += v
	}
	return sum
}

func (r *reader) chapter() {
	g, at := r.mark(chapterMarks...)
	if g == nil {
		g, at = r.mark(chapterBehind...)
		r.chapterBehind = g != nil
	}
	if g == nil {
		return
	}
	if find(arcMark, !r.ascii, r.text[at.from:at.to]) != nil {
		if inner, behind := (&reader{text: r.text[at.to:]}).mark(innerMark); inner != nil { // "第二章 第3話"
			g, at = inner, span{at.to + behind.from, at.to + behind.to}
		}
	}
	r.Chapter = parse(g[0])
	if to := parse(g[1]); to != nil && *to > *r.Chapter {
		r.ChapterTo = to
	}
	r.revise(g[2])
	r.take(at)
}

func (r *reader) revise(n string) {
	if v := whole(n); n != "" && v != nil && *v > 0 {
		r.Revision = *v
	}
}

// found is a number, and whether its marker takes precedence over chapter and volume.
type found struct {
	value  float64
	strong bool
}

// issue finds "#N", otherwise words with the same meaning, and those for parts and episodes. After a volume or chapter
// such a word belongs to a name or title ("v01 - Part 2 of the Saga"), unless it follows the volume directly.
func (r *reader) issue() (*found, *float64) {
	g, at := r.mark(hashMark)
	n := found{strong: g != nil}
	for _, m := range issueMarks {
		if g != nil {
			break
		}
		g, at = r.mark(m)
	}
	if g == nil {
		return nil, nil
	}
	if isYear(g[0]) && kindWord.MatchString(r.text[at.from:at.to]) {
		return nil, nil // "Summer Special 1990"
	}
	n.value = *parse(g[0])
	if !n.strong && r.Chapter == nil && r.volumeNumber == nil {
		number, ok := r.behindWord(g, at)
		if !ok {
			number, ok = r.partOfTitle(at)
		}
		if ok {
			g, at = []string{r.text[number.from:number.to], "", ""}, number
			n.value = *parse(g[0])
		}
	}
	if !n.strong && r.Chapter == nil && r.volumeNumber != nil && at.from >= r.volumeEnd {
		// "Vol. 2 No. 12"
		n.strong = strings.Trim(r.text[r.volumeEnd:at.from], " .,") == "" && !partWord.MatchString(r.text[at.from:at.to])
	}
	if !n.strong && (r.Chapter != nil || r.volumeNumber != nil) {
		return nil, nil
	}
	var to *float64
	if end := parse(g[1]); end != nil && *end > n.value {
		to = end
	}
	r.revise(g[2])
	r.take(at)
	return &n, to
}

var (
	partUnit     = lazily(`[部期季]$`)
	behindSeason = lazily(`^\s+-\s+(\d{1,4}(?:\.\d{1,2})?)(?:$|   | - )`)
)

// behindWord finds the number after a word with its own number, when those belong to the series: "Kaiju No. 8 012".
// Further behind, the number must have leading zeros, and the number of the word none: "Part 5 - Golden Wind 012".
func (r *reader) behindWord(g []string, at span) (number span, ok bool) {
	rest := r.text[at.to:]
	m := another.FindStringSubmatchIndex(rest)
	if m == nil {
		m = find(behindSeason, partUnit.MatchString(r.text[at.from:at.to]), rest)
	}
	if m == nil && g[0][0] != '0' && g[1] == "" {
		if m = find(further, strings.Contains(rest, "0"), rest); m != nil && (partSet.has(wordInFront(rest[:m[2]])) || seasons.has(wordInFront(rest[:m[2]]))) {
			m = nil
		}
	}
	if m == nil || isYear(rest[m[2]:m[3]]) {
		return span{}, false
	}
	number = span{at.to + m[2], at.to + m[3]}
	for r.text[number.from-1] == '0' {
		number.from--
	}
	return number, true
}

var (
	partWord  = lazily(`(?i)^(?:` + partWords + `)[^\p{L}]`)
	dashFront = lazily(`(?:^|\s)(\d{1,4})\s*$`)
)

// partOfTitle reports whether a part belongs to the story in the title, and finds the issue number before the dash:
// "Batman 497 - Knightfall Part 11", "Batman 001 - Part 3". "Fantastic 4 - Part 3" is part 3.
func (r *reader) partOfTitle(at span) (number span, ok bool) {
	dash := strings.LastIndex(r.text[:at.from], " - ")
	if dash < 0 || !partWord.MatchString(r.text[at.from:at.to]) {
		return span{}, false
	}
	m := dashFront.FindStringSubmatchIndex(r.text[:dash])
	if m == nil {
		return span{}, false
	}
	word, n := strings.Trim(wordInFront(r.text[:m[2]]), ".,"), r.text[m[2]:m[3]]
	if seasons.has(word) || partSet.has(word) || isYear(n) {
		return span{}, false
	}
	return span{m[2], m[3]}, n[0] == '0' || strings.TrimSpace(r.text[dash+len(" - "):at.from]) != ""
}
