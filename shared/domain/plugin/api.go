package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/platform/plug"
	"github.com/longbox/longbox/shared/platform/seal"
)

// Status is a plugin after a change, with the result of its test if there was one.
type Status struct {
	Plugin               *Plugin `json:"plugin"`
	Message              string  `json:"message"`
	HealthCheckPerformed bool    `json:"healthCheckPerformed"`
	HealthCheckPassed    *bool   `json:"healthCheckPassed"`
	HealthCheckLatencyMs *int64  `json:"healthCheckLatencyMs" minimum:"0"`
	HealthCheckError     *string `json:"healthCheckError"`
}

// TestResult says whether a plugin responds.
type TestResult struct {
	Success   bool      `json:"success"`
	Message   string    `json:"message"`
	LatencyMs *int64    `json:"latencyMs"`
	Manifest  *Manifest `json:"manifest"`
}

// Health is the health of a plugin.
type Health struct {
	PluginID       uuid.UUID  `json:"pluginId"`
	Name           string     `json:"name"`
	Enabled        bool       `json:"enabled"`
	HealthStatus   string     `json:"healthStatus" enum:"unknown,healthy,degraded,unhealthy,disabled"`
	FailureCount   int32      `json:"failureCount"`
	DisabledReason *string    `json:"disabledReason"`
	LastFailureAt  *time.Time `json:"lastFailureAt"`
	LastSuccessAt  *time.Time `json:"lastSuccessAt"`
}

// HealthAnswer wraps Health.
type HealthAnswer struct {
	Health Health `json:"health"`
}

// Failures is a page of a plugin's failures, with their count within the window that can disable it.
type Failures struct {
	httpapi.Page[Failure]
	WindowFailures int64 `json:"windowFailures" doc:"Number of failures within the window"`
	WindowSeconds  int64 `json:"windowSeconds"`
	Threshold      int32 `json:"threshold" doc:"Number of failures within the window that disables the plugin"`
}

// service holds the dependencies of the operations.
type service struct{ *Runner }

// Routes registers the operations on plugins.
func Routes(a *httpapi.API, d *db.DB, client *plug.Client, key *seal.Key, publish events.Publish, added task.Added) {
	s := &service{&Runner{d, client, key, publish, added}}
	s.adminRoutes(a)
	s.stateRoutes(a)
	s.useRoutes(a)
	s.seriesRoutes(a)
	s.bookRoutes(a)
	s.matchRoutes(a)
	s.userRoutes(a)
	s.signInRoutes(a)
	s.syncRoutes(a)
	s.recommendRoutes(a)
	s.storageRoutes(a)
	s.jobRoutes(a)
}

func administration(method, path, id, summary string) httpapi.Op {
	// OnlyIfSeesAll: failure texts name series.
	return httpapi.Op{Method: method, Path: "/api/v1/admin/plugins" + path, ID: id, Summary: summary, Tag: "Plugins", Permission: auth.PluginsManage}.OnlyIfSeesAll()
}

// tell publishes that a plugin was created, updated, enabled, disabled or deleted.
func (s *service) tell(ctx context.Context, what string, id uuid.UUID) {
	s.Publish(ctx, httpapi.TenantOf(ctx).ID, events.Plugin(what, id))
}

// done publishes a change unless it has failed.
func (s *service) done(ctx context.Context, what string, id uuid.UUID, err error) error {
	if err == nil {
		s.tell(ctx, what, id)
	}
	return err
}

