package httpapi

import (
	"encoding/json"
	"mime"
	"net/http"
	"reflect"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/google/uuid"
)

// The input checks of an operation (schemas by reflection, a tenth of a millisecond each) are built on its first
// request: a function starts often and then serves few of its operations. Each operation has its own registry, so that
// no registry is written while another request reads it.

const schemaPrefix = "#/components/schemas/"

// lazy is an operation that is prepared on its first request. prepare registers it with the given huma.API.
type lazy struct {
	prepare func(huma.API)
	once    sync.Once
	ready   single
}

// lazily declares the operation and adds its route.
func (a *API) lazily(op *Op, prepare func(huma.API)) {
	a.declare(op)
	a.describe = append(a.describe, prepare)
	a.Router.Method(op.Method, op.Path, &lazy{prepare: prepare})
}

func (l *lazy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.once.Do(func() {
		api := huma.NewAPI(humaConfig(), &l.ready)
		l.prepare(api)
		adjustChecks(api.OpenAPI().Components.Schemas)
	})
	nameJSON(r.Header)
	l.ready.handle(humachi.NewContext(l.ready.op, r, w))
}

// nameJSON normalises the media type of a JSON body for huma, which does not ignore case and spaces (RFC 9110 section
// 8.3.1). It drops Accept, because there is only one type of response.
func nameJSON(h http.Header) {
	h.Del("Accept")
	if kind, _, err := mime.ParseMediaType(h.Get("Content-Type")); err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json")) {
		h.Set("Content-Type", "application/json")
	}
}

// adjustChecks turns the description's schemas into those for validation. Ids in arrays are checked one by one, so that
// an error names the invalid one. A type with its own decoder validates itself.
func adjustChecks(r huma.Registry) {
	for name, s := range r.Map() {
		t := r.TypeFromRef(schemaPrefix + name)
		if t == nil || t.Kind() != reflect.Struct {
			continue
		}
		if reflect.PointerTo(t).Implements(readsItself) {
			s.Type = ""
		}
		for _, f := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if p := s.Properties[name]; f.Type == idsType && p != nil {
				p.Items.Format = "uuid"
			}
		}
	}
}

var (
	idsType     = reflect.TypeFor[[]uuid.UUID]()
	readsItself = reflect.TypeFor[json.Unmarshaler]()
)

// OpenAPI describes all operations. Add operations before the first call.
func (a *API) OpenAPI() *huma.OpenAPI { return a.openAPI() }

func (a *API) describeAll() *huma.OpenAPI {
	all := huma.NewAPI(humaConfig(), &single{})
	for _, describe := range a.describe {
		describe(all)
	}
	return all.OpenAPI()
}

// single is the huma adapter of one operation. It keeps the last one that was registered.
type single struct {
	op     *huma.Operation
	handle func(huma.Context)
}

// Handle stores the operation.
func (s *single) Handle(op *huma.Operation, handle func(huma.Context)) { s.op, s.handle = op, handle }

// ServeHTTP is unused: the router has the routes.
func (s *single) ServeHTTP(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }

func humaConfig() huma.Config {
	c := huma.DefaultConfig("Longbox", interfaceVersion)
	c.AllowAdditionalPropertiesByDefault = true
	c.Components.Schemas = huma.NewMapRegistry(schemaPrefix, schemaName)
	c.CreateHooks, c.DocsPath, c.OpenAPIPath, c.SchemasPath = nil, "", "", ""
	c.Formats = map[string]huma.Format{"application/json": jsonFormat, "json": jsonFormat}
	c.Info.Description = "A digital library server for comics, manga and e-books."
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"bearer": {Type: "http", Scheme: "bearer", Description: "Access token of POST /auth/login, or an API key"},
		"apiKey": {Type: "apiKey", In: "header", Name: "X-API-Key"},
		"basic":  {Type: "http", Scheme: "basic"},
	}
	return c
}
