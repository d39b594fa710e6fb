package plugin

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/plug"
)

// UserPlugins are the plugins that the caller has enabled, and those they may enable.
type UserPlugins struct {
	Enabled   []UserPlugin `json:"enabled" nullable:"false" doc:"Includes plugins that the caller has disabled"`
	Available []Available  `json:"available" nullable:"false"`
}

// UserCapabilities are a plugin's capabilities for a user.
type UserCapabilities struct {
	ReadSync                   bool `json:"readSync"`
	UserRecommendationProvider bool `json:"userRecommendationProvider"`
	WantsDetailedProgress      bool `json:"wantsDetailedProgress"`
	WantsFullMetadata          bool `json:"wantsFullMetadata"`
}

// Available is a plugin that the caller may enable.
type Available struct {
	PluginID              uuid.UUID        `json:"pluginId"`
	Name                  string           `json:"name"`
	DisplayName           string           `json:"displayName"`
	Description           *string          `json:"description"`
	RequiresOAuth         bool             `json:"requiresOauth"`
	OAuthConfigured       bool             `json:"oauthConfigured" doc:"Whether an administrator or the plugin's manifest has set the client id"`
	UserSetupInstructions *string          `json:"userSetupInstructions"`
	Capabilities          UserCapabilities `json:"capabilities"`
}

// UserPlugin is a plugin with the caller's settings.
type UserPlugin struct {
	ID                    uuid.UUID        `json:"id"`
	PluginID              uuid.UUID        `json:"pluginId"`
	PluginName            string           `json:"pluginName"`
	PluginDisplayName     string           `json:"pluginDisplayName"`
	PluginType            string           `json:"pluginType" enum:"system,user"`
	Description           *string          `json:"description"`
	Enabled               bool             `json:"enabled" doc:"Whether both the caller and the administrators have enabled the plugin"`
	Connected             bool             `json:"connected" doc:"Whether the plugin has the credentials it needs for the caller, or needs none"`
	RequiresAuth          bool             `json:"requiresAuth"`
	RequiresOAuth         bool             `json:"requiresOauth"`
	OAuthConfigured       bool             `json:"oauthConfigured"`
	HealthStatus          string           `json:"healthStatus" enum:"unknown,healthy,degraded,unhealthy,disabled"`
	AutoSync              bool             `json:"autoSync" doc:"Sync on the plugin's schedule"`
	Config                json.RawMessage  `json:"config" doc:"An object; _codex holds the values that Longbox uses, the rest is for the plugin"`
	ExternalUsername      *string          `json:"externalUsername"`
	ExternalAvatarURL     *string          `json:"externalAvatarUrl"`
	LastSuccessAt         *time.Time       `json:"lastSuccessAt"`
	LastSyncAt            *time.Time       `json:"lastSyncAt"`
	LastSyncResult        json.RawMessage  `json:"lastSyncResult"`
	SyncCronSchedule      *string          `json:"syncCronSchedule"`
	UserConfigSchema      *ConfigSchema    `json:"userConfigSchema"`
	UserSetupInstructions *string          `json:"userSetupInstructions"`
	Capabilities          UserCapabilities `json:"capabilities"`
	CreatedAt             time.Time        `json:"createdAt"`
}

// mine is one user's plugin, even one that they have disabled, with what requests in their name need.
type mine struct {
	ID             uuid.UUID       `db:"id"`
	Account        uuid.UUID       `db:"account_id"`
	PluginID       uuid.UUID       `db:"plugin_id"`
	Enabled        bool            `db:"enabled"`
	Config         json.RawMessage `db:"config"`
	Credentials    []byte          `db:"credentials"`
	Username       *string         `db:"external_username"`
	AvatarURL      *string         `db:"external_avatar_url"`
	HealthStatus   string          `db:"health_status"`
	FailureCount   int32           `db:"failure_count"`
	LastFailureAt  *time.Time      `db:"last_failure_at"`
	LastSuccessAt  *time.Time      `db:"last_success_at"`
	LastSyncAt     *time.Time      `db:"last_sync_at"`
	LastSyncResult json.RawMessage `db:"last_sync_result"`
	CreatedAt      time.Time       `db:"created_at"`

	kept    []keptValue             // what the plugin stores for the user
	keeping map[string]*plug.Stored // unsaved changes of it
}

