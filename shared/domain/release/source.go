package release

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/format/cronexpr"
	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/platform/plug"
)

// Source is what a plugin polls for releases.
type Source struct {
	ID                    uuid.UUID       `json:"id" db:"id"`
	PluginID              string          `json:"pluginId" db:"plugin" doc:"Name of the plugin"`
	SourceKey             string          `json:"sourceKey" db:"name" doc:"The plugin's key of the source"`
	DisplayName           string          `json:"displayName" db:"display_name"`
	Kind                  string          `json:"kind" db:"kind" enum:"rss-uploader,rss-series,api-feed,metadata-feed"`
	Config                json.RawMessage `json:"config" db:"config"`
	Enabled               bool            `json:"enabled" db:"enabled"`
	CronSchedule          *string         `json:"cronSchedule" db:"cron_schedule" doc:"The source's own schedule; null means the setting release_tracking.default_cron_schedule"`
	EffectiveCronSchedule string          `json:"effectiveCronSchedule" db:"-" doc:"Empty means never"`
	ETag                  *string         `json:"etag" db:"etag"`
	LastPolledAt          *time.Time      `json:"lastPolledAt" db:"last_polled_at"`
	LastError             *string         `json:"lastError" db:"last_error" doc:"Error of the last poll; null if it succeeded"`
	LastErrorAt           *time.Time      `json:"lastErrorAt" db:"last_error_at"`
	LastSummary           *string         `json:"lastSummary" db:"last_summary" doc:"Result of the last poll"`
	CreatedAt             time.Time       `json:"createdAt" db:"created_at"`
	UpdatedAt             time.Time       `json:"updatedAt" db:"updated_at"`
}

const (
	sourceColumns = `s.id, p.name as plugin, s.name, s.display_name, s.kind, s.config, s.enabled, s.cron_schedule, s.etag, s.last_polled_at, s.last_error,
	s.last_error_at, s.last_summary, s.created_at, s.updated_at`
	ofPlugin = " join plugin p on p.tenant_id = app.tenant() and p.id = s.plugin_id where s.tenant_id = app.tenant()"
)

// shown fills in the effective schedule.
func (s *Source) shown(usual string) *Source {
	s.EffectiveCronSchedule = usual
	if s.CronSchedule != nil {
		s.EffectiveCronSchedule = *s.CronSchedule
	}
	return s
}

func sources(ctx context.Context, d *db.DB, p httpapi.Paging) ([]Source, int64, error) {
	var b pgx.Batch
	var page []Source
	var total int64
	var usual string
	setting.Value(&b, setting.ReleaseCron, &usual)
	db.All(&b, &page, "select "+sourceColumns+" from release_source s"+ofPlugin+" order by p.name, s.display_name, s.id limit $1 offset $2", p.Limit(), p.Offset())
	db.Value(&b, &total, "select count(*) from release_source where tenant_id = app.tenant() and plugin_id is not null")
	err := d.Run(ctx, &b)
	for i := range page {
		page[i].shown(usual)
	}
	return page, total, err
}

// SourceBody changes a source.
type SourceBody struct {
	DisplayName  *string                  `json:"displayName,omitempty" minLength:"1" maxLength:"200" nullable:"true"`
	Enabled      *bool                    `json:"enabled,omitempty" nullable:"true"`
	CronSchedule httpapi.Optional[string] `json:"cronSchedule,omitempty" maxLength:"100"`
}

