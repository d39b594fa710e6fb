package apidocs_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/apidocs"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

func newAPI() *httpapi.API {
	return httpapi.New(httpapi.Config{}, nil, nil, httpapi.Identity{
		Tenant: func(context.Context, string) (httpapi.Tenant, error) { return httpapi.Tenant{Name: "default"}, nil }})
}

func get(a *httpapi.API, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	a.Router.ServeHTTP(w, r)
	return w
}

func TestOffByDefault(t *testing.T) {
	t.Parallel()
	a := newAPI()
	if err := apidocs.Routes(a, apidocs.Config{Path: "/docs"}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/docs", "/api/docs", "/api/docs/", "/api/docs/openapi.json", "/api/docs/openapi.yaml", "/api/docs/swagger-ui.css"} {
		if w := get(a, path); w.Code != 404 || !strings.Contains(w.Body.String(), `"NotFound"`) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

func TestPage(t *testing.T) {
	t.Parallel()
	a := newAPI()
	if err := apidocs.Routes(a, apidocs.Config{Enabled: true, Path: "/help/api"}); err != nil {
		t.Fatal(err)
	}
	if w := get(a, "/docs"); w.Code != 404 {
		t.Errorf("/docs: %d", w.Code)
	}
	reference := regexp.MustCompile(`(?:href|src|data-url)="([^"]+)"`)
	for _, path := range []string{"/help/api", "/help/api/", "/api/docs", "/api/docs/"} {
		w := get(a, path)
		html := w.Body.String()
		policy := w.Header().Get("Content-Security-Policy")
		if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") || !strings.Contains(policy, "script-src 'self';") || strings.Contains(policy, "unsafe") {
			t.Fatalf("%s: %d %v", path, w.Code, w.Header())
		}
		// The policy refuses inline code and other hosts, so the page must not have any.
		if regexp.MustCompile(`<script>|<style|style=|onload=|https?://`).MatchString(html) {
			t.Errorf("%s: %s", path, html)
		}
		for _, m := range reference.FindAllStringSubmatch(html, -1) {
			if strings.HasPrefix(m[1], "data:") {
				continue
			}
			if w := get(a, m[1]); w.Code != 200 || w.Body.Len() == 0 {
				t.Errorf("%s names %s: %d", path, m[1], w.Code)
			}
		}
	}
}

func TestAssets(t *testing.T) {
	t.Parallel()
	a := newAPI()
	if err := apidocs.Routes(a, apidocs.Config{Enabled: true, Path: "/docs"}); err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("swagger/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"swagger-ui-bundle.js", "swagger-ui.css", "page.js", "page.css", "openapi.json", "openapi.yaml", ""} {
		plain := get(a, "/api/docs/"+name)
		sum := sha256.Sum256(plain.Body.Bytes())
		if strings.HasPrefix(name, "swagger") && !bytes.Contains(readme, []byte("| "+name+" | "+hex.EncodeToString(sum[:])+" |")) {
			t.Errorf("%s is not the file whose sum the README has: %x", name, sum)
		}
		packed := get(a, "/api/docs/"+name, "Accept-Encoding", "br, gzip;q=0.8")
		z, err := gzip.NewReader(packed.Body)
		if err != nil || packed.Header().Get("Content-Encoding") != "gzip" {
			t.Fatalf("%s: %v %v", name, packed.Header(), err)
		}
		if data, err := io.ReadAll(z); err != nil || !bytes.Equal(data, plain.Body.Bytes()) {
			t.Errorf("%s: compressed and plain differ: %v", name, err)
		}
		if plain.Header().Get("Content-Encoding") != "" || plain.Header().Get("ETag") == packed.Header().Get("ETag") {
			t.Errorf("%s: %v %v", name, plain.Header(), packed.Header())
		}
		if w := get(a, "/api/docs/"+name, "Accept-Encoding", "gzip;q=0"); w.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s: compressed for a client that refuses it", name)
		}
		if w := get(a, "/api/docs/"+name, "If-None-Match", plain.Header().Get("ETag")); w.Code != http.StatusNotModified {
			t.Errorf("%s: %d with its own ETag", name, w.Code)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for path, ok := range map[string]bool{"/docs": true, "/a/b-c_d": true, "": false, "/": false, "docs": false, "/docs/": false, "/a//b": false,
		"/{id}": false, "/*": false, "/api/v1": false, "/api/v1/docs": false, "/health": false, "/opds": false, "/../x": false, "/api/v1x": true} {
		c := apidocs.Config{Enabled: true, Path: path}
		if err := c.Validate(); (err == nil) != ok {
			t.Errorf("%q: %v", path, err)
		}
		if err := apidocs.Routes(newAPI(), c); (err == nil) != ok {
			t.Errorf("%q: %v", path, err)
		}
	}
}

type part struct {
	ID uuid.UUID `json:"id"`
}

type record struct {
	ID      uuid.UUID   `json:"id"`
	Parent  *uuid.UUID  `json:"parent"`
	IDs     []uuid.UUID `json:"ids"`
	Names   []string    `json:"names"`
	Formats []string    `json:"formats" nullable:"true"`
	Part    *part       `json:"part"`
	Rest    *part       `json:"rest,omitempty"`
	Text    *string     `json:"text"`
	Kind    *string     `json:"kind" enum:"a,b"`
}

type change struct {
	Names  []string                    `json:"names"`
	Parent httpapi.Optional[uuid.UUID] `json:"parent,omitempty"`
}

func TestDescription(t *testing.T) {
	t.Parallel()
	a := newAPI()
	httpapi.Register(a, httpapi.Op{Method: "PUT", Path: "/api/v1/things/{id}", ID: "x", Summary: "s", Tag: "t", Permission: "BooksRead"},
		func(context.Context, *struct {
			ID   uuid.UUID `path:"id"`
			Body change
		}) (*record, error) {
			return nil, nil
		})
	httpapi.Register(a, httpapi.Op{Method: "DELETE", Path: "/api/v1/things/{id}/parts/{partId}", ID: "z", Summary: "s", Tag: "t", Permission: "BooksRead"},
		func(context.Context, *struct {
			ID   uuid.UUID `path:"id"`
			Part string    `path:"partId" maxLength:"300" doc:"Also its name"`
		}) (*httpapi.None, error) {
			return nil, nil
		})
	a.Handle(httpapi.Op{Method: "GET", Path: "/api/v1/things/{id}/image", ID: "y", Summary: "s", Tag: "t", Permission: "BooksRead", Cookie: true, Media: "image/*",
		Query: []httpapi.Query{{Name: "width"}, {Name: "format", Values: []any{"png"}}}, Also: []int{http.StatusPartialContent, http.StatusNotModified}},
		func(http.ResponseWriter, *http.Request) error { return nil })
	first, err := apidocs.JSON(a)
	if err != nil {
		t.Fatal(err)
	}
	second, err := apidocs.JSON(a)
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("the description is not the same twice: %v", err)
	}
	var d map[string]any
	if err := json.Unmarshal(first, &d); err != nil {
		t.Fatal(err)
	}
	at := func(path string) any {
		var v any = d
		for key := range strings.SplitSeq(path, " ") {
			m, ok := v.(map[string]any)
			if !ok {
				return nil
			}
			v = m[key]
		}
		return v
	}
	for path, want := range map[string]string{
		"components schemas Record properties id":                                               `{"format":"uuid","type":"string"}`,
		"components schemas Record properties parent":                                           `{"format":"uuid","type":["string","null"]}`,
		"components schemas Record properties ids":                                              `{"items":{"format":"uuid","type":"string"},"type":"array"}`,
		"components schemas Record properties names":                                            `{"items":{"type":"string"},"type":"array"}`,
		"components schemas Record properties formats":                                          `{"items":{"type":"string"},"type":["array","null"]}`,
		"components schemas Record properties part":                                             `{"anyOf":[{"$ref":"#/components/schemas/Part"},{"type":"null"}]}`,
		"components schemas Record properties rest":                                             `{"$ref":"#/components/schemas/Part"}`,
		"components schemas Record properties kind":                                             `{"enum":["a","b",null],"type":["string","null"]}`,
		"components schemas Record properties text":                                             `{"type":["string","null"]}`,
		"components schemas Change properties names":                                            `{"items":{"type":"string"},"type":["array","null"]}`,
		"components schemas Change properties parent":                                           `{"format":"uuid","type":["string","null"]}`,
		"paths /api/v1/things/{id} put responses default content application/json schema":       `{"$ref":"#/components/schemas/Problem"}`,
		"paths /api/v1/things/{id}/image get responses default content application/json schema": `{"$ref":"#/components/schemas/Problem"}`,
		"paths /api/v1/things/{id}/image get security":                                          `[{"bearer":[]},{"apiKey":[]},{"basic":[]},{"session":[]}]`,
		"paths /api/v1/things/{id}/image get parameters":                                        `[{"in":"path","name":"id","required":true,"schema":{"format":"uuid","type":"string"}},{"in":"query","name":"width","schema":{"minimum":1,"type":"integer"}},{"in":"query","name":"format","schema":{"enum":["png"],"type":"string"}}]`,
		"paths /api/v1/things/{id}/parts/{partId} delete parameters":                            `[{"in":"path","name":"id","required":true,"schema":{"format":"uuid","type":"string"}},{"description":"Also its name","in":"path","name":"partId","required":true,"schema":{"description":"Also its name","maxLength":300,"type":"string"}}]`,
		"paths /api/v1/things/{id}/image get responses 206":                                     `{"content":{"image/*":{"schema":{"contentMediaType":"application/octet-stream","format":"binary","type":"string"}}},"description":"Partial Content"}`,
		"paths /api/v1/things/{id}/image get responses 304":                                     `{"description":"Not Modified"}`,
		"paths /api/v1/things/{id} put security":                                                `[{"bearer":[]},{"apiKey":[]},{"basic":[]}]`,
		"paths /api/v1/things/{id} put x-permission":                                            `"BooksRead"`,
		"openapi": `"3.1.0"`,
	} {
		if got, err := json.Marshal(at(path)); err != nil || string(got) != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	yaml, err := apidocs.YAML(a)
	if err != nil || !bytes.Contains(yaml, []byte("operationId: x")) {
		t.Errorf("%s %v", yaml, err)
	}
}
