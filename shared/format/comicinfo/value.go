package comicinfo

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/longbox/longbox/shared/lazyregexp"
)

// thousands is a number with commas between its thousands, as some spreadsheets write it.
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

// ReadingDirection returns "rtl" when Manga says YesAndRightToLeft, "webtoon"
// when Format says so, else "".
func (i *Info) ReadingDirection() string {
	switch {
	case i.Manga == "YesAndRightToLeft":
		return "rtl"
	case strings.EqualFold(i.Format, "webtoon"):
		return "webtoon"
	}
	return ""
}

// IsManga reports whether Manga is Yes or YesAndRightToLeft; nil when the file
// does not say.
func (i *Info) IsManga() *bool {
	if i.Manga == "" {
		return nil
	}
	is := i.Manga != "No"
	return &is
}

// List splits a comma-separated value (Writer, Genre, Tags, Characters, …) into
// its parts, trimmed, in order, each once.
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

// Numbers splits StoryArcNumber, whose parts belong to those of StoryArc by their places: none is left out.
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

// Links returns the addresses of Web that are http or https. Kavita and others write commas between them, which an
// address may have too.
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

// ages are the ratings of schema 2.1, in lower case without spaces, and from which age a book is meant for.
var ages = map[string]int{"earlychildhood": 3, "everyone": 0, "g": 0, "kidstoadults": 6, "pg": 8, "everyone10+": 10, "teen": 13,
	"ma15+": 15, "m": 17, "mature17+": 17, "r18+": 18, "x18+": 18, "adultsonly18+": 18}

var age = lazyregexp.New(`^(\d{1,2})\s*\+?$`)

// Unrated tells whether an age rating of schema 2.1 says that there is none: Unknown or Rating Pending.
func Unrated(rating string) bool {
	v := strings.ToLower(strings.Join(strings.Fields(rating), ""))
	return v == "unknown" || v == "ratingpending"
}

// MinimumAge is the age that AgeRating means, also one written as a number; nil when it says none.
func (i *Info) MinimumAge() *int {
	v := strings.ToLower(strings.Join(strings.Fields(i.AgeRating), ""))
	if n, ok := ages[v]; ok {
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
