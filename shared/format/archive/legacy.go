package archive

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

// legacyNames collects names that may not be UTF-8. They are decoded together, because one program wrote them all: if
// one is not UTF-8, others are valid UTF-8 only by chance (图片 in GBK is ͼƬ).
type legacyNames struct {
	index  []int
	names  []string
	legacy bool
}

func (l *legacyNames) add(index int, raw string) {
	if isUTF8(raw) {
		return
	}
	l.index, l.names = append(l.index, index), append(l.names, raw)
	l.legacy = l.legacy || !utf8.ValidString(raw)
}

// isUTF8 reports whether a name is UTF-8, and not by chance: it is ASCII, or has a three-byte character, which two
// characters of a double-byte encoding rarely form.
func isUTF8(s string) bool {
	ascii, long := true, false
	for _, r := range s {
		ascii, long = ascii && r < utf8.RuneSelf, long || r >= 0x800
	}
	return ascii || long && utf8.ValidString(s)
}

// decode sets the decoded names, unless all are UTF-8.
func (l *legacyNames) decode(entries []Entry) {
	if !l.legacy {
		return
	}
	decoded := l.decoded()
	for i, n := range l.index {
		clean, folder := clean(decoded[i])
		entries[n].Name, entries[n].Directory = clean, entries[n].Directory || folder
	}
}

// decoded returns the names in the Windows encoding of a country in which all of them read well, otherwise in a Western
// European code page.
func (l *legacyNames) decoded() []string {
	if names, ok := cyrillic(l.names); ok {
		return names
	}
	if names, ok := shiftJIS(l.names); ok {
		return names
	}
	if names := eastAsian(l.names); names != nil {
		return names
	}
	return western(l.names)
}

// western decodes names as code page 437, which the format prescribes (APPNOTE appendix D), or as code page 850, which
// Windows writes, if that gives more letters: it has letters in place of box-drawing and Greek characters.
func western(names []string) []string {
	read := func(page *charmap.Charmap) (decoded []string, letters int) {
		for _, name := range names {
			s, _ := page.NewDecoder().String(name) // every byte is defined
			decoded = append(decoded, s)
			for _, r := range s {
				if unicode.Is(unicode.Latin, r) {
					letters++
				}
			}
		}
		return decoded, letters
	}
	decoded, letters := read(charmap.CodePage437)
	if windows, more := read(charmap.CodePage850); more > letters {
		return windows
	}
	return decoded
}

// shiftJIS decodes names as Shift-JIS; ok if the result is Japanese.
//
// An accented letter of code page 437 followed by a letter is also valid Shift-JIS ("père" reads as p頁e). But it gives
// single characters inside Latin words, while Japanese comes in runs or separate from Latin letters.
func shiftJIS(names []string) (decoded []string, ok bool) {
	good, bad := 0, 0
	for _, name := range names {
		s, err := japanese.ShiftJIS.NewDecoder().String(name)
		if err != nil || strings.ContainsRune(s, utf8.RuneError) {
			return nil, false
		}
		decoded = append(decoded, s)
		runes := []rune(s)
		for i, r := range runes {
			if r < utf8.RuneSelf {
				continue
			}
			inWord := i > 0 && isASCIILetter(runes[i-1]) || i+1 < len(runes) && isASCIILetter(runes[i+1])
			inRun := i > 0 && isJapanese(runes[i-1]) || i+1 < len(runes) && isJapanese(runes[i+1])
			if isJapanese(r) && (inRun || !inWord) {
				good++
			} else {
				bad++
			}
		}
	}
	return decoded, good > bad
}

func isJapanese(r rune) bool {
	return r >= '　' && r <= 'ヿ' || unicode.Is(unicode.Han, r)
}

