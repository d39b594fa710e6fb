package plugin

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/library"
)

// The types of plugins.
const (
	system   = "system"
	personal = "user"
)

// Plugin is a plugin as administrators see it.
type Plugin struct {
	ID                       uuid.UUID           `json:"id" db:"id"`
	Name                     string              `json:"name" db:"name"`
	DisplayName              string              `json:"displayName" db:"display_name"`
	Description              *string             `json:"description" db:"description"`
	PluginType               string              `json:"pluginType" db:"plugin_type" enum:"system,user"`
	Command                  string              `json:"command" db:"command"`
	Args                     []string            `json:"args" db:"args" nullable:"false"`
	WorkingDirectory         *string             `json:"workingDirectory" db:"working_directory"`
	Env                      map[string]string   `json:"env" db:"env"`
	Config                   json.RawMessage     `json:"config" db:"config" doc:"Passed to the plugin unchanged"`
	CredentialDelivery       string              `json:"credentialDelivery" db:"credential_delivery" enum:"env,init_message,both"`
	HasCredentials           bool                `json:"hasCredentials" db:"has_credentials" doc:"Whether credentials are stored; the credentials themselves are never returned"`
	Enabled                  bool                `json:"enabled" db:"enabled"`
	DisabledReason           *string             `json:"disabledReason" db:"disabled_reason" doc:"Why the plugin is disabled, or the last failure of an enabled plugin"`
	HealthStatus             string              `json:"healthStatus" db:"health_status" enum:"unknown,healthy,degraded,unhealthy,disabled"`
	FailureCount             int32               `json:"failureCount" db:"failure_count" doc:"Number of consecutive failures"`
	LastFailureAt            *time.Time          `json:"lastFailureAt" db:"last_failure_at"`
	LastSuccessAt            *time.Time          `json:"lastSuccessAt" db:"last_success_at"`
	LibraryIDs               []uuid.UUID         `json:"libraryIds" db:"library_ids" nullable:"false" doc:"Ids of the libraries that the plugin applies to; empty means all"`
	Scopes                   []string            `json:"scopes" db:"scopes" nullable:"false"`
	Permissions              []string            `json:"permissions" db:"permissions" nullable:"false"`
	MetadataTargets          []string            `json:"metadataTargets" db:"metadata_targets" nullable:"true" doc:"series, book or both; null means the targets in the manifest"`
	UseExistingExternalID    bool                `json:"useExistingExternalId" db:"use_existing_external_id"`
	AutoMatchConditions      json.RawMessage     `json:"autoMatchConditions" db:"auto_match_conditions"`
	SearchQueryTemplate      *string             `json:"searchQueryTemplate" db:"search_query_template"`
	SearchPreprocessingRules []library.TitleRule `json:"searchPreprocessingRules" db:"search_preprocessing_rules" nullable:"true"`
	InternalConfig           Internal            `json:"internalConfig" db:"-"`
	RateLimitRequestsPerMin  *int32              `json:"rateLimitRequestsPerMinute" db:"rate_limit" doc:"Null means no limit"`
	RequestTimeoutSeconds    *int32              `json:"requestTimeoutSeconds" db:"request_timeout" doc:"Null means 30"`
	LogLevel                 *string             `json:"logLevel" db:"log_level" enum:"error,warn,info,debug"`
	DefaultLogLevel          string              `json:"defaultLogLevel" db:"-" enum:"info"`
	SyncCronSchedule         *string             `json:"syncCronSchedule" db:"sync_cron_schedule"`
	UserCount                *int64              `json:"userCount" db:"user_count" doc:"Number of users who have enabled the plugin; null for a system plugin"`
	Manifest                 *Manifest           `json:"manifest" db:"manifest" doc:"Manifest that the plugin returned last; null if it was never started"`
	CreatedAt                time.Time           `json:"createdAt" db:"created_at"`
	UpdatedAt                time.Time           `json:"updatedAt" db:"updated_at"`
	SearchResultsLimit       *int32              `json:"-" db:"search_results_limit"`
}

// Internal holds settings for Longbox's requests to the plugin.
type Internal struct {
	SearchResultsLimit *int32 `json:"searchResultsLimit" minimum:"0" doc:"Null means the plugin's own limit"`
}

