package main

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// addHealth describes the health endpoints, which every function has and which are no operations.
func addHealth(a *httpapi.API) {
	for path, id := range map[string]string{"/health": "getHealth", "/api/v1/health": "getHealthBelowPrefix"} {
		a.OpenAPI().AddOperation(&huma.Operation{OperationID: id, Method: http.MethodGet, Path: path, Tags: []string{"Health"},
			Summary: "Whether the server can do its work; not rate limited", Extensions: map[string]any{"x-permission": httpapi.Public},
			Responses: map[string]*huma.Response{
				"200": text("OK", "text/plain"),
				"503": text("Service Unavailable", "text/plain"),
			}})
	}
}

// addStreams describes the streams that the relay serves.
func addStreams(a *httpapi.API) {
	for _, s := range []struct{ path, id, tag, summary, limit string }{
		{"/api/v1/events/stream", "streamEvents", "Events", "What changes: books, series, libraries, covers (kinds book_created, cover_updated, …)", " Connecting is not rate limited."},
		{"/api/v1/tasks/stream", "streamTasks", "Tasks", "Progress of background tasks (kind task_progress)", ""},
		{"/api/v1/scans/stream", "streamScans", "Scans", "Progress of library scans (kind scan_progress)", ""},
	} {
		a.OpenAPI().AddOperation(&huma.Operation{OperationID: s.id, Method: http.MethodGet, Path: s.path, Tags: []string{s.tag}, Summary: s.summary,
			Description: "Server-sent events: `id:`, `event:` and `data:` lines, the data one JSON object, and a `: keep-alive` comment every 15 seconds." + s.limit,
			Security:    []map[string][]string{{"bearer": {}}, {"apiKey": {}}, {"basic": {}}, {"session": {}}},
			Extensions:  map[string]any{"x-permission": auth.LibrariesRead},
			Parameters: []*huma.Param{{Name: "Last-Event-ID", In: "header", Description: "Id of the last event received: what came after it is sent first",
				Schema: &huma.Schema{Type: "string", MaxLength: new(41)}},
				{Name: "lastEventId", In: "query", Description: "The same, for clients that cannot set headers; the header counts if both are sent", Schema: &huma.Schema{Type: "string", MaxLength: new(41)}}},
			Responses: map[string]*huma.Response{"200": text("Events until either side ends the connection", "text/event-stream")}})
	}
}

func text(description, mediaType string) *huma.Response {
	return &huma.Response{Description: description, Content: map[string]*huma.MediaType{mediaType: {Schema: &huma.Schema{Type: "string"}}}}
}
