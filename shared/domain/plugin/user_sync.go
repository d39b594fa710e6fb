package plugin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Started names the task that a command has started.
type Started struct {
	TaskID  uuid.UUID `json:"taskId"`
	Message string    `json:"message"`
}

// SyncStatus is the sync state of the caller's plugin.
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
	ExternalCount *int32     `json:"externalCount" doc:"Number of the caller's entries in the service; only with live"`
	PendingPush   *int32     `json:"pendingPush"`
	PendingPull   *int32     `json:"pendingPull"`
	Conflicts     *int32     `json:"conflicts"`
	LiveError     *string    `json:"liveError" doc:"Why the plugin did not return the live counts"`
}

// SyncResult is the result of a sync.
type SyncResult struct {
	PluginID         uuid.UUID `json:"pluginId"`
	UserID           uuid.UUID `json:"userId"`
	ExternalUsername *string   `json:"externalUsername"`
	Pulled           int       `json:"pulled"`  // entries of the service
	Matched          int       `json:"matched"` // entries whose series exist here
	Applied          int       `json:"applied"` // series changed by them
	Pushed           int       `json:"pushed"`  // entries accepted by the service
	PushFailures     int       `json:"pushFailures"`
	PullIncomplete   bool      `json:"pullIncomplete"`
	PullError        *string   `json:"pullError"`
	PushError        *string   `json:"pushError"`
	SkippedReason    *string   `json:"skippedReason"` // disabled, not_connected or not_capable: no sync was possible
}

func (p *Plugin) noSync() error {
	return fault.New(fault.BadRequest, "The plugin %s does not sync progress", p.Name)
}

func (s *service) syncRoutes(a *httpapi.API) {
	httpapi.Register(a, actingOp("POST", "/{pluginId}/sync", "syncUserPlugin", "Start the task that syncs the caller's progress with a plugin's service"),
		func(ctx context.Context, in *UserInput) (*Started, error) { return s.startSync(ctx, in.PluginID) })
	httpapi.Register(a, userOp("GET", "/{pluginId}/sync/status", "getUserPluginSync", "Get the sync status of a plugin for the caller"),
		func(ctx context.Context, in *struct {
			UserInput
			Live bool `query:"live" doc:"Also ask the plugin for live counts"`
		}) (*SyncStatus, error) {
			return s.syncStatus(ctx, in.PluginID, in.Live)
		})
}

func (s *service) startSync(ctx context.Context, plugin uuid.UUID) (*Started, error) {
	p, err := s.toFollow(ctx, plugin, false)
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
	started, err := enqueueFor(&b, syncColumn, nil, []mine{*p.mine})
	if err != nil {
		return nil, err
	}
	if err := s.Database.Run(ctx, &b); err != nil {
		return nil, err
	}
	ids := started()
	if len(ids) == 0 {
		return nil, fault.New(fault.Conflict, "Progress is already being synced with the plugin %s", p.Name)
	}
	s.Added.Tell(ctx, httpapi.TenantOf(ctx).ID)
	return &Started{ids[0], "The sync of your progress is queued: " + p.DisplayName}, nil
}

// syncStatus holds the plugin for live counts, as a task does: a token must not be renewed twice at the same time.
func (s *service) syncStatus(ctx context.Context, plugin uuid.UUID, live bool) (*SyncStatus, error) {
	var b pgx.Batch
	var held int64
	holder := uuid.New()
	if live {
		db.Affected(&b, &held, holding, plugin, holder, holdFor)
	}
	load := queueMine(&b, plugin, live)
	if err := s.Database.Run(ctx, &b); err != nil {
		return nil, err
	}
	p, err := load()
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
	if held > 0 {
		defer s.release(ctx, p, holder)
	}
	err = s.count(ctx, p, held > 0, out)
	if no, ok := errors.AsType[*fault.Error](err); ok {
		out.LiveError, err = &no.Message, nil
	}
	return out, err
}

// count asks the plugin for the live counts. A fault says why there are none.
func (s *service) count(ctx context.Context, p *runnable, held bool, out *SyncStatus) error {
	if err := p.ready(); err != nil {
		return err
	}
	if !held {
		return fault.New(fault.Conflict, "Longbox is asking the plugin %s in your name, for example to sync your progress; try again later", p.Name)
	}
	err := s.freshen(ctx, p)
	if out.Connected = p.connected(p.mine); err != nil {
		return err
	}
	var told struct{ ExternalCount, PendingPush, PendingPull, Conflicts *int32 }
	asked := s.ask(ctx, p, "sync/status", map[string]any{}, &told)
	if err := s.note(ctx, p, asked); err != nil {
		return err
	}
	if asked.fault != nil {
		return fault.New(fault.Unavailable, "%s", asked.fault.Message)
	}
	out.ExternalCount, out.PendingPush, out.PendingPull, out.Conflicts = told.ExternalCount, told.PendingPush, told.PendingPull, told.Conflicts
	return nil
}

// syncPlace is the checkpoint of a sync.
type syncPlace struct {
	retries
	Told   bool        `json:"told"` // all pages of the service were applied
	Cursor string      `json:"cursor"`
	Parts  int         `json:"parts"`
	After  string      `json:"afterId"` // the service's id of the last series sent
	Ahead  []uuid.UUID `json:"ahead"`   // series of which the service has, or may have, more progress
	Lacks  string      `json:"lacks"`   // why it is not known what else the service has; "": it is
	Result SyncResult  `json:"result"`
}

