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

// filters are the filter, search and sort parameters of all lists, and offset, because lists have pages. A list refuses
// those that it does not support: otherwise the unfiltered list would look like the result. Empty values and those of
// unset are ignored. Other unknown parameters are ignored too, because clients add some to bypass caches.
var filters = []string{
	"ageRating", "author", "bookId", "bookType", "category", "collectionId", "communityRating", "completed",
	"completion", "dateAdded", "deleted", "direction", "errorType", "format", "fullTextSearch", "genre", "genres",
	"hasError", "hasExternalSourceId", "hasUserRating", "includeDeleted", "inCollection", "inReadList", "isTracked",
	"language", "libraryId", "matchType", "mediaStatus", "name", "offset", "oneshot", "order", "ownGenre", "pageCount",
	"path", "priority", "publisher", "query", "readListId", "readlistId", "readStatus", "releaseDay", "role", "scope",
	"search", "seriesId", "sharingTag", "sharingTagMode", "sort", "sourceId", "state", "status", "summary", "tag",
	"tags", "target", "taskType", "title", "titleSort", "type", "userId", "username", "userRating", "wantToRead",
	"year",
}

// unset are values that mean the same as no parameter: some apps send them to every list.
var unset = map[string]string{"deleted": "false", "includeDeleted": "false", "oneshot": "false", "offset": "0"}

// values says how many values of a query parameter are used.
type values int

const (
	none values = iota // unknown parameter
	one
	several
)

// queryOf returns the query parameters of an input struct.
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

// checkQuery refuses an undecodable query or one with invalid text. For a list it also refuses unsupported filters, and
// several values of a filter that takes one.
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
			return fault.Invalid(name, "contains the character NUL, or bytes that are not UTF-8")
		}
	}
	if known["page"] == none {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		given := slices.Compact(sent[name])
		switch {
		case !slices.Contains(filters, name) || len(given) == 1 && (given[0] == "" || given[0] == unset[name]):
		case known[name] == none:
			return fault.Invalid(name, "has no effect on this list; leave it out")
		case known[name] == one && len(given) > 1:
			return fault.Invalid(name, "is given %d times, but only one value counts; send one", len(given))
		}
	}
	return nil
}
