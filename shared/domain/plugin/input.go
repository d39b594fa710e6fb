package plugin

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/automatch"
	"github.com/longbox/longbox/shared/domain/library"
	"github.com/longbox/longbox/shared/format/cronexpr"
	"github.com/longbox/longbox/shared/format/handlebars"
	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/platform/plug"
)

// Variable is an environment variable of a plugin.
type Variable struct {
	Key   string  `json:"key"`
	Value *string `json:"value"`
}

// Variables are environment variables: an object of values by name, as in a plugin's record, or a list of names with
// values.
type Variables struct {
	list      []Variable
	malformed bool // neither form
}

const (
	maxVariables     = 100
	maxVariableName  = 200
	maxVariableValue = 10_000
)

// UnmarshalJSON accepts both forms; validation rejects anything else later.
func (v *Variables) UnmarshalJSON(data []byte) error {
	*v = Variables{}
	if json.Unmarshal(data, &v.list) == nil {
		return nil
	}
	var byName map[string]*string
	v.list, v.malformed = nil, json.Unmarshal(data, &byName) != nil
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		v.list = append(v.list, Variable{name, byName[name]})
	}
	return nil
}

// Schema describes both forms.
func (Variables) Schema(huma.Registry) *huma.Schema {
	most, longest, longestName := maxVariables, maxVariableValue, maxVariableName
	value := &huma.Schema{Type: huma.TypeString, MaxLength: &longest}
	return &huma.Schema{Description: "An object that maps names to values, or a list of {key, value}", Extensions: map[string]any{"oneOf": []*huma.Schema{
		{Type: huma.TypeObject, AdditionalProperties: value, MaxProperties: &most},
		{Type: huma.TypeArray, MaxItems: &most, Items: &huma.Schema{Type: huma.TypeObject, Required: []string{"key", "value"},
			Properties: map[string]*huma.Schema{"key": {Type: huma.TypeString, MaxLength: &longestName}, "value": value}}},
		{Type: "null"},
	}}}
}

// Fields are the settings of a plugin; an absent field stays, or has the default of a new plugin.
type Fields struct {
	DisplayName              httpapi.Optional[string]              `json:"displayName,omitempty" maxLength:"200" nullable:"false"`
	Description              httpapi.Optional[string]              `json:"description,omitempty" maxLength:"5000"`
	Command                  httpapi.Optional[string]              `json:"command,omitempty" maxLength:"1000" nullable:"false" doc:"Must be allowed by the operator of the installation (PLUGIN_COMMANDS)"`
	Args                     httpapi.Optional[[]string]            `json:"args,omitempty" maxItems:"100"`
	WorkingDirectory         httpapi.Optional[string]              `json:"workingDirectory,omitempty" maxLength:"1000" doc:"Absolute path where plugins run; null means the plugin's data folder"`
	Env                      httpapi.Optional[Variables]           `json:"env,omitempty"`
	Config                   httpapi.Optional[json.RawMessage]     `json:"config,omitempty" doc:"An object; passed to the plugin unchanged"`
	CredentialDelivery       httpapi.Optional[string]              `json:"credentialDelivery,omitempty" enum:"env,init_message,both"`
	Credentials              httpapi.Optional[json.RawMessage]     `json:"credentials,omitempty" doc:"An object with string values; null and {} remove the credentials. They are never returned"`
	LibraryIDs               httpapi.Optional[[]uuid.UUID]         `json:"libraryIds,omitempty" maxItems:"1000"`
	Scopes                   httpapi.Optional[[]string]            `json:"scopes,omitempty" maxItems:"100"`
	Permissions              httpapi.Optional[[]string]            `json:"permissions,omitempty" maxItems:"100"`
	MetadataTargets          httpapi.Optional[[]string]            `json:"metadataTargets,omitempty" maxItems:"2"`
	UseExistingExternalID    httpapi.Optional[bool]                `json:"useExistingExternalId,omitempty"`
	AutoMatchConditions      httpapi.Optional[json.RawMessage]     `json:"autoMatchConditions,omitempty" doc:"An object with mode (all or any) and rules"`
	SearchQueryTemplate      httpapi.Optional[string]              `json:"searchQueryTemplate,omitempty" maxLength:"2000" doc:"Template for the search text of a series, for example {{metadata.title}} {{metadata.year}}"`
	SearchPreprocessingRules httpapi.Optional[[]library.TitleRule] `json:"searchPreprocessingRules,omitempty" maxItems:"50" doc:"Regular expressions that change the search text, like titlePreprocessingRules of libraries"`
	InternalConfig           httpapi.Optional[Internal]            `json:"internalConfig,omitempty"`
	RateLimit                httpapi.Optional[int32]               `json:"rateLimitRequestsPerMinute,omitempty" minimum:"1" maximum:"100000"`
	RequestTimeout           httpapi.Optional[int32]               `json:"requestTimeoutSeconds,omitempty" minimum:"1" maximum:"600"`
	LogLevel                 httpapi.Optional[string]              `json:"logLevel,omitempty" enum:"error,warn,info,debug"`
	SyncCronSchedule         httpapi.Optional[string]              `json:"syncCronSchedule,omitempty" maxLength:"100" doc:"Only for plugins of type user"`
}

