package xmllimit

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"

	"github.com/longbox/longbox/shared/lazyregexp"
)

var (
	declaration = lazyregexp.New(`^\s*<\?xml\s[^>]*?\?>`)
	declared    = lazyregexp.New(`encoding\s*=\s*["']([A-Za-z0-9._:-]+)["']`)
)

// decode returns a document as UTF-8, without byte order mark, XML declaration and characters that XML forbids. The
// bytes take precedence over the declaration, in this order: a byte order mark, valid UTF-8, the declared encoding if
// the bytes are valid in it, UTF-8 with a few invalid bytes, windows-1252, in which every byte is valid.
func decode(b []byte) []byte {
	switch {
	case bytes.HasPrefix(b, []byte("\xef\xbb\xbf")):
		b = b[3:]
	case bytes.HasPrefix(b, []byte("\xff\xfe")), bytes.HasPrefix(b, []byte("<\x00")):
		b = wide(b, binary.LittleEndian)
	case bytes.HasPrefix(b, []byte("\xfe\xff")), bytes.HasPrefix(b, []byte("\x00<")):
		b = wide(b, binary.BigEndian)
	}
	head := declaration.Find(b[:min(len(b), 1024)])
	name := ""
	if m := declared.FindSubmatch(head); m != nil {
		name = strings.ToLower(string(m[1]))
	}
	b = b[len(head):]
	if !utf8.Valid(b) || name == "iso-2022-jp" {
		b = convert(b, name)
	}
	b = bytes.Map(allowed, reference.ReplaceAllFunc(b, withoutForbidden))
	if !bytes.Contains(b, []byte("<![CDATA[")) {
		b = withoutLoneLess(comment.ReplaceAll(b, nil))
	}
	return b
}

// comment matches comments, which are removed: the decoder refuses one that contains --, as in drawn lines.
var comment = lazyregexp.New(`(?s)<!--.*?-->`)

// withoutLoneLess escapes an unescaped < in text, as in "I <3 you": no tag starts like that, and the decoder would stop
// there.
func withoutLoneLess(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for {
		at := bytes.IndexByte(b, '<') + 1
		if at == 0 || at == len(b) {
			return append(out, b...)
		}
		out = append(out, b[:at]...)
		if strings.IndexByte(" \t\r\n0123456789<>=-+*.,;()\"'&", b[at]) >= 0 {
			out = append(out[:len(out)-1], "&lt;"...)
		}
		b = b[at:]
	}
}

var reference = lazyregexp.New(`&#(?:[xX][0-9a-fA-F]+|[0-9]+);`)

// withoutForbidden drops a reference to a character that XML forbids. .NET serializers write control characters that
// way, and the decoder would stop there.
func withoutForbidden(ref []byte) []byte {
	number := "0" + strings.ToLower(string(ref[2:len(ref)-1])) // 0x1f, or 031
	base := 10
	if strings.HasPrefix(number, "0x") {
		number, base = number[2:], 16
	}
	if n, err := strconv.ParseInt(number, base, 32); err == nil && allowed(rune(n)) < 0 {
		return nil
	}
	return ref
}

func convert(b []byte, name string) []byte {
	if enc := known(name); enc != nil {
		if s, err := enc.NewDecoder().Bytes(b); err == nil && !bytes.ContainsRune(s, utf8.RuneError) {
			return s
		}
	}
	s, err := charmap.Windows1252.NewDecoder().Bytes(b)
	if err != nil || mostlyUTF8(b) {
		return bytes.ToValidUTF8(b, []byte("\ufffd"))
	}
	return s
}

// mostlyUTF8 reports whether a text is UTF-8 that was truncated within a character, or mixed with another encoding.
func mostlyUTF8(b []byte) bool {
	good, bad := 0, 0
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case r == utf8.RuneError && n == 1:
			bad++
		case n > 1:
			good++
		}
		b = b[n:]
	}
	return good > bad
}

func wide(b []byte, order binary.ByteOrder) []byte {
	endian := unicode.LittleEndian
	if order == binary.BigEndian {
		endian = unicode.BigEndian
	}
	s, err := unicode.UTF16(endian, unicode.UseBOM).NewDecoder().Bytes(b)
	if err != nil {
		return nil
	}
	return s
}

// synonyms are encoding names in books that browsers do not know, and a wider encoding for two narrow ones.
var synonyms = map[string]string{"cp932": "shift_jis", "cp949": "euc-kr", "cp950": "big5", "latin9": "iso-8859-15", "gbk": "gb18030", "gb2312": "gb18030"}

// known returns the encoding with a name that browsers know, or nil.
func known(name string) encoding.Encoding {
	enc, err := htmlindex.Get(cmp.Or(synonyms[name], name))
	if err != nil || strings.HasPrefix(name, "utf") {
		return nil
	}
	return enc
}

// allowed drops characters that XML 1.0 forbids (section 2.2).
func allowed(r rune) rune {
	switch {
	case r == '\t', r == '\n', r == '\r':
		return r
	case r < ' ', r == 0xfffe, r == 0xffff:
		return -1
	}
	return r
}
