package front

import (
	"net/http"
	"slices"
	"strings"
)

// Functions behind the front.
const (
	api   = "api"
	media = "media"
	relay = "sse-relay"
)

// pictured are the resources that have a cover.
var pictured = []string{"books", "series", "libraries", "collections", "readlists"}

// target returns the function for a request. Event streams go to the relay, images and downloads to the media function,
// everything else to the API.
func target(method, path string) string {
	if method != http.MethodGet && method != http.MethodHead {
		return api
	}
	if part := strings.Split(path, "/"); len(part) >= 6 && strings.HasPrefix(path, "/opds/books/") && part[4] == "pages" {
		return media
	}
	prefix, rest, ok := strings.Cut(path, "/api/v1/")
	if !ok || strings.Count(prefix, "/") > 1 { // one word before it is the Komga-compatible API
		return api
	}
	switch part := strings.Split(rest, "/"); {
	case prefix == "" && len(part) == 2 && part[1] == "stream" && (part[0] == "events" || part[0] == "tasks" || part[0] == "scans"):
		return relay
	case len(part) == 4 && part[0] == "books" && part[2] == "pages":
		return media
	case len(part) == 5 && part[0] == "books" && part[2] == "pages" && part[4] == "thumbnail":
		return media
	case (len(part) == 3 || len(part) == 4) && part[0] == "books" && part[2] == "file":
		return media
	case prefix != "" && len(part) >= 3 && part[0] == "books" && (part[2] == "manifest" || part[2] == "positions" || part[2] == "resource"):
		return media
	case prefix == "" && len(part) == 3 && part[0] == "series" && part[2] == "download":
		return media
	case prefix == "" && len(part) == 5 && strings.HasPrefix(rest, "user/exports/series/") && part[4] == "download":
		return media
	case prefix == "" && rest == "admin/cleanup-orphans/stats": // only media may list the objects that this counts
		return media
	case len(part) == 3 && part[2] == "thumbnail" && slices.Contains(pictured, part[0]):
		return media
	}
	return api
}
