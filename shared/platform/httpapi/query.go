package httpapi

import (
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/longbox/longbox/shared/platform/fault"
)

// filters are what is filtered, searched and sorted by somewhere. A list that does not know one of them refuses it: all
// of the list, in its own order, looks like what was asked for. An empty one asks for nothing, nor does
// includeDeleted=false. Other unknown parameters are ignored; clients add some so that nothing answers from a cache.
var filters = []string{
	"author", "bookId", "bookType", "category", "collectionId", "communityRating", "completed", "completion",
	"dateAdded", "errorType", "format", "fullTextSearch", "genre", "genres", "hasError", "hasExternalSourceId",
	"hasUserRating", "inCollection", "inReadList", "includeDeleted", "isTracked", "language", "libraryId", "matchType",
	"name", "order", "ownGenre", "pageCount", "path", "priority", "publisher", "query", "readListId", "readStatus",
	"releaseDay", "role", "search", "seriesId", "sharingTag", "sort", "sourceId", "state", "status", "summary", "tag",
	"tags", "taskType", "title", "titleSort", "type", "userId", "userRating", "username", "wantToRead", "year",
}

// values says how many values of a query parameter count.
type values int

const (
	none values = iota // it is not known
	one
	several
)

// queryOf are the query parameters that an input struct has.
func queryOf(t reflect.Type) map[string]values {
	names := map[string]values{}
	for i := range t.NumField() {
		switch f := t.Field(i); {
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			maps.Copy(names, queryOf(f.Type))
		case f.Tag.Get("query") != "":
			name, _, _ := strings.Cut(f.Tag.Get("query"), ",")
			names[name] = one
			if f.Type.Kind() == reflect.Slice {
				names[name] = several
			}
		}
	}
	return names
}

// checkQuery refuses a query that cannot be read or that holds what is no text, and, for a list, filters that are not
// among the known names, or of which it would heed the first of several values.
func checkQuery(query string, known map[string]values) error {
	if query == "" {
		return nil
	}
	sent, err := url.ParseQuery(query)
	if err != nil {
		return fault.Invalid("query", "cannot be read: %v", err)
	}
	for name, given := range sent {
		if text := strings.Join(given, ""); known[name] != none && (strings.ContainsRune(text, 0) || !utf8.ValidString(text)) {
			return fault.Invalid(name, "holds a control character (NUL), or bytes that are no UTF-8")
		}
	}
	if known["page"] == none {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		given := sent[name]
		switch {
		case !slices.Contains(filters, name) || strings.Join(given, "") == "" || name == "includeDeleted" && given[0] == "false":
		case known[name] == none:
			return fault.Invalid(name, "does nothing for this list; leave it out")
		case known[name] == one && len(slices.Compact(given)) > 1:
			return fault.Invalid(name, "is there %d times, and only one value counts; send one", len(given))
		}
	}
	return nil
}
