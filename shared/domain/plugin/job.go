package plugin

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/format/cronexpr"
	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/filter"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Job is a scheduled job of a library, with the result of its last run.
type Job struct {
	ID             uuid.UUID  `json:"id" db:"id"`
	LibraryID      uuid.UUID  `json:"libraryId" db:"library_id"`
	Name           string     `json:"name" db:"name"`
	Enabled        bool       `json:"enabled" db:"enabled" doc:"Whether the job runs on its schedule"`
	CronSchedule   string     `json:"cronSchedule" db:"cron_schedule" doc:"Cron expression with 5 fields, or 6 with seconds"`
	Timezone       *string    `json:"timezone" db:"timezone" doc:"IANA time zone; null means the setting scheduler.timezone"`
	Config         JobConfig  `json:"config" db:"config"`
	LastRunAt      *time.Time `json:"lastRunAt" db:"last_run_at"`
	LastRunStatus  *string    `json:"lastRunStatus" db:"last_run_status" enum:"pending,running,completed,failed,cancelled"`
	LastRunMessage *string    `json:"lastRunMessage" db:"last_run_message"`
	CreatedAt      time.Time  `json:"createdAt" db:"created_at"`
	UpdatedAt      time.Time  `json:"updatedAt" db:"updated_at"`
}

// The scopes of a job.
const (
	seriesOnly = "series_only"
	booksOnly  = "books_only"
	both       = "series_and_books"
)

// refreshType is the only type of job.
const refreshType = "metadata_refresh"

// JobConfig says what a job requests from which plugin.
type JobConfig struct {
	Type                      string   `json:"type" enum:"metadata_refresh"`
	Provider                  string   `json:"provider" minLength:"1" maxLength:"110" doc:"Name of a plugin, with or without the prefix plugin:" example:"plugin:example"`
	Scope                     string   `json:"scope" required:"false" enum:"series_only,books_only,series_and_books" doc:"Defaults to series_only"`
	FieldGroups               []string `json:"fieldGroups" required:"false" nullable:"true" maxItems:"50" doc:"Field groups of series, see /library-jobs/metadata-refresh/field-groups. Without groups and extra fields, all fields are included"`
	ExtraFields               []string `json:"extraFields" required:"false" nullable:"true" maxItems:"100" doc:"Further fields of series, by their names in a preview"`
	BookFieldGroups           []string `json:"bookFieldGroups" required:"false" nullable:"true" maxItems:"50"`
	BookExtraFields           []string `json:"bookExtraFields" required:"false" nullable:"true" maxItems:"100"`
	ExistingSourceIDsOnly     bool     `json:"existingSourceIdsOnly" required:"false" doc:"Include only series and books that already have an id of the plugin; nothing is searched for"`
	SkipRecentlySyncedWithinS int32    `json:"skipRecentlySyncedWithinS" required:"false" minimum:"0" maximum:"315360000" doc:"Skip series and books synced within this many seconds; 0 skips none"`
	MaxConcurrency            int32    `json:"maxConcurrency" required:"false" minimum:"1" maximum:"16" doc:"Maximum number of concurrent requests to the plugin; defaults to 4"`
}

// UnmarshalJSON accepts both spellings of the names.
func (c *JobConfig) UnmarshalJSON(data []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return err
	}
	for name, value := range members {
		if _, there := members[filter.Camel(name)]; !there {
			members[filter.Camel(name)] = value
		}
	}
	data, err := json.Marshal(members)
	if err != nil {
		return err
	}
	type plain JobConfig // without this method
	return json.Unmarshal(data, (*plain)(c))
}

// plugin returns the name of the plugin.
func (c *JobConfig) plugin() string { return strings.TrimPrefix(c.Provider, sourcePrefix) }

// kinds returns the kinds of items, in the order of the run.
func (c *JobConfig) kinds() []string {
	switch c.Scope {
	case booksOnly:
		return []string{"book"}
	case both:
		return []string{"series", "book"}
	}
	return []string{"series"}
}

// fields returns the fields of a kind that may be written, nil for all.
func (c *JobConfig) fields(kind string) []string {
	if kind == "book" {
		return chosen(kind, c.BookFieldGroups, c.BookExtraFields)
	}
	return chosen(kind, c.FieldGroups, c.ExtraFields)
}