func (s *service) adminRoutes(a *httpapi.API) {
	httpapi.Register(a, administration("GET", "", "listPlugins", "List the plugins by name"),
		func(ctx context.Context, in *struct{ httpapi.Paging }) (*httpapi.Page[Plugin], error) {
			page, total, err := list(ctx, s.Database, in.Limit(), in.Offset())
			if err != nil {
				return nil, err
			}
			return httpapi.NewPage(ctx, in.Paging, page, total), nil
		})
	create := administration("POST", "", "createPlugin", "Create a plugin; an enabled one is tested at once")
	create.Status = 201
	httpapi.Register(a, create, func(ctx context.Context, in *struct{ Body NewBody }) (*Status, error) { return s.create(ctx, &in.Body) })
	httpapi.Register(a, administration("GET", "/{id}", "getPlugin", "Get a plugin"),
		func(ctx context.Context, in *httpapi.IDInput) (*Plugin, error) { return get(ctx, s.Database, in.ID) })
	httpapi.Register(a, administration("PATCH", "/{id}", "updatePlugin", "Update a plugin; fields that are not sent stay unchanged"),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			Body Fields
		}) (*Plugin, error) {
			p, err := s.update(ctx, in.ID, &in.Body)
			return p, s.done(ctx, "updated", in.ID, err)
		})
	httpapi.Register(a, administration("DELETE", "/{id}", "deletePlugin", "Delete a plugin; metadata that it provided for series and books is kept"),
		func(ctx context.Context, in *httpapi.IDInput) (*httpapi.None, error) {
			return nil, s.done(ctx, "deleted", in.ID, remove(ctx, s.Database, in.ID))
		})
}

// sealed returns the encrypted credentials of an input; changed reports whether the input sets or clears them.
func (s *service) sealed(tenant, id uuid.UUID, f *Fields) (credentials []byte, changed bool, err error) {
	secret, changed, err := f.credentials()
	if err != nil || secret == nil {
		return nil, changed, err
	}
	credentials, err = s.Key.Seal(owner(tenant, id), secret)
	return credentials, true, err
}

func (s *service) create(ctx context.Context, in *NewBody) (*Status, error) {
	p := &Plugin{ID: uuid.Must(uuid.NewV7()), Name: in.Name, PluginType: in.PluginType, Enabled: in.Enabled, Config: json.RawMessage(`{}`), Env: map[string]string{},
		DisplayName: in.Name, UseExistingExternalID: true}
	in.Fields.Command = httpapi.Optional[string]{Set: true, Value: &in.Command}
	if err := in.apply(p, s.Client.Commands); err != nil {
		return nil, err
	}
	tenant := httpapi.TenantOf(ctx).ID
	credentials, _, err := s.sealed(tenant, p.ID, &in.Fields)
	if err != nil {
		return nil, err
	}
	p, err = add(ctx, s.Database, p, credentials)
	if err != nil {
		return nil, err
	}
	s.tell(ctx, "created", p.ID)
	if !p.Enabled {
		return &Status{Plugin: p, Message: "The plugin was added; it is not enabled"}, nil
	}
	return s.checked(ctx, &runnable{Plugin: *p, Credentials: credentials, Tenant: tenant}, "The plugin was added and enabled")
}

// try asks a plugin whether it responds, and records that and the sources that it names: its process names them only
// before its first call. It returns the plugin as it is then.
func (s *service) try(ctx context.Context, p *runnable) (ping *asked, now *Plugin, err error) {
	p.tested, p.releases = true, &plug.Known{Releases: &plug.Releases{}}
	ping = s.ask(ctx, p, "ping", nil, nil)
	noting, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTime)
	defer cancel()
	var b pgx.Batch
	queueOutcome(&b, p, ping)
	p.queueSources(&b, ping)
	db.One(&b, &now, selectShown, p.ID)
	now, err = found(now, s.noted(noting, p, s.Database.Run(noting, &b)))
	return ping, now, err
}

// checked tests whether a plugin responds.
func (s *service) checked(ctx context.Context, p *runnable, message string) (*Status, error) {
	ping, now, err := s.try(ctx, p)
	if err != nil {
		return nil, err
	}
	passed, took := ping.fault == nil, ping.took.Milliseconds()
	out := &Status{Plugin: now, Message: message, HealthCheckPerformed: true, HealthCheckPassed: &passed, HealthCheckLatencyMs: &took}
	if !passed {
		out.Message += ", but it does not answer"
		out.HealthCheckError = &ping.fault.Message
	}
	return out, nil
}

