package plugin

import (
	"slices"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/series"
)

// FieldGroup is a name for several metadata fields. Some exist only for series, some only for books.
type FieldGroup struct {
	ID     string   `json:"id"`
	Label  string   `json:"label"`
	Fields []string `json:"fields" nullable:"false"`
}

// fieldGroups contain every field of a preview exactly once.
var fieldGroups = []FieldGroup{
	{"titles", "Titles", []string{"title", "alternateTitles", "subtitle", "originalTitle"}},
	{"summary", "Summary", []string{"summary"}},
	{"status", "Status", []string{"status"}},
	{"counts", "Volumes and chapters", []string{"totalVolumeCount", "totalChapterCount", "volume", "chapter", "seriesPosition", "seriesTotal"}},
	{"genres", "Genres, tags and subjects", []string{"genres", "tags", "subjects"}},
	{"people", "Authors and translators", []string{"authors", "translator"}},
	{"publication", "Publication", []string{"year", "month", "day", "publisher", "language", "originalYear", "edition", "languageIso", "bookType", "isbns"}},
	{"reading", "Age rating and reading direction", []string{"ageRating", "readingDirection"}},
	{"ratings", "Ratings and awards", []string{"externalRatings", "awards"}},
	{"links", "Links and ids of other services", []string{"externalLinks", "externalIds"}},
	{"cover", "Cover", []string{"cover"}},
}

// fieldsOf returns the names of all fields of a kind, series or book.
func fieldsOf(kind string) (names []string) {
	var e edit = &seriesEdit{Details: &series.Details{}}
	if kind == "book" {
		e = &bookEdit{aBook: &aBook{Details: &book.Details{}}}
	}
	for _, f := range e.propose(&Plugin{}) {
		names = append(names, f.Field)
	}
	return names
}

// chosen returns the fields of a kind that groups and extra fields select; nil, meaning all, if nothing is selected.
func chosen(kind string, groups, extra []string) []string {
	if len(groups)+len(extra) == 0 {
		return nil
	}
	only := []string{}
	for _, name := range fieldsOf(kind) {
		grouped := slices.ContainsFunc(fieldGroups, func(g FieldGroup) bool { return slices.Contains(groups, g.ID) && slices.Contains(g.Fields, name) })
		if grouped || slices.Contains(extra, name) {
			only = append(only, name)
		}
	}
	return only
}