// ownColumns are the columns of mine; ownRow is the condition for the caller's row of user_plugin u, by plugin.
const (
	ownColumns = `u.id, u.account_id, u.plugin_id, u.enabled, u.config, u.credentials, u.external_username, u.external_avatar_url, u.health_status, u.failure_count,
		u.last_failure_at, u.last_success_at, u.last_sync_at, u.last_sync_result, u.created_at`
	ownRow     = " u.tenant_id = app.tenant() and u.account_id = app.account() and u.plugin_id = $1"
	selectMine = "select " + ownColumns + " from user_plugin u where" + ownRow
)

// keptSQL selects what a plugin stores for a user; the id of the user's row follows.
const keptSQL = `select d.key, d.data, d.expires_at, d.updated_at from user_plugin_data d
	where d.tenant_id = app.tenant() and (d.expires_at is null or d.expires_at > now()) and d.user_plugin_id = `

// queueMine adds the selects of the caller's plugin to the batch, and of what it stores for the caller if toAsk. load
// returns them after the batch has run; NotFound if either is missing.
func queueMine(b *pgx.Batch, plugin uuid.UUID, toAsk bool) (load func() (*runnable, error)) {
	var p *runnable
	var m *mine
	var kept []keptValue
	queueRunnable(b, &p, plugin)
	db.One(b, &m, selectMine, plugin)
	if toAsk {
		db.All(b, &kept, keptSQL+"(select u.id from user_plugin u where"+ownRow+")", plugin)
	}
	return func() (*runnable, error) {
		if p == nil || m == nil {
			return nil, fault.Missing("Plugin")
		}
		p.shown()
		m.kept, p.mine = kept, m
		return p, nil
	}
}

// own returns the caller's plugin, even one that they have disabled; NotFound if they have never enabled it, or
// removed it.
func (r *Runner) own(ctx context.Context, plugin uuid.UUID, toAsk bool) (*runnable, error) {
	var b pgx.Batch
	load := queueMine(&b, plugin, toAsk)
	if err := r.Database.Run(ctx, &b); err != nil {
		return nil, err
	}
	return load()
}

// forUser returns the user's record of the plugin.
func (p *Plugin) forUser(m *mine) *UserPlugin {
	out := &UserPlugin{ID: m.ID, PluginID: p.ID, PluginName: p.Name, PluginDisplayName: p.DisplayName, PluginType: p.PluginType, Description: p.Description,
		Enabled: m.Enabled && p.Enabled, Connected: p.connected(m), RequiresAuth: p.requiresAuth(), RequiresOAuth: p.oauth() != nil, OAuthConfigured: p.clientID() != "",
		HealthStatus: m.HealthStatus, AutoSync: m.host().AutoSync, Config: m.Config, ExternalUsername: m.Username, ExternalAvatarURL: m.AvatarURL,
		LastSuccessAt: m.LastSuccessAt, LastSyncAt: m.LastSyncAt, LastSyncResult: m.LastSyncResult, SyncCronSchedule: p.SyncCronSchedule,
		Capabilities: p.forUsers(), CreatedAt: m.CreatedAt}
	if !p.Enabled {
		out.HealthStatus = "disabled"
	}
	if p.Manifest != nil {
		out.UserConfigSchema, out.UserSetupInstructions = p.Manifest.UserConfigSchema, p.Manifest.UserSetupInstructions
	}
	return out
}

// available returns the record of a plugin that the caller may enable.
func (p *Plugin) available() Available {
	out := Available{PluginID: p.ID, Name: p.Name, DisplayName: p.DisplayName, Description: p.Description, RequiresOAuth: p.oauth() != nil,
		OAuthConfigured: p.clientID() != "", Capabilities: p.forUsers()}
	if p.Manifest != nil {
		out.UserSetupInstructions = p.Manifest.UserSetupInstructions
	}
	return out
}

