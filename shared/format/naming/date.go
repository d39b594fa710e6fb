package naming

import (
	"strconv"
	"strings"
)

var (
	fullDate = lazily(`(?:^|[^\p{L}\p{N}.])((?:19|20)\d\d)[-. ](?:0[1-9]|1[0-2])[-. ](?:0[1-9]|[12]\d|3[01])(?:$|[^\p{L}\p{N}])`)
	dayFirst = lazily(`(?:^|[^\p{L}\p{N}.-])((?:0[1-9]|[12]\d|3[01])[-.](?:0[1-9]|[12]\d|3[01])[-.](` + nearYear + `))(?:$|[^\p{L}\p{N}-])`)
	issueDot = lazily(`(?:^|[^\p{L}\p{N}.-])(?:\d{1,2}(\.)` + nearYear + `|` + nearYear + `(\.)(?:0[1-9]|[1-4]\d|5[0-3]))(?:$|[^\p{L}\p{N}.-])`)
	monthly  = lazily(`(?:^|[^\p{L}\p{N}.-])((` + nearYear + `)-(?:0[1-9]|1[0-2]))(?:$|[^\p{L}\p{N}.-])`)
	weekly   = lazily(`(?:^|[^\p{L}\p{N}.-])((` + nearYear + `)-(1[3-9]|[2-4]\d|5[0-3]))(?:$|[^\p{L}\p{N}.-])`)
	inWords  = lazily(`(?i)(?:^|[^\p{L}\p{N}])((?:\d{1,2}-)?\d{1,2}(?:st|nd|rd|th|er)?\.?\s(?:de\s)?(?:` + months + `|` + shortMonths + `)\.?,?\s(?:de\s)?(` + nearYear + `))(?:$|[^\p{L}\p{N}])|` +
		`(?:^|[-,]\s)((?:(?:` + months + `|` + shortMonths + `)\.?\s?[-&]\s?)?(?:` + months + `|` + shortMonths + `)\.?(?:\s\d{1,2}(?:st|nd|rd|th)?)?,?\s(?:de\s)?(` + nearYear + `))(?:$|[^\p{L}\p{N}])|` +
		`\s((?:(?:` + months + `)\s?[-&]\s?)?(?:` + months + `)(?:\s\d{1,2}(?:st|nd|rd|th)?)?,?\s(?:de\s)?(` + nearYear + `))(?:$|[^\p{L}\p{N}])`)
	east    = lazily(`((?:19|20)\d\d)[年년]\s?\d{1,2}[月월]\s?\d{1,2}[日일](?:[号號]|호)?`)
	yearOf  = lazily(`((?:19|20)\d\d)([年년])\s*(?:第\s*)?\d+(?:\s?[-~・]\s?\d+)?\s*[月월]?(?:合?併?[号號期호])`)
	pixels  = lazily(`(?:^|\s)(\d{3,4}x\d{3,4})(?:$|\s)`)
	total   = lazily(`^[全전共]\s?(\d{1,4})\s*[巻卷권冊册話话화]`)
	totalIn = lazily(`(?:^|[^完安健])(全\s?(\d{1,4})\s*[巻卷冊册話话])|(?:^|[^\p{L}])([共전]\s?(\d{1,4})\s*[卷册话권화])`)
	half    = lazily(`(?:^|\s)([上中下])\s*$|([上中下])\s?[巻卷冊册篇編编集]|([상중하])권|([前中後后])[編篇编]\s*$`)
	halves  = lazily(`\s([상중하])\s`)
)

const (
	nearYear = `(?:19[3-9]|20[0-3])\d` // a year of publication: "Blade Runner 2049-01" has none
	months   = `january|february|march|april|june|july|august|september|october|november|december|` +
		`januar|jänner|februar|märz|juni|juli|oktober|dezember|` +
		`janvier|février|avril|juin|juillet|août|septembre|octobre|novembre|décembre|` +
		`enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre|` +
		`gennaio|febbraio|aprile|maggio|giugno|luglio|settembre|ottobre|dicembre|` +
		`janeiro|fevereiro|março|maio|junho|julho|setembro|outubro|novembro|dezembro|` +
		`январ[ья]|феврал[ья]|марта?|апрел[ья]|май|мая|июн[ья]|июл[ья]|августа?|сентябр[ья]|октябр[ья]|ноябр[ья]|декабр[ья]`
	// Short words with other meanings are included, such as "Mars".
	shortMonths = `jan|feb|mar|mars|apr|may|mai|jun|jul|aug|sept?|oct|okt|nov|dec|dez`
)

