package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// Op describes one operation. Permission must be one of auth's, Public or SignedIn: an operation without it cannot be
// registered.
type Op struct {
	Method     string
	Path       string // below the host, for example /api/v1/books/{id}
	ID         string // operation id, for example listBooks
	Summary    string
	Tag        string
	Permission string
	Status     int     // of success; 0 is 200, or 204 without a body
	MayBeEmpty bool    // may respond without a body (204)
	Cookie     bool    // accepts the session cookie (GET only)
	Media      string  // media types of a plain handler's response, separated by ", "
	Query      []Query // query parameters of a plain handler, for the description
	SeesAll    bool    // concerns all series: callers who do not see every series get 403
	// The last path parameter is the rest of the path with its slashes (plain handlers only): PathParam "*".
	Rest bool
	// The path begins with {prefix}, which each tenant chooses. Without a prefix the operation does not exist.
	Prefixed    bool
	StartsAhead bool   // before the request is counted: see Ahead
	File        string // the form member that holds a file, if the body is a form
	MaxBody     int64  // limit of the request body in bytes; 0: maxBody
	Also        []int  // further success statuses, of a plain handler or a Statused response
}

// OnlyIfSeesAll returns the operation, limited to callers who see every series.
func (op Op) OnlyIfSeesAll() Op { op.SeesAll = true; return op }

// Ahead returns the operation as one that starts ahead: it starts while the request is counted, which saves the time of
// Redis. It must be a GET that only reads, or calls Confirmed before it does more.
func (op Op) Ahead() Op { op.StartsAhead = true; return op }

// Group is a path and a tag that several operations share.
type Group struct{ Path, Tag string }

// Op returns an operation of the group; path is appended to the group's.
func (g Group) Op(method, path, id, summary, permission string) Op {
	return Op{Method: method, Path: g.Path + path, ID: id, Summary: summary, Tag: g.Tag, Permission: permission}
}

// For returns Op for operations that all need the same permission.
func (g Group) For(permission string) func(method, path, id, summary string) Op {
	return func(method, path, id, summary string) Op { return g.Op(method, path, id, summary, permission) }
}

// Values of Permission besides the names of permissions.
const (
	Public   = "public"
	SignedIn = "signed-in"
)

// Query is a query parameter of a plain handler, with its possible values. Without values it is a text or an integer
// from 1.
type Query struct {
	Name     string
	Values   []any
	Text     bool
	Required bool
	Doc      string
}

// None is the body of an operation without a response body (204).
type None struct{}

// Statused is a response body that sets its own status.
type Statused interface{ StatusCode() int }

// output is the response of every JSON operation. It is one type, and bind knows no response type, because huma's
// Register is compiled for each pair of types, which takes about ten kilobytes.
type output struct {
	Status int
	Body   any
}

// typed is a JSON operation without its types. handle takes a pointer to an input, and returns nil or a pointer to a
// response body.
type typed struct {
	input, body reflect.Type
	handle      func(ctx context.Context, in any) (any, error)
	bind        func(api huma.API, h huma.Operation, serve func(ctx context.Context, in any) (*output, error))
}

// Register adds a JSON operation. I is huma's input struct (path, query, Body), O the response body. None means 204,
// and so does nil from an operation that MayBeEmpty.
func Register[I, O any](a *API, op Op, handle func(ctx context.Context, in *I) (*O, error)) {
	a.register(&op, typed{reflect.TypeFor[I](), reflect.TypeFor[O](), func(ctx context.Context, in any) (any, error) {
		if out, err := handle(ctx, in.(*I)); out != nil || err != nil {
			return out, err
		}
		return nil, nil
	}, bind[I]})
}

// bind registers the operation with huma.
func bind[I any](api huma.API, h huma.Operation, serve func(ctx context.Context, in any) (*output, error)) {
	huma.Register(api, h, func(ctx context.Context, in *I) (*output, error) { return serve(ctx, in) })
}

func (a *API) register(op *Op, t typed) {
	a.lazily(op, func(api huma.API) { a.prepare(op, t, api) })
}

// prepare describes the operation and registers it with huma.
func (a *API) prepare(op *Op, t typed, api huma.API) {
	query := queryOf(t.input)
	if strings.Contains(op.Path, "/libraries/{id}/") { // the id in the path is the library
		query["libraryId"] = one
	}
	h := a.operation(op, api)
	success := describeBody(&h, api, t.body, op)
	form := &huma.MediaType{}
	if op.File != "" {
		h.RequestBody = &huma.RequestBody{Content: map[string]*huma.MediaType{"multipart/form-data": form}}
	}
	t.bind(api, h, func(ctx context.Context, in any) (*output, error) {
		return a.serve(ctx, in, op, t, query, h.DefaultStatus)
	})
	if t.body == noBody {
		success.Content = nil // which huma has added
	}
	if op.File != "" { // not earlier: huma accepts only JSON for a body with a schema
		form.Schema = &huma.Schema{Type: huma.TypeObject, Required: []string{op.File},
			Properties: map[string]*huma.Schema{op.File: {Type: huma.TypeString, Format: "binary"}}}
	}
}

