package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	description "github.com/longbox/longbox/api"
	"github.com/longbox/longbox/shared/platform/apidocs"
)

type document struct {
	OpenAPI string `json:"openapi"`
	Paths   map[string]map[string]struct {
		ID         string                     `json:"operationId"`
		Summary    string                     `json:"summary"`
		Tags       []string                   `json:"tags"`
		Permission string                     `json:"x-permission"`
		Security   []map[string][]string      `json:"security"`
		Responses  map[string]json.RawMessage `json:"responses"`
		Parameters []struct {
			Name, In string
			Required bool
		} `json:"parameters"`
		RequestBody struct {
			Content map[string]any `json:"content"`
		} `json:"requestBody"`
	} `json:"paths"`
	Components struct {
		Schemas map[string]struct {
			Properties map[string]any `json:"properties"`
			Required   []string       `json:"required"`
		} `json:"schemas"`
	} `json:"components"`
}

var written = sync.OnceValues(func() ([]byte, error) { return apidocs.JSON(whole()) })

func described(t *testing.T) ([]byte, document) {
	t.Helper()
	data, err := written()
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	return data, d
}

func TestPublishedIsCurrent(t *testing.T) {
	t.Parallel()
	if data, _ := described(t); !bytes.Equal(data, description.JSON) {
		t.Error("api/openapi.json is not what the code registers; run: go run ./functions/openapi")
	}
}

func TestEveryOperationIsDescribed(t *testing.T) {
	t.Parallel()
	_, d := described(t)
	if !strings.HasPrefix(d.OpenAPI, "3.1") || len(d.Paths) < 20 {
		t.Fatalf("version %s, %d paths", d.OpenAPI, len(d.Paths))
	}
	ids := map[string]string{}
	for path, methods := range d.Paths {
		for method, op := range methods {
			name := strings.ToUpper(method) + " " + path
			if op.ID == "" || ids[op.ID] != "" {
				t.Errorf("%s: operationId %q, also of %q", name, op.ID, ids[op.ID])
			}
			ids[op.ID] = name
			if op.Summary == "" || len(op.Tags) != 1 || op.Tags[0] == "" || op.Permission == "" {
				t.Errorf("%s: summary %q, tags %q, permission %q", name, op.Summary, op.Tags, op.Permission)
			}
			if (op.Permission == "public") != (len(op.Security) == 0) {
				t.Errorf("%s: permission %s, security %v", name, op.Permission, op.Security)
			}
			if !strings.Contains(string(op.Responses["default"]), "/Problem") {
				t.Errorf("%s: the default response is no Problem: %s", name, op.Responses["default"])
			}
			for part := range strings.SplitSeq(path, "/") {
				if !strings.HasPrefix(part, "{") {
					continue
				}
				found := false
				for _, p := range op.Parameters {
					found = found || (p.In == "path" && "{"+p.Name+"}" == part)
				}
				if !found {
					t.Errorf("%s: %s is not described", name, part)
				}
			}
		}
	}
}

func nullable(schema any) bool {
	types, _ := schema.(map[string]any)["type"].([]any)
	return slices.Contains(types, any("null"))
}

// Handlers refuse null for these members. None of them may be described as nullable.
func TestNullIsRefused(t *testing.T) {
	t.Parallel()
	_, d := described(t)
	for name, members := range map[string]string{
		"AccountUserUpdate":         "username email password role isActive",
		"ApikeyUpdate":              "name permissions isActive",
		"CollectionChanges":         "name",
		"CollectionReadListChanges": "name",
		"PatchInputBody":            "title", // of a book
		"PatchSeriesRequest":        "title",
		"PluginFields":              "displayName command",
		"SeriesMetadataBody":        "title",
		"SharingChangeBody":         "name",
		"UpdateInputBody":           "name path", // of a library
	} {
		for member := range strings.FieldsSeq(members) {
			if s := d.Components.Schemas[name].Properties[member]; s == nil || nullable(s) {
				t.Errorf("%s.%s is %v", name, member, s)
			}
		}
	}
}

// What handlers refuse to do without is described as required.
func TestRequired(t *testing.T) {
	t.Parallel()
	_, d := described(t)
	for name, member := range map[string]string{"CollectionNewCollection": "name", "CollectionNewReadList": "name", "PluginNewBody": "command"} {
		if s := d.Components.Schemas[name]; !slices.Contains(s.Required, member) {
			t.Errorf("%s requires %v, not %s", name, s.Required, member)
		}
	}
	for path, name := range map[string]string{"/opds/search": "q", "/opds/v2/search": "query", "/opds/v2/search/series": "query", "/opds/v2/search/books": "query"} {
		found := false
		for _, p := range d.Paths[path]["get"].Parameters {
			found = found || p.Name == name && p.Required
		}
		if !found {
			t.Errorf("%s: %s is not required: %v", path, name, d.Paths[path]["get"].Parameters)
		}
	}
}

