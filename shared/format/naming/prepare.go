package naming

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// same maps characters with the same meaning to one form, before the analysis.
var same = map[rune]string{'【': "[", '】': "]", '〔': "[", '〕': "]", '–': "-", '—': "-", '―': "-", '−': "-", '‐': "-", '‑': "-",
	'〜': "~", '\u00a0': " ", '\u3000': " ", '\u200b': "", '\ufeff': "", 'º': "°", '№': " no.", '＃': "#", '♯': "#"}

// zeros are the zero digits of Arabic, Persian and Thai.
var zeros = []rune{'٠', '۰', '๐'}

var (
	fraction  = lazily(`(\d?)(\s?)([½¼¾])`)
	fractions = map[string]string{"½": ".5", "¼": ".25", "¾": ".75"}
	kanji     = lazily(`(?:卷|巻|其[のノ之]|その|[卷巻][ノの之])\s*([〇零一二三四五六七八九十百千]+)|第\s*([〇零一二三四五六七八九十百千]+)(?:\s*[巻卷冊册話话回章号號集部弾期季編编篇節节夜]|[^\p{L}]|$)|([〇零一二三四五六七八九十百千]+)\s*(?:巻|卷|話|话|冊|册|回|章)|[^\s(]\s*\(([一二三四五六七八九十]+)\)\s*$`)
	dotted    = lazily(`(\d)\.(\d)(\D|$)`)
)

// thousands matches a number with thousands separators. With only one it has at most two digits before it: "1,001
// Nights", but "Kap. 101,102".
var thousands = lazily(`(?:^|[^\d,.])(\d{1,3}(?:,\d{3}){2,}|[1-9]\d?,\d{3})(?:$|[^\d,.])`)

const decimal = "\x01" // a decimal point, while other dots become spaces

// prepare normalises a name: composed, half-width, Arabic digits, spaces between words.
func prepare(name string) prepared {
	p := prepared{text: strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(name, ""))}
	if !ascii(p.text) {
		p.compose()
	}
	if m := find(thousands, strings.Contains(p.text, ","), p.text); m != nil {
		p.replace([]edit{{span{m[2], m[3]}, strings.ReplaceAll(p.text[m[2]:m[3]], ",", ""), true}})
	}
	p.text = strings.ReplaceAll(p.text, "_", " ")
	if !strings.ContainsAny(strings.TrimSpace(p.text), " \t") {
		p.text = spaced(p.text)
	}
	trimmed := strings.TrimLeftFunc(p.text, unicode.IsSpace)
	p.replace([]edit{{at: span{0, len(p.text) - len(trimmed)}}})
	p.text = strings.TrimSpace(p.text)
	return p
}

// compose normalises non-ASCII characters.
func (p *prepared) compose() {
	var edits []edit
	for _, m := range fraction.FindAllStringSubmatchIndex(p.text, -1) {
		by := fractions[p.text[m[6]:m[7]]]
		if m[2] == m[3] {
			m[4], by = m[6], "0"+by
		}
		edits = append(edits, edit{span{m[4], m[7]}, by, true})
	}
	p.replace(edits)
	p.unify()
	p.normalize()
	p.unify() // characters that the composition produced
	edits = nil
	for _, m := range kanji.FindAllStringSubmatchIndex(p.text, -1) {
		for i := 2; i < len(m); i += 2 {
			if m[i] < 0 {
				continue
			}
			by := arabic(p.text[m[i]:m[i+1]])
			if i == 6 { // nothing before it
				by = " " + by
			}
			edits = append(edits, edit{span{m[i], m[i+1]}, by, true})
		}
	}
	p.replace(edits)
}

// unify replaces characters with the same meaning by one form.
func (p *prepared) unify() {
	var edits []edit
	for i, r := range p.text {
		at := span{i, i + utf8.RuneLen(r)}
		if by, ok := same[r]; ok {
			edits = append(edits, edit{at, by, r == 'º' || r == '№'})
		}
		for _, zero := range zeros {
			if r >= zero && r <= zero+9 {
				edits = append(edits, edit{at, string('0' + r - zero), true})
			}
		}
	}
	p.replace(edits)
}

// normalize composes the text (NFKC). It does not record the original if only letters and accents were joined or a
// width changed, because books of one series differ in that.
func (p *prepared) normalize() {
	var edits []edit
	for i := 0; i < len(p.text); {
		n := norm.NFKC.NextBoundaryInString(p.text[i:], true)
		part := p.text[i : i+n]
		if by := norm.NFKC.String(part); by != part {
			first, _ := utf8.DecodeRuneInString(part)
			width := first >= '\uff00' && first <= '\uffef'
			edits = append(edits, edit{span{i, i + n}, by, !width && strings.TrimSpace(by) != "" && by != norm.NFC.String(part)})
		}
		i += n
	}
	p.replace(edits)
}

// spaced replaces dots, pluses or hyphens with spaces in a name without spaces.
func spaced(s string) string {
	switch {
	case strings.Count(s, "+") > 0:
		s = strings.ReplaceAll(s, "+", " ")
	case strings.Count(s, ".") > 1 || strings.Count(s, ".") == 1 && !dotted.MatchString(s):
		s = dotted.ReplaceAllString(s, "$1"+decimal+"$2$3")
		s = strings.ReplaceAll(strings.ReplaceAll(s, ".", " "), decimal, ".")
	case strings.Count(s, "-") > 1 && !strings.ContainsFunc(s, unicode.IsUpper):
		s = slug(s)
	}
	return s
}

var slugDecimal = lazily(`((?:^|-)(?:ch|chapter|chap|ep|episode)-)(\d+)-(\d)$`)

// slug replaces hyphens with spaces, except in ranges. "chapter-10-5" is not a range but chapter 10.5.
func slug(s string) string {
	if m := slugDecimal.FindStringSubmatchIndex(s); m != nil && len(s[m[4]:m[5]]) > 1 {
		s = s[:m[5]] + "." + s[m[6]:]
	}
	b := []byte(s)
	for i, c := range b {
		if c != '-' || i > 0 && i+1 < len(b) && digit(b[i-1]) && digit(b[i+1]) {
			continue
		}
		b[i] = ' '
	}
	return string(b)
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// arabic writes a number in Chinese characters with digits: 十二 and 一二 are 12.
func arabic(s string) string {
	values := map[rune]int{'〇': 0, '零': 0, '一': 1, '二': 2, '三': 3, '四': 4, '五': 5, '六': 6, '七': 7, '八': 8, '九': 9}
	units := map[rune]int{'十': 10, '百': 100, '千': 1000}
	total, digits, unit := 0, 0, false
	for _, r := range s {
		if u, ok := units[r]; ok {
			total += max(digits, 1) * u
			digits, unit = 0, true
			continue
		}
		if unit {
			digits = values[r]
		} else {
			digits = min(digits*10+values[r], 9_999_999)
		}
	}
	return strconv.Itoa(min(total+digits, 9_999_999))
}
