package strategy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/domain/strategy"
)

func TestTitle(t *testing.T) {
	t.Parallel()
	volume, chapter, half := 3, 7.0, 12.5
	for _, c := range []struct {
		volume          *int
		chapter         *float64
		position, count int
		want            string
	}{
		{nil, nil, 2, 5, "S v.02"},
		{nil, nil, 2, 99, "S v.02"},
		{nil, nil, 2, 100, "S v.002"},
		{nil, nil, 2, 1000, "S v.0002"},
		{nil, nil, 2, 100000, "S v.0002"},
		{&volume, nil, 2, 5, "S v.03"},
		{&volume, &chapter, 2, 5, "S v.03 c.007"},
		{&volume, &chapter, 2, 1000, "S v.0003 c.0007"},
		{nil, &half, 2, 5, "S c.012.5"},
	} {
		if got := strategy.Title("S", c.volume, c.chapter, c.position, c.count); got != c.want {
			t.Errorf("%v %v %d of %d: %q, want %q", c.volume, c.chapter, c.position, c.count, got, c.want)
		}
	}
}

// Files in different folders belong to one series if the names match, and its path is stable.
func TestPlaces(t *testing.T) {
	t.Parallel()
	set, bad := strategy.New(strategy.Options{Series: "flat", Book: "filename", Number: "smart"})
	if bad != nil {
		t.Fatal(bad)
	}
	a, b := set.Read("x/[One Piece] v01.cbz", nil), set.Read("y/[ONE  PIECE] v02.cbz", nil)
	if a.Path != b.Path || !strings.HasPrefix(a.Path, "/") {
		t.Errorf("paths %q, %q", a.Path, b.Path)
	}
	if m := set.Read("Saga 001.cbz", &strategy.Meta{Series: "Saga (2012)"}); m.Name != "Saga (2012)" || m.Path != "/saga (2012)" {
		t.Errorf("%+v", m.Place)
	}
	if m := set.Read("[One Piece] v01.cbz", &strategy.Meta{Series: "Other"}); m.Name != "One Piece" {
		t.Errorf("a pattern that matches wins: %+v", m.Place)
	}
	set, bad = strategy.New(strategy.Options{Series: "calibre", SeriesConfig: json.RawMessage(`{"series_mode":"from_metadata"}`), Book: "filename", Number: "smart"})
	if bad != nil {
		t.Fatal(bad)
	}
	if m := set.Read("A/T (1)/t.epub", &strategy.Meta{Series: "Cycle"}); m.Path != "/cycle" || m.Author != "A" {
		t.Errorf("%+v", m.Place)
	}
	if m := set.Read("A/T (1)/t.epub", &strategy.Meta{}); m.Path != "A/T (1)" || m.Name != "T" {
		t.Errorf("%+v", m.Place)
	}
	set, bad = strategy.New(strategy.Options{Series: "custom", SeriesConfig: json.RawMessage(`{"pattern":"^(?P<series>[^/]+)/(?P<volume>\\d+)"}`), Book: "filename", Number: "smart"})
	if bad != nil {
		t.Fatal(bad)
	}
	if m := set.Read("Saga/07/a.cbz", nil); m.Volume == nil || *m.Volume != 7 {
		t.Errorf("%+v", m)
	}
	if m := set.Read("Saga/9781421582849/a.cbz", nil); m.Volume != nil { // not a volume number, nor one that can be stored
		t.Errorf("volume %d", *m.Volume)
	}
}

