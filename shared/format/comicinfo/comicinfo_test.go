package comicinfo

import (
	"archive/zip"
	"errors"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/format/xmllimit"
	"github.com/longbox/longbox/shared/testkit"
)

const complete = "\xef\xbb\xbf" + `<?xml version="1.0" encoding="utf-8"?>
<ComicInfo xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
  <Title>Title &amp; more</Title><Series>Series</Series><Number>1½</Number><Count>12</Count><Volume>2012</Volume>
  <AlternateSeries>Alt</AlternateSeries><AlternateNumber>3</AlternateNumber><AlternateCount>4</AlternateCount>
  <Summary>A
summary</Summary><Notes>Notes</Notes><Year>2012</Year><Month>2</Month><Day>29</Day>
  <Writer>A, B</Writer><Penciller>C</Penciller><Inker>D</Inker><Colorist>E</Colorist><Letterer>F</Letterer>
  <CoverArtist>G</CoverArtist><Editor>H</Editor><Translator>I</Translator><Publisher>P</Publisher><Imprint>Im</Imprint>
  <Genre>Comedy, Romance,, comedy </Genre><Tags>short, webtoon</Tags><Web>https://example.org/a javascript:alert(1) http://example.org/b</Web>
  <PageCount>2</PageCount><LanguageISO>ja</LanguageISO><Format>Webtoon</Format><BlackAndWhite>Yes</BlackAndWhite>
  <Manga>yesandrighttoleft</Manga><Characters>X</Characters><Teams>T</Teams><MainCharacterOrTeam>X</MainCharacterOrTeam><Locations>L</Locations>
  <ScanInformation>Scan</ScanInformation><StoryArc>Arc</StoryArc><StoryArcNumber>1</StoryArcNumber><SeriesGroup>Group</SeriesGroup>
  <AgeRating>Everyone</AgeRating><CommunityRating>4.5</CommunityRating><Review>Good</Review><GTIN>9781234567897</GTIN>
  <LocalizedSeries>Série</LocalizedSeries><SeriesSort>Series, The</SeriesSort><TitleSort>Title, The</TitleSort>
  <Pages>
    <Page Image="0" Type="FrontCover" ImageSize="197892" ImageWidth="800" ImageHeight="1200" Key="k" Bookmark="Start"/>
    <Page Image="1" DoublePage="true" ImageSize="-1"/>
  </Pages>
  <Unknown><Title>not this one</Title></Unknown>
</ComicInfo>`

