package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/platform/plug"
)

// Started names the task that a command has started.
type Started struct {
	TaskID  uuid.UUID `json:"taskId"`
	Message string    `json:"message"`
}

// SyncStatus is how a plugin keeps the caller's progress in step.
type SyncStatus struct {
	PluginID      uuid.UUID  `json:"pluginId"`
	PluginName    string     `json:"pluginName"`
	Connected     bool       `json:"connected"`
	Enabled       bool       `json:"enabled"`
	HealthStatus  string     `json:"healthStatus" enum:"unknown,healthy,degraded,unhealthy,disabled"`
	FailureCount  int32      `json:"failureCount"`
	LastFailureAt *time.Time `json:"lastFailureAt"`
	LastSuccessAt *time.Time `json:"lastSuccessAt"`
	LastSyncAt    *time.Time `json:"lastSyncAt"`
	ExternalCount *int32     `json:"externalCount" doc:"With live: what the service has of the caller"`
	PendingPush   *int32     `json:"pendingPush"`
	PendingPull   *int32     `json:"pendingPull"`
	Conflicts     *int32     `json:"conflicts"`
	LiveError     *string    `json:"liveError" doc:"Why the plugin has not told them"`
}

// SyncResult is what a synchronisation has done.
type SyncResult struct {
	PluginID         uuid.UUID `json:"pluginId"`
	UserID           uuid.UUID `json:"userId"`
	ExternalUsername *string   `json:"externalUsername"`
	Pulled           int       `json:"pulled"`  // entries of the service
	Matched          int       `json:"matched"` // of them, those of series here
	Applied          int       `json:"applied"` // series here that were changed by them
	Pushed           int       `json:"pushed"`  // entries that the service has taken
	PushFailures     int       `json:"pushFailures"`
	PullIncomplete   bool      `json:"pullIncomplete"`
	PullError        *string   `json:"pullError"`
	PushError        *string   `json:"pushError"`
	SkippedReason    *string   `json:"skippedReason"`
}

func (p *Plugin) noSync() error {
	return fault.New(fault.BadRequest, "The plugin %s does not synchronise progress", p.Name)
}

func (s *service) syncRoutes(a *httpapi.API) {
	httpapi.Register(a, userOp("POST", "/{pluginId}/sync", "syncUserPlugin", "Bring the caller's progress in step with a plugin's service, by a task"),
		func(ctx context.Context, in *UserInput) (*Started, error) { return s.startSync(ctx, in.PluginID) })
	httpapi.Register(a, userOp("GET", "/{pluginId}/sync/status", "getUserPluginSync", "How a plugin keeps the caller's progress in step"),
		func(ctx context.Context, in *struct {
			UserInput
			Live bool `query:"live" doc:"Ask the plugin, too"`
		}) (*SyncStatus, error) {
			return s.syncStatus(ctx, in.PluginID, in.Live)
		})
}

func (s *service) startSync(ctx context.Context, plugin uuid.UUID) (*Started, error) {
	p, err := s.own(ctx, plugin)
	if err != nil {
		return nil, err
	}
	if !p.forUsers().ReadSync {
		return nil, p.noSync()
	}
	if err := p.ready(); err != nil {
		return nil, err
	}
	var b pgx.Batch
	id, fresh, err := enqueueFor(&b, syncColumn, p.mine)
	if err != nil {
		return nil, err
	}
	if err := s.Database.Run(ctx, &b); err != nil {
		return nil, err
	}
	if !fresh() {
		return nil, fault.New(fault.Conflict, "Progress is being brought in step with the plugin %s already", p.Name)
	}
	s.Added.Tell(ctx, httpapi.TenantOf(ctx).ID)
	return &Started{*id, "Progress is brought in step with " + p.DisplayName}, nil
}

func (s *service) syncStatus(ctx context.Context, plugin uuid.UUID, live bool) (*SyncStatus, error) {
	p, err := s.own(ctx, plugin)
	if err != nil {
		return nil, err
	}
	m := p.mine
	out := &SyncStatus{PluginID: p.ID, PluginName: p.Name, Connected: p.connected(m), Enabled: m.Enabled && p.Enabled, HealthStatus: m.HealthStatus,
		FailureCount: m.FailureCount, LastFailureAt: m.LastFailureAt, LastSuccessAt: m.LastSuccessAt, LastSyncAt: m.LastSyncAt}
	if !p.Enabled {
		out.HealthStatus = "disabled"
	}
	if !live {
		return out, nil
	}
	why := func(err error) (*SyncStatus, error) {
		text := err.Error()
		out.LiveError = &text
		return out, nil
	}
	if err := p.ready(); err != nil {
		return why(err)
	}
	if err := s.freshen(ctx, p); err != nil {
		return why(err)
	}
	var told struct{ ExternalCount, PendingPush, PendingPull, Conflicts *int32 }
	asked := s.ask(ctx, p, "sync/status", map[string]any{}, &told)
	if err := s.note(ctx, p, asked); err != nil {
		return nil, err
	}
	if asked.fault != nil {
		return why(asked.fault)
	}
	out.ExternalCount, out.PendingPush, out.PendingPull, out.Conflicts = told.ExternalCount, told.PendingPush, told.PendingPull, told.Conflicts
	return out, nil
}

