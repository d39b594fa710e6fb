package apidocs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/yaml"
	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/httpapi"
)

const sessionScheme = "session"

// JSON returns the OpenAPI description of a, indented.
func JSON(a *httpapi.API) ([]byte, error) {
	complete(a)
	raw, err := json.Marshal(a.OpenAPI())
	if err != nil {
		return nil, fmt.Errorf("describe the API: %w", err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		return nil, fmt.Errorf("describe the API: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// YAML returns the same description in YAML.
func YAML(a *httpapi.API) ([]byte, error) {
	data, err := JSON(a)
	if err != nil {
		return nil, err
	}
	return toYAML(data)
}

func toYAML(data []byte) ([]byte, error) {
	var out bytes.Buffer
	if err := yaml.Convert(&out, bytes.NewReader(data)); err != nil {
		return nil, fmt.Errorf("describe the API in YAML: %w", err)
	}
	return out.Bytes(), nil
}

// complete adds to the schemas what only the types and operations say. It changes the description only: the validation
// of requests was fixed when the operations were registered.
func complete(a *httpapi.API) {
	doc := a.OpenAPI()
	failure := &huma.Response{Description: "Error", Content: map[string]*huma.MediaType{"application/json": {
		Schema: doc.Components.Schemas.Schema(reflect.TypeFor[httpapi.Problem](), true, "Problem")}}}
	doc.Components.SecuritySchemes[sessionScheme] = &huma.SecurityScheme{Type: "apiKey", In: "cookie", Name: httpapi.SessionCookie,
		Description: "Session cookie of POST /auth/login, for images, files, streams and who is signed in"}
	cookie := map[string]bool{}
	for _, op := range a.Operations {
		cookie[op.Method+" "+op.Path] = op.Cookie
	}
	input := map[string]bool{}
	for path, item := range doc.Paths {
		for method, op := range operations(item) {
			if op.Responses["default"] == nil {
				op.Responses["default"] = failure
			}
			if n := len(op.Security); cookie[method+" "+path] && op.Security[n-1][sessionScheme] == nil {
				op.Security = append(op.Security, map[string][]string{sessionScheme: {}})
			}
			for _, p := range op.Parameters {
				// With a bound of its own it is also what others call something.
				if p.Schema != nil && p.Schema.Type == "string" && p.Schema.Format == "" && p.Schema.MaxLength == nil && (p.Name == "id" || strings.HasSuffix(p.Name, "Id")) {
					p.Schema.Format = "uuid"
				}
			}
			if op.RequestBody != nil {
				if content := op.RequestBody.Content; content["application/x-protobuf"] != nil { // OTLP has both forms
					content["application/json"] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeObject}}
				}
				for _, m := range op.RequestBody.Content {
					reach(doc.Components.Schemas, m.Schema, input)
				}
			}
		}
	}
	for name, s := range doc.Components.Schemas.Map() {
		ref := "#/components/schemas/" + name
		if t := doc.Components.Schemas.TypeFromRef(ref); t != nil && t.Kind() == reflect.Struct {
			describeFields(t, s, input[ref])
		}
		allowNull(s)
	}
}

// allowNull adds null to the enum of a nullable schema: in JSON Schema an enum is complete, whatever the type says.
func allowNull(s *huma.Schema) {
	if s == nil {
		return
	}
	if s.Nullable && len(s.Enum) > 0 && !slices.Contains(s.Enum, nil) {
		s.Enum = append(slices.Clone(s.Enum), nil)
	}
	allowNull(s.Items)
	for _, p := range s.Properties {
		allowNull(p)
	}
	for _, p := range slices.Concat(s.OneOf, s.AnyOf, s.AllOf) {
		allowNull(p)
	}
}

// operations returns the operations of a path by method.
func operations(item *huma.PathItem) map[string]*huma.Operation {
	out := map[string]*huma.Operation{}
	for method, op := range map[string]*huma.Operation{"GET": item.Get, "PUT": item.Put, "POST": item.Post,
		"DELETE": item.Delete, "PATCH": item.Patch, "HEAD": item.Head, "OPTIONS": item.Options} {
		if op != nil {
			out[method] = op
		}
	}
	return out
}

// reach marks the named schemas that s refers to, directly or indirectly.
func reach(r huma.Registry, s *huma.Schema, seen map[string]bool) {
	if s == nil {
		return
	}
	if s.Ref != "" {
		if seen[s.Ref] {
			return
		}
		seen[s.Ref] = true
		reach(r, r.SchemaFromRef(s.Ref), seen)
		return
	}
	reach(r, s.Items, seen)
	if more, ok := s.AdditionalProperties.(*huma.Schema); ok {
		reach(r, more, seen)
	}
	for _, p := range s.Properties {
		reach(r, p, seen)
	}
	for _, all := range [][]*huma.Schema{s.OneOf, s.AnyOf, s.AllOf} {
		for _, p := range all {
			reach(r, p, seen)
		}
	}
}

var uuidType = reflect.TypeFor[uuid.UUID]()

// describeFields completes the properties of a struct: identifiers are UUIDs, arrays in a response are never null
// unless tagged so, and a struct behind a pointer may be null.
func describeFields(t reflect.Type, s *huma.Schema, input bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		part := f.Type
		if part.Kind() == reflect.Pointer {
			part = part.Elem()
		}
		if f.Anonymous && name == "" && part.Kind() == reflect.Struct {
			describeFields(part, s, input)
			continue
		}
		if p := s.Properties[name]; p != nil {
			s.Properties[name] = describeField(f, p, input, strings.Contains(options, "omit"))
		}
	}
}

func describeField(f reflect.StructField, p *huma.Schema, input, omitted bool) *huma.Schema {
	t := f.Type
	if v, ok := optional(t); ok {
		t = v
	}
	pointer := t.Kind() == reflect.Pointer
	if pointer {
		t = t.Elem()
	}
	switch {
	case t == uuidType && p.Type == huma.TypeString:
		p.Format, p.Nullable = "uuid", pointer && !omitted || p.Nullable
	case t.Kind() == reflect.Slice && p.Type == huma.TypeArray:
		if t.Elem() == uuidType {
			p.Items.Format = "uuid"
		}
		if _, tagged := f.Tag.Lookup("nullable"); !input && !tagged {
			p.Nullable = false
		}
	case pointer && p.Ref != "" && !omitted:
		return &huma.Schema{AnyOf: []*huma.Schema{p, {Type: "null"}}}
	}
	return p
}

// optional returns the value type of an httpapi.Optional.
func optional(t reflect.Type) (reflect.Type, bool) {
	if t.Kind() != reflect.Struct || !strings.HasPrefix(t.Name(), "Optional[") || t.PkgPath() != reflect.TypeFor[httpapi.API]().PkgPath() {
		return nil, false
	}
	v, ok := t.FieldByName("Value")
	return v.Type, ok
}