// change changes a source. A new schedule, and a reactivation, count from when a scheduler first sees them.
func (b *SourceBody) change(ctx context.Context, d *db.DB, id uuid.UUID) (*Source, error) {
	if b.DisplayName != nil && !naming.Printable(b.DisplayName) {
		return nil, fault.Invalid("displayName", "must contain visible characters and no control characters")
	}
	cron := b.CronSchedule.Value
	if cron != nil && *cron == "" {
		cron = nil
	}
	if cron != nil {
		if _, err := cronexpr.Parse(*cron, ""); err != nil {
			return nil, fault.Invalid("cronSchedule", "%v", err)
		}
	}
	var batch pgx.Batch
	var out *Source
	var usual string
	setting.Value(&batch, setting.ReleaseCron, &usual)
	db.One(&batch, &out, `update release_source s set display_name = coalesce($2, s.display_name), enabled = coalesce($3, s.enabled),
		  cron_schedule = case when $4 then $5 else s.cron_schedule end, next_at = case when s.enabled then s.next_at end, updated_at = now()
		from plugin p where s.tenant_id = app.tenant() and s.id = $1 and p.tenant_id = app.tenant() and p.id = s.plugin_id returning `+sourceColumns,
		id, b.DisplayName, b.Enabled, b.CronSchedule.Set, cron)
	if err := d.Run(ctx, &batch); err != nil {
		return nil, err
	}
	if out == nil {
		return nil, fault.Missing("Release source")
	}
	return out.shown(usual), nil
}

// forgetting resets the polling state of a source.
const forgetting = "etag = null, last_polled_at = null, last_error = null, last_error_at = null, last_summary = null, " +
	"covered_at = null, round_at = null, resume_after = null, updated_at = now()"

// lockTracking locks the series with releases of source $1 and their tracking rows, in the order of a poll.
const lockTracking = `select from series_tracking t join series s on s.tenant_id = app.tenant() and s.id = t.series_id
	where t.tenant_id = app.tenant() and t.series_id in (select r.series_id from release r
	  where r.tenant_id = app.tenant() and ($1::uuid is null or r.source_id = $1) and ` + there + `)
	order by t.series_id for key share of s for no key update of t`

// end is SQL for the last volume or chapter of a release r.
func end(of string) string {
	return "(select max((x ->> 'end')::double precision) from jsonb_array_elements(r." + of + ") x)"
}

// resetSQL deletes the releases of source $1, and counts them per series. Latest known volumes and chapters that come
// from these become those that other sources have announced. Ignored releases do not count: those that a source sent as
// ignored have raised none, and after one that a person has set to ignored, the number stays.
var resetSQL = `with gone as (
	  delete from release r where r.tenant_id = app.tenant() and ($1::uuid is null or r.source_id = $1) and ` + there + `
	  returning r.series_id, r.state, ` + end("volumes") + ` as volume, ` + end("chapters") + ` as chapter),
	lost as (select series_id, count(*), array_agg(volume) filter (where state <> '` + ignored + `') as volumes,
	    array_agg(chapter) filter (where state <> '` + ignored + `') as chapters from gone group by 1),
	back as (
	  update series_tracking t set latest_volume = case when t.latest_volume = any(l.volumes) then o.volume else t.latest_volume end,
	    latest_chapter = case when t.latest_chapter = any(l.chapters) then o.chapter else t.latest_chapter end
	  from lost l cross join lateral (select max(` + end("volumes") + `) as volume, max(` + end("chapters") + `) as chapter from release r
	    where r.tenant_id = app.tenant() and r.series_id = l.series_id and r.source_id <> $1 and r.state <> '` + ignored + `' and ` + there + `) o
	  where t.tenant_id = app.tenant() and t.series_id = l.series_id)
	select s.id as series_id, s.library_id, l.count from lost l join series s on s.tenant_id = app.tenant() and s.id = l.series_id`

