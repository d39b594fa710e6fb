package naming

import (
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Replaced before anything is read: what means the same is written the same.
var same = strings.NewReplacer("【", "[", "】", "]", "〔", "[", "〕", "]", "–", "-", "—", "-", "―", "-", "−", "-", "‐", "-", "‑", "-",
	"〜", "~", "\u00a0", " ", "\u3000", " ", "\u200b", "", "\ufeff", "", "º", "°", "№", " no.", "＃", "#", "♯", "#")

var (
	fraction  = lazily(`(\d?)\s?([½¼¾])`)
	fractions = map[string]string{"½": ".5", "¼": ".25", "¾": ".75"}
	kanji     = lazily(`(卷|巻|其の|その|[卷巻][ノの之])\s*([〇零一二三四五六七八九十百千]+)|(第)\s*([〇零一二三四五六七八九十百千]+)(\s*[巻卷冊册話话回章号號集部弾期季編编篇節节夜]|[^\p{L}]|$)|([〇零一二三四五六七八九十百千]+)\s*(巻|卷|話|话|冊|册|回|章)`)
	dotted    = lazily(`(\d)\.(\d)(\D|$)`)
)

const decimal = "\x01" // a decimal point while the other dots become spaces

// prepare writes a name in one form: composed, half-width, Arabic digits, spaces between words.
func prepare(name string) string {
	s := name
	if !ascii(s) {
		s = compose(s)
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '_' {
			return ' '
		}
		return r
	}, s)
	if !strings.ContainsAny(strings.TrimSpace(s), " \t") {
		s = spaced(s)
	}
	return strings.TrimSpace(s)
}

// compose writes what is no ASCII in one form.
func compose(name string) string {
	s := strings.ToValidUTF8(name, "")
	s = fraction.ReplaceAllStringFunc(s, func(m string) string {
		f := fraction.FindStringSubmatch(m)
		if f[1] == "" {
			return m[:len(m)-len(f[2])] + "0" + fractions[f[2]]
		}
		return f[1] + fractions[f[2]]
	})
	s = norm.NFKC.String(same.Replace(s))
	s = same.Replace(s) // what the composition brought
	return kanji.ReplaceAllStringFunc(s, func(m string) string {
		p := kanji.FindStringSubmatch(m)
		if p[1] != "" {
			return p[1] + arabic(p[2])
		}
		if p[3] != "" {
			return p[3] + arabic(p[4]) + p[5]
		}
		return " " + arabic(p[6]) + p[7]
	})
}

// spaced gives a name without spaces the ones that its dots, pluses or hyphens stand for.
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

// slug turns hyphens into spaces, save those of a range.
func slug(s string) string {
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

// arabic writes a number in Chinese characters with digits: 十二 is 12, 一二 too.
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