// shown fills in the derived fields.
func (p *Plugin) shown() *Plugin {
	p.InternalConfig, p.DefaultLogLevel = Internal{p.SearchResultsLimit}, "info"
	return p
}

// columns are the columns of a Plugin; shownCols adds the number of its users for administrators, and runnableCols what
// a runnable needs.
const (
	ownPlugin = `p.id, p.name, p.display_name, p.description, p.plugin_type, p.command, p.args, p.working_directory, p.env, p.config, p.credential_delivery,
	p.credentials is not null as has_credentials, p.enabled, p.disabled_reason, p.health_status, p.failure_count, p.last_failure_at, p.last_success_at,
	p.library_ids, p.scopes, p.permissions, p.metadata_targets, p.use_existing_external_id, p.auto_match_conditions, p.search_query_template,
	p.search_preprocessing_rules, p.search_results_limit, p.rate_limit, p.request_timeout, p.log_level, p.sync_cron_schedule, p.manifest, p.created_at, p.updated_at`
	userCount = `case when p.plugin_type = 'user' then (select count(*) from user_plugin n where n.tenant_id = p.tenant_id and n.plugin_id = p.id and n.enabled) end as user_count`
	columns   = ownPlugin + ", null::bigint as user_count"
	shownCols = ownPlugin + ", " + userCount

	runnableCols = columns + ", p.credentials, p.tenant_id"

	selectPlugin = "select " + columns + " from plugin p where p.tenant_id = app.tenant() and p.id = $1"
	selectShown  = "select " + shownCols + " from plugin p where p.tenant_id = app.tenant() and p.id = $1"
	selectNamed  = "select " + runnableCols + " from plugin p where p.tenant_id = app.tenant() and p.name = $1"
)

// Manifest is a plugin's description of itself.
type Manifest struct {
	Name                   string        `json:"name"`
	DisplayName            string        `json:"displayName"`
	Version                string        `json:"version"`
	ProtocolVersion        string        `json:"protocolVersion"`
	ContentTypes           []string      `json:"contentTypes" nullable:"false"`
	Description            *string       `json:"description"`
	Author                 *string       `json:"author"`
	Homepage               *string       `json:"homepage"`
	SearchURITemplate      *string       `json:"searchUriTemplate"`
	Scopes                 []string      `json:"scopes" nullable:"false"`
	AdminSetupInstructions *string       `json:"adminSetupInstructions"`
	UserSetupInstructions  *string       `json:"userSetupInstructions"`
	Capabilities           Capabilities  `json:"capabilities"`
	ConfigSchema           *ConfigSchema `json:"configSchema"`
	UserConfigSchema       *ConfigSchema `json:"userConfigSchema"`
	OAuth                  *OAuth        `json:"oauth"`
	RequiredCredentials    []Credential  `json:"requiredCredentials" nullable:"false"`
	WebLinks               *webLinks     `json:"-"`
}

// Capabilities are what a plugin can do.
type Capabilities struct {
	MetadataProvider           []string `json:"metadataProvider" nullable:"false" doc:"series, book or both"`
	ExternalIDSource           *string  `json:"externalIdSource"`
	ReleaseSource              bool     `json:"releaseSource"`
	UserReadSync               bool     `json:"userReadSync"`
	UserRecommendationProvider bool     `json:"userRecommendationProvider"`
	WantsDetailedProgress      bool     `json:"wantsDetailedProgress"`
	WantsFullMetadata          bool     `json:"wantsFullMetadata"`
}

// ConfigSchema describes a plugin's config for whoever fills it in.
type ConfigSchema struct {
	Description *string       `json:"description"`
	Fields      []ConfigField `json:"fields" nullable:"false"`
}

// ConfigField is a field of a config.
type ConfigField struct {
	Key         string          `json:"key"`
	Label       string          `json:"label"`
	Type        string          `json:"type"`
	Description *string         `json:"description"`
	Required    bool            `json:"required"`
	Default     json.RawMessage `json:"default"`
	Example     json.RawMessage `json:"example"`
}

// OAuth describes the sign-in of a plugin's users at its service.
type OAuth struct {
	AuthorizationURL string   `json:"authorizationUrl"`
	TokenURL         string   `json:"tokenUrl"`
	UserInfoURL      *string  `json:"userInfoUrl"`
	PKCE             bool     `json:"pkce"`
	ClientID         *string  `json:"clientId" doc:"Used if config.oauth_client_id is not set"`
	Scopes           []string `json:"scopes" nullable:"false"`
}