func TestParseComplete(t *testing.T) {
	t.Parallel()
	got, err := Parse([]byte(complete), xmllimit.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	want := &Info{
		Title: "Title & more", Series: "Series", Number: "1½", Count: new(12), Volume: new(2012),
		AlternateSeries: "Alt", AlternateNumber: "3", AlternateCount: new(4), Summary: "A\nsummary", Notes: "Notes",
		Year: new(2012), Month: new(2), Day: new(29), Writer: "A, B", Penciller: "C", Inker: "D", Colorist: "E",
		Letterer: "F", CoverArtist: "G", Editor: "H", Translator: "I", Publisher: "P", Imprint: "Im",
		Genre: "Comedy, Romance,, comedy", Tags: "short, webtoon", Web: "https://example.org/a javascript:alert(1) http://example.org/b",
		PageCount: new(2), LanguageISO: "ja", Format: "Webtoon", BlackAndWhite: new(true), Manga: "YesAndRightToLeft",
		Characters: "X", Teams: "T", MainCharacterOrTeam: "X", Locations: "L", ScanInformation: "Scan", StoryArc: "Arc", StoryArcNumber: "1",
		SeriesGroup: "Group", AgeRating: "Everyone", CommunityRating: new(4.5), Review: "Good", GTIN: "9781234567897",
		LocalizedSeries: "Série", SeriesSort: "Series, The", TitleSort: "Title, The",
		Pages: []Page{
			{Image: 0, Type: "FrontCover", ImageSize: 197892, ImageWidth: 800, ImageHeight: 1200, Key: "k", Bookmark: "Start"},
			{Image: 1, DoublePage: true},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if list := List(got.Genre); !slices.Equal(list, []string{"Comedy", "Romance"}) {
		t.Errorf("List %q", list)
	}
	if links := got.Links(); !slices.Equal(links, []string{"https://example.org/a", "http://example.org/b"}) {
		t.Errorf("Links %q", links)
	}
	if n, ok := got.NumberValue(); n != 1.5 || !ok {
		t.Errorf("NumberValue %v, %v", n, ok)
	}
	if got.ReadingDirection() != "rtl" || !*got.IsManga() {
		t.Errorf("direction %q", got.ReadingDirection())
	}
	fields := reflect.TypeFor[Info]()
	for i := range fields.NumField() {
		if name := fields.Field(i).Name; name != "Warnings" && reflect.ValueOf(*got).Field(i).IsZero() {
			t.Errorf("%s is not read", name)
		}
	}
}

func TestParseTolerates(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		in       string
		want     Info
		warnings int
	}{
		"bad numbers": {
			`<ComicInfo><Number>twelve</Number><Year>MMXII</Year><PageCount>-3</PageCount><Month>13</Month><CommunityRating>9</CommunityRating><Title>T</Title></ComicInfo>`,
			Info{Title: "T", Number: "twelve"}, 5},
		"unknowns":        {`<ComicInfo><Year>-1</Year><Month>0</Month><Volume>-1</Volume><Manga>Unknown</Manga><BlackAndWhite>unknown</BlackAndWhite></ComicInfo>`, Info{}, 0},
		"wrong words":     {`<ComicInfo><Manga>maybe</Manga><BlackAndWhite>grey</BlackAndWhite></ComicInfo>`, Info{}, 2},
		"decimal year":    {`<ComicInfo><Year> 2012.0 </Year></ComicInfo>`, Info{Year: new(2012)}, 0},
		"no such day":     {`<ComicInfo><Year>2013</Year><Month>2</Month><Day>29</Day></ComicInfo>`, Info{Year: new(2013), Month: new(2)}, 1},
		"cut short":       {`<ComicInfo><Title>T</Title><Series>S`, Info{Title: "T", Series: "S"}, 1},
		"cp1252":          {"<?xml version=\"1.0\" encoding=\"utf-8\"?><ComicInfo><Title>Caf\xe9 \x96 d\xe9j\xe0</Title></ComicInfo>", Info{Title: "Café – déjà"}, 0},
		"UTF-16":          {"\xff\xfe<\x00c\x00o\x00m\x00i\x00c\x00i\x00n\x00f\x00o\x00/\x00>\x00", Info{}, 0},
		"other case":      {`<comicinfo><TITLE>T</TITLE></comicinfo>`, Info{Title: "T"}, 0},
		"lone ampersand":  {`<ComicInfo><Title>Tom & Jerry</Title></ComicInfo>`, Info{Title: "Tom & Jerry"}, 0},
		"first value":     {`<ComicInfo><Title/><Title>A</Title><Title>B</Title></ComicInfo>`, Info{Title: "A"}, 0},
		"value too large": {`<ComicInfo><Summary>` + strings.Repeat("x", 70<<10) + `</Summary><Title>T</Title></ComicInfo>`, Info{Title: "T"}, 1},
		"bad pages":       {`<ComicInfo><Pages><Page/><Page Image="-5"/><Page Image="1" ImageWidth="wide"/></Pages></ComicInfo>`, Info{Pages: []Page{{Image: 1}}}, 4},
		"huge numbers":    {`<ComicInfo><Count>1e300</Count><Volume>NaN</Volume><Number>Inf</Number></ComicInfo>`, Info{Number: "Inf"}, 3},
		"many mistakes":   {`<ComicInfo><Pages>` + strings.Repeat("<Page/>", 1000) + `</Pages></ComicInfo>`, Info{}, maxWarnings},
	}
	for name, tt := range tests {
		got, err := Parse([]byte(tt.in), xmllimit.Limits{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(got.Warnings) != tt.warnings {
			t.Errorf("%s: warnings %q, want %d", name, got.Warnings, tt.warnings)
		}
		got.Warnings = nil
		if !reflect.DeepEqual(got, &tt.want) {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		in   string
		want error
	}{
		"external entity": {`<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><ComicInfo><Title>&e;</Title></ComicInfo>`, xmllimit.ErrDTD},
		"entity bomb":     {`<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><ComicInfo><Title>&b;</Title></ComicInfo>`, xmllimit.ErrDTD},
		"external DTD":    {`<!DOCTYPE x SYSTEM "http://example.org/x.dtd"><ComicInfo/>`, xmllimit.ErrDTD},
		"deep":            {"<ComicInfo>" + strings.Repeat("<a>", 200), xmllimit.ErrTooLarge},
		"large":           {"<ComicInfo><Title>" + strings.Repeat("x", 5<<20), xmllimit.ErrTooLarge},
		"empty":           {"", xmllimit.ErrEmpty},
		"another file":    {"<html><body/></html>", nil},
	} {
		info, err := Parse([]byte(tt.in), xmllimit.Limits{})
		if info != nil || err == nil || tt.want != nil && !errors.Is(err, tt.want) || strings.Contains(err.Error(), "root:") {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

func TestNumberValue(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]float64{"1": 1, "001": 1, "#12": 12, "10.5": 10.5, "10,5": 10.5, "1,000": 1000, "1,234.5": 1234.5, "-1,000": -1000, "½": .5, "-1": -1, "0": 0, "1½": 1.5, "1 ½": 1.5, "-½": -.5, "-1½": -1.5} {
		if got, ok := (&Info{Number: in}).NumberValue(); got != want || !ok {
			t.Errorf("%q: %v, %v", in, got, ok)
		}
	}
	for _, in := range []string{"", "#", "-", "--½", "½ 1", "½¼", "one", "1a", "Inf", "NaN", "0x10", "1e300", "1_0", "1.2.3"} {
		if got, ok := (&Info{Number: in}).NumberValue(); ok {
			t.Errorf("%q: %v", in, got)
		}
	}
}

// TestFixtures reads the ComicInfo.xml of every real archive, where there are any.
func TestFixtures(t *testing.T) {
	t.Parallel()
	root := testkit.Fixtures(t)
	parse := func(name string) (*Info, error) {
		z, err := zip.OpenReader(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		for _, f := range z.File {
			if f.Name != "ComicInfo.xml" {
				continue
			}
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			return Parse(b, xmllimit.Limits{})
		}
		t.Fatalf("%s has no ComicInfo.xml", name)
		return nil, nil
	}

	haruko, err := parse("library/manga/ハルコさんの彼氏/ハルコさんの彼氏 v01 c001.cbz")
	if err != nil || haruko.Title != "第一話" || haruko.Number != "1" || *haruko.Volume != 1 || haruko.LanguageISO != "ja" || haruko.ReadingDirection() != "rtl" || len(haruko.Warnings) != 0 {
		t.Errorf("%+v, %v", haruko, err)
	}
	torinome, err := parse("library/manga/鳥の眼/鳥の眼 001.cbz")
	if err != nil || torinome.ReadingDirection() != "webtoon" || !slices.Equal(List(torinome.Tags), []string{"webtoon", "short"}) {
		t.Fatalf("%+v, %v", torinome, err)
	}
	if *torinome.Year != 2017 || *torinome.Month != 9 || *torinome.Day != 5 {
		t.Errorf("date %d-%d-%d", *torinome.Year, *torinome.Month, *torinome.Day)
	}
	bad, err := parse("broken/bad-comicinfo.cbz")
	if err != nil || bad.Title != "Still readable" || len(bad.Warnings) != 4 {
		t.Errorf("%+v, %v", bad, err)
	}
	for _, name := range []string{"xxe", "laughs"} {
		if info, err := parse("broken/" + name + "-comicinfo.cbz"); !errors.Is(err, xmllimit.ErrDTD) {
			t.Errorf("%s: %+v, %v", name, info, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(complete))
	f.Add([]byte(`<ComicInfo><Year>2012</Year><Month>2</Month><Day>31</Day><Pages><Page Image="1"/></Pages>`))
	f.Fuzz(func(t *testing.T, b []byte) {
		info, err := Parse(b, xmllimit.Limits{})
		if (info == nil) == (err == nil) {
			t.Fatalf("%v, %v", info, err)
		}
		if info == nil {
			return
		}
		if info.Month != nil && (*info.Month < 1 || *info.Month > 12) || info.Year != nil && *info.Year < 1 || len(info.Warnings) > maxWarnings {
			t.Errorf("%+v", info)
		}
		info.NumberValue()
		info.Links()
		List(info.Genre)
	})
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse([]byte(complete), xmllimit.Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	for web, want := range map[string][]string{
		"https://a.org/x,https://b.org/y":    {"https://a.org/x", "https://b.org/y"},
		"https://a.org/x, http://b.org/y;":   {"https://a.org/x", "http://b.org/y"},
		"https://a.org/x;https://b.org/1,2":  {"https://a.org/x", "https://b.org/1,2"},
		"https://a.org/x\n\thttps://b.org/y": {"https://a.org/x", "https://b.org/y"},
		"ftp://a.org/x":                      nil,
	} {
		if got := (&Info{Web: web}).Links(); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", web, got, want)
		}
	}
}

func TestMinimumAge(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int{"Everyone": 0, "Teen": 13, "MA15+": 15, "Mature 17+": 17, "Adults Only 18+": 18, "everyone 10+": 10, "16+": 16,
		"12": 12, "PG": 8, "Unknown": -1, "Rating Pending": -1, "": -1, "very old": -1, "150": -1} {
		got := (&Info{AgeRating: in}).MinimumAge()
		if (got == nil) != (want < 0) || got != nil && *got != want {
			t.Errorf("%q: %v, want %d", in, got, want)
		}
	}
}