func (p *Plugin) forUsers() UserCapabilities {
	if p.Manifest == nil {
		return UserCapabilities{}
	}
	c := p.Manifest.Capabilities
	return UserCapabilities{c.UserReadSync, c.UserRecommendationProvider, c.WantsDetailedProgress, c.WantsFullMetadata}
}

// oauth returns how users sign in to the plugin's service, nil if they do not.
func (p *Plugin) oauth() *OAuth {
	if p.Manifest == nil {
		return nil
	}
	return p.Manifest.OAuth
}

// requiresAuth reports whether the plugin needs credentials of the user.
func (p *Plugin) requiresAuth() bool {
	return p.oauth() != nil || p.Manifest != nil && len(p.Manifest.RequiredCredentials) > 0
}

// connectedSQL is connected for a user_plugin u of a plugin p.
const connectedSQL = `(u.credentials is not null or coalesce(p.manifest -> 'oauth' ->> 'authorizationUrl', '') = ''
	and case jsonb_typeof(p.manifest -> 'requiredCredentials') when 'array' then jsonb_array_length(p.manifest -> 'requiredCredentials') else 0 end = 0)`

// connected reports whether the plugin has the credentials that it needs.
func (p *Plugin) connected(m *mine) bool { return !p.requiresAuth() || m.Credentials != nil }

// clientID returns the OAuth client id of this installation, "" if no administrator has set it.
func (p *Plugin) clientID() string {
	if id := p.configText("oauth_client_id"); id != "" || p.oauth() == nil || p.oauth().ClientID == nil {
		return id
	}
	return *p.oauth().ClientID
}

func (p *Plugin) configText(name string) string {
	var config map[string]any
	if err := json.Unmarshal(p.Config, &config); err != nil {
		return ""
	}
	s, _ := config[name].(string)
	return s
}

// ready returns why a plugin must not be asked in the user's name, or nil.
func (p *runnable) ready() error {
	switch {
	case p.usable() != nil:
		return fault.New(fault.BadRequest, "The plugin %s was disabled by an administrator", p.Name)
	case !p.mine.Enabled:
		return fault.New(fault.BadRequest, "You have disabled the plugin %s; enable it first", p.Name)
	case !p.connected(p.mine):
		return fault.New(fault.BadRequest, "The plugin %s is not connected: sign in to its service, or enter your credentials", p.Name)
	}
	return nil
}

// unreadiness returns the same as a code (SyncResult.SkippedReason).
func (p *runnable) unreadiness() string {
	switch {
	case p.usable() != nil || !p.mine.Enabled:
		return "disabled"
	case !p.connected(p.mine):
		return "not_connected"
	}
	return "not_capable"
}

// hostConfig is the part of a user's config that Longbox itself uses: the member that clients know as _codex.
type hostConfig struct {
	AutoSync             bool `json:"autoSync"`
	IncludeCompleted     bool `json:"includeCompleted"`
	IncludeInProgress    bool `json:"includeInProgress"`
	CountPartialProgress bool `json:"countPartialProgress"` // started books count as read
	SyncRatings          bool `json:"syncRatings"`
	SearchFallback       bool `json:"searchFallback"` // series without an id are searched by title
	mode                 string
}

const hostMember = "_codex"

// The directions of a sync (syncMode in a user's config).
const (
	inBoth   = "both"
	onlyPush = "push"
	onlyPull = "pull"
)

// host returns Longbox's part of the config, with defaults.
func (m *mine) host() hostConfig {
	h := hostConfig{IncludeCompleted: true, IncludeInProgress: true, SyncRatings: true, mode: inBoth}
	var c struct {
		Host json.RawMessage `json:"_codex"`
		Mode string          `json:"syncMode"`
	}
	if json.Unmarshal(m.Config, &c) == nil && c.Host != nil {
		_ = json.Unmarshal(c.Host, &h) // validated when it was stored
	}
	if c.Mode == onlyPush || c.Mode == onlyPull {
		h.mode = c.Mode
	}
	return h
}

// userConfig returns the plugin's part of the config.
func (m *mine) userConfig() map[string]json.RawMessage {
	var c map[string]json.RawMessage
	if json.Unmarshal(m.Config, &c) != nil || c == nil {
		c = map[string]json.RawMessage{}
	}
	delete(c, hostMember)
	return c
}
