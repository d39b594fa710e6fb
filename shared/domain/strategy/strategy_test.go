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

// The series of files in different folders are one where the name makes them so, and their path is stable.
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
	if m := set.Read("Saga/9781421582849/a.cbz", nil); m.Volume != nil { // no number of a volume, nor one that can be stored
		t.Errorf("volume %d", *m.Volume)
	}
}

func TestBadConfigurations(t *testing.T) {
	t.Parallel()
	long := `"` + strings.Repeat("x", 1001) + `"`
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
		{"series", "publisher_hierarchy", `{"skip_depth":99}`, "seriesConfig.skipDepth"},
		{"series", "publisher_hierarchy", `{"skipDepth":1.5}`, "seriesConfig.skipDepth"},
		{"series", "publisher_hierarchy", `{"storeSkippedAs":"a b"}`, "seriesConfig.storeSkippedAs"},
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

// No key makes a strategy fail or name nothing.
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