func TestBadConfigurations(t *testing.T) {
	t.Parallel()
	long := `"(` + strings.Repeat("x", 999) + `)"`
	for _, c := range []struct{ kind, name, config, field string }{
		{"series", "nothing", "", "seriesStrategy"},
		{"book", "nothing", "", "bookStrategy"},
		{"number", "nothing", "", "numberStrategy"},
		{"series", "series_volume", "[1]", "seriesConfig"},
		{"number", "smart", `"x"`, "numberConfig"},
		{"series", "flat", `{"filenamePatterns":["("]}`, "seriesConfig.filenamePatterns[0]"},
		{"series", "flat", `{"filenamePatterns":["no group"]}`, "seriesConfig.filenamePatterns[0]"},
		{"series", "flat", `{"filenamePatterns":"x"}`, "seriesConfig.filenamePatterns"},
		{"series", "flat", `{"filenamePatterns":[` + long + `]}`, "seriesConfig.filenamePatterns[0]"},
		{"series", "flat", `{"filenamePatterns":["(a)"` + strings.Repeat(`,"(a)"`, 20) + `]}`, "seriesConfig.filenamePatterns"},
		{"series", "flat", `{"requireMetadata":"yes"}`, "seriesConfig.requireMetadata"},
		{"series", "publisher_hierarchy", `{"skipDepth":-1}`, "seriesConfig.skipDepth"},
		{"series", "publisher_hierarchy", `{"skip_depth":11}`, "seriesConfig.skipDepth"},
		{"series", "publisher_hierarchy", `{"skipDepth":1.5}`, "seriesConfig.skipDepth"},
		{"series", "publisher_hierarchy", `{"storeSkippedAs":"a b"}`, "seriesConfig.storeSkippedAs"},
		{"series", "publisher_hierarchy", `{"storeSkippedAs":"` + strings.Repeat("x", 51) + `"}`, "seriesConfig.storeSkippedAs"},
		{"series", "calibre", `{"seriesMode":"x"}`, "seriesConfig.seriesMode"},
		{"series", "calibre", `{"stripIdSuffix":1}`, "seriesConfig.stripIdSuffix"},
		{"series", "custom", "", "seriesConfig.pattern"},
		{"series", "custom", `{"pattern":"(?P<book>.)"}`, "seriesConfig.pattern"},
		{"series", "custom", `{"pattern":"(?=x)"}`, "seriesConfig.pattern"},
		{"series", "custom", `{"pattern":"(?P<series>.)","seriesNameTemplate":"{other}"}`, "seriesConfig.seriesNameTemplate"},
		{"series", "custom", `{"pattern":"(?P<series>.)","seriesNameTemplate":""}`, "seriesConfig.seriesNameTemplate"},
		{"book", "smart", `{"additionalGenericPatterns":["["]}`, "bookConfig.additionalGenericPatterns[0]"},
		{"book", "custom", "", "bookConfig.pattern"},
		{"book", "custom", `{"pattern":"x"}`, "bookConfig.pattern"},
		{"book", "custom", `{"pattern":"(?P<volume>\\d+)","titleTemplate":"{x}"}`, "bookConfig.titleTemplate"},
		{"book", "custom", `{"pattern":"(?P<volume>\\d+)","titleTemplate":"a\u0007"}`, "bookConfig.titleTemplate"},
		{"book", "custom", `{"pattern":"(?P<volume>\\d+)","titleTemplate":"` + strings.Repeat("x", 501) + `"}`, "bookConfig.titleTemplate"},
		{"book", "custom", `{"pattern":"(?P<volume>\\d+)","fallback":"custom"}`, "bookConfig.fallback"},
	} {
		o := strategy.Options{Series: "series_volume", Book: "filename", Number: "file_order"}
		switch c.kind {
		case "series":
			o.Series, o.SeriesConfig = c.name, json.RawMessage(c.config)
		case "book":
			o.Book, o.BookConfig = c.name, json.RawMessage(c.config)
		case "number":
			o.Number, o.NumberConfig = c.name, json.RawMessage(c.config)
		}
		set, bad := strategy.New(o)
		if set != nil || len(bad) == 0 || bad[0].Field != c.field || bad[0].Message == "" {
			t.Errorf("%s %s %.60s: %v, want %s", c.kind, c.name, c.config, bad, c.field)
		}
	}
}