// reset deletes the releases of a source, and its polling state; nil resets all sources. What they announced counts as
// unknown. It returns the numbers, and the series that had releases.
func reset(ctx context.Context, d *db.DB, id *uuid.UUID) (sources, releases int64, of []place, err error) {
	var b pgx.Batch
	db.NoStatementTimeout(&b) // deleting thousands of releases takes long
	b.Queue("select from release_source where tenant_id = app.tenant() and ($1::uuid is null or id = $1) and plugin_id is not null order by id for no key update", id)
	var gone []struct {
		place
		Count int64 `db:"count"`
	}
	b.Queue(lockTracking, id)
	db.All(&b, &gone, resetSQL, id)
	db.Affected(&b, &sources, "update release_source set "+forgetting+" where tenant_id = app.tenant() and ($1::uuid is null or id = $1) and plugin_id is not null", id)
	err = d.Run(ctx, &b)
	if err == nil && sources == 0 && id != nil {
		err = fault.Missing("Release source")
	}
	for _, g := range gone {
		releases, of = releases+g.Count, append(of, g.place)
	}
	return sources, releases, of, err
}

// params are the parameters of a task that polls a source.
type params struct {
	SourceID uuid.UUID `json:"sourceId"`
}

// pollKey is the dedupe key of a source's poll.
func pollKey(source uuid.UUID) string { return task.PollReleaseSource + ":" + source.String() }

// queuePoll adds the task that polls a source of an enabled plugin, unless one is unfinished; id receives the id of
// either.
func queuePoll(b *pgx.Batch, source, fresh uuid.UUID, id *uuid.UUID) error {
	return task.AddFor(b, task.Spec{ID: fresh, Type: task.PollReleaseSource, Params: params{source}, DedupeKey: pollKey(source)},
		task.Found(`select null::uuid as library_id, null::uuid as series_id, null::uuid as book_id, '{}'::jsonb as params from release_source s
			join plugin p on p.tenant_id = app.tenant() and p.id = s.plugin_id where s.tenant_id = app.tenant() and s.id = $1 and s.enabled and p.enabled`, source), id)
}

// Polled is the response to a poll request.
type Polled struct {
	TaskID  uuid.UUID `json:"taskId"`
	Status  string    `json:"status" enum:"enqueued,already_running"`
	Message string    `json:"message"`
}

func poll(ctx context.Context, d *db.DB, source uuid.UUID) (*Polled, error) {
	var b pgx.Batch
	var found *struct {
		Enabled bool `db:"enabled"`
		Plugin  bool `db:"plugin"`
	}
	var id uuid.UUID
	fresh := uuid.Must(uuid.NewV7())
	db.One(&b, &found, "select s.enabled, p.enabled as plugin from release_source s"+ofPlugin+" and s.id = $1", source)
	if err := queuePoll(&b, source, fresh, &id); err != nil {
		return nil, err
	}
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	switch {
	case found == nil:
		return nil, fault.Missing("Release source")
	case !found.Enabled:
		return nil, fault.New(fault.Conflict, "The source is disabled; enable it first")
	case !found.Plugin:
		return nil, fault.New(fault.Conflict, "The plugin of the source is disabled; enable it first")
	case id != fresh:
		return &Polled{id, "already_running", "The source is being polled already"}, nil
	}
	return &Polled{id, "enqueued", "The poll is queued"}, nil
}

// PolledAll is the response to a poll request for all enabled sources.
type PolledAll struct {
	Considered int `json:"considered"`
	Enqueued   int `json:"enqueued"`
	Coalesced  int `json:"coalesced" doc:"Number of sources that were being polled already"`
	Failed     int `json:"failed" doc:"Always 0: either all sources are queued or none"`
}

func pollAll(ctx context.Context, d *db.DB) (*PolledAll, error) {
	type entry struct {
		ID uuid.UUID `db:"id"`
	}
	all, err := db.List[entry](ctx, d, "select s.id from release_source s"+ofPlugin+" and s.enabled and p.enabled order by s.id limit $1", mostSources)
	if err != nil {
		return nil, err
	}
	var b pgx.Batch
	ids, fresh := make([]uuid.UUID, len(all)), make([]uuid.UUID, len(all))
	for i, s := range all {
		fresh[i] = uuid.Must(uuid.NewV7())
		if err := queuePoll(&b, s.ID, fresh[i], &ids[i]); err != nil {
			return nil, err
		}
	}
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	out := &PolledAll{Considered: len(all)}
	for i, id := range ids {
		switch id {
		case fresh[i]:
			out.Enqueued++
		case uuid.Nil: // disabled meanwhile
		default:
			out.Coalesced++
		}
	}
	return out, nil
}

