package plugin

import (
	"context"
	"encoding/json"
	"errors"
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

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/plug"
	"github.com/longbox/longbox/shared/platform/seal"
)

// The codes of plugins' errors that are no failure of theirs, and the one that says that a method is not offered
// (docs/plugins.md).
const (
	notFound       = -32002
	methodNotFound = -32601
)

// Runner asks plugins, and writes what they say.
type Runner struct {
	Database *db.DB
	Client   *plug.Client
	Key      *seal.Key
	Publish  task.Publish
	Added    task.Added
}

// runnable is a plugin with what it takes to ask it.
type runnable struct {
	Plugin
	Credentials []byte    `db:"credentials"`
	Tenant      uuid.UUID `db:"tenant_id"`
	tested      bool      // only whether it answers: no limit applies
	hurried     bool      // it is given less time than it may take: that it does not answer is no failure
	mine        *mine     // for whom it is asked; nil: for nobody

	stopped  bool          // the last failure was one too many: it was disabled, and nobody was told yet
	releases *plug.Known   // what it may know of releases; nil: nothing
	said     *plug.Changes // what it has said of them in its last answer
}

// queueRunnable reads a plugin.
func queueRunnable(b *pgx.Batch, dst **runnable, id uuid.UUID) {
	db.One(b, dst, "select "+columns+", p.credentials, p.tenant_id from plugin p where p.tenant_id = app.tenant() and p.id = $1", id)
}

// admit takes a request from the plugin's rate limit, if it has one: a bucket that fills within a minute. Where it is
// empty it says for how long.
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
	f := plug.Failed(plug.Limited, "The plugin %s takes %d requests a minute", p.Name, *p.RateLimitRequestsPerMin)
	f.RetryAfter = int(math.Ceil(wait.Seconds))
	return f, nil
}

// plugin is the plugin itself, nil of none.
func (p *runnable) plugin() *Plugin {
	if p == nil {
		return nil
	}
	return &p.Plugin
}

// usable says why a plugin is not to be asked, nil where it is.
func (p *Plugin) usable() error {
	switch {
	case p == nil:
		return fault.Missing("Plugin")
	case !p.Enabled:
		return fault.New(fault.BadRequest, "The plugin %s is disabled", p.Name)
	}
	return nil
}

// start is how the plugin's process is started, and what it is told that nobody else is to know.
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
	if p.Credentials == nil {
		return s, secrets, nil
	}
	secret, err := r.Key.Open(owner(p.Tenant, p.ID), p.Credentials)
	if err != nil {
		return nil, nil, fmt.Errorf("credentials of the plugin %s: %w", p.Name, err)
	}
	var texts map[string]string
	if err := json.Unmarshal(secret, &texts); err != nil {
		return nil, nil, fmt.Errorf("credentials of the plugin %s: %w", p.Name, err)
	}
	if p.CredentialDelivery != "init_message" {
		for k, v := range texts {
			if _, own := s.Env[plug.EnvName(k)]; !own || p.mine == nil { // the user's count
				s.Env[plug.EnvName(k)] = v
			}
		}
	}
	if p.CredentialDelivery != "env" {
		all, _ := s.Init["credentials"].(map[string]string) // the user's, which count
		s.Init["credentials"] = merged(texts, all)
	}
	return s, append(secrets, slices.Collect(maps.Values(texts))...), nil
}

// merged are two sets of texts, of which the second counts.
func merged(texts, over map[string]string) map[string]string {
	out := maps.Clone(texts)
	maps.Copy(out, over)
	return out
}

// owner is what a plugin's credentials are sealed for.
func owner(tenant, id uuid.UUID) string { return tenant.String() + "/plugin/" + id.String() }

// asked is a request that a plugin was asked, and how that went.
type asked struct {
	method    string
	summary   string // what was asked for, for people
	took      time.Duration
	manifest  json.RawMessage
	fault     *plug.Fault
	unsent    bool // by the plugin's rate limit
	blameless bool // who asked chose the parameters: an error is no failure
	hurried   bool // it had less time than it may take
}

