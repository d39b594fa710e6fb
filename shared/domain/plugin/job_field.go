package plugin

import (
	"slices"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/series"
)

// FieldGroup is a name for several fields of metadata. A series has some of them, a book others.
type FieldGroup struct {
	ID     string   `json:"id"`
	Label  string   `json:"label"`
	Fields []string `json:"fields" nullable:"false"`
}

// fieldGroups have all fields that a preview has, each once.
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

// groupOf is the group with an id, nil of none.
func groupOf(id string) *FieldGroup {
	if i := slices.IndexFunc(fieldGroups, func(g FieldGroup) bool { return g.ID == id }); i >= 0 {
		return &fieldGroups[i]
	}
	return nil
}

// fieldsOf are the names of all fields of a kind, series or book.
func fieldsOf(kind string) (names []string) {
	fields := (&seriesMetadata{}).propose(&Plugin{}, &series.Details{}, &writes{})
	if kind == "book" {
		fields = (&bookMetadata{}).propose(&Plugin{}, &aBook{Details: &book.Details{}}, &bookWrites{})
	}
	for _, f := range fields {
		names = append(names, f.Field)
	}
	return names
}

// chosen are the fields of a kind that groups and extra fields name; nil, which is all, where they name nothing.
func chosen(kind string, groups, extra []string) []string {
	if len(groups)+len(extra) == 0 {
		return nil
	}
	only := []string{}
	for _, name := range fieldsOf(kind) {
		named := slices.ContainsFunc(groups, func(id string) bool { g := groupOf(id); return g != nil && slices.Contains(g.Fields, name) })
		if named || slices.Contains(extra, name) {
			only = append(only, name)
		}
	}
	return only
}
