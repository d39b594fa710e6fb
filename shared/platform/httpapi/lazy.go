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

// What an operation needs to check its input (schemas by reflection, a tenth of a millisecond each) is made when it is
// first asked for: a function starts often and then answers few of its operations. Each has a registry of its own, so
// that none is written to while another reads.

const schemaPrefix = "#/components/schemas/"

// lazy is an operation that is prepared when it is first asked for: prepare registers it with the huma.API that it is
// given.
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

// ServeHTTP answers the operation.
func (l *lazy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.once.Do(func() {
		api := huma.NewAPI(humaConfig(), &l.ready)
		l.prepare(api)
		adjustChecks(api.OpenAPI().Components.Schemas)
	})
	nameJSON(r.Header)
	l.ready.handle(humachi.NewContext(l.ready.op, r, w))
}

// nameJSON writes the type of a JSON body as huma knows it: capitals and space do not count (RFC 9110 section 8.3.1).
// What is accepted says nothing: there is one type of answer.
func nameJSON(h http.Header) {
	h.Del("Accept")
	if kind, _, err := mime.ParseMediaType(h.Get("Content-Type")); err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json")) {
		h.Set("Content-Type", "application/json")
	}
}

// adjustChecks makes of a description what input is checked against. The ids in arrays are checked one by one, so that
// an error names the one that is none. A type that reads itself checks itself.
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

// OpenAPI describes all operations together. Add operations before, not after the first call.
func (a *API) OpenAPI() *huma.OpenAPI { return a.openAPI() }

func (a *API) describeAll() *huma.OpenAPI {
	all := huma.NewAPI(humaConfig(), &single{})
	for _, describe := range a.describe {
		describe(all)
	}
	return all.OpenAPI()
}

// single is the adapter of one operation: it keeps what it is given last.
type single struct {
	op     *huma.Operation
	handle func(huma.Context)
}

// Handle keeps the operation.
func (s *single) Handle(op *huma.Operation, handle func(huma.Context)) { s.op, s.handle = op, handle }

// ServeHTTP is not used: the router knows the routes.
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
