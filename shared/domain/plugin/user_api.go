package plugin

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/cut"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// UserInput names a plugin that the caller has enabled or may enable.
type UserInput struct {
	PluginID uuid.UUID `path:"pluginId" format:"uuid"`
}

// Said is the result of a command.
type Said struct {
	Message string `json:"message"`
}

// maxToken is the maximum size of a token that users enter, in bytes.
const maxToken = 8 << 10

var userOp = httpapi.Group{Path: "/api/v1/user/plugins", Tag: "User plugins"}.For(httpapi.SignedIn)

// actingOp is userOp for operations after which a plugin sends the caller's progress to its service, sooner or later.
func actingOp(method, path, id, summary string) httpapi.Op {
	op := userOp(method, path, id, summary)
	op.Permission = auth.ProgressRead
	return op
}

// mayWrite refuses callers without ProgressWrite for operations by which a plugin changes their progress. The caller
// must be entered.
func mayWrite(ctx context.Context) error {
	if !auth.CallerOf(ctx).May(auth.ProgressWrite) {
		return fault.New(fault.Forbidden, "Missing required permission: %s", auth.ProgressWrite)
	}
	return nil
}

// toFollow is own for operations that sync progress.
func (s *service) toFollow(ctx context.Context, plugin uuid.UUID, toAsk bool) (*runnable, error) {
	p, err := s.own(ctx, plugin, toAsk)
	if err == nil {
		err = mayWrite(ctx)
	}
	return p, err
}

func (s *service) userRoutes(a *httpapi.API) {
	httpapi.Register(a, userOp("GET", "", "listUserPlugins", "List the plugins of the caller, including disabled ones, and those that they may enable"),
		func(ctx context.Context, _ *struct{}) (*UserPlugins, error) { return s.userPlugins(ctx) })
	httpapi.Register(a, userOp("GET", "/{pluginId}", "getUserPlugin", "Get a plugin with the caller's settings"),
		func(ctx context.Context, in *UserInput) (*UserPlugin, error) {
			return s.shownTo(s.own(ctx, in.PluginID, false))
		})
	httpapi.Register(a, actingOp("POST", "/{pluginId}/enable", "enableUserPlugin", "Enable a plugin for the caller"),
		func(ctx context.Context, in *UserInput) (*UserPlugin, error) { return s.enableFor(ctx, in.PluginID) })
	httpapi.Register(a, userOp("POST", "/{pluginId}/disable", "disableUserPlugin", "Disable a plugin for the caller; their config and credentials are kept"),
		func(ctx context.Context, in *UserInput) (*Said, error) {
			_, err := s.changeMine(ctx, in.PluginID, "enabled = false")
			return &Said{"The plugin is disabled"}, err
		})
	httpapi.Register(a, userOp("DELETE", "/{pluginId}", "deleteUserPlugin", "Remove a plugin for the caller; deletes their credentials, config and the data stored by the plugin"),
		func(ctx context.Context, in *UserInput) (*httpapi.None, error) {
			n, err := db.Exec(ctx, s.Database, "delete from user_plugin u where"+ownRow, in.PluginID)
			if err == nil && n == 0 {
				err = fault.Missing("Plugin")
			}
			return nil, err
		})
	httpapi.Register(a, actingOp("PATCH", "/{pluginId}/config", "updateUserPluginConfig", "Replace the caller's config of a plugin"),
		func(ctx context.Context, in *struct {
			UserInput
			Body struct {
				Config json.RawMessage `json:"config" doc:"An object; syncMode is both, push or pull; _codex holds the values that Longbox uses (autoSync, includeCompleted, includeInProgress, countPartialProgress, syncRatings, searchFallback)"`
			}
		}) (*UserPlugin, error) {
			if _, err := s.toFollow(ctx, in.PluginID, false); err != nil {
				return nil, err
			}
			if err := checkUserConfig(in.Body.Config); err != nil {
				return nil, err
			}
			return s.shownTo(s.changeMine(ctx, in.PluginID, "config = $2", in.Body.Config))
		})
	httpapi.Register(a, actingOp("PATCH", "/{pluginId}/sync-mode", "setUserPluginSyncMode", "Set whether a plugin syncs on its schedule for the caller"),
		func(ctx context.Context, in *struct {
			UserInput
			Body struct {
				Auto bool `json:"auto"`
			}
		}) (*UserPlugin, error) {
			p, err := s.toFollow(ctx, in.PluginID, false)
			if err != nil {
				return nil, err
			}
			if in.Body.Auto && !p.forUsers().ReadSync {
				return nil, p.noSync()
			}
			return s.shownTo(s.changeMine(ctx, in.PluginID, `config = u.config || jsonb_build_object('`+hostMember+`',
				coalesce(u.config -> '`+hostMember+`', '{}') || jsonb_build_object('autoSync', $2::boolean))`, in.Body.Auto))
		})
	httpapi.Register(a, actingOp("POST", "/{pluginId}/credentials", "setUserPluginCredentials", "Set the caller's access token for a plugin's service; it is tested if the plugin supports that"),
		func(ctx context.Context, in *struct {
			UserInput
			Body struct {
				AccessToken string `json:"accessToken"`
			}
		}) (*UserPlugin, error) {
			return s.enter(ctx, in.PluginID, strings.TrimSpace(in.Body.AccessToken))
		})
	last := userOp("GET", "/{pluginId}/tasks", "getUserPluginTask", "Get the last task of a plugin for the caller, if any")
	last.MayBeEmpty = true
	httpapi.Register(a, last, func(ctx context.Context, in *struct {
		UserInput
		Type string `query:"type" enum:"user_plugin_sync,user_plugin_recommendations" doc:"Only tasks of this type; defaults to both"`
	}) (*UserTask, error) {
		return s.lastTask(ctx, in.PluginID, in.Type)
	})
}