// ask sends a request to a plugin. Its result goes into dst, unless that is nil. How it went is to be noted.
func (r *Runner) ask(ctx context.Context, p *runnable, method string, params map[string]any, dst any) *asked {
	began := time.Now()
	out := &asked{method: method, summary: summary(params), hurried: p.hurried}
	defer func() { out.took = time.Since(began) }()
	refusal, err := r.admit(ctx, p)
	if refusal != nil || err != nil {
		out.unsent, out.fault = true, refusal
		if err != nil {
			out.fault = r.told(ctx, p, plug.FaultOf(err), nil)
		}
		return out
	}
	start, secrets, err := r.start(p)
	if err != nil {
		slog.ErrorContext(ctx, "a plugin cannot be asked", "plugin", p.Name, "error", err)
		out.fault = plug.Failed(plug.Unavailable, "The plugin's credentials cannot be read; enter them again")
		return out
	}
	call := plug.Call{Start: start, Method: method, Timeout: 30 * time.Second}
	if p.RequestTimeoutSeconds != nil {
		call.Timeout = time.Duration(*p.RequestTimeoutSeconds) * time.Second
	}
	if params != nil {
		if call.Params, err = json.Marshal(params); err != nil {
			out.fault = r.told(ctx, p, plug.FaultOf(err), nil)
			return out
		}
	}
	if call.Known = p.releases; p.mine != nil {
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
		out.fault = r.told(ctx, p, plug.FaultOf(err), secrets)
		return out
	}
	out.manifest, out.fault = storable(answer.Manifest)
	switch {
	case out.fault != nil || dst == nil:
	case string(answer.Result) == "null" && strings.HasSuffix(method, "/get"):
		out.fault = &plug.Fault{Code: plug.RPCFailed, RPC: notFound, Message: "it answers with nothing"}
	default:
		if err := json.Unmarshal(answer.Result, dst); err != nil {
			out.fault = r.told(ctx, p, plug.Failed(plug.RPCFailed, "The answer of the plugin to %s cannot be used: %v", method, err), secrets)
		}
	}
	return out
}

// told is a fault as it may be shown and stored: of bounded length, without the plugin's credentials, which services
// like to repeat. Its cause goes to the log.
func (r *Runner) told(ctx context.Context, p *runnable, f *plug.Fault, secrets []string) *plug.Fault {
	if f.Err != nil {
		slog.ErrorContext(ctx, "a plugin cannot be asked", "plugin", p.Name, "error", f.Err)
	}
	out := *f
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) }) // one may have another within
	for _, secret := range secrets {
		for _, form := range []string{secret, url.QueryEscape(secret)} {
			if len(form) >= 4 {
				out.Message = withoutTail(strings.ReplaceAll(out.Message, form, "…"), form)
			}
		}
	}
	if r := []rune(clean(out.Message)); len(r) > 1000 {
		out.Message = string(r[:1000]) + "…"
	} else {
		out.Message = string(r)
	}
	return &out
}

// withoutTail is a text that was perhaps cut off within a secret, without the beginning of that.
func withoutTail(text, secret string) string {
	whole := strings.TrimRight(text, "…)")
	for n := len(secret) - 1; n >= 4; n-- {
		if strings.HasSuffix(whole, secret[:n]) {
			return strings.TrimSuffix(whole, secret[:n]) + "…"
		}
	}
	return text
}

// summary is what a request asked for, one line.
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
	text := []rune(strings.ReplaceAll(strings.Join(parts, " "), "\x00", ""))
	return string(text[:min(len(text), 300)])
}

// noteTime bounds noting how a request went.
const noteTime = 5 * time.Second

// counts tells whether the plugin is to blame: not for what it does not know, has no time for or does not offer, nor
// where it could not be asked.
func (a *asked) counts() bool {
	f := a.fault
	switch {
	case f == nil || a.unsent || f.Code == plug.Limited || f.Code == plug.Unavailable || f.Code == plug.FetchFailed:
		return false
	case f.Code == plug.TimedOut && a.hurried:
		return false
	case f.Code == plug.RPCFailed:
		return !a.blameless && f.RPC != notFound && f.RPC != methodNotFound
	}
	return true
}