// serve runs the operation for one request.
func (a *API) serve(ctx context.Context, in any, op *Op, t typed, query map[string]values, status int) (*output, error) {
	ctx, err := a.authorize(ctx, op)
	if err != nil {
		return nil, problem(requestOf(ctx), err)
	}
	var out any
	if err = checkQuery(requestOf(ctx).url.RawQuery, query); err == nil {
		out, err = t.handle(ctx, in)
	}
	if err = a.entered(ctx, err); err != nil {
		return nil, problem(requestOf(ctx), err)
	}
	switch {
	case t.body == noBody:
		return &output{Status: status, Body: []byte(nil)}, nil // bytes are written unchanged: none
	case out == nil && !op.MayBeEmpty:
		return nil, problem(requestOf(ctx), fmt.Errorf("%s returns no body, which its description does not allow", op.ID))
	case out == nil:
		return &output{Status: http.StatusNoContent}, nil
	}
	if s, ok := out.(Statused); ok {
		status = s.StatusCode()
	}
	return &output{Status: status, Body: out}, nil
}

var noBody = reflect.TypeFor[None]()

// describeBody describes the type of the response body, which huma cannot know from output. It returns the description
// of success.
func describeBody(h *huma.Operation, api huma.API, body reflect.Type, op *Op) *huma.Response {
	var content map[string]*huma.MediaType
	if body == noBody {
		h.DefaultStatus = cmp.Or(h.DefaultStatus, http.StatusNoContent)
	} else {
		h.DefaultStatus = cmp.Or(h.DefaultStatus, http.StatusOK)
		schema := api.OpenAPI().Components.Schemas.Schema(body, true, h.OperationID+"Response")
		content = map[string]*huma.MediaType{"application/json": {Schema: schema}}
	}
	h.Responses = map[string]*huma.Response{}
	answer := func(status int, content map[string]*huma.MediaType) *huma.Response {
		h.Responses[strconv.Itoa(status)] = &huma.Response{Description: http.StatusText(status), Content: content}
		return h.Responses[strconv.Itoa(status)]
	}
	for _, status := range op.Also {
		answer(status, content)
	}
	if op.MayBeEmpty {
		answer(http.StatusNoContent, nil)
	}
	return answer(h.DefaultStatus, content)
}

// Handle adds an operation that writes its own response: images, files, feeds.
func (a *API) Handle(op Op, handle func(w http.ResponseWriter, r *http.Request) error) {
	a.declare(&op)
	a.describe = append(a.describe, func(api huma.API) { a.describePlain(&op, api) })
	known := make(map[string]values, len(op.Query))
	for _, q := range op.Query {
		known[q.Name] = one
	}
	route := op.Path
	if op.Rest {
		route = route[:strings.LastIndex(route, "{")] + "*"
	}
	a.Router.MethodFunc(op.Method, route, func(w http.ResponseWriter, r *http.Request) {
		ctx, err := r.Context(), op.there(requestOf(r.Context()))
		if err == nil {
			ctx, err = a.authorize(ctx, &op)
		}
		if err == nil {
			if err = checkQuery(r.URL.RawQuery, known); err == nil {
				err = handle(w, r.WithContext(ctx))
			}
			if err != nil {
				err = a.entered(ctx, err)
			}
		}
		if err != nil {
			WriteError(w, r, err)
		}
	})
}

// PathParam returns a path parameter of a plain handler.
func PathParam(r *http.Request, name string) string {
	value := r.PathValue(name)
	if r.URL.RawPath == "" { // the router matched the decoded path
		return value
	}
	if plain, err := url.PathUnescape(value); err == nil {
		return plain
	}
	return value
}

// PathID returns the path parameter id of a plain handler, or BadRequest if it is no id.
func PathID(r *http.Request) (uuid.UUID, error) {
	id, err := uuid.Parse(PathParam(r, "id"))
	if err != nil {
		return uuid.Nil, fault.Invalid("id", noUUID)
	}
	return id, nil
}

// describePlain describes an operation without huma types.
func (a *API) describePlain(op *Op, api huma.API) {
	h := a.operation(op, api)
	media := map[string]*huma.MediaType{}
	for kind := range strings.SplitSeq(op.Media, ", ") {
		media[kind] = &huma.MediaType{Schema: &huma.Schema{Type: "string", Format: "binary"}}
	}
	h.Responses = map[string]*huma.Response{"200": {Description: "OK", Content: media}}
	for _, status := range op.Also {
		answer := &huma.Response{Description: http.StatusText(status)}
		if status == http.StatusPartialContent {
			answer.Content = media
		}
		h.Responses[strconv.Itoa(status)] = answer
	}
	for _, name := range pathParams(op.Path) {
		s := &huma.Schema{Type: "string", Format: "uuid"}
		switch name {
		case "prefix", "path", "name":
			s = &huma.Schema{Type: "string"}
		case "pageNumber":
			s = &huma.Schema{Type: "integer"}
		}
		h.Parameters = append(h.Parameters, &huma.Param{Name: name, In: "path", Required: true, Schema: s})
	}
	for _, q := range op.Query {
		s := &huma.Schema{Type: "string", Enum: q.Values}
		if len(q.Values) == 0 && !q.Text {
			s = &huma.Schema{Type: "integer", Minimum: new(1.0)}
		}
		h.Parameters = append(h.Parameters, &huma.Param{Name: q.Name, In: "query", Description: q.Doc, Required: q.Required, Schema: s})
	}
	api.OpenAPI().AddOperation(&h)
}