// Cases beyond the examples in the documentation.
func TestRead(t *testing.T) {
	t.Parallel()
	const numbers = `{"pattern":"(?P<volume>-?\\d+)x(?P<chapter>\\S*)"}`
	for _, c := range []struct{ kind, name, config, line, want string }{
		{"series", "series_volume_chapter", "", "One Piece/Volume 01/Extras/1.cbz", "One Piece | volume 1"},
		{"series", "series_volume_chapter", "", "S/0/1.cbz", "S | volume 0"},
		{"series", "series_volume_chapter", "", "S/2019/1.cbz", "S | volume 2019"},
		{"series", "series_volume_chapter", "", "S/20190101/1.cbz", "S"},
		{"series", "series_volume_chapter", "", "S/-1/1.cbz", "S"},
		{"series", "series_volume_chapter", "", "S/Arc/1.cbz", "S"},
		{"series", "flat", `{"filenamePatterns":null}`, "[One Piece] v01.cbz", "One Piece"},
		{"series", "flat", "", "[ ] Saga 01.cbz", "Saga | may move"},
		{"series", "flat", "", "x/01.cbz", "01 | may move"},
		{"series", "flat", `{"requireMetadata":true}`, "Saga 01.cbz", "Saga 01 | may move"},
		{"series", "publisher_hierarchy", `{"skipDepth":0}`, "Marvel/Saga/1.cbz", "Saga"},
		{"series", "publisher_hierarchy", `{"skipDepth":10}`, "Marvel/Saga/1.cbz", "1 | publisher Marvel / Saga"},
		{"series", "publisher_hierarchy", `{"storeSkippedAs":null}`, "Marvel/Saga/1.cbz", "Saga"},
		{"series", "publisher_hierarchy", `{"storeSkippedAs":"imprint"}`, "Marvel/Saga/1.cbz", "Saga | imprint Marvel"},
		{"series", "calibre", "", "Mistborn.epub", "Mistborn"},
		{"series", "calibre", "", "A/(45)/x.epub", "(45) | author A"},
		{"series", "calibre", `{"seriesMode":"by_author"}`, "Mistborn (45)/x.epub", "Mistborn"},
		{"series", "custom", `{"pattern":"(?P<series>[^/]*)_","seriesNameTemplate":"x {series}"}`, "S/_1.cbz", "S"},
		{"series", "custom", `{"pattern":"^(?P<series>[^/]+)/(?P<publisher>x?)","seriesNameTemplate":"{publisher}"}`, "S/1.cbz", "S"},
		{"series", "custom", `{"pattern":"^(?P<series>[^/]+)/(?:v(?P<volume>\\d+)|t(?P<volume>\\d+))"}`, "S/v3/1.cbz", "S | volume 3"},
		{"book", "custom", `{"pattern":"v(?P<volume>\\d+)|t(?P<volume>\\d+)"}`, "Saga v3.cbz", "Saga v3 | volume 3"},
		{"book", "custom", `{"pattern":"v(?P<volume>\\d+)|t(?P<volume>\\d+)"}`, "Saga t3.cbz", "Saga t3 | volume 3"},
		{"book", "metadata_first", "", "a.cbz <The\nEnd; ; >", "The End"},
		{"book", "smart", "", "Anima v01 c007.cbz <; ; >", "Anima v01 c007 | volume 1 | chapter 7"},
		{"book", "smart", `{"genericPatterns":["^Bonus$"]}`, "Anima v03.cbz <Bonus; ; >", "Anima v03 | volume 3"},
		{"book", "custom", `{"pattern":"(?P<volume>\\d+)x","fallback":"smart"}`, "Anima v03.cbz <Tale; ; >", "Tale | volume 3"},
		{"book", "custom", numbers, "Saga 12x.cbz", "Saga 12x | volume 12"},
		{"book", "custom", numbers, "Saga 12xNaN.cbz", "Saga 12xNaN | volume 12"},
		{"book", "custom", numbers, "Saga 12x-1.cbz", "Saga 12x-1 | volume 12"},
		{"book", "custom", numbers, "Saga 12x10000000.cbz", "Saga 12x10000000 | volume 12"},
		{"book", "custom", numbers, "Saga 10000000x1.cbz", "Saga 10000000x1 | chapter 1"},
		{"book", "custom", numbers, "Saga -1x1.cbz", "Saga -1x1 | chapter 1"},
		{"book", "custom", numbers, "Saga 0x0.cbz", "Saga 0x0 | volume 0 | chapter 0"},
		{"book", "custom", numbers, "9999999x9999999.cbz", "9999999x9999999 | volume 9999999 | chapter 9999999"},
		{"book", "custom", `{"pattern":"(?P<chapter>\\d+)$","titleTemplate":"{series} {volume} {chapter}"}`, "Saga/a 7.cbz", "Saga 007 | chapter 7"},
		{"book", "custom", `{"pattern":"(?P<volume>\\d+)$","titleTemplate":"{series} {volume} {chapter}"}`, "Saga/a 7.cbz", "Saga 07 | volume 7"},
	} {
		o := strategy.Options{Series: "series_volume", Book: "filename", Number: "file_order"}
		show := showSeries
		if c.kind == "series" {
			o.Series, o.SeriesConfig = c.name, json.RawMessage(c.config)
		} else {
			o.Book, o.BookConfig, show = c.name, json.RawMessage(c.config), showBook
		}
		set, bad := strategy.New(o)
		if bad != nil {
			t.Errorf("%s %s: %v", c.name, c.config, bad)
			continue
		}
		if got := show(set.Read(example(t, c.line))); got != c.want {
			t.Errorf("%s %s: %s: %q, want %q", c.name, c.config, c.line, got, c.want)
		}
	}
}