func (s *service) stateRoutes(a *httpapi.API) {
	httpapi.Register(a, administration("POST", "/{id}/enable", "enablePlugin", "Enable a plugin and test whether it responds"),
		func(ctx context.Context, in *httpapi.IDInput) (*Status, error) {
			p, err := db.Get[runnable](ctx, s.Database, "update plugin p set "+enabling+", updated_at = now() where p.tenant_id = app.tenant() and p.id = $1 returning "+runnableCols, in.ID)
			if err == nil && p == nil {
				err = fault.Missing("Plugin")
			}
			if err := s.done(ctx, "enabled", in.ID, err); err != nil {
				return nil, err
			}
			return s.checked(ctx, p, "The plugin is enabled")
		})
	for _, c := range []struct{ path, id, summary, set, event, message string }{
		{path: "/{id}/disable", id: "disablePlugin", summary: "Disable a plugin; it receives no more requests", set: disabling, event: "disabled", message: "The plugin is disabled"},
		{path: "/{id}/reset", id: "resetPlugin", summary: "Reset the failure state of a plugin; its failures stay listed", set: resetting, event: "updated",
			message: "The failure state is reset"},
	} {
		httpapi.Register(a, administration("POST", c.path, c.id, c.summary), func(ctx context.Context, in *httpapi.IDInput) (*Status, error) {
			p, err := change(ctx, s.Database, in.ID, c.set)
			return &Status{Plugin: p, Message: c.message}, s.done(ctx, c.event, in.ID, err)
		})
	}
	httpapi.Register(a, administration("POST", "/{id}/test", "testPlugin", "Test whether a plugin responds; works for disabled plugins, too"),
		func(ctx context.Context, in *httpapi.IDInput) (*TestResult, error) { return s.test(ctx, in.ID) })
	httpapi.Register(a, administration("GET", "/{id}/health", "getPluginHealth", "Get the health of a plugin"),
		func(ctx context.Context, in *httpapi.IDInput) (*HealthAnswer, error) {
			p, err := get(ctx, s.Database, in.ID)
			if err != nil {
				return nil, err
			}
			return &HealthAnswer{Health{PluginID: p.ID, Name: p.Name, Enabled: p.Enabled, HealthStatus: p.HealthStatus, FailureCount: p.FailureCount,
				DisabledReason: p.DisabledReason, LastFailureAt: p.LastFailureAt, LastSuccessAt: p.LastSuccessAt}}, nil
		})
	httpapi.Register(a, administration("GET", "/{id}/failures", "listPluginFailures", "List the failures of a plugin in the last 30 days, latest first"),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			httpapi.Paging
		}) (*Failures, error) {
			page, total, recent, err := failures(ctx, s.Database, in.ID, in.Limit(), in.Offset())
			if err != nil {
				return nil, err
			}
			return &Failures{*httpapi.NewPage(ctx, in.Paging, page, total), recent, int64(window.Seconds()), threshold}, nil
		})
}

func (s *service) test(ctx context.Context, id uuid.UUID) (*TestResult, error) {
	p, err := s.load(ctx, id)
	if err != nil {
		return nil, err
	}
	ping, _, err := s.try(ctx, p)
	if err != nil {
		return nil, err
	}
	if ping.fault != nil {
		return &TestResult{Message: ping.fault.Message}, nil
	}
	took := ping.took.Milliseconds()
	out := &TestResult{Success: true, LatencyMs: &took, Manifest: &Manifest{}}
	if err := json.Unmarshal(ping.manifest, out.Manifest); err != nil {
		return &TestResult{Message: fmt.Sprintf("The plugin's manifest cannot be read: %v", err)}, nil
	}
	out.Message = fmt.Sprintf("%s %s answers", out.Manifest.Name, out.Manifest.Version)
	return out, nil
}

// load reads a plugin for requests to it; NotFound if there is none.
func (r *Runner) load(ctx context.Context, id uuid.UUID) (*runnable, error) {
	var b pgx.Batch
	var p *runnable
	queueRunnable(&b, &p, id)
	if err := r.Database.Run(ctx, &b); err != nil {
		return nil, err
	}
	if p == nil {
		return nil, fault.Missing("Plugin")
	}
	p.shown()
	return p, nil
}