// dates removes dates, as in the names of weeklies and monthlies, page sizes, and the year of a Japanese magazine:
// "2014年25号" is number 25 of 2014.
func (r *reader) dates() {
	century := strings.Contains(r.text, "19") || strings.Contains(r.text, "20") // spares most names the expressions
	if m := find(fullDate, century, r.text); m != nil {
		r.dated(m[2:4])
		end := m[2] + len("2014-05-21")
		r.blank(span{m[2], end})
		r.tags = append(r.tags, span{m[2], end})
	}
	if m := find(dayFirst, century, r.text); m != nil {
		r.dated(m[4:6])
		r.blank(span{m[2], m[3]})
		r.tags = append(r.tags, span{m[2], m[3]})
	}
	// "18.2021" is "18-2021", and "2021.05" is "2021-05".
	if m := find(issueDot, century && strings.Contains(r.text, "."), r.text); m != nil {
		r.text = r.text[:max(m[2], m[4])] + "-" + r.text[max(m[3], m[5]):]
	}
	if m := find(monthly, century && (strings.Contains(r.text, "-0") || strings.Contains(r.text, "-1")), r.text); m != nil {
		r.dated(m[4:6])
		r.blank(span{m[2], m[3]})
		r.tags = append(r.tags, span{m[2], m[3]})
	}
	if m := find(weekly, century && strings.Contains(r.text, "-"), r.text); m != nil && !years(r.text[m[4]:m[5]], r.text[m[6]:m[7]]) {
		r.dated(m[4:6])
		r.week, r.weekAt = parse(r.text[m[6]:m[7]]), span{m[2], m[3]}
		r.blank(r.weekAt)
		r.tags = append(r.tags, r.weekAt)
	}
	if m := find(east, century && !ascii(r.text), r.text); m != nil {
		r.dated(m[2:4])
		r.blank(span{m[0], m[1]})
		r.tags = append(r.tags, span{m[0], m[1]})
	}
	if m := find(inWords, century && bareYear.MatchString(r.text), r.text); m != nil {
		at := 2
		for m[at] < 0 {
			at += 4
		}
		// If the brackets have another year, that is the year of the book, and this date belongs to its title.
		if r.Year == nil || strconv.Itoa(*r.Year) == r.text[m[at+2]:m[at+3]] {
			r.dated(m[at+2 : at+4])
			r.blank(span{m[at], m[at+1]})
			r.tags = append(r.tags, span{m[at], m[at+1]})
		}
	}
	if m := find(pixels, strings.Contains(r.text, "x"), r.text); m != nil { // page sizes are no part of a name
		r.blank(span{m[2], m[3]})
		r.tags = append(r.tags, span{m[2], m[3]})
	}
	if m := find(yearOf, century && strings.ContainsAny(r.text, "年년"), r.text); m != nil {
		r.dated(m[2:4])
		mark := "第" // as long as the letter that it replaces
		if strings.Contains(r.text[m[5]:m[1]], mark) {
			mark = strings.Repeat(" ", len(mark))
		}
		r.text = r.text[:m[4]] + mark + r.text[m[5]:]
		r.blank(span{m[2], m[3]})
	}
}

// years reports whether a year and two digits are a range of years: "2012-18" is one, "2019-14" and "2012-52" are
// issues of a weekly.
func years(from, to string) bool {
	return to > from[2:] && (from < "2000" || to < "30")
}

func (r *reader) dated(at []int) {
	if r.Year == nil {
		r.Year = whole(r.text[at[0]:at[1]])
	}
}

// totals removes the total number of volumes or chapters: "全34巻" is no volume 34.
func (r *reader) totals() {
	m := find(totalIn, !ascii(r.text), r.text)
	if m == nil {
		return
	}
	at, n := span{m[2], m[3]}, 4
	if m[2] < 0 {
		at, n = span{m[6], m[7]}, 8
	}
	r.Count = whole(r.text[m[n]:m[n+1]])
	r.blank(at)
	r.tags = append(r.tags, at)
}

// half reads the first, middle and last volume of a book in two or three volumes. They have no numbers, so the last one
// is the second or the third. The result is for sorting.
func (r *reader) half() bool {
	if r.ascii {
		return false
	}
	m := half.FindStringSubmatchIndex(r.text)
	if m == nil {
		m = find(halves, r.halved, r.text)
	}
	if m == nil {
		return false
	}
	at := span{m[0], m[1]}
	for i := 2; i < len(m); i += 2 {
		if m[i] < 0 {
			continue
		}
		places := map[string]float64{"上": 1, "中": 2, "下": 3, "상": 1, "중": 2, "하": 3, "前": 1, "後": 3, "后": 3}
		r.Number = new(places[r.text[m[i]:m[i+1]]])
	}
	r.take(at)
	return true
}
