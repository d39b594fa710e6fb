package comicinfo

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/longbox/longbox/shared/lazyregexp"
)

// thousands matches a number with thousands separators, as some spreadsheets write it.
var thousands = lazyregexp.New(`^-?[1-9]\d{0,2}(,\d{3})+(\.\d+)?$`)

// NumberValue returns Number as a number: "12", "#12", "-1", "1.5", "1,5", "1,000", "½", "1½", "1 ½", "-1½".
func (i *Info) NumberValue() (float64, bool) {
	v := strings.TrimSpace(strings.TrimPrefix(i.Number, "#"))
	plus := 0.0
	for mark, value := range map[string]float64{"½": .5, "¼": .25, "¾": .75} {
		if rest, ok := strings.CutSuffix(v, mark); ok {
			v, plus = strings.TrimSpace(rest), value
			if v == "" || v == "-" {
				v += "0"
			}
			break
		}
	}
	if strings.ContainsAny(v, "xXpPnN_") { // hexadecimal, NaN, Inf
		return 0, false
	}
	comma := "."
	if thousands.MatchString(v) {
		comma = ""
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(v, ",", comma), 64)
	if err != nil || math.Abs(f) > 1e9 {
		return 0, false
	}
	return f + math.Copysign(plus, f), true
}

// checkDate drops a day that its month does not have.
func (i *Info) checkDate() {
	if i.Month == nil || i.Day == nil {
		return
	}
	year := 2000 // a leap year, when the year is unknown
	if i.Year != nil {
		year = *i.Year
	}
	if time.Date(year, time.Month(*i.Month), *i.Day, 0, 0, 0, 0, time.UTC).Day() != *i.Day {
		i.warn("Day: month %d has no day %d", *i.Month, *i.Day)
		i.Day = nil
	}
}

// ReadingDirection returns "rtl" if Manga is YesAndRightToLeft, "webtoon" if Format says so, otherwise "".
func (i *Info) ReadingDirection() string {
	switch {
	case i.Manga == "YesAndRightToLeft":
		return "rtl"
	case strings.EqualFold(i.Format, "webtoon"):
		return "webtoon"
	}
	return ""
}

// IsManga reports whether Manga is Yes or YesAndRightToLeft; nil if unknown.
func (i *Info) IsManga() *bool {
	if i.Manga == "" {
		return nil
	}
	return new(i.Manga != "No")
}

// List splits a comma-separated value (Writer, Genre, Tags, Characters, …) into trimmed parts, in order, without
// duplicates.
func List(value string) []string {
	var list []string
	seen := map[string]bool{}
	for part := range strings.SplitSeq(value, ",") {
		part = strings.Join(strings.Fields(part), " ")
		if key := strings.ToLower(part); part != "" && !seen[key] {
			seen[key] = true
			list = append(list, part)
		}
	}
	return list
}

// Numbers splits StoryArcNumber. Its parts correspond to those of StoryArc by position, so empty ones are kept.
func Numbers(value string) []string {
	if value == "" {
		return nil
	}
	list := strings.Split(value, ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list
}

// Links returns the http and https URLs in Web. Kavita and others separate them with commas, which a URL may contain
// too.
func (i *Info) Links() []string {
	var links []string
	for _, link := range strings.Fields(strings.NewReplacer(",http", " http", ";http", " http").Replace(i.Web)) {
		link = strings.Trim(link, ",;")
		if strings.HasPrefix(link, "https://") || strings.HasPrefix(link, "http://") {
			links = append(links, link)
		}
	}
	return links
}

// Ages maps the ratings of schema 2.1, in lower case without spaces, to a minimum age.
var Ages = map[string]int{"earlychildhood": 3, "everyone": 0, "g": 0, "kidstoadults": 6, "pg": 8, "everyone10+": 10, "teen": 13,
	"ma15+": 15, "m": 17, "mature17+": 17, "r18+": 18, "x18+": 18, "adultsonly18+": 18}

var age = lazyregexp.New(`^(\d{1,2})\s*\+?$`)

// Unrated reports whether an age rating of schema 2.1 means none: Unknown or Rating Pending.
func Unrated(rating string) bool {
	v := strings.ToLower(strings.Join(strings.Fields(rating), ""))
	return v == "unknown" || v == "ratingpending"
}

// MinimumAge returns the age of AgeRating, which may also be a number; nil if it has none.
func (i *Info) MinimumAge() *int {
	v := strings.ToLower(strings.Join(strings.Fields(i.AgeRating), ""))
	if n, ok := Ages[v]; ok {
		return &n
	}
	if m := age.FindStringSubmatch(v); m != nil {
		n, err := strconv.Atoi(m[1])
		if err == nil {
			return &n
		}
	}
	return nil
}