// Credential is a credential that a plugin needs.
type Credential struct {
	Key            string  `json:"key"`
	Label          string  `json:"label"`
	Description    *string `json:"description"`
	Required       bool    `json:"required"`
	Sensitive      bool    `json:"sensitive"`
	CredentialType string  `json:"credentialType"`
}

// webLinks are URL templates for series at other sites.
type webLinks struct {
	SearchURLTemplate string `json:"searchUrlTemplate"`
	SeriesLinks       []struct {
		Source      string `json:"source"`
		URLTemplate string `json:"urlTemplate"`
	} `json:"seriesLinks"`
}

// UnmarshalJSON decodes a manifest leniently; missing values are null or empty.
func (m *Manifest) UnmarshalJSON(data []byte) error {
	type plain Manifest // without this method
	var raw struct {
		plain
		SearchURI    *string `json:"searchURITemplate"`
		Capabilities struct {
			Capabilities
			ReleaseSource json.RawMessage `json:"releaseSource"` // an object, or a boolean
			WebLinks      *webLinks       `json:"webLinks"`
		} `json:"capabilities"`
		RequiredCredentials []struct {
			Credential
			Type *string `json:"type"`
		} `json:"requiredCredentials"`
	}
	raw.OAuth = &OAuth{PKCE: true}
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	*m = Manifest(raw.plain)
	m.Capabilities, m.WebLinks = raw.Capabilities.Capabilities, raw.Capabilities.WebLinks
	release := string(raw.Capabilities.ReleaseSource)
	m.Capabilities.ReleaseSource = release != "" && release != "null" && release != "false"
	m.Homepage, m.SearchURITemplate = outward(m.Homepage), outward(cmp.Or(m.SearchURITemplate, raw.SearchURI))
	if m.OAuth != nil {
		m.OAuth.Scopes = orNone(m.OAuth.Scopes)
		if m.OAuth.AuthorizationURL == "" {
			m.OAuth = nil
		}
	}
	m.RequiredCredentials = []Credential{}
	for _, c := range raw.RequiredCredentials {
		if c.Type != nil {
			c.CredentialType = *c.Type
		}
		m.RequiredCredentials = append(m.RequiredCredentials, c.Credential)
	}
	for _, c := range []*ConfigSchema{m.ConfigSchema, m.UserConfigSchema} {
		if c != nil {
			c.Fields = orNone(c.Fields)
		}
	}
	for _, list := range []*[]string{&m.ContentTypes, &m.Scopes, &m.Capabilities.MetadataProvider} {
		*list = orNone(*list)
	}
	if len(m.ContentTypes) == 0 {
		m.ContentTypes = slices.Clone(m.Capabilities.MetadataProvider)
	}
	return nil
}

// provides reports whether the plugin provides metadata of a kind, series or book, as far as is known.
func (p *Plugin) provides(kind string) bool {
	if p.MetadataTargets != nil && !slices.Contains(p.MetadataTargets, kind) {
		return false
	}
	return p.Manifest == nil || slices.Contains(p.Manifest.Capabilities.MetadataProvider, kind)
}

// serves reports whether the plugin is for a library.
func (p *Plugin) serves(library uuid.UUID) bool {
	return len(p.LibraryIDs) == 0 || slices.Contains(p.LibraryIDs, library)
}

// mayWrite reports whether the plugin may write a field, named as in its permission, such as age_rating.
func (p *Plugin) mayWrite(field string) bool {
	return slices.Contains(p.Permissions, writing+"*") || slices.Contains(p.Permissions, writing+field)
}

// writing is the prefix of permissions to write a field.
const writing = "metadata:write:"

// scopes are the places where plugins can be invoked.
var scopes = []string{"series:detail", "series:bulk", "book:detail", "book:bulk", "library:detail", "library:scan"}

// permissions are the permissions that a plugin can have.
var permissions = func() []string {
	all := []string{"metadata:read", "library:read", writing + "*"}
	for _, f := range strings.Fields(`title summary genres tags covers ratings links external_ids year status publisher age_rating language reading_direction
		total_volume_count total_chapter_count book_type subtitle authors translator edition original_title original_year series_position subjects awards
		custom_metadata isbn volume chapter`) {
		all = append(all, writing+f)
	}
	return all
}()