// queueOutcome notes how requests to a plugin went.
func queueOutcome(b *pgx.Batch, p *runnable, all ...*asked) {
	queueCounts(b, p, all...)
	if p.mine != nil {
		p.mine.queueOutcome(b, all...)
		return
	}
	p.stopped = false
	for _, a := range all {
		switch {
		case a.fault == nil:
			b.Queue(`update plugin set health_status = case when enabled then 'healthy' else health_status end, failure_count = 0, last_success_at = now(),
				disabled_reason = case when enabled then null else disabled_reason end, manifest = coalesce($2::jsonb, manifest)
				where tenant_id = app.tenant() and id = $1`, p.ID, a.manifest)
		case a.counts():
			queueFailure(b, p.ID, a, &p.stopped)
		}
	}
}

// queueCounts counts requests to a plugin.
func queueCounts(b *pgx.Batch, p *runnable, all ...*asked) {
	b.Queue("select from plugin where tenant_id = app.tenant() and id = $1 for no key update", p.ID) // first, as by who deletes it
	all = slices.SortedFunc(slices.Values(all), func(a, b *asked) int { return strings.Compare(a.method, b.method) })
	for _, a := range all {
		sent, failed, refused := 1, 0, 0
		if a.fault != nil {
			failed = 1
		}
		if a.unsent {
			sent, failed = 0, 0
		}
		if a.fault != nil && a.fault.Code == plug.Limited {
			refused = 1
		}
		b.Queue(`insert into plugin_method as m (tenant_id, plugin_id, method, requests, failed, refused, total_ms)
			select app.tenant(), id, $2, $3::bigint, $4::bigint, $5::bigint, $6::double precision from plugin where tenant_id = app.tenant() and id = $1
			on conflict (tenant_id, plugin_id, method) do update set requests = m.requests + excluded.requests, failed = m.failed + excluded.failed,
			  refused = m.refused + excluded.refused, total_ms = m.total_ms + excluded.total_ms`, p.ID, a.method, sent, failed, refused,
			float64(a.took.Microseconds())/1000*float64(sent))
	}
}

// queueFailure notes a failure, and disables the plugin where it was one too many; stopped is true then.
func queueFailure(b *pgx.Batch, id uuid.UUID, a *asked, stopped *bool) {
	b.Queue(`insert into plugin_failure (tenant_id, id, plugin_id, code, message, method, request_summary)
		select app.tenant(), gen_random_uuid(), id, $2, $3, $4, nullif($5, '') from plugin where tenant_id = app.tenant() and id = $1`,
		id, a.fault.Code, a.fault.Message, a.method, a.summary)
	b.Queue(`with recent as (
			select count(*) >= $2 as many, bool_and(p.enabled) as was from plugin_failure f join plugin p on p.tenant_id = f.tenant_id and p.id = f.plugin_id
			where f.tenant_id = app.tenant() and f.plugin_id = $1 and f.occurred_at > greatest(now() - $3::interval, p.counted_from))
		update plugin p set failure_count = p.failure_count + 1, last_failure_at = now(), enabled = p.enabled and not many,
		  health_status = case when p.enabled and not many then 'unhealthy' else 'disabled' end,
		  disabled_reason = case when p.enabled and many then $4 || $5 when p.enabled then $5 else coalesce(p.disabled_reason, $5) end
		from recent where p.tenant_id = app.tenant() and p.id = $1 returning coalesce(many and was, false)`, id, threshold, window,
		fmt.Sprintf("Disabled after %d failures within an hour; the last: ", threshold), a.fault.Message).QueryRow(func(row pgx.Row) error {
		var now bool
		if err := row.Scan(&now); err != nil && !errors.Is(err, pgx.ErrNoRows) { // it may be deleted
			return err
		}
		*stopped = *stopped || now
		return nil
	})
	b.Queue(`delete from plugin_failure where tenant_id = app.tenant() and plugin_id = $1 and (occurred_at < now() - $2::interval or id in (
		select f.id from plugin_failure f where f.tenant_id = app.tenant() and f.plugin_id = $1 order by f.occurred_at desc offset $3))`, id, keptFor, mostFailures)
}

// maxDepth bounds how deep what is stored lies within itself: the database's own bound is a matter of its stack.
const maxDepth = 100