// syncPlace is where a synchronisation goes on.
type syncPlace struct {
	Told     bool       `json:"told"` // all of the service was taken over
	Cursor   string     `json:"cursor"`
	Parts    int        `json:"parts"`
	After    uuid.UUID  `json:"after"` // the last series that the service was told of
	Refusals int        `json:"refusals"`
	Result   SyncResult `json:"result"`
}

// Sync is the handler of user_plugin_sync tasks: what the service knows is taken over first, so that what is told to it
// has that, too. It goes on part by part, and makes way for others between them.
func (r *Runner) Sync(ctx context.Context, h task.Held) (any, error) {
	worker := ctx
	ctx, p, in, err := r.forTask(ctx, h)
	if err != nil {
		return nil, err
	}
	if !p.forUsers().ReadSync {
		return nil, p.noSync()
	}
	host := p.mine.host()
	at := syncPlace{Result: SyncResult{PluginID: p.ID, UserID: in.UserID}, Told: host.mode == onlyPush}
	if err := h.Resume(&at); err != nil {
		return nil, err
	}
	if at.Parts == 0 && at.After == uuid.Nil {
		if err := r.introduce(ctx, p, &at.Result); err != nil {
			return later(err, &at, &at.Refusals)
		}
	}
	for more := true; more; {
		if more, err = r.part(ctx, p, host, &at); err != nil {
			return later(err, &at, &at.Refusals)
		}
		done := int64(at.Result.Pulled + at.Result.Pushed + at.Result.PushFailures)
		var b pgx.Batch
		if err := task.QueueProgress(&b, h, done, 0, at); err != nil {
			return nil, err
		}
		if err := r.Database.Run(ctx, &b); err != nil {
			return nil, err
		}
		if more && task.MustPause(worker) {
			return nil, task.Paused(at)
		}
	}
	return r.finish(ctx, p, host, &at.Result)
}

// part takes over, or tells, one part, and tells whether there is another. What the plugin refuses ends its half.
func (r *Runner) part(ctx context.Context, p *runnable, host hostConfig, at *syncPlace) (more bool, err error) {
	if !at.Told {
		more, err := r.pull(ctx, p, host, at)
		if at.Result.PullError, err = inResult(err); err != nil {
			return false, err
		}
		at.Told = !more
		return more || host.mode != onlyPull, nil
	}
	more, err = r.push(ctx, p, host, at)
	at.Result.PushError, err = inResult(err)
	return more, err
}

// introduce asks who the user is at the service, which tells early that they are nobody there.
func (r *Runner) introduce(ctx context.Context, p *runnable, out *SyncResult) error {
	who, asked := r.whoIs(ctx, p)
	if asked == nil {
		return nil
	}
	var b pgx.Batch
	queueOutcome(&b, p, asked)
	if asked.fault == nil {
		out.ExternalUsername = who.username()
		b.Queue(`update user_plugin set external_username = coalesce($2, external_username), external_avatar_url = coalesce($3, external_avatar_url)
			where tenant_id = app.tenant() and id = $1`, p.mine.ID, out.ExternalUsername, outward(who.AvatarURL))
	}
	if err := r.Database.Run(ctx, &b); err != nil {
		return err
	}
	if asked.fault != nil && asked.fault.RPC != methodNotFound {
		return asked.refused()
	}
	return nil
}

// finish keeps what came of a synchronisation. It has failed where nothing came of it.
func (r *Runner) finish(ctx context.Context, p *runnable, host hostConfig, out *SyncResult) (any, error) {
	data, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	if _, err := db.Exec(ctx, r.Database, "update user_plugin set last_sync_at = now(), last_sync_result = $2 where tenant_id = app.tenant() and id = $1", p.mine.ID, data); err != nil {
		return nil, err
	}
	why := out.PushError
	if why == nil || host.mode == onlyPull {
		why = out.PullError
	}
	if why != nil && (host.mode != inBoth || out.PullError != nil && out.PushError != nil) {
		return nil, fault.New(fault.BadRequest, "Progress was not brought in step: %s", *why)
	}
	return out, nil
}

// refusal is what a plugin has not done; that the plugin is to be asked later is none.
type refusal struct{ error }

// Unwrap is the cause.
func (r *refusal) Unwrap() error { return r.error }

// inResult is an error that belongs into the result. Others end the task, or let it go on later.
func inResult(err error) (*string, error) {
	var no *refusal
	if !errors.As(err, &no) {
		return nil, err
	}
	text := no.Error()
	return &text, nil
}

// outcome notes how a request went, in the batch that writes what came of it; what the plugin refuses is a refusal.
func (r *Runner) outcome(ctx context.Context, p *runnable, a *asked) error {
	err := r.errNoted(ctx, p, a)
	if a.fault == nil || a.fault.Code == plug.Limited || a.fault.Code == plug.Unavailable {
		return err
	}
	return &refusal{err}
}

// later has a task go on after a while where a plugin takes no more requests now, or cannot be asked; each time after a
// longer one, and not for ever.
func later(err error, place any, refusals *int) (any, error) {
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != fault.TooManyRequests && f.Code != fault.Unavailable || *refusals >= mostRefusals {
		return nil, err
	}
	*refusals++
	return nil, task.Later(place, min(max(f.RetryAfter, 10*time.Second)*time.Duration(*refusals), longestWait))
}
