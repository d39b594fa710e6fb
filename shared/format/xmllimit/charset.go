package xmllimit

import (
	"bytes"
	"encoding/binary"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"
)

var (
	declaration = regexp.MustCompile(`^\s*<\?xml\s[^>]*?\?>`)
	declared    = regexp.MustCompile(`encoding\s*=\s*["']([A-Za-z0-9._:-]+)["']`)
)

// decode returns a document as UTF-8, without byte order mark, XML declaration
// and characters that XML does not allow. The bytes are believed before the
// declaration: a byte order mark, then valid UTF-8, then the declared encoding
// if its bytes fit, then UTF-8 with a few bytes that are none, else
// windows-1252, in which every byte means something.
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
	return bytes.Map(allowed, reference.ReplaceAllFunc(b, withoutForbidden))
}

var reference = regexp.MustCompile(`&#(?:[xX][0-9a-fA-F]+|[0-9]+);`)

// withoutForbidden drops a reference to what is no character of XML. Serializers of .NET write control characters so, and
// the decoder would stop there.
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

// mostlyUTF8 tells of a text that somebody has cut within a character, or mixed with another encoding.
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

// known returns the encodings that books are found in, or nil.
func known(name string) encoding.Encoding {
	switch name {
	case "iso-8859-1", "latin1", "windows-1252", "cp1252":
		return charmap.Windows1252
	case "iso-8859-2", "latin2":
		return charmap.ISO8859_2
	case "iso-8859-15", "latin9":
		return charmap.ISO8859_15
	case "windows-1250":
		return charmap.Windows1250
	case "windows-1251":
		return charmap.Windows1251
	case "koi8-r":
		return charmap.KOI8R
	case "shift_jis", "shift-jis", "sjis", "windows-31j", "cp932":
		return japanese.ShiftJIS
	case "euc-jp":
		return japanese.EUCJP
	case "iso-2022-jp":
		return japanese.ISO2022JP
	case "gbk", "gb2312", "gb18030":
		return simplifiedchinese.GB18030
	case "big5", "big5-hkscs", "cp950":
		return traditionalchinese.Big5
	case "euc-kr", "ks_c_5601-1987", "cp949", "windows-949":
		return korean.EUCKR
	case "iso-8859-9", "latin5", "windows-1254":
		return charmap.Windows1254
	case "iso-8859-7", "windows-1253":
		return charmap.Windows1253
	}
	return nil
}

// allowed drops what is no character of XML 1.0 (section 2.2).
func allowed(r rune) rune {
	switch {
	case r == '\t', r == '\n', r == '\r':
		return r
	case r < ' ', r == 0xfffe, r == 0xffff:
		return -1
	}
	return r
}