// Traces and metrics are sent as protobuf or as JSON.
func TestMeasurementsAreProtobufOrJSON(t *testing.T) {
	t.Parallel()
	_, d := described(t)
	for _, name := range []string{"traces", "metrics"} {
		content := d.Paths["/api/v1/observability/otlp/v1/"+name]["post"].RequestBody.Content
		if len(content) != 2 || content["application/x-protobuf"] == nil || content["application/json"] == nil {
			t.Errorf("%s: %v", name, content)
		}
	}
}

// The relay resumes after an id in a header or in the query.
func TestStreamsResume(t *testing.T) {
	t.Parallel()
	_, d := described(t)
	for _, stream := range []string{"events", "tasks", "scans"} {
		var got []string
		for _, p := range d.Paths["/api/v1/"+stream+"/stream"]["get"].Parameters {
			got = append(got, p.In+" "+p.Name)
		}
		if !slices.Equal(got, []string{"header Last-Event-ID", "query lastEventId"}) {
			t.Errorf("%s: %v", stream, got)
		}
	}
}

// What responses show as null can be sent back: the records below a body are named like those of responses.
func TestNullCanBeSentBack(t *testing.T) {
	t.Parallel()
	_, d := described(t)
	others := map[string]string{"ProgressUpdate": "ProgressRecord", "PreviewInputBody": "Library"}
	pairs := 0
	for name, body := range d.Components.Schemas {
		as, named := strings.CutSuffix(name, "Body")
		if other := others[name]; other != "" {
			as, named = other, true
		}
		shown, ok := d.Components.Schemas[as]
		if !ok || !named {
			continue
		}
		pairs++
		for member, schema := range body.Properties {
			if s, ok := shown.Properties[member]; ok && nullable(s) && !nullable(schema) {
				t.Errorf("%s.%s: responses show null, but the description does not accept it", name, member)
			}
		}
	}
	if pairs < 2+len(others) {
		t.Errorf("%d records are both sent and shown", pairs)
	}
}

// The session cookie is accepted for what a browser loads by itself (images and files), for streams (the relay passes
// it to streamAccess), for the caller's own session, and for reads of the Komga API.
func TestCookieOpensImagesFilesAndStreamsOnly(t *testing.T) {
	t.Parallel()
	var got []string
	for _, op := range whole().Operations {
		if op.Cookie != (op.Prefixed && op.Method == "GET") {
			got = append(got, op.ID)
		}
	}
	slices.Sort(got)
	if want := []string{"downloadSeries", "getBookCoverImage", "getBookFile", "getBookThumbnail", "getCollectionThumbnail", "getLibraryThumbnail", "getNamedBookFile", "getPage", "getReadListThumbnail", "getSeriesCoverImage", "getSeriesThumbnail", "me", "streamAccess"}; !slices.Equal(got, want) {
		t.Errorf("the cookie is accepted by %v, want %v", got, want)
	}
}

// Every list uses the envelope. Only lists of the Komga API are plain arrays.
func TestNoBareArrays(t *testing.T) {
	t.Parallel()
	_, d := described(t)
	for path, methods := range d.Paths {
		if strings.HasPrefix(path, "/{prefix}/") {
			continue
		}
		for method, op := range methods {
			for status, r := range op.Responses {
				var response struct {
					Content map[string]struct {
						Schema struct{ Type any }
					}
				}
				if err := json.Unmarshal(r, &response); err != nil {
					t.Fatal(err)
				}
				for _, c := range response.Content {
					if types, ok := c.Schema.Type.([]any); c.Schema.Type == "array" || (ok && types[0] == "array") {
						t.Errorf("%s %s answers %s with a bare array", method, path, status)
					}
				}
			}
		}
	}
}

// Every type in the description is one of JSON Schema.
func TestTypesAreOfJSONSchema(t *testing.T) {
	t.Parallel()
	names := []any{"array", "boolean", "integer", "null", "number", "object", "string"}
	data, _ := described(t)
	var whole struct{ Paths, Components map[string]any }
	if err := json.Unmarshal(data, &whole); err != nil {
		t.Fatal(err)
	}
	checked := 0
	var check func(at string, node any)
	check = func(at string, node any) {
		switch node := node.(type) {
		case []any:
			for i, n := range node {
				check(at+"/"+strconv.Itoa(i), n)
			}
		case map[string]any:
			for name, n := range node {
				check(at+"/"+name, n)
			}
			types, several := node["type"].([]any)
			if name, ok := node["type"].(string); ok {
				types, several = []any{name}, true
			}
			if several {
				checked++
			}
			for _, name := range types {
				if !slices.Contains(names, name) {
					t.Errorf("%s: type %q", at, name)
				}
			}
		}
	}
	check("/paths", whole.Paths)
	check("/components/schemas", whole.Components["schemas"])
	if checked < 100 {
		t.Errorf("%d types", checked)
	}
}
