package apidocs

import (
	"net/http"
	"sync"

	description "github.com/longbox/longbox/api"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

const base = "/api/docs"

// policy allows the page to load scripts and styles only from this server, and to connect only to it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// page refers to its files by their path below base. It is not a template: text/template makes the linker keep every
// method of every type, which would double the size of the program.
const page = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Longbox API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="` + base + `/swagger-ui.css">
<link rel="stylesheet" href="` + base + `/page.css">
<script src="` + base + `/swagger-ui-bundle.js" defer></script>
<script src="` + base + `/page.js" defer></script>
</head>
<body>
<div id="docs" data-url="` + base + `/openapi.json"></div>
<noscript>This page needs JavaScript. The description is at <a href="` + base + `/openapi.json">` + base + `/openapi.json</a> and
<a href="` + base + `/openapi.yaml">` + base + `/openapi.yaml</a>.</noscript>
</body>
</html>
`

// Routes serves the description at /api/docs/openapi.json and .yaml, and its page at /api/docs and c.Path. They are
// public. When c does not enable them, these paths answer 404.
func Routes(a *httpapi.API, c Config) error {
	if !c.Enabled {
		nothing := func(w http.ResponseWriter, r *http.Request) {
			httpapi.WriteError(w, r, fault.New(fault.NotFound, "There is nothing at %s %s", r.Method, r.URL.Path))
		}
		a.Router.Get(base, nothing)
		a.Router.Get(base+"/*", nothing)
		return nil
	}
	if err := c.Validate(); err != nil {
		return err
	}
	index := fromPlain("text/html; charset=utf-8", func() ([]byte, error) { return []byte(page), nil })
	for path, file := range map[string]*asset{
		base: index, base + "/": index, c.Path: index, c.Path + "/": index,
		base + "/openapi.json":         fromPlain("application/json", func() ([]byte, error) { return description.JSON, nil }),
		base + "/openapi.yaml":         fromPlain("application/yaml", sync.OnceValues(func() ([]byte, error) { return toYAML(description.JSON) })),
		base + "/swagger-ui-bundle.js": fromGzip("text/javascript; charset=utf-8", "swagger/swagger-ui-bundle.js.gz"),
		base + "/swagger-ui.css":       fromGzip("text/css; charset=utf-8", "swagger/swagger-ui.css.gz"),
		base + "/page.js":              fromPlain("text/javascript; charset=utf-8", func() ([]byte, error) { return files.ReadFile("page.js") }),
		base + "/page.css":             fromPlain("text/css; charset=utf-8", func() ([]byte, error) { return files.ReadFile("page.css") }),
	} {
		a.Router.Get(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Security-Policy", policy)
			if err := file.serve(w, r); err != nil {
				httpapi.WriteError(w, r, err)
			}
		})
	}
	return nil
}