// NewBody is a plugin to add.
type NewBody struct {
	Name       string `json:"name" minLength:"1" maxLength:"100" pattern:"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$" patternDescription:"small letters, digits and hyphens within"`
	PluginType string `json:"pluginType,omitempty" enum:"system,user" default:"system"`
	Enabled    bool   `json:"enabled,omitempty"`
	Command    string `json:"command" maxLength:"1000" doc:"Must be allowed by the operator of the installation (PLUGIN_COMMANDS)"`
	Fields
}

// Size limits of a plugin's settings, in bytes.
const (
	maxConfig      = 64 << 10
	maxCredentials = 16 << 10
	maxArg         = 4000
)

// check collects validation errors of an input.
type check struct{ bad []fault.Field }

func (c *check) add(field, format string, args ...any) {
	c.bad = append(c.bad, fault.Field{Field: field, Message: fmt.Sprintf(format, args...)})
}

// apply validates the change and applies it to p, which holds the defaults or the old values; allowed are the
// operator's commands.
func (f *Fields) apply(p *Plugin, allowed plug.Commands) error {
	var c check
	p.DisplayName, p.Description = f.DisplayName.Or(p.DisplayName), f.Description.OrNil(p.Description)
	if !naming.Printable(&p.DisplayName) {
		c.add("displayName", "must contain visible characters and no control characters")
	}
	if p.Description != nil && strings.TrimSpace(*p.Description) == "" {
		p.Description = nil
	}
	f.process(p, &c, allowed)
	f.rights(p, &c)
	f.matching(p, &c)
	p.RateLimitRequestsPerMin, p.RequestTimeoutSeconds = f.RateLimit.OrNil(p.RateLimitRequestsPerMin), f.RequestTimeout.OrNil(p.RequestTimeoutSeconds)
	p.LogLevel, p.SyncCronSchedule = f.LogLevel.OrNil(p.LogLevel), f.SyncCronSchedule.OrNil(p.SyncCronSchedule)
	if s := p.SyncCronSchedule; s != nil && *s == "" {
		p.SyncCronSchedule = nil
	}
	if s := p.SyncCronSchedule; s != nil {
		if _, err := cronexpr.Parse(*s, ""); err != nil {
			c.add("syncCronSchedule", "%v", err)
		}
		if p.PluginType != personal {
			c.add("syncCronSchedule", "is only for plugins of type user")
		}
	}
	return fault.InvalidFields(c.bad)
}

// process applies the settings of the process.
func (f *Fields) process(p *Plugin, c *check, allowed plug.Commands) {
	p.Command, p.Args = f.Command.Or(p.Command), orNone(f.Args.Or(p.Args))
	if f.Command.Set && !allowed.Allow(p.Command) {
		if len(allowed) == 0 {
			c.add("command", "is not allowed: the operator of this installation allows no commands (PLUGIN_COMMANDS)")
		} else {
			c.add("command", "is not allowed; the operator of this installation allows: %s", allowed)
		}
	}
	for i, a := range p.Args {
		if len(a) > maxArg || strings.ContainsRune(a, 0) {
			c.add(fmt.Sprintf("args[%d]", i), "must be at most %d bytes without NUL", maxArg)
		}
	}
	p.WorkingDirectory = f.WorkingDirectory.OrNil(p.WorkingDirectory)
	if w := p.WorkingDirectory; w != nil && (!strings.HasPrefix(*w, "/") || strings.ContainsRune(*w, 0)) {
		c.add("workingDirectory", "must be an absolute path, or null")
	}
	if f.Env.Set {
		p.Env = map[string]string{}
		env := f.Env.Or(Variables{})
		if env.malformed || len(env.list) > maxVariables {
			c.add("env", "must be an object of at most %d strings, or a list of {key, value}", maxVariables)
		}
		for i, v := range env.list {
			if !plug.AllowEnv(v.Key) || len(v.Key) > maxVariableName {
				c.add(fmt.Sprintf("env[%d].key", i), "must be at most %d letters, digits and _, and must not change what a program runs, as PATH does", maxVariableName)
			}
			if v.Value == nil || utf8.RuneCountInString(*v.Value) > maxVariableValue || strings.ContainsRune(*v.Value, 0) {
				c.add(fmt.Sprintf("env[%d].value", i), "must be a string of at most %d characters without NUL", maxVariableValue)
				continue
			}
			p.Env[v.Key] = *v.Value
		}
	}
	if f.Config.Set {
		p.Config = json.RawMessage(`{}`)
		if v := f.Config.Value; v != nil {
			p.Config = *v
		}
		if _, ok := configOf(p.Config); !ok {
			c.add("config", "%s", configRule)
		}
	}
	p.CredentialDelivery = cmp.Or(f.CredentialDelivery.Or(p.CredentialDelivery), "env")
}