// ahead records a series about which nothing must be sent.
func (at *syncPlace) ahead(id uuid.UUID) {
	if len(at.Ahead) == mostAhead {
		at.lacks(fmt.Sprintf("the service has more progress in more than %d series", mostAhead))
		return
	}
	at.Ahead = append(at.Ahead, id)
}

// lacks records the first reason why not all that the service has was read.
func (at *syncPlace) lacks(why string) { at.Lacks = cmp.Or(at.Lacks, why) }

// Sync handles user_plugin_sync tasks. It pulls first, so that the push includes what was pulled. It works in parts,
// and yields to other tasks between them.
func (r *Runner) Sync(worker context.Context, h task.Held) (any, error) {
	at := &syncPlace{}
	out, err := r.inName(worker, h, &at.retries, at, func(ctx, asking context.Context, p *runnable, in userParams) (any, error) {
		if !p.forUsers().ReadSync {
			return nil, &skip{p.noSync(), p}
		}
		host := p.mine.host()
		at.Result.PluginID, at.Result.UserID = p.ID, in.UserID
		if at.Parts == 0 && at.After == "" {
			if err := r.introduce(asking, p, &at.Result); err != nil {
				return nil, err
			}
		}
		for more := true; more; {
			var err error
			if more, err = r.part(asking, p, host, at); err != nil {
				return nil, err
			}
			at.Refusals = 0
			if err := r.goOn(ctx, h, p, at); err != nil {
				return nil, err
			}
			if more && task.MustPause(worker) {
				return nil, task.Paused(at)
			}
		}
		return r.finish(ctx, p, host, &at.Result)
	})
	if no, ok := errors.AsType[*skip](err); ok {
		return r.skip(db.In(worker, db.Acting{Task: h.Scope(), Account: no.of.mine.Account}), no.of, &at.Result)
	}
	return out, err
}

// skip returns why a sync was not started, or not continued: the plugin was disabled or lost the user's credentials
// since the task was added.
func (r *Runner) skip(ctx context.Context, p *runnable, out *SyncResult) (any, error) {
	out.PluginID, out.UserID, out.SkippedReason = p.ID, p.mine.Account, new(p.unreadiness())
	data, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	_, err = db.Exec(ctx, r.Database, "update user_plugin set last_sync_result = $2 where tenant_id = app.tenant() and id = $1", p.mine.ID, data)
	return out, err
}

// goOn stores the checkpoint, and checks that the sync is still wanted and the token still valid.
func (r *Runner) goOn(ctx context.Context, h task.Held, p *runnable, at *syncPlace) error {
	var b pgx.Batch
	var wanted bool
	if err := task.QueueProgress(&b, h, int64(at.Result.Pulled+at.Result.Pushed+at.Result.PushFailures), 0, at); err != nil {
		return err
	}
	b.Queue(holding, p.ID, h.ID, holdFor)
	db.Value(&b, &wanted, "select u.enabled and p.enabled from user_plugin u join plugin p on p.tenant_id = u.tenant_id and p.id = u.plugin_id where"+ownRow, p.ID)
	if err := r.Database.Run(ctx, &b); err != nil {
		return err
	}
	if !wanted {
		return fault.New(fault.BadRequest, "The plugin %s has been disabled", p.Name)
	}
	return r.freshen(ctx, p)
}

// part pulls or pushes one part, and reports whether there is another. A rejection by the plugin ends its half. After
// an incomplete pull nothing is pushed, because it could lower the progress at the service. A plugin that cannot pull
// may push.
func (r *Runner) part(ctx context.Context, p *runnable, host hostConfig, at *syncPlace) (more bool, err error) {
	if !at.Told && host.mode != onlyPush {
		more, err := r.pull(ctx, p, host, at)
		if no, ok := errors.AsType[*refusal](err); ok && no.rpc != methodNotFound {
			at.lacks("the first half failed: " + no.Error())
		}
		if at.Result.PullError, err = inResult(err); err != nil {
			return false, err
		}
		at.Told = !more
		return more || host.mode != onlyPull, nil
	}
	if host.mode == onlyPull {
		return false, nil
	}
	if host.mode == inBoth && at.Lacks != "" {
		at.Result.PushError = new("Nothing was sent, because " + at.Lacks)
		return false, nil
	}
	more, err = r.push(ctx, p, host, at)
	at.Result.PushError, err = inResult(err)
	return more, err
}

// introduce asks for the user's account at the service, which detects invalid credentials early.
func (r *Runner) introduce(ctx context.Context, p *runnable, out *SyncResult) error {
	who, asked := r.whoIs(ctx, p)
	if asked == nil {
		return nil
	}
	if err := r.outcome(ctx, p, asked); err != nil && asked.fault.RPC != methodNotFound {
		return err
	}
	if out.ExternalUsername = who.username(); out.ExternalUsername == nil {
		return nil
	}
	_, err := db.Exec(ctx, r.Database, `update user_plugin set external_username = $2, external_avatar_url = coalesce($3, external_avatar_url)
		where tenant_id = app.tenant() and id = $1`, p.mine.ID, out.ExternalUsername, outward(who.AvatarURL))
	return err
}

// finish stores the result of a sync. It fails if the sync achieved nothing.
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
		return nil, fault.New(fault.BadRequest, "Progress was not synced: %s", *why)
	}
	return out, nil
}

// inResult returns the message of an error that belongs in the result. Other errors end the task or let it continue
// later.
func inResult(err error) (*string, error) {
	if no, ok := errors.AsType[*refusal](err); ok {
		return new(no.Error()), nil
	}
	return nil, err
}
