package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/automatch"
	"github.com/longbox/longbox/shared/lazyregexp"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Action is something that a plugin can do in a scope.
type Action struct {
	PluginID          uuid.UUID    `json:"pluginId"`
	PluginName        string       `json:"pluginName"`
	PluginDisplayName string       `json:"pluginDisplayName"`
	ActionType        string       `json:"actionType" enum:"metadata_search"`
	Label             string       `json:"label"`
	Description       *string      `json:"description"`
	Icon              *string      `json:"icon"`
	LibraryIDs        []uuid.UUID  `json:"libraryIds" nullable:"false" doc:"Ids of the libraries that the plugin applies to; empty means all"`
	Capabilities      Capabilities `json:"capabilities"`
	SearchURITemplate *string      `json:"searchUriTemplate"`
}

// Actions are the actions of a scope.
type Actions struct {
	Scope   string   `json:"scope"`
	Actions []Action `json:"actions" nullable:"false"`
}

// WebLinks are links to series at other sites.
type WebLinks struct {
	Providers []LinkProvider `json:"providers" nullable:"false"`
}

// LinkProvider is a site with its URL templates for titles and ids.
type LinkProvider struct {
	PluginName        string       `json:"pluginName"`
	DisplayName       string       `json:"displayName"`
	SearchURLTemplate string       `json:"searchUrlTemplate" doc:"Contains {title}"`
	SeriesLinks       []SeriesLink `json:"seriesLinks" nullable:"false"`
}

// SeriesLink is the URL template for ids of a source.
type SeriesLink struct {
	Source      string `json:"source"`
	URLTemplate string `json:"urlTemplate" doc:"Contains {externalId}"`
}

// Request is a request to a plugin: ping or metadata.
type Request struct {
	Metadata *struct {
		Action      string         `json:"action"`
		ContentType string         `json:"contentType"`
		Params      map[string]any `json:"params"`
	} `json:"metadata"`
}

// UnmarshalJSON also accepts the string ping.
func (r *Request) UnmarshalJSON(data []byte) error {
	if string(bytes.TrimSpace(data)) == `"ping"` {
		return nil
	}
	type plain Request
	return json.Unmarshal(data, (*plain)(r))
}

// Schema describes both forms.
func (Request) Schema(huma.Registry) *huma.Schema {
	word := func(values ...any) *huma.Schema { return &huma.Schema{Type: huma.TypeString, Enum: values} }
	metadata := &huma.Schema{Type: huma.TypeObject, Required: []string{"action", "contentType"}, Properties: map[string]*huma.Schema{
		"action": word("search", "get", "match"), "contentType": word("series", "book"), "params": {Type: huma.TypeObject, AdditionalProperties: true}}}
	s := &huma.Schema{OneOf: []*huma.Schema{word("ping"), {Type: huma.TypeObject, Required: []string{"metadata"}, Properties: map[string]*huma.Schema{"metadata": metadata}}}}
	for _, one := range s.OneOf {
		one.PrecomputeMessages()
	}
	return s
}

// Executed is a plugin's response.
type Executed struct {
	Success   bool            `json:"success"`
	Result    json.RawMessage `json:"result"`
	Error     *string         `json:"error"`
	LatencyMs int64           `json:"latencyMs"`
}

func (s *service) useRoutes(a *httpapi.API) {
	op := httpapi.Group{Path: "/api/v1", Tag: "Plugins"}.Op
	httpapi.Register(a, op("GET", "/plugins/actions", "listPluginActions", "List the actions that enabled plugins offer in a scope", auth.LibrariesRead),
		func(ctx context.Context, in *struct {
			Scope     string    `query:"scope" required:"true" enum:"series:detail,series:bulk,book:detail,book:bulk,library:detail,library:scan"`
			LibraryID uuid.UUID `query:"libraryId" format:"uuid" doc:"Only plugins that apply to this library"`
		}) (*Actions, error) {
			return s.actions(ctx, in.Scope, in.LibraryID)
		})
	httpapi.Register(a, op("GET", "/plugins/web-links", "listPluginWebLinks", "List the links of enabled plugins to series on other sites", auth.SeriesRead),
		func(ctx context.Context, _ *struct{}) (*WebLinks, error) { return s.links(ctx) })
	httpapi.Register(a, op("POST", "/plugins/{id}/execute", "executePlugin", "Request metadata from a plugin (for books also requires BooksWrite) or test it (also requires PluginsManage)", auth.SeriesWrite),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			Body struct {
				Action Request `json:"action"`
			}
		}) (*Executed, error) {
			return s.execute(ctx, in.ID, &in.Body.Action)
		})
	httpapi.Register(a, op("GET", "/metrics/plugins", "getPluginMetrics", "Get metrics of the requests to plugins", auth.LibrariesRead),
		func(ctx context.Context, _ *struct{}) (*Metrics, error) { return metrics(ctx, s.Database) })
}

// enabled returns the enabled plugins by name.
func (s *service) enabled(ctx context.Context) ([]Plugin, error) {
	return db.List[Plugin](ctx, s.Database, "select "+columns+" from plugin p where p.tenant_id = app.tenant() and p.enabled order by p.name")
}