// Applicability says whether any plugin announces releases.
type Applicability struct {
	Applicable         bool     `json:"applicable"`
	PluginDisplayNames []string `json:"pluginDisplayNames" nullable:"false"`
}

// applicability returns the plugins that announce releases, for one library or any.
func applicability(ctx context.Context, d *db.DB, library *uuid.UUID) (*Applicability, error) {
	var b pgx.Batch
	out := &Applicability{PluginDisplayNames: []string{}}
	known := library == nil
	if library != nil {
		db.Value(&b, &known, "select exists (select from library where tenant_id = app.tenant() and id = $1)", *library)
	}
	db.Values(&b, &out.PluginDisplayNames, `select p.display_name from plugin p where p.tenant_id = app.tenant() and p.enabled and app.announces(p)
		and ($1::uuid is null or p.library_ids = '{}' or $1 = any(p.library_ids)) order by p.display_name, p.id`, library)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if !known {
		return nil, fault.Missing("Library")
	}
	out.Applicable = len(out.PluginDisplayNames) > 0
	return out, nil
}

// Limits of named sources.
const (
	mostSources       = 1000 // per tenant
	maxSourceConfig   = 16 << 10
	defaultSourceName = "default"
)

// Named is a source as a plugin names it.
type Named struct {
	SourceKey   string          `json:"sourceKey"`
	DisplayName string          `json:"displayName"`
	Kind        string          `json:"kind"`
	Config      json.RawMessage `json:"config,omitempty"`
}

// QueueSources replaces the sources of a plugin by those that it names; others are removed with their releases.
// People's changes to a source stay. Invalid sources are ignored.
func QueueSources(b *pgx.Batch, plugin uuid.UUID, named []Named) {
	usable, seen := []Named{}, map[string]bool{}
	for _, n := range named {
		if n, ok := n.usable(); ok && !seen[n.SourceKey] && len(usable) < plug.MaxSources {
			usable, seen[n.SourceKey] = append(usable, n), true
		}
	}
	queueGone(b, `s.plugin_id = $1 and s.name not in (select x."sourceKey" from jsonb_to_recordset($2) as x("sourceKey" text))`, plugin, usable)
	queueAdd(b, plugin, usable, "true")
}

// QueueDefault creates a source named default for a plugin that announces releases and has named no source.
func QueueDefault(b *pgx.Batch, plugin uuid.UUID) {
	queueAdd(b, plugin, []Named{{defaultSourceName, "", "api-feed", nil}},
		"app.announces(p) and not exists (select from release_source s where s.tenant_id = app.tenant() and s.plugin_id = p.id)")
}

// queueAdd adds or updates sources of a plugin, if a condition on p holds. A source without a display name gets the
// plugin's.
func queueAdd(b *pgx.Batch, plugin uuid.UUID, named []Named, condition string) {
	b.Queue(fmt.Sprintf(`insert into release_source as s (tenant_id, id, plugin_id, name, display_name, kind, config)
		select app.tenant(), gen_random_uuid(), p.id, x."sourceKey", coalesce(nullif(x."displayName", ''), p.display_name), x.kind, x.config
		from plugin p, jsonb_to_recordset($2) as x("sourceKey" text, "displayName" text, kind text, config jsonb)
		where p.tenant_id = app.tenant() and p.id = $1 and %s and (select count(*) from release_source where tenant_id = app.tenant() and plugin_id is not null) < %d
		on conflict (tenant_id, plugin_id, name) do update set kind = excluded.kind, config = excluded.config, updated_at = now()
		where (s.kind, s.config) is distinct from (excluded.kind, excluded.config)`, condition, mostSources), plugin, named)
}
