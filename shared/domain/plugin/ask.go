package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/cut"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/plug"
	"github.com/longbox/longbox/shared/platform/seal"
)

// Error codes of plugins that are not failures, and the one for a method that is not offered (docs/plugins.md).
const (
	notFound       = -32002
	methodNotFound = -32601
)

// mostOfRequest is the time after which a hang counts as a failure of a plugin without a timeout of its own. In the
// cloud, the default of 30 seconds is longer than a request to the api.
const mostOfRequest = 25 * time.Second

// Runner sends requests to plugins and writes the results.
type Runner struct {
	Database *db.DB
	Client   *plug.Client
	Key      *seal.Key
	Publish  events.Publish
	Added    task.Added
}

// runnable is a plugin with what requests to it need.
type runnable struct {
	Plugin
	Credentials []byte    `db:"credentials"`
	Tenant      uuid.UUID `db:"tenant_id"`
	tested      bool      // a test: no limit applies
	hurried     bool      // less time than it may take: a timeout is no failure
	mine        *mine     // the user it acts for; nil: none

	stopped  bool          // the last failure disabled it, which is not published yet
	releases *plug.Known   // data about releases that it may see; nil: none
	said     *plug.Changes // releases in its last response
}

// queueRunnable adds the select of a plugin to the batch.
func queueRunnable(b *pgx.Batch, dst **runnable, id uuid.UUID) {
	db.One(b, dst, "select "+columns+", p.credentials, p.tenant_id from plugin p where p.tenant_id = app.tenant() and p.id = $1", id)
}

// admit takes a token from the plugin's rate limit, if it has one: a bucket that refills within a minute. If it is
// empty, the fault says for how long.
func (r *Runner) admit(ctx context.Context, p *runnable) (*plug.Fault, error) {
	if p.RateLimitRequestsPerMin == nil || p.tested {
		return nil, nil
	}
	wait, err := db.Get[struct {
		Seconds float64 `db:"seconds"`
	}](ctx, r.Database, `with was as (
			select p.id, p.rate_limit, case when p.tokens_at is null then p.rate_limit
			  else least(p.rate_limit, p.tokens + extract(epoch from now() - p.tokens_at)::double precision * p.rate_limit / 60) end as tokens
			from plugin p where p.tenant_id = app.tenant() and p.id = $1 and p.rate_limit is not null for no key update),
		taken as (update plugin p set tokens = was.tokens - 1, tokens_at = now() from was where p.tenant_id = app.tenant() and p.id = was.id and was.tokens >= 1 returning p.id)
		select case when exists (select from taken) then 0 else (1 - was.tokens) * 60 / was.rate_limit end::double precision as seconds from was`, p.ID)
	if err != nil || wait == nil || wait.Seconds <= 0 {
		return nil, err
	}
	f := plug.Failed(plug.Limited, "The plugin %s accepts %d requests a minute", p.Name, *p.RateLimitRequestsPerMin)
	f.RetryAfter = int(math.Ceil(wait.Seconds))
	return f, nil
}

// plugin returns the plugin, or nil.
func (p *runnable) plugin() *Plugin {
	if p == nil {
		return nil
	}
	return &p.Plugin
}

// usable returns why a plugin must not be asked, or nil.
func (p *Plugin) usable() error {
	switch {
	case p == nil:
		return fault.Missing("Plugin")
	case !p.Enabled:
		return fault.New(fault.BadRequest, "The plugin %s is disabled", p.Name)
	}
	return nil
}

// start returns how the plugin's process is started, and the secrets that it receives.
func (r *Runner) start(p *runnable) (start *plug.Start, secrets []string, err error) {
	s := &plug.Start{Tenant: p.Tenant.String(), ID: p.ID.String(), Name: p.Name, Command: p.Command, Args: p.Args, Env: maps.Clone(p.Env),
		Init: map[string]any{"config": p.Config, "adminConfig": p.Config}}
	if s.Env == nil {
		s.Env = map[string]string{}
	}
	if p.WorkingDirectory != nil {
		s.Dir = *p.WorkingDirectory
	}
	if p.LogLevel != nil {
		s.Init["logLevel"] = *p.LogLevel
	}
	if p.mine != nil {
		if secrets, err = p.mine.start(r.Key, p, s); err != nil {
			return nil, nil, err
		}
	}
	secrets = append(secrets, p.confidential()...)
	if p.Credentials == nil {
		return s, secrets, nil
	}
	opened, err := r.Key.Open(owner(p.Tenant, p.ID), p.Credentials)
	if err != nil {
		return nil, nil, fmt.Errorf("read credentials of plugin %s: %w", p.Name, err)
	}
	var texts map[string]string
	if err := json.Unmarshal(opened, &texts); err != nil {
		return nil, nil, fmt.Errorf("read credentials of plugin %s: %w", p.Name, err)
	}
	if p.CredentialDelivery != "init_message" {
		for k, v := range texts {
			if _, own := s.Env[plug.EnvName(k)]; !own || p.mine == nil { // the user's value wins
				s.Env[plug.EnvName(k)] = v
			}
		}
	}
	if p.CredentialDelivery != "env" {
		all := maps.Clone(texts)
		own, _ := s.Init["credentials"].(map[string]string)
		maps.Copy(all, own) // the user's, which win
		s.Init["credentials"] = all
	}
	return s, append(secrets, slices.Collect(maps.Values(texts))...), nil
}