func (s *service) actions(ctx context.Context, scope string, library uuid.UUID) (*Actions, error) {
	all, err := s.enabled(ctx)
	if err != nil {
		return nil, err
	}
	kind := "series"
	if strings.HasPrefix(scope, "book:") {
		kind = "book"
	}
	out := &Actions{Scope: scope, Actions: []Action{}}
	for _, p := range all {
		if !slices.Contains(p.Scopes, scope) || !p.provides(kind) || p.Manifest == nil || library != uuid.Nil && !p.serves(library) {
			continue
		}
		out.Actions = append(out.Actions, Action{PluginID: p.ID, PluginName: p.Name, PluginDisplayName: p.DisplayName, ActionType: "metadata_search",
			Label: "Search " + p.DisplayName, Description: p.Description, LibraryIDs: p.LibraryIDs, Capabilities: p.Manifest.Capabilities,
			SearchURITemplate: p.Manifest.SearchURITemplate})
	}
	return out, nil
}

// configured matches the placeholders of a template that the plugin's config fills.
var configured = lazyregexp.New(`\{config\.([A-Za-z0-9_.-]+)\}`)

func (s *service) links(ctx context.Context) (*WebLinks, error) {
	all, err := s.enabled(ctx)
	if err != nil {
		return nil, err
	}
	out := &WebLinks{Providers: []LinkProvider{}}
	for _, p := range all {
		if p.Manifest == nil || p.Manifest.WebLinks == nil {
			continue
		}
		var config map[string]any
		if err := json.Unmarshal(p.Config, &config); err != nil {
			return nil, err
		}
		fill := func(template string) string { return filled(template, config) }
		one := LinkProvider{PluginName: p.Name, DisplayName: p.DisplayName, SeriesLinks: []SeriesLink{}}
		if t := fill(p.Manifest.WebLinks.SearchURLTemplate); leadsOut(t) {
			one.SearchURLTemplate = t
		}
		for _, l := range p.Manifest.WebLinks.SeriesLinks {
			if t := fill(l.URLTemplate); leadsOut(t) {
				one.SeriesLinks = append(one.SeriesLinks, SeriesLink{l.Source, t})
			}
		}
		out.Providers = append(out.Providers, one)
	}
	return out, nil
}

// secret matches names in a config whose values only administrators see.
var secret = lazyregexp.New(`(?i)secret|token|password|key`)

// filled fills the placeholders of a template from a config. A placeholder at the beginning is not escaped: it holds
// the address of a service.
func filled(template string, config map[string]any) string {
	var out strings.Builder
	end := 0
	for _, at := range configured.FindAllStringSubmatchIndex(template, -1) {
		out.WriteString(template[end:at[0]])
		name := template[at[2]:at[3]]
		switch value := automatch.Text(config[name]); {
		case secret.MatchString(name):
		case at[0] == 0:
			out.WriteString(value)
		default:
			out.WriteString(url.PathEscape(value))
		}
		end = at[1]
	}
	return out.String() + template[end:]
}

// leadsOut reports whether a browser may safely open the URLs of a template.
func leadsOut(template string) bool {
	return strings.HasPrefix(template, "https://") || strings.HasPrefix(template, "http://")
}

// outward returns an address that leadsOut accepts, else nil.
func outward(address *string) *string {
	if address == nil || !leadsOut(*address) {
		return nil
	}
	return address
}

func (s *service) execute(ctx context.Context, id uuid.UUID, in *Request) (*Executed, error) {
	p, err := s.load(ctx, id)
	if err != nil {
		return nil, err
	}
	if m := in.Metadata; m != nil && (!slices.Contains([]string{"search", "get", "match"}, m.Action) || m.ContentType != "series" && m.ContentType != "book") {
		return nil, fault.Invalid("action", "must be ping, or metadata with an action (search, get, match) and a contentType (series, book)")
	}
	method, needs, params := "ping", auth.PluginsManage, map[string]any(nil)
	if m := in.Metadata; m != nil {
		method, needs, params = "metadata/"+m.ContentType+"/"+m.Action, auth.SeriesWrite, m.Params
		if m.ContentType == "book" {
			needs = auth.BooksWrite
		}
		if params == nil {
			params = map[string]any{}
		}
		if _, given := params["limit"]; !given && m.Action == "search" && p.SearchResultsLimit != nil {
			params["limit"] = *p.SearchResultsLimit
		}
	}
	switch {
	case !auth.CallerOf(ctx).May(needs):
		return nil, fault.New(fault.Forbidden, "Missing required permission: %s", needs)
	case in.Metadata != nil && p.gives(in.Metadata.ContentType) != nil:
		return nil, p.gives(in.Metadata.ContentType)
	}
	if err := p.usable(); err != nil {
		return nil, err
	}
	var result json.RawMessage
	asked := s.ask(ctx, p, method, params, &result)
	asked.blameless = true
	out := &Executed{Success: asked.fault == nil, Result: result, LatencyMs: asked.took.Milliseconds()}
	if asked.fault != nil {
		out.Error, out.Result = &asked.fault.Message, nil
	}
	return out, s.note(ctx, p, asked)
}
