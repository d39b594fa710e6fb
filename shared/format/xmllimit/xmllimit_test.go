package xmllimit

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/unicode"
)

func TestParse(t *testing.T) {
	t.Parallel()
	utf16 := func(s string, e unicode.Endianness, bom unicode.BOMPolicy) string {
		out, err := unicode.UTF16(e, bom).NewEncoder().String(s)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	sjis, err := japanese.ShiftJIS.NewEncoder().String("漫画")
	if err != nil {
		t.Fatal(err)
	}
	const doc = `<?xml version="1.0" encoding="utf-16"?><r>é漫</r>`
	tests := map[string]struct {
		in   string
		mode Mode
		want string
	}{
		"plain":               {`<r>a &amp; b &lt; &#233;</r>`, NoDoctype, "a & b < é"},
		"lone ampersand":      {`<r>Tom & Jerry &nbsp;</r>`, NoDoctype, "Tom & Jerry &nbsp;"},
		"XML 1.1":             {`<?xml version="1.1"?><r>a</r>`, NoDoctype, "a"},
		"lone less":           {`<r b="<1">I <3 you, 1 < 2 << 3 <- <</r>`, NoDoctype, "I <3 you, 1 < 2 << 3 <- <"},
		"CDATA":               {`<r><![CDATA[<b> ]] & ]]>x</r>`, NoDoctype, "<b> ]] & x"},
		"comment with markup": {`<!-- <!DOCTYPE x [ --><r>a</r>`, NoDoctype, "a"},
		"lines of comments":   {"<!-------- x ------><r><!-- a -- b -->a<!-----\n--->b<!-- <b> --></r>", NoDoctype, "ab"},
		"BOM":                 {"\xef\xbb\xbf<r>é</r>", NoDoctype, "é"},
		"UTF-16 LE":           {utf16(doc, unicode.LittleEndian, unicode.UseBOM), NoDoctype, "é漫"},
		"UTF-16 BE":           {utf16(doc, unicode.BigEndian, unicode.UseBOM), NoDoctype, "é漫"},
		"UTF-16 without BOM":  {utf16(doc, unicode.LittleEndian, unicode.IgnoreBOM), NoDoctype, "é漫"},
		"lying utf-8":         {"<?xml version='1.0' encoding='utf-8'?><r>caf\xe9 \x93x\x94</r>", NoDoctype, "café “x”"},
		"cut UTF-8":           {"<r>漫画\xe6\xbc…</r>", NoDoctype, "漫画\ufffd…"},
		"lying utf-16":        {`<?xml version="1.0" encoding="utf-16"?><r>é</r>`, NoDoctype, "é"},
		"lying latin1":        {`<?xml version="1.0" encoding="iso-8859-1"?><r>é</r>`, NoDoctype, "é"},
		"latin1":              {"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><r>\xe9</r>", NoDoctype, "é"},
		"Shift-JIS":           {`<?xml version="1.0" encoding="Shift_JIS"?><r>` + sjis + `</r>`, NoDoctype, "漫画"},
		"Big5":                {"<?xml version=\"1.0\" encoding=\"Big5\"?><r>\xba\xa9\xb5e</r>", NoDoctype, "漫畫"},
		"EUC-KR":              {"<?xml version=\"1.0\" encoding=\"euc-kr\"?><r>\xb8\xb8\xc8\xad</r>", NoDoctype, "만화"},
		"Turkish":             {"<?xml version=\"1.0\" encoding=\"windows-1254\"?><r>\xfe\xf0</r>", NoDoctype, "şğ"},
		"cp1251":              {"<?xml version=\"1.0\" encoding=\"cp1251\"?><r>\xcf\xf0</r>", NoDoctype, "Пр"},
		"Hebrew":              {"<?xml version=\"1.0\" encoding=\"windows-1255\"?><r>\xe0\xe1</r>", NoDoctype, "אב"},
		"cp949":               {"<?xml version=\"1.0\" encoding=\"cp949\"?><r>\xb8\xb8\xc8\xad</r>", NoDoctype, "만화"},
		"unknown encoding":    {"<?xml version=\"1.0\" encoding=\"x-own\"?><r>\xe9</r>", NoDoctype, "é"},
		"Greek":               {"<?xml version=\"1.0\" encoding=\"iso-8859-7\"?><r>\xe1\xe2</r>", NoDoctype, "αβ"},
		"control characters":  {"<r>a\x00\x1fb</r>", NoDoctype, "ab"},
		"their references":    {"<r b='&#11;'>a&#x1F;&#0;&#xfffe;b&#x9;&#127;&#x110000;</r>", NoDoctype, "ab\t\x7f&#x110000;"},
		"long value":          {`<r b="` + strings.Repeat("x", 200<<10) + `">a</r>`, NoDoctype, "a"},
		"doctype":             {`<!DOCTYPE html PUBLIC "a" "http://example.org/x.dtd"><r>a</r>`, Doctype, "a"},
		"HTML":                {`<!DOCTYPE html><r>a&nbsp;b<br>c</r>`, XHTML, "a\u00a0b\n\nc"},
	}
	for name, tt := range tests {
		root, err := Parse([]byte(tt.in), tt.mode, Limits{})
		if err != nil || root.Name != "r" || root.Content() != tt.want {
			t.Errorf("%s: %+v, %v; want %q", name, root, err, tt.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	entity := `<!DOCTYPE r [<!ENTITY e SYSTEM "file:///etc/passwd">]><r>&e;</r>`
	tests := map[string]struct {
		in   string
		mode Mode
		want error
	}{
		"empty":                 {"", NoDoctype, ErrEmpty},
		"no XML":                {"some text", NoDoctype, ErrEmpty},
		"DTD":                   {`<!DOCTYPE r SYSTEM "x.dtd"><r/>`, NoDoctype, ErrDTD},
		"entity":                {entity, NoDoctype, ErrDTD},
		"entity, doctype mode":  {entity, Doctype, ErrDTD},
		"entity, XHTML":         {entity, XHTML, ErrDTD},
		"entity behind quotes":  {`<!DOCTYPE r "]>" [<!ENTITY a "b">]><r/>`, Doctype, ErrDTD},
		"split by a comment":    {`<!DOC<!-- -->TYPE r [<!ENTITY a "b">]><r/>`, Doctype, ErrDTD},
		"bare entity":           {`<!ENTITY a "b"><r/>`, NoDoctype, ErrDTD},
		"lower case doctype":    {`<!doctype r [<!entity a "b">]><r/>`, Doctype, ErrDTD},
		"subset of references":  {`<!DOCTYPE r [%a;]><r/>`, Doctype, ErrDTD},
		"entity, no brackets":   {`<!DOCTYPE r <!ENTITY a "b">><r/>`, Doctype, ErrDTD},
		"deep":                  {strings.Repeat("<a>", 200), NoDoctype, ErrTooLarge},
		"very deep":             {strings.Repeat("<a>", 4<<20/3), NoDoctype, ErrTooLarge},
		"large":                 {"<r>" + strings.Repeat("x", 50<<20), NoDoctype, ErrTooLarge},
		"many elements":         {"<r>" + strings.Repeat("<a/>", 4<<20/4-2), NoDoctype, ErrTooLarge},
		"many attributes":       {"<r" + strings.Repeat(` a=""`, 4<<20/5-2), NoDoctype, ErrTooLarge},
		"attributes and quotes": {`<r a=">" ` + strings.Repeat(` a=""`, 4<<20/5-10), NoDoctype, ErrTooLarge},
	}
	for _, quote := range []string{`"`, `' x="`, `a"`, `a=b'`} { // the decoder ends where quotes are none
		if root, err := Parse([]byte("<r "+quote+strings.Repeat(" x", 2<<20-20)+quote+">"), XHTML, Limits{}); root != nil || !errors.Is(err, ErrEmpty) && !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", quote, err)
		}
	}
	for name, tt := range tests {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		root, err := Parse([]byte(tt.in), tt.mode, Limits{})
		runtime.ReadMemStats(&after)
		if root != nil || !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
		if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 64+uint64(len(tt.in)>>20) {
			t.Errorf("%s: %d MiB allocated", name, used)
		}
	}
}

func TestParseKeepsWhatCameBefore(t *testing.T) {
	t.Parallel()
	root, err := Parse([]byte(`<r><a>first</a><b>second`), NoDoctype, Limits{})
	if err == nil || root == nil || root.Child("A").Content() != "first" {
		t.Errorf("%+v, %v", root, err)
	}
}

// Each limit is a setting: what is just within it is accepted, what is just beyond is refused with its name.
func TestLimits(t *testing.T) {
	t.Parallel()
	lim := Limits{Bytes: 100, Depth: 3, Elements: 5}
	for _, tt := range []struct{ in, setting string }{
		{"<a>" + strings.Repeat(" ", 93) + "</a>", ""},
		{"<a>" + strings.Repeat(" ", 94) + "</a>", "XML_MAX_BYTES"},
		{"<a><b><c/></b></a>", ""},
		{"<a><b><c><d/></c></b></a>", "XML_MAX_DEPTH"},
		{"<a>" + strings.Repeat("<b></b>", 4) + "</a>", ""},
		{"<a>" + strings.Repeat("<b></b>", 5) + "</a>", "XML_MAX_ELEMENTS"},
	} {
		_, err := Parse([]byte(tt.in), NoDoctype, lim)
		if (err != nil) != (tt.setting != "") || err != nil && (!errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), tt.setting)) {
			t.Errorf("%.30s: %v, want %q", tt.in, err, tt.setting)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`<?xml version="1.0"?><r a="b">c<d/>&amp;<![CDATA[x]]></r>`))
	f.Add([]byte("\xff\xfe<\x00r\x00/\x00>\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, mode := range []Mode{NoDoctype, Doctype, XHTML} {
			root, err := Parse(b, mode, Limits{})
			if root == nil && err == nil {
				t.Error("neither root nor error")
			}
			if root != nil {
				root.Content()
			}
		}
	})
}
