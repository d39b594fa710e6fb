package strategy

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/lazyregexp"
	"github.com/longbox/longbox/shared/platform/fault"
)

// book names a book by one of five strategies.
type book func(key string, n naming.Name, p Place, meta *Meta) (title string, volume *int, chapter *float64)

func newBook(name string, c *config) (book, []fault.Field) {
	var b book
	switch name {
	case "filename", "series_name": // titles of the latter are made later: see Title
		b = byFilename
	case "metadata_first":
		b = metadataFirst
	case "smart":
		b = smart(c)
	case "custom":
		b = customBook(c)
	default:
		return nil, []fault.Field{{Field: "bookStrategy", Message: "must be filename, metadata_first, smart, series_name or custom"}}
	}
	return b, c.bad
}

func byFilename(key string, n naming.Name, _ Place, _ *Meta) (string, *int, *float64) {
	return stem(key), n.Volume, n.Chapter
}

// metadataFirst never reads volume and chapter from the file name.
func metadataFirst(key string, _ naming.Name, _ Place, meta *Meta) (string, *int, *float64) {
	if meta == nil {
		return stem(key), nil, nil
	}
	return cmp.Or(strings.TrimSpace(meta.Title), stem(key)), meta.Volume, meta.Chapter
}

var generic = lazyregexp.New(`(?i)^(?:(?:vol(?:ume)?|chapter|issue|part|ep(?:isode)?)\.?\s*#?\s*|#\s*)?\d+(?:\.\d+)?$`)

// smart uses the metadata's title unless it is only a number.
func smart(c *config) book {
	var list []string
	if !c.read("additionalGenericPatterns", &list, "an array of regular expressions") {
		c.read("genericPatterns", &list, "an array of regular expressions")
	}
	more := c.patterns("additionalGenericPatterns", list)
	return func(key string, n naming.Name, p Place, meta *Meta) (string, *int, *float64) {
		title, volume, chapter := byFilename(key, n, p, nil)
		if meta == nil {
			return title, volume, chapter
		}
		if t := strings.TrimSpace(meta.Title); t != "" && !generic.MatchString(t) &&
			!slices.ContainsFunc(more, func(re *regexp.Regexp) bool { return re.MatchString(t) }) {
			title = t
		}
		if meta.Volume != nil {
			volume = meta.Volume
		}
		if meta.Chapter != nil {
			chapter = meta.Chapter
		}
		return title, volume, chapter
	}
}

var placeholders = []string{"series", "volume", "chapter", "title", "filename"}

// customBook applies an expression to the file name without extension, with the optional groups volume, chapter, title
// and series.
func customBook(c *config) book {
	var pattern, template string
	fallback := "filename"
	c.read("pattern", &pattern, "a regular expression")
	re := c.pattern("pattern", pattern)
	c.read("titleTemplate", &template, "a text with placeholders")
	if template != "" {
		c.template("titleTemplate", template, placeholders)
	}
	c.read("fallback", &fallback, "filename, metadata_first or smart")
	otherwise := byFilename
	switch fallback {
	case "filename":
	case "metadata_first":
		otherwise = metadataFirst
	case "smart":
		otherwise = smart(c)
	default:
		c.fail("fallback", "must be filename, metadata_first or smart")
	}
	if re != nil && !slices.ContainsFunc(re.SubexpNames(), func(g string) bool { return slices.Contains(placeholders, g) }) {
		c.fail("pattern", "needs a group named volume, chapter, title or series: (?P<volume>\\d+)")
	}
	return func(key string, n naming.Name, p Place, meta *Meta) (string, *int, *float64) {
		name := stem(key)
		m := re.FindStringSubmatch(name)
		if m == nil {
			return otherwise(key, n, p, meta)
		}
		values := map[string]string{"filename": name}
		for i, group := range re.SubexpNames() {
			if i > 0 && values[group] == "" {
				values[group] = strings.TrimSpace(m[i])
			}
		}
		if values["series"] == "" {
			values["series"] = p.Name
		}
		volume, chapter := wholeNumber(values["volume"]), decimal(values["chapter"])
		title := values["title"]
		if template != "" {
			values["volume"], values["chapter"] = pad(volume, 2), padDecimal(chapter, 3)
			title = fill(template, values)
		}
		if title == "" {
			title = name
		}
		return title, volume, chapter
	}
}

func wholeNumber(s string) *int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 9_999_999 {
		return nil
	}
	return &n
}

func decimal(s string) *float64 {
	n, err := strconv.ParseFloat(strings.Replace(s, ",", ".", 1), 64)
	if err != nil || n < 0 || n > 9_999_999 || n != n {
		return nil
	}
	return &n
}

func pad(n *int, width int) string {
	if n == nil {
		return ""
	}
	return fmt.Sprintf("%0*d", width, *n)
}

func padDecimal(n *float64, width int) string {
	if n == nil {
		return ""
	}
	s := strconv.FormatFloat(*n, 'f', -1, 64)
	whole, _, _ := strings.Cut(s, ".")
	return strings.Repeat("0", max(0, width-len(whole))) + s
}

// Title returns a book's title by the strategy series_name: "{series} v.NN", with a chapter "{series} v.NN c.NNN",
// padded for the number of books in the series. A book with neither volume nor chapter is numbered by its position.
func Title(series string, volume *int, chapter *float64, position, count int) string {
	volumes, chapters := 2, 3
	for n := 100; n <= count && volumes < 4; n *= 10 {
		volumes++
	}
	if count >= 1000 {
		chapters = 4
	}
	if volume == nil && chapter == nil {
		volume = &position
	}
	title := series
	if volume != nil {
		title += " v." + pad(volume, volumes)
	}
	if chapter != nil {
		title += " c." + padDecimal(chapter, chapters)
	}
	return title
}