func (s *service) userPlugins(ctx context.Context) (*UserPlugins, error) {
	var b pgx.Batch
	var all []Plugin
	var own []mine
	db.All(&b, &all, "select "+columns+` from plugin p where p.tenant_id = app.tenant() and (p.enabled and p.plugin_type = 'user'
		or exists (select from user_plugin u where u.tenant_id = app.tenant() and u.account_id = app.account() and u.plugin_id = p.id)) order by p.display_name, p.name`)
	db.All(&b, &own, "select "+ownColumns+" from user_plugin u where u.tenant_id = app.tenant() and u.account_id = app.account()")
	if err := s.Database.Run(ctx, &b); err != nil {
		return nil, err
	}
	out := &UserPlugins{Enabled: []UserPlugin{}, Available: []Available{}}
	for _, p := range all {
		if at := slices.IndexFunc(own, func(m mine) bool { return m.PluginID == p.ID }); at >= 0 {
			out.Enabled = append(out.Enabled, *p.forUser(&own[at]))
		} else {
			out.Available = append(out.Available, p.available())
		}
	}
	return out, nil
}

// shownTo converts the result of own to a record.
func (s *service) shownTo(p *runnable, err error) (*UserPlugin, error) {
	if err != nil {
		return nil, err
	}
	return p.forUser(p.mine), nil
}

// enableFor enables a plugin for the caller.
func (s *service) enableFor(ctx context.Context, plugin uuid.UUID) (*UserPlugin, error) {
	var b pgx.Batch
	var n int64
	db.Affected(&b, &n, `insert into user_plugin as u (tenant_id, id, account_id, plugin_id)
		select app.tenant(), gen_random_uuid(), app.account(), p.id from plugin p where p.tenant_id = app.tenant() and p.id = $1 and p.enabled and p.plugin_type = 'user'
		on conflict (tenant_id, account_id, plugin_id) do update set enabled = true, updated_at = now() where not u.enabled`, plugin)
	var p *Plugin
	db.One(&b, &p, selectPlugin, plugin)
	var m *mine
	db.One(&b, &m, selectMine, plugin)
	if err := s.Database.Run(ctx, &b); err != nil {
		return nil, err
	}
	switch {
	case p == nil:
		return nil, fault.Missing("Plugin")
	case p.PluginType != personal:
		return nil, fault.New(fault.BadRequest, "The plugin %s cannot be enabled by users; it serves everybody", p.Name)
	case !p.Enabled:
		return nil, fault.New(fault.BadRequest, "The plugin %s was disabled by an administrator", p.Name)
	case n == 0:
		return nil, fault.New(fault.Conflict, "You have already enabled the plugin %s", p.Name)
	}
	return p.forUser(m), nil
}

// changeMine changes the caller's plugin, named by $1.
func (s *service) changeMine(ctx context.Context, plugin uuid.UUID, set string, args ...any) (*runnable, error) {
	var b pgx.Batch
	b.Queue("update user_plugin u set updated_at = now(), "+set+" where"+ownRow, append([]any{plugin}, args...)...)
	load := queueMine(&b, plugin, false)
	if err := s.Database.Run(ctx, &b); err != nil {
		return nil, err
	}
	return load()
}

// checkUserConfig validates a user's config.
func checkUserConfig(config json.RawMessage) error {
	members, ok := configOf(config)
	if !ok {
		return fault.Invalid("config", "%s", configRule)
	}
	if mode, ok := members["syncMode"]; ok && mode != inBoth && mode != onlyPush && mode != onlyPull {
		return fault.Invalid("config.syncMode", "must be both, push or pull")
	}
	host, ok := members[hostMember]
	if !ok {
		return nil
	}
	if _, object := host.(map[string]any); !object || json.Unmarshal([]byte(written(host)), &hostConfig{}) != nil {
		return fault.Invalid("config."+hostMember, "must be an object of booleans")
	}
	return nil
}

// account is a user's account at a plugin's service.
type account struct {
	ExternalID string  `json:"externalId"`
	Username   string  `json:"username"`
	AvatarURL  *string `json:"avatarUrl"`
}

