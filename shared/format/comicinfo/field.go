package comicinfo

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

const maxCount = math.MaxInt32

// fields returns the setter of each element, by its name in lower case. A setter returns what is wrong with a value, or
// "".
func (i *Info) fields() map[string]func(string) string {
	text := func(to *string) func(string) string {
		return func(v string) string { *to = v; return "" }
	}
	number := func(to **int, low, high int) func(string) string {
		return func(v string) string {
			n, ok := whole(v)
			switch {
			case ok && n == -1 || n == 0 && low > 0 && ok:
				return "" // programs write these for "unknown"
			case !ok || n < low || n > high:
				return fmt.Sprintf("is not a number from %d to %d", low, high)
			}
			*to = &n
			return ""
		}
	}
	return map[string]func(string) string{
		"title":               text(&i.Title),
		"series":              text(&i.Series),
		"number":              i.setNumber,
		"count":               number(&i.Count, 0, maxCount),
		"volume":              number(&i.Volume, 0, maxCount),
		"alternateseries":     text(&i.AlternateSeries),
		"alternatenumber":     text(&i.AlternateNumber),
		"alternatecount":      number(&i.AlternateCount, 0, maxCount),
		"summary":             text(&i.Summary),
		"notes":               text(&i.Notes),
		"year":                number(&i.Year, 1, 9999),
		"month":               number(&i.Month, 1, 12),
		"day":                 number(&i.Day, 1, 31),
		"writer":              text(&i.Writer),
		"penciller":           text(&i.Penciller),
		"inker":               text(&i.Inker),
		"colorist":            text(&i.Colorist),
		"letterer":            text(&i.Letterer),
		"coverartist":         text(&i.CoverArtist),
		"editor":              text(&i.Editor),
		"translator":          text(&i.Translator),
		"publisher":           text(&i.Publisher),
		"imprint":             text(&i.Imprint),
		"genre":               text(&i.Genre),
		"tags":                text(&i.Tags),
		"web":                 text(&i.Web),
		"pagecount":           number(&i.PageCount, 0, maxCount),
		"languageiso":         text(&i.LanguageISO),
		"format":              text(&i.Format),
		"blackandwhite":       i.setBlackAndWhite,
		"manga":               i.setManga,
		"characters":          text(&i.Characters),
		"teams":               text(&i.Teams),
		"maincharacterorteam": text(&i.MainCharacterOrTeam),
		"locations":           text(&i.Locations),
		"scaninformation":     text(&i.ScanInformation),
		"storyarc":            text(&i.StoryArc),
		"storyarcnumber":      text(&i.StoryArcNumber),
		"seriesgroup":         text(&i.SeriesGroup),
		"agerating":           text(&i.AgeRating),
		"communityrating":     i.setRating,
		"review":              text(&i.Review),
		"gtin":                text(&i.GTIN),
		"localizedseries":     text(&i.LocalizedSeries),
		"seriessort":          text(&i.SeriesSort),
		"titlesort":           text(&i.TitleSort),
	}
}

func (i *Info) setNumber(v string) string {
	i.Number = v
	if _, ok := i.NumberValue(); !ok {
		return "is not a number, kept as text"
	}
	return ""
}

func (i *Info) setRating(v string) string {
	f, err := strconv.ParseFloat(strings.Replace(v, ",", ".", 1), 64)
	if err != nil || !(f >= 0 && f <= 5) {
		return "is not a number from 0 to 5"
	}
	i.CommunityRating = &f
	return ""
}

func (i *Info) setBlackAndWhite(v string) string {
	i.BlackAndWhite = boolean(v)
	if i.BlackAndWhite == nil && !strings.EqualFold(v, "unknown") {
		return "is neither Yes nor No"
	}
	return ""
}

func (i *Info) setManga(v string) string {
	for _, known := range []string{"Yes", "No", "YesAndRightToLeft"} {
		if strings.EqualFold(v, known) {
			i.Manga = known
			return ""
		}
	}
	if b := boolean(v); b != nil {
		i.Manga = map[bool]string{true: "Yes", false: "No"}[*b]
		return ""
	}
	if strings.EqualFold(v, "unknown") {
		return ""
	}
	return "is neither Yes, No nor YesAndRightToLeft"
}

func boolean(v string) *bool {
	var b bool
	switch strings.ToLower(v) {
	case "yes", "true", "1":
		b = true
	case "no", "false", "0":
	default:
		return nil
	}
	return &b
}

// whole parses an integer, also one written as "2012.0".
func whole(v string) (int, bool) {
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int(f), true
}