// An expression may be long, but not expand by repetition.
func TestCompile(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]bool{
		strings.Repeat("x", 1000): true, `\pL{20}`: true, `(?:abcdefghij){1000}`: false, `(?:\w{100}){10}`: false, `(`: false,
	} {
		if _, err := strategy.Compile(pattern); (err == nil) != want {
			t.Errorf("%.30s: %v", pattern, err)
		}
	}
}

// What a set needs besides the file.
func TestSetNeeds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		o                  strategy.Options
		arranges, packages bool
	}{
		{strategy.Options{Series: "flat", Book: "filename", Number: "metadata"}, false, true},
		{strategy.Options{Series: "flat", Book: "filename", Number: "file_order"}, true, true},
		{strategy.Options{Series: "flat", Book: "filename", Number: "smart"}, true, true},
		{strategy.Options{Series: "flat", Book: "series_name", Number: "metadata"}, true, true},
		{strategy.Options{Series: "calibre", SeriesConfig: json.RawMessage(`{"readOpfMetadata":false}`), Book: "filename", Number: "metadata"}, false, false},
	} {
		set, bad := strategy.New(c.o)
		if bad != nil {
			t.Fatal(bad)
		}
		if set.Arranges() != c.arranges || set.Packages() != c.packages {
			t.Errorf("%+v: arranges %v, packages %v", c.o, set.Arranges(), set.Packages())
		}
	}
}

func TestCanonical(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"skip_depth":2,"other_thing":1}`: `{"other_thing":1,"skipDepth":2}`,
		`{"skipDepth":2}`:                  `{"skipDepth":2}`,
		`{"skip_depth":1,"skipDepth":2}`:   `{"skipDepth":2}`,
		``:                                 ``,
		`null`:                             `null`,
	} {
		if got := string(strategy.Canonical(json.RawMessage(in))); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// No key makes a strategy fail, or yields an empty name.
func FuzzRead(f *testing.F) {
	var sets []*strategy.Set
	for _, o := range []strategy.Options{
		{Series: "series_volume", Book: "filename", Number: "file_order"},
		{Series: "series_volume_chapter", Book: "series_name", Number: "filename"},
		{Series: "flat", Book: "smart", Number: "smart"},
		{Series: "publisher_hierarchy", Book: "metadata_first", Number: "metadata"},
		{Series: "calibre", Book: "filename", Number: "smart", SeriesConfig: json.RawMessage(`{"seriesMode":"from_metadata"}`)},
		{Series: "custom", Book: "custom", Number: "smart", SeriesConfig: json.RawMessage(`{"pattern":"^(?P<publisher>[^/]+)/(?P<series>[^/]*)/(?P<volume>.*)"}`),
			BookConfig: json.RawMessage(`{"pattern":"(?P<series>.*)(?P<volume>\\d+)x(?P<chapter>[\\d.]+)","titleTemplate":"{series} {volume} {chapter}"}`)},
	} {
		set, bad := strategy.New(o)
		if bad != nil {
			f.Fatal(bad)
		}
		sets = append(sets, set)
	}
	f.Add("A/B (1)/c v1 c2.cbz", "Series")
	f.Add("第1巻/.cbz", "")
	f.Fuzz(func(t *testing.T, key, series string) {
		if key = strings.Trim(key, "/"); key == "" || len(key) > 1024 || strings.Contains(key, "//") {
			return
		}
		for _, set := range sets {
			for _, meta := range []*strategy.Meta{nil, {Series: series, Title: series}} {
				one, two := set.Read(key, meta), set.Read(key, meta)
				if one.Path == "" || one.Path != two.Path {
					t.Errorf("%q: path %q, then %q", key, one.Path, two.Path)
				}
				if one.Volume != nil && *one.Volume < 0 || one.Chapter != nil && *one.Chapter < 0 {
					t.Errorf("%q: %+v", key, one)
				}
			}
		}
	})
}
