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

// filters are what is filtered, searched and sorted by somewhere. A list that does not know one of them refuses it: all of
// the list, in its own order, looks like what was asked for. An empty one asks for nothing, nor does includeDeleted=false.
// Other unknown parameters are ignored; clients add some so that nothing answers from a cache.
var filters = []string{"author", "bookId", "category", "completed", "completion", "errorType", "format", "fullTextSearch",
	"genre", "genres", "hasError", "includeDeleted", "language", "libraryId", "matchType", "name", "order", "priority",
	"publisher", "query", "readStatus", "role", "search", "seriesId", "sharingTag", "sort", "status", "tag", "tags",
	"taskType", "title", "type", "userId", "username", "year"}

// queryOf are the names of the query parameters that an input struct has.
func queryOf(t reflect.Type) map[string]bool {
	names := map[string]bool{}
	for i := range t.NumField() {
		switch f := t.Field(i); {
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			maps.Copy(names, queryOf(f.Type))
		case f.Tag.Get("query") != "":
			names[f.Tag.Get("query")] = true
		}
	}
	return names
}

// checkQuery refuses a query that cannot be read or that holds what is no text, and, for a list, filters that are not
// among the known names, or of which it would heed the first of several values.
func checkQuery(query string, known map[string]bool) error {
	if query == "" {
		return nil
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return fault.Invalid("query", "cannot be read: %v", err)
	}
	for name, given := range values {
		if text := strings.Join(given, ""); known[name] && (strings.ContainsRune(text, 0) || !utf8.ValidString(text)) {
			return fault.Invalid(name, "holds a control character (NUL), or bytes that are no UTF-8")
		}
	}
	if !known["page"] {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		given := values[name]
		switch {
		case !slices.Contains(filters, name) || strings.Join(given, "") == "" || name == "includeDeleted" && given[0] == "false":
		case !known[name]:
			return fault.Invalid(name, "does nothing for this list; leave it out")
		case len(slices.Compact(given)) > 1:
			return fault.Invalid(name, "is there %d times, and only one value counts; send one", len(given))
		}
	}
	return nil
}