// authFailed is the error code for credentials that a service rejects (docs/plugins.md).
const authFailed = -32003

// enter stores a token of the caller, unless the plugin says that it is invalid.
func (s *service) enter(ctx context.Context, plugin uuid.UUID, token string) (*UserPlugin, error) {
	switch {
	case token == "":
		return nil, fault.Invalid("accessToken", "must not be empty")
	case len(token) > maxToken || strings.ContainsRune(token, 0):
		return nil, fault.Invalid("accessToken", "must be at most %d bytes without NUL", maxToken)
	}
	p, err := s.toFollow(ctx, plugin, true)
	if err != nil {
		return nil, err
	}
	if err := p.usable(); err != nil {
		return nil, err
	}
	return s.connect(ctx, p, &tokens{Access: token})
}

// connect stores a user's tokens, with their account at the service if the plugin can tell it.
func (s *service) connect(ctx context.Context, p *runnable, t *tokens) (*UserPlugin, error) {
	if err := s.hold(p, t); err != nil {
		return nil, err
	}
	who, asked := s.whoIs(ctx, p)
	if asked != nil && asked.fault != nil && asked.fault.RPC == authFailed {
		if err := s.note(ctx, p, asked); err != nil {
			return nil, err
		}
		return nil, fault.Invalid("accessToken", "is refused: %s", asked.fault.Message)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTime)
	defer cancel()
	var b pgx.Batch
	if asked != nil {
		queueOutcome(&b, p, asked)
	}
	var m *mine
	db.One(&b, &m, `update user_plugin u set credentials = $2, external_username = $3, external_avatar_url = $4, updated_at = now()
		where u.tenant_id = app.tenant() and u.id = $1 returning `+ownColumns, p.mine.ID, p.mine.Credentials, who.username(), outward(who.AvatarURL))
	if err := p.kept(s.Database.Run(ctx, &b)); err != nil {
		return nil, err
	}
	if m == nil { // the user removed it meanwhile
		return nil, fault.Missing("Plugin")
	}
	return p.forUser(m), nil
}

// hold sets a plugin's user tokens in memory, without storing them.
func (r *Runner) hold(p *runnable, t *tokens) error {
	secret, err := json.Marshal(t)
	if err != nil {
		return err
	}
	p.mine.Credentials, err = r.Key.Seal(sealedFor(p.Tenant, p.mine.ID), secret)
	return err
}

// whoIs asks a plugin for its user's account at the service; asked is nil if it cannot know.
func (r *Runner) whoIs(ctx context.Context, p *runnable) (who account, out *asked) {
	if !r.Client.Runs() || p.Manifest == nil || !p.Manifest.Capabilities.UserReadSync {
		return account{}, nil
	}
	out = r.ask(ctx, p, "sync/getUserInfo", map[string]any{}, &who)
	if out.fault != nil {
		who = account{}
	}
	return who, out
}

func (a account) username() *string {
	name := cut.Chars(cut.Storable(a.Username), 200)
	if name == "" {
		return nil
	}
	return &name
}

// UserTask is a plugin task for the caller.
type UserTask struct {
	TaskID      uuid.UUID       `json:"taskId" db:"id"`
	TaskType    string          `json:"taskType" db:"type"`
	Status      string          `json:"status" db:"status" enum:"pending,running,completed,failed,cancelled"`
	Result      json.RawMessage `json:"result" db:"result"`
	Error       *string         `json:"error" db:"last_error"`
	CreatedAt   time.Time       `json:"createdAt" db:"created_at"`
	StartedAt   *time.Time      `json:"startedAt" db:"started_at"`
	CompletedAt *time.Time      `json:"completedAt" db:"completed_at"`
}

func (s *service) lastTask(ctx context.Context, plugin uuid.UUID, typ string) (*UserTask, error) {
	var b pgx.Batch
	var exists bool
	var out *UserTask
	db.Value(&b, &exists, "select exists (select from user_plugin u where"+ownRow+")", plugin)
	db.One(&b, &out, `select t.id, t.type, t.status, t.result, t.last_error, t.created_at, t.started_at, t.completed_at from user_plugin u
		join task t on t.tenant_id = u.tenant_id and t.id in (u.sync_task_id, u.recommendations_task_id) where`+ownRow+`
		and ($2 = '' or t.type = $2) order by t.created_at desc, t.id desc limit 1`, plugin, typ)
	if err := s.Database.Run(ctx, &b); err != nil {
		return nil, err
	}
	if !exists {
		return nil, fault.Missing("Plugin")
	}
	return out, nil
}

// The columns that hold the last task of each kind.
const (
	syncColumn      = "sync_task_id"
	recommendColumn = "recommendations_task_id"
)

// taskOf maps these columns to task types.
var taskOf = map[string]string{syncColumn: task.UserPluginSync, recommendColumn: task.UserPluginRecommendations}