func isASCIILetter(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' }

// cyrillic decodes names as code page 866; ok if the result is Russian: lower-case words with at most one capital at
// the start, or capitals alone, with many of the most common letters.
func cyrillic(names []string) (decoded []string, ok bool) {
	letters, inWords, common := 0, 0, 0
	for _, name := range names {
		s, err := charmap.CodePage866.NewDecoder().String(name)
		if err != nil {
			return nil, false
		}
		decoded = append(decoded, s)
		previous := ' '
		for _, r := range s {
			isLetter, behindLetter := unicode.Is(unicode.Cyrillic, r), unicode.Is(unicode.Cyrillic, previous)
			switch {
			case r >= utf8.RuneSelf && !isLetter && r != '№', isLetter && isASCIILetter(previous), behindLetter && isASCIILetter(r),
				behindLetter && unicode.IsLower(previous) && unicode.IsUpper(r):
				return nil, false
			case isLetter:
				letters++
				if behindLetter {
					inWords++
				}
				if strings.ContainsRune("оеаинтсрвл", unicode.ToLower(r)) {
					common++
				}
			}
			previous = r
		}
	}
	return decoded, 2*inWords > letters && 3*common > letters
}

// doubleByte is an encoding with two bytes per character of its script. The first byte of common characters is from
// first to last. The second is above 0xa0, except in Big5.
type doubleByte struct {
	encoding.Encoding
	first, last byte
	low         bool   // the second byte may be ASCII
	common      string // decides when several encodings read well
}

var doubleBytes = []doubleByte{
	{simplifiedchinese.GBK, 0xb0, 0xd7, false, "第话卷集章回页册期版本封面漫画番外篇上中下完全彩色单行汉化组新老大小长短的一是不了人我在有他这来个国到说们为" +
		"子和你地出道也时年得就那要以生会自着去之过家学对可她里后么心多天而能好都然没日于起还发成事只作当想看文无开手十用主方又如前所见经头公" +
		"同三已从动两知民样现分将些与高意进把法此实二理美点月明其种声工己儿者向情部正名定女问力机给等几很业最间什打便位因重被走电四"},
	{traditionalchinese.Big5, 0xa4, 0xc6, true, "第話卷集章回頁冊期版本封面漫畫番外篇上中下完全彩色單行漢化組新老大小長短的一是不了人我在有他這來個國到說們為" +
		"子和你地出道也時年得就那要以生會自著去之過家學對可她裡後麼心多天而能好都然沒日於起還發成事只作當想看文無開手十用主方又如前所見經頭公" +
		"同三已從動兩知民樣現分將些與高意進把法此實二理美點月明其種聲工己兒者向情部正名定女問力機給等幾很業最間什打便位因重被走電四"},
	{korean.EUCKR, 0xb0, 0xc8, false, "이다가는을의에한지고도하로기사나자리아어인시서대정그전해라일보제주수스원상은부성장선화권구조안동만여비드들내세오유마소우" +
		"무표생공미과연모위관계신중방트국게개당명경행회물문등반음천년편강요간진호남후속교용출"},
}

// eastAsian decodes names as Chinese or Korean, or returns nil if they read as neither.
func eastAsian(names []string) (decoded []string) {
	most := -1
	for _, e := range doubleBytes {
		if !e.usual(names) {
			continue
		}
		if text, common := e.read(names); text != nil && common > most {
			decoded, most = text, common
		}
	}
	return decoded
}

// usual reports whether the names have at least two characters of the script, and ten times as many common ones as
// others.
func (e doubleByte) usual(names []string) bool {
	seen, usual, other := map[string]bool{}, 0, 0
	for _, name := range names {
		latin := false // the previous character is a Latin letter
		for i := 0; i < len(name); i++ {
			if name[i] < utf8.RuneSelf {
				latin = isASCIILetter(rune(name[i]))
				continue
			}
			pair := name[i:min(i+2, len(name))]
			i++
			inWord := isASCIILetter(rune(pair[len(pair)-1])) && (latin || i+1 < len(name) && isASCIILetter(rune(name[i+1])))
			switch {
			case pair[0] >= 0xa1 && pair[0] <= 0xa3: // symbols
			case e.holds(pair) && !inWord:
				usual++
				seen[pair] = true
			default:
				other++
			}
			latin = false
		}
	}
	return len(seen) > 1 && usual >= 10*other
}

func (e doubleByte) holds(pair string) bool {
	return len(pair) == 2 && pair[0] >= e.first && pair[0] <= e.last && (pair[1] > 0xa0 || e.low)
}

// read decodes names and counts very common characters. It returns nil for invalid bytes.
func (e doubleByte) read(names []string) (decoded []string, common int) {
	looked := 0
	for _, name := range names {
		s, err := e.NewDecoder().String(name)
		if err != nil || strings.ContainsRune(s, utf8.RuneError) {
			return nil, 0
		}
		decoded = append(decoded, s)
		for _, r := range s {
			if looked++; looked < 10_000 && r >= utf8.RuneSelf && strings.ContainsRune(e.common, r) {
				common++
			}
		}
	}
	return decoded, common
}
