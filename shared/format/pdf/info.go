package pdf

import (
	"encoding/binary"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/longbox/longbox/shared/lazyregexp"
)

// Info is the metadata of a document (14.3.3); absent values are "".
type Info struct {
	Title, Author, Subject, Keywords, Creator string
	Language                                  string // from the catalog
	RightToLeft                               bool   // the preferred reading direction of the document
}

// textBytes limits one text.
const textBytes = 64 << 10

func (d *reader) info(catalog dict) Info {
	entries, _ := d.value(d.head["Info"]).(dict)
	get := func(from dict, key name) string {
		s, _ := d.value(from[key]).(text)
		return plain(s)
	}
	view, _ := d.value(catalog["ViewerPreferences"]).(dict)
	out := Info{
		Title: get(entries, "Title"), Author: get(entries, "Author"), Subject: get(entries, "Subject"),
		Keywords: get(entries, "Keywords"), Creator: get(entries, "Creator"),
		Language: get(catalog, "Lang"), RightToLeft: d.value(view["Direction"]) == name("R2L"),
	}
	d.describe(&out, catalog)
	return out
}

// above80 are the characters of PDFDocEncoding from 0x80 (annex D.2). The others equal Latin-1.
var above80 = []rune("•†‡…—–ƒ⁄‹›−‰„“”‘’‚™ﬁﬂŁŒŠŸŽıłœšž\ufffd€")

// plain decodes a text string (7.9.2.2) with single spaces.
func plain(s text) string {
	if len(s) > textBytes {
		s = s[:textBytes]
	}
	out := ""
	switch {
	case strings.HasPrefix(string(s), "\xfe\xff"):
		out = wide(s[2:], binary.BigEndian)
	case strings.HasPrefix(string(s), "\xff\xfe"): // not in the standard, but in use
		out = wide(s[2:], binary.LittleEndian)
	case strings.HasPrefix(string(s), "\xef\xbb\xbf"), !isASCII(s) && utf8.ValidString(string(s)):
		out = strings.ToValidUTF8(strings.TrimPrefix(string(s), "\xef\xbb\xbf"), "")
	default:
		var b strings.Builder
		for i := range len(s) {
			switch c := s[i]; {
			case c >= 0x80 && int(c-0x80) < len(above80):
				b.WriteRune(above80[c-0x80])
			default:
				b.WriteRune(rune(c))
			}
		}
		out = b.String()
	}
	out = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, out)
	return strings.Join(strings.Fields(out), " ")
}

// language matches the escape sequence for the language of UTF-16 text (7.9.2.2.2).
var language = lazyregexp.New("\x1b[A-Za-z]{2,8}\x1b")

func wide(s text, order binary.ByteOrder) string {
	var units []uint16
	for i := 0; i+1 < len(s); i += 2 {
		units = append(units, order.Uint16([]byte(s[i:i+2])))
	}
	return language.ReplaceAllString(string(utf16.Decode(units)), "")
}

func isASCII(s text) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