// declare registers what the middleware must know about an operation before it is prepared.
func (a *API) declare(op *Op) {
	switch {
	case op.Permission == "":
		panic(op.Method + " " + op.Path + " declares no permission")
	case op.Cookie && op.Method != http.MethodGet:
		panic(op.Method + " " + op.Path + ": the cookie is for GET only")
	case op.StartsAhead && (op.Method != http.MethodGet || op.Permission == Public):
		panic(op.Method + " " + op.Path + ": only a GET that is not public may start ahead")
	}
	a.Operations = append(a.Operations, op)
	if op.StartsAhead {
		a.ahead = append(a.ahead, op.Path)
	}
	if op.Cookie {
		a.byCookie = append(a.byCookie, op.Path)
	}
	if op.Permission == Public {
		a.public = append(a.public, op.Method+" "+op.Path)
	}
}

func (a *API) operation(op *Op, api huma.API) huma.Operation {
	h := huma.Operation{OperationID: op.ID, Method: op.Method, Path: op.Path, Summary: op.Summary, Tags: []string{op.Tag},
		DefaultStatus: op.Status, MaxBodyBytes: cmp.Or(op.MaxBody, maxBody), BodyReadTimeout: bodyPatience,
		Extensions: map[string]any{"x-permission": op.Permission}}
	if op.Permission != Public {
		h.Security = []map[string][]string{{"bearer": {}}, {"apiKey": {}}, {"basic": {}}}
	}
	h.Middlewares = huma.Middlewares{func(hc huma.Context, next func(huma.Context)) {
		// Before validation: anonymous callers must not learn anything about the input.
		r := requestOf(hc.Context())
		caller := auth.CallerOf(hc.Context())
		if err := op.there(r); err != nil {
			_ = huma.WriteErr(api, hc, http.StatusNotFound, "", err) // writes the response
			return
		}
		if op.Permission != Public {
			if !op.admits(hc.Context()) {
				_ = huma.WriteErr(api, hc, http.StatusUnauthorized, "", errUnauthenticated) // writes the response
				return
			}
			ctx := hc.Context()
			r.enter = func() error {
				ctx, err := a.authorize(ctx, op)
				if err != nil {
					return err
				}
				return a.database.Enter(ctx)
			}
			if op.Prefixed {
				a.giveReaderCookie(hc.Context(), caller)
			}
		}
		next(hc)
	}}
	return h
}

// there returns NotFound for an operation below another prefix than the tenant's.
func (op *Op) there(r *request) error {
	if prefix, _, _ := strings.Cut(strings.TrimPrefix(r.url.Path, "/"), "/"); op.Prefixed && (prefix == "" || prefix != r.tenant.Prefix) {
		return fault.New(fault.NotFound, "There is nothing at %s %s", op.Method, r.url.Path)
	}
	return nil
}

var errUnauthenticated = fault.New(fault.Unauthorized, "Sign in first: send a bearer token, an API key or a user name and password")

// admits reports whether a caller is signed in, with a credential that the operation accepts.
func (op *Op) admits(ctx context.Context) bool {
	return auth.CallerOf(ctx) != nil && (op.Cookie || !viaCookie(ctx))
}

// authorize puts the requirements of the operation into the context. The database checks them with the first statement.
func (a *API) authorize(ctx context.Context, op *Op) (context.Context, error) {
	if op.Permission == Public {
		return inTenant(ctx), nil
	}
	if !op.admits(ctx) {
		return ctx, errUnauthenticated
	}
	bound := *auth.CallerOf(ctx)
	bound.SeesAll = op.SeesAll
	if op.Permission != SignedIn {
		bound.Permission = op.Permission
	}
	return db.In(ctx, &bound), nil
}

// entered runs the database's access check if the operation has run no statement. So a caller without permission does
// not learn what is wrong with the input, or that something does not exist. err is the operation's own.
func (a *API) entered(ctx context.Context, err error) error {
	c := auth.CallerOf(ctx)
	if c == nil || c.Entered {
		return err
	}
	if err != nil {
		switch fault.From(err).Code {
		case fault.BadRequest, fault.NotFound, fault.Conflict, fault.Unprocessable, fault.RangeInvalid, fault.TooLarge:
		default:
			return err
		}
	}
	if refused := a.database.Enter(ctx); refused != nil {
		return refused
	}
	return err
}

// pathParams returns the names of the parameters of a path, which are whole segments in braces.
func pathParams(path string) []string {
	var out []string
	for segment := range strings.SplitSeq(path, "/") {
		if name, ok := strings.CutPrefix(segment, "{"); ok {
			out = append(out, strings.TrimSuffix(name, "}"))
		}
	}
	return out
}