// storable is a manifest that the database takes and that can be read again: what plugins write may hold NUL, halves of
// characters, or other types than a manifest has.
func storable(raw json.RawMessage) (json.RawMessage, *plug.Fault) {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, plug.Failed(plug.InitFailed, "The plugin's manifest cannot be read: %v", err)
	}
	data, err := json.Marshal(cleaned(v))
	if err == nil {
		err = json.Unmarshal(data, &Manifest{})
	}
	if err == nil && depth(v) > maxDepth {
		err = errors.New("it is too deep")
	}
	if err != nil {
		return nil, plug.Failed(plug.InitFailed, "The plugin's manifest cannot be used: %v", err)
	}
	return data, nil
}

// depth is how many lists and objects of a value lie within each other.
func depth(v any) (n int) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			n = max(n, depth(e))
		}
		return n + 1
	case map[string]any:
		for _, e := range v {
			n = max(n, depth(e))
		}
		return n + 1
	}
	return 0
}

func cleaned(v any) any {
	switch v := v.(type) {
	case string:
		return clean(v)
	case []any:
		for i := range v {
			v[i] = cleaned(v[i])
		}
	case map[string]any:
		for _, k := range slices.Collect(maps.Keys(v)) {
			e := v[k]
			delete(v, k)
			v[clean(k)] = cleaned(e)
		}
	}
	return v
}

// clean is a text that the database can store.
func clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "�"), "\x00", "")
}

// note writes how requests went where there is nothing else to write, also where who asked has left.
func (r *Runner) note(ctx context.Context, p *runnable, all ...*asked) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTime)
	defer cancel()
	var b pgx.Batch
	queueOutcome(&b, p, all...)
	return r.noted(ctx, p, r.Database.Run(ctx, &b))
}

// noted tells what a batch has made of a plugin, unless that has failed.
func (r *Runner) noted(ctx context.Context, p *runnable, err error) error {
	if err == nil && p.stopped {
		p.stopped = false
		r.Publish(ctx, p.Tenant, events.Plugin("disabled", p.ID))
	}
	return p.kept(err)
}

// kept forgets the changes that a batch has written, unless that has failed.
func (p *runnable) kept(err error) error {
	if err == nil && p.mine != nil {
		p.mine.keeping = nil
	}
	return err
}

// write writes what a plugin has said, and how it was asked: the latter also where the former fails.
func (r *Runner) write(ctx context.Context, p *runnable, b *pgx.Batch, all ...*asked) error {
	queueOutcome(b, p, all...)
	err := r.noted(ctx, p, r.Database.Run(ctx, b))
	if err == nil {
		return nil
	}
	if noted := r.note(ctx, p, all...); noted != nil {
		slog.ErrorContext(ctx, "how a plugin was asked is not noted", "plugin", p.Name, "error", noted)
	}
	return err
}

// limit is that a plugin's own rate limit leaves no room, for so many seconds; found is what it was to be asked for.
type limit struct {
	error
	wait  int
	found string
}

// Unwrap is the fault that it is.
func (l *limit) Unwrap() error { return l.error }

// refused is what keeps an answer away, as the interface says it.
func (a *asked) refused() error {
	f := a.fault
	if f != nil && a.unsent && f.Code == plug.Limited {
		return &limit{error: said(f), wait: f.RetryAfter}
	}
	return said(f)
}

func said(f *plug.Fault) error {
	switch {
	case f == nil:
		return nil
	case f.RPC == notFound:
		return fault.New(fault.NotFound, "The plugin does not know that: %s", f.Message)
	case f.Code == plug.Limited:
		e := fault.New(fault.TooManyRequests, "%s", f.Message)
		e.RetryAfter = time.Duration(max(f.RetryAfter, 1)) * time.Second
		return e
	}
	e := fault.New(fault.Unavailable, "%s", f.Message)
	e.RetryAfter = 30 * time.Second
	return e
}

// errNoted is the fault of a request, after it was noted.
func (r *Runner) errNoted(ctx context.Context, p *runnable, a *asked) error {
	if err := r.note(ctx, p, a); err != nil {
		return err
	}
	return a.refused()
}