// rights applies libraries, scopes and permissions.
func (f *Fields) rights(p *Plugin, c *check) {
	p.LibraryIDs, p.Scopes, p.Permissions = orNone(f.LibraryIDs.Or(p.LibraryIDs)), orNone(f.Scopes.Or(p.Scopes)), orNone(f.Permissions.Or(p.Permissions))
	for _, l := range []struct {
		field       string
		given, some []string
	}{{"scopes", p.Scopes, scopes}, {"permissions", p.Permissions, permissions}} {
		for i, v := range l.given {
			if !slices.Contains(l.some, v) {
				c.add(fmt.Sprintf("%s[%d]", l.field, i), "must be one of %s", strings.Join(l.some, ", "))
			}
		}
	}
	p.MetadataTargets = f.MetadataTargets.Or(p.MetadataTargets)
	for i, v := range p.MetadataTargets {
		if v != "series" && v != "book" {
			c.add(fmt.Sprintf("metadataTargets[%d]", i), "must be series or book")
		}
	}
}

// matching applies the settings for matching series.
func (f *Fields) matching(p *Plugin, c *check) {
	p.UseExistingExternalID = f.UseExistingExternalID.Or(p.UseExistingExternalID)
	if f.AutoMatchConditions.Set {
		p.AutoMatchConditions = f.AutoMatchConditions.Or(nil)
		c.bad = append(c.bad, automatch.Check(&p.AutoMatchConditions)...)
	}
	if p.SearchQueryTemplate = f.SearchQueryTemplate.OrNil(p.SearchQueryTemplate); p.SearchQueryTemplate != nil {
		if strings.TrimSpace(*p.SearchQueryTemplate) == "" {
			p.SearchQueryTemplate = nil
		} else if _, err := handlebars.Parse(*p.SearchQueryTemplate); err != nil {
			c.add("searchQueryTemplate", "%v", err)
		}
	}
	p.SearchPreprocessingRules = f.SearchPreprocessingRules.Or(p.SearchPreprocessingRules)
	c.bad = append(c.bad, library.CheckTitleRules("searchPreprocessingRules", p.SearchPreprocessingRules)...)
	if len(p.SearchPreprocessingRules) == 0 {
		p.SearchPreprocessingRules = nil
	}
	if f.InternalConfig.Set {
		p.SearchResultsLimit = f.InternalConfig.Or(Internal{}).SearchResultsLimit
		if n := p.SearchResultsLimit; n != nil && *n < 0 {
			c.add("internalConfig.searchResultsLimit", "must be at least 0, or null")
		}
	}
}

// credentials returns the new credentials, nil for none; changed reports whether the input sets or clears them.
func (f *Fields) credentials() (secret []byte, changed bool, err error) {
	if !f.Credentials.Set {
		return nil, false, nil
	}
	raw := f.Credentials.Value
	if raw == nil {
		return nil, true, nil
	}
	var texts map[string]string
	if err := json.Unmarshal(*raw, &texts); err != nil || len(*raw) > maxCredentials {
		return nil, true, fault.Invalid("credentials", "must be a JSON object of strings of at most %d bytes, or null", maxCredentials)
	}
	for k, v := range texts {
		if !plug.AllowEnv(plug.EnvName(k)) || strings.ContainsRune(v, 0) {
			return nil, true, fault.Invalid("credentials",
				"must have names of letters, digits, - and _ that do not change what a program runs, and values without NUL; check %q", k)
		}
	}
	if len(texts) == 0 {
		return nil, true, nil
	}
	secret, err = json.Marshal(texts)
	return secret, true, err
}

// configRule says what configOf accepts.
var configRule = fmt.Sprintf("must be a JSON object of at most %d bytes and %d levels without NUL", maxConfig, maxDepth)

// configOf returns the members of a config; ok is false if it breaks configRule.
func configOf(config json.RawMessage) (members map[string]any, ok bool) {
	err := json.Unmarshal(config, &members)
	return members, err == nil && members != nil && len(config) <= maxConfig && !httpapi.HoldsNUL(config) && depth(members) <= maxDepth
}

// orNone replaces a nil list, which would be written as null.
func orNone[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