// confidential returns the texts in the plugin's other settings, and in the user's, whose names suggest secrets: some
// hold a key.
func (p *runnable) confidential() (out []string) {
	configs := []json.RawMessage{p.Config}
	if p.mine != nil {
		configs = append(configs, p.mine.Config)
	}
	for _, config := range configs {
		var all any
		_ = json.Unmarshal(config, &all) // validated when it was stored
		out = appendSecrets(out, all, false)
	}
	for name, value := range p.Env {
		if secret.MatchString(name) {
			out = append(out, value)
		}
	}
	return out
}

// appendSecrets appends the texts in v below a name that suggests a secret; named says whether v is below one.
func appendSecrets(out []string, v any, named bool) []string {
	switch v := v.(type) {
	case string:
		if named {
			out = append(out, v)
		}
	case []any:
		for _, item := range v {
			out = appendSecrets(out, item, named)
		}
	case map[string]any:
		for name, item := range v {
			out = appendSecrets(out, item, named || secret.MatchString(name))
		}
	}
	return out
}

// owner is the context to which a plugin's encrypted credentials are bound.
func owner(tenant, id uuid.UUID) string { return tenant.String() + "/plugin/" + id.String() }

// asked is a request to a plugin and its outcome.
type asked struct {
	method    string
	summary   string // the request, for people
	took      time.Duration
	manifest  json.RawMessage
	fault     *plug.Fault
	unsent    bool // held back by the plugin's rate limit
	blameless bool // the caller chose the parameters: an error is no failure
	hurried   bool // it had less time than it may take
}

// ask sends a request to a plugin and decodes the result into dst, unless nil. The caller records the outcome.
func (r *Runner) ask(ctx context.Context, p *runnable, method string, params map[string]any, dst any) *asked {
	began := time.Now()
	out := &asked{method: method, summary: summary(params), hurried: p.hurried}
	defer func() { out.took = time.Since(began) }()
	refusal, err := r.admit(ctx, p)
	if refusal != nil || err != nil {
		out.unsent, out.fault = true, refusal
		if err != nil {
			out.fault = r.redacted(ctx, p, plug.FaultOf(err), nil)
		}
		return out
	}
	start, secrets, err := r.start(p)
	if err != nil {
		slog.ErrorContext(ctx, "request to a plugin failed", "plugin", p.Name, "error", err)
		out.fault = plug.Failed(plug.Unavailable, "The plugin's credentials cannot be read; enter them again")
		return out
	}
	call, enough := plug.Call{Start: start, Method: method, Timeout: 30 * time.Second}, mostOfRequest
	if p.RequestTimeoutSeconds != nil {
		call.Timeout = time.Duration(*p.RequestTimeoutSeconds) * time.Second
		enough = call.Timeout
	}
	if end, ok := ctx.Deadline(); ok && time.Until(end)-plug.Margin < enough {
		out.hurried = true
	}
	if params != nil {
		if call.Params, err = json.Marshal(params); err != nil {
			out.fault = r.redacted(ctx, p, plug.FaultOf(err), nil)
			return out
		}
	}
	call.Known = p.releases
	if p.mine != nil {
		call.Known = p.mine.known()
	}
	answer, err := r.Client.Ask(ctx, call)
	if answer != nil {
		p.said = answer.Changes
	}
	if p.mine != nil && answer != nil {
		p.mine.changed(answer.Changes)
	}
	if err != nil {
		out.fault = r.redacted(ctx, p, plug.FaultOf(err), secrets)
		return out
	}
	out.manifest, out.fault = storable(answer.Manifest)
	switch {
	case out.fault != nil || dst == nil:
	case string(answer.Result) == "null" && strings.HasSuffix(method, "/get"):
		out.fault = &plug.Fault{Code: plug.RPCFailed, RPC: notFound, Message: "its answer is empty"}
	default:
		if err := json.Unmarshal(answer.Result, dst); err != nil {
			out.fault = r.redacted(ctx, p, plug.Failed(plug.RPCFailed, "The answer of the plugin to %s cannot be used: %v", method, plug.Misread(err)), secrets)
		}
	}
	return out
}

// redacted returns a fault that may be shown and stored: shortened, without the plugin's credentials and other secrets,
// which services tend to repeat. Its cause goes to the log.
func (r *Runner) redacted(ctx context.Context, p *runnable, f *plug.Fault, secrets []string) *plug.Fault {
	if f.Err != nil {
		slog.ErrorContext(ctx, "request to a plugin failed", "plugin", p.Name, "error", f.Err)
	}
	out := *f
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) }) // longest first: one may contain another
	for _, secret := range secrets {
		for _, form := range []string{secret, url.QueryEscape(secret)} {
			if len(form) >= 4 {
				out.Message = withoutTail(strings.ReplaceAll(out.Message, form, "…"), form)
			}
		}
	}
	whole := cut.Storable(out.Message)
	out.Message = cut.Chars(whole, 1000)
	if out.Message != whole {
		out.Message += "…"
	}
	return &out
}

// summary describes a request in one line.
func summary(params map[string]any) string {
	parts := make([]string, 0, len(params))
	for _, k := range slices.Sorted(maps.Keys(params)) {
		v := params[k]
		if raw, ok := v.(json.RawMessage); ok { // not byte by byte
			v = string(raw)
		}
		if list := reflect.ValueOf(v); list.Kind() == reflect.Slice { // not item by item
			parts = append(parts, fmt.Sprintf("%d %s", list.Len(), k))
			continue
		}
		parts = append(parts, fmt.Sprintf("%s=%v", k, v))
	}
	return cut.Chars(cut.Storable(strings.Join(parts, " ")), 300)
}