// settle sets defaults and validates; at is the config's path in the body.
func (c *JobConfig) settle(at string, bad *check) {
	c.Scope, c.MaxConcurrency = cmp.Or(c.Scope, seriesOnly), cmp.Or(c.MaxConcurrency, 4)
	if c.Type != refreshType {
		bad.add(at+".type", "must be %s", refreshType)
	}
	name := c.plugin()
	if name == "" || len(name) > 100 || !naming.Printable(&name) {
		bad.add(at+".provider", "must be the name of a plugin")
	}
	c.Provider = sourcePrefix + name
	if !slices.Contains([]string{seriesOnly, booksOnly, both}, c.Scope) {
		bad.add(at+".scope", "must be %s, %s or %s", seriesOnly, booksOnly, both)
	}
	if c.MaxConcurrency < 1 || c.MaxConcurrency > 16 {
		bad.add(at+".maxConcurrency", "must be 1 to 16")
	}
	if s := c.SkipRecentlySyncedWithinS; s < 0 || s > 315360000 {
		bad.add(at+".skipRecentlySyncedWithinS", "must be 0 to 315360000")
	}
	groups := make([]string, len(fieldGroups))
	for i, g := range fieldGroups {
		groups[i] = g.ID
	}
	for _, l := range []struct {
		field string
		given *[]string
		known []string
		of    string
	}{{"fieldGroups", &c.FieldGroups, groups, "listed by /library-jobs/metadata-refresh/field-groups"},
		{"extraFields", &c.ExtraFields, fieldsOf("series"), "in a preview of a series"},
		{"bookFieldGroups", &c.BookFieldGroups, groups, "listed by /library-jobs/metadata-refresh/field-groups"},
		{"bookExtraFields", &c.BookExtraFields, fieldsOf("book"), "in a preview of a book"}} {
		if len(*l.given) > 100 {
			bad.add(at+"."+l.field, "has %d names; the limit is 100", len(*l.given))
			continue
		}
		for i, name := range *l.given {
			if !slices.Contains(l.known, name) {
				bad.add(fmt.Sprintf("%s.%s[%d]", at, l.field, i), "must be one of those %s", l.of)
			}
		}
		*l.given = orNone(*l.given)
	}
}

// NewJob is a job to add.
type NewJob struct {
	Name         *string   `json:"name,omitempty" nullable:"true" maxLength:"200" doc:"Null means a name derived from the plugin's name"`
	CronSchedule string    `json:"cronSchedule" minLength:"1" maxLength:"200"`
	Timezone     *string   `json:"timezone,omitempty" nullable:"true" maxLength:"100"`
	Enabled      *bool     `json:"enabled,omitempty" nullable:"true" doc:"Defaults to true"`
	Config       JobConfig `json:"config"`
}

// job returns the validated job.
func (n *NewJob) job(library uuid.UUID) (*Job, error) {
	var bad check
	out := &Job{ID: uuid.Must(uuid.NewV7()), LibraryID: library, CronSchedule: n.CronSchedule, Timezone: zoneOf(n.Timezone, &bad), Enabled: n.Enabled == nil || *n.Enabled, Config: n.Config}
	checkCron(n.CronSchedule, &bad)
	out.Config.settle("config", &bad)
	out.Name = nameOf(n.Name, &out.Config, &bad)
	return out, fault.InvalidFields(bad.bad)
}

// JobChange changes a job; config is replaced as a whole.
type JobChange struct {
	Name         httpapi.Optional[string]    `json:"name,omitempty" maxLength:"200"`
	CronSchedule httpapi.Optional[string]    `json:"cronSchedule,omitempty" minLength:"1" maxLength:"200" doc:"Null leaves the value unchanged; the same applies to enabled and config"`
	Timezone     httpapi.Optional[string]    `json:"timezone,omitempty" maxLength:"100"`
	Enabled      httpapi.Optional[bool]      `json:"enabled,omitempty"`
	Config       httpapi.Optional[JobConfig] `json:"config,omitempty"`
}

// check validates the change and sets defaults in the config.
func (c *JobChange) check() error {
	var bad check
	if c.CronSchedule.Value != nil {
		checkCron(*c.CronSchedule.Value, &bad)
	}
	c.Timezone.Value = zoneOf(c.Timezone.Value, &bad)
	if c.Config.Value != nil {
		c.Config.Value.settle("config", &bad)
	}
	if c.Name.Value != nil {
		name := nameOf(c.Name.Value, nil, &bad)
		c.Name.Value = &name
	}
	return fault.InvalidFields(bad.bad)
}

// nameOf returns the given name of a job, else one made of its plugin's; empty if there is no config.
func nameOf(name *string, c *JobConfig, bad *check) string {
	if name != nil && strings.TrimSpace(*name) != "" {
		if !naming.Printable(name) || utf8.RuneCountInString(*name) > 200 {
			bad.add("name", "must be at most 200 printable characters")
		}
		return *name
	}
	if c == nil {
		return ""
	}
	return nameless + c.plugin()
}

// nameless is the prefix of a default job name; the plugin's name follows.
const nameless = "Metadata of "

func checkCron(expression string, bad *check) {
	if _, err := cronexpr.Parse(expression, ""); err != nil {
		bad.add("cronSchedule", "%v", err)
	}
}

// zoneOf returns the time zone, nil if none is named.
func zoneOf(name *string, bad *check) *string {
	if name == nil || strings.TrimSpace(*name) == "" {
		return nil
	}
	if _, err := cronexpr.Parse("0 0 * * *", *name); err != nil {
		bad.add("timezone", "%v", err)
	}
	return name
}
