package release

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/cut"
	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/plug"
)

// Limits of a poll.
const (
	mostCandidates = 1000
	mostKept       = 20_000  // releases per source
	mostOfAll      = 200_000 // releases per tenant
	mostTold       = 200     // events
	sure           = 0.7     // default confidence threshold, which people can change per series
)

// Poll is a source to poll.
type Poll struct {
	ID         uuid.UUID       `db:"id"`
	PluginID   uuid.UUID       `db:"plugin_id"`
	Plugin     string          `db:"plugin"` // its name
	Name       string          `db:"name"`
	Config     json.RawMessage `db:"config"`
	ETag       *string         `db:"etag"`
	Enabled    bool            `db:"enabled"`
	LibraryIDs []uuid.UUID     `db:"library_ids"` // of the plugin
	Announces  json.RawMessage `db:"announces"`   // releaseSource of its manifest

	CoveredAt   *time.Time        `db:"covered_at"`
	ResumeAfter *uuid.UUID        `db:"resume_after"` // the last series of the poll before, if this one sends the rest
	resume      *uuid.UUID        // the last series sent to the plugin, if there are more
	asOf        *time.Time        // when these were due, by the database's clock
	unseen      bool              // a series in this poll may not have been in the one that stored the ETag
	recorded    map[string]string // releases of the source, as the plugin knows them

	languages, notifyIn, notifyBy []string // from the settings

	kept, keptOfAll int // maximum number of releases per source, and in total
	trimStep        int // how many in excess are deleted at once
}

// Begin reads a source to poll; NotFound if it was removed, Conflict if it is disabled.
func Begin(ctx context.Context, d *db.DB, source uuid.UUID) (*Poll, error) {
	var b pgx.Batch
	var out *Poll
	db.One(&b, &out, "select s.id, s.plugin_id, p.name as plugin, s.name, s.config, s.etag, s.enabled, p.library_ids, s.covered_at, s.resume_after, "+
		"p.manifest #> '{capabilities,releaseSource}' as announces from release_source s"+ofPlugin+" and s.id = $1", source)
	var lists [3]string
	for i, key := range []string{setting.ReleaseLanguages, setting.ReleaseNotifyIn, setting.ReleaseNotifyBy} {
		setting.Value(&b, key, &lists[i])
	}
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	switch {
	case out == nil:
		return nil, fault.Missing("Release source")
	case !out.Enabled:
		return nil, fault.New(fault.Conflict, "The source is disabled")
	}
	out.kept, out.keptOfAll, out.trimStep = mostKept, mostOfAll, trimStep
	for i, to := range []*[]string{&out.languages, &out.notifyIn, &out.notifyBy} {
		if err := json.Unmarshal([]byte(lists[i]), to); err != nil {
			return nil, fmt.Errorf("read setting of release tracking: %w", err)
		}
	}
	return out, nil
}

// Params returns the parameters of the request releases/poll.
func (p *Poll) Params() map[string]any {
	out := map[string]any{"sourceId": p.ID, "sourceKey": p.Name}
	if p.Config != nil {
		out["config"] = p.Config
	}
	if tag := p.etag(); tag != nil {
		out["etag"] = *tag
	}
	return out
}

// partial reports whether the plugin gets only some of the series that are due.
func (p *Poll) partial() bool { return p.ResumeAfter != nil || p.resume != nil }

// etag returns the ETag for the plugin: none if it may be that of a poll without some of these series, because it would
// hide the feed from these.
func (p *Poll) etag() *string {
	if p.partial() || p.unseen {
		return nil
	}
	return p.ETag
}

// Result is the plugin's response.
type Result struct {
	Candidates     []json.RawMessage `json:"candidates"`
	ETag           *string           `json:"etag"`
	NotModified    bool              `json:"notModified"`
	UpstreamStatus *float64          `json:"upstreamStatus"`
	Failed         *string           `json:"-"` // why the plugin did not respond
	TimedOut       bool              `json:"-"` // it was stopped because it did not respond in time

	recorded []plug.Recorded   // releases announced during the request
	sources  []json.RawMessage // sources named during the request; nil: none
	reached  *uuid.UUID        // the last series of which a release was announced during the request
}

// Outcome is the result of a poll.
type Outcome struct {
	Candidates int `json:"candidates"`
	Announced  int `json:"announced"`
	Ignored    int `json:"ignored"`
	Known      int `json:"known"`
	Refused    int `json:"refused"` // below the threshold, for untracked series, or unusable
}

// summary describes the outcome for people.
func (o Outcome) summary() string {
	if o.Candidates == 0 {
		return "Nothing new"
	}
	return fmt.Sprintf("%d announced, %d ignored, %d already known, %d refused", o.Announced, o.Ignored, o.Known, o.Refused)
}

// subject is a tracked series with announced releases.
type subject struct {
	ID             uuid.UUID       `db:"id"`
	Title          string          `db:"title"`
	TrackChapters  bool            `db:"track_chapters"`
	TrackVolumes   bool            `db:"track_volumes"`
	Chapter        float64         `db:"chapter"` // latest one existing or known; -1 if none
	Volume         float64         `db:"volume"`
	OwnedVolume    float64         `db:"owned_volume"`
	Languages      []string        `db:"languages"`
	VolumeChapters json.RawMessage `db:"volume_chapters"`
	Threshold      float64         `db:"threshold"`
}

// subjectsSQL selects the series with announced releases. A series is locked before its tracking row, as by its
// deletion.
const subjectsSQL = `select s.id, s.title, t.track_chapters, t.track_volumes, greatest(t.latest_chapter, o.chapter, -1) as chapter,
	  greatest(t.latest_volume, o.volume, -1) as volume, coalesce(o.volume, -1)::double precision as owned_volume, t.languages, t.volume_chapters,
	  coalesce(t.confidence_threshold, $3) as threshold
	from series_tracking t join series s on s.tenant_id = app.tenant() and s.id = t.series_id
	cross join lateral (select max(b.volume) as volume, max(b.chapter) as chapter from book b
	  where b.tenant_id = app.tenant() and b.series_id = t.series_id and b.deleted_at is null) o
	where t.tenant_id = app.tenant() and t.series_id = any($1) and t.tracked and ($2::uuid[] = '{}' or s.library_id = any($2))
	order by t.series_id for key share of s for no key update of t`

// subjects reads the series with announced releases, and locks their tracking rows.
func (p *Poll) subjects(ctx context.Context, tx pgx.Tx, all []*candidate) (map[uuid.UUID]*subject, error) {
	ids := make([]uuid.UUID, len(all))
	for i, c := range all {
		ids[i] = c.SeriesID
	}
	rows, err := tx.Query(ctx, subjectsSQL, ids, append([]uuid.UUID{}, p.LibraryIDs...), sure)
	if err != nil {
		return nil, err
	}
	found, err := pgx.CollectRows(rows, pgx.RowToAddrOfStructByName[subject])
	out := make(map[uuid.UUID]*subject, len(found))
	for _, s := range found {
		out[s.ID] = s
	}
	return out, err
}

// speaks reports whether a release is in a tracked language of the series; an unknown language counts as tracked.
func (s *subject) speaks(language *string, usual []string) bool {
	if s.Languages != nil {
		usual = s.Languages
	}
	return among(language, usual)
}

// among reports whether a language is in a list; an empty list contains all.
func among(language *string, list []string) bool {
	if language == nil || len(list) == 0 {
		return true
	}
	base, _, _ := strings.Cut(strings.ToLower(*language), "-")
	return slices.Contains(list, base)
}

// news reports whether a release has a volume or chapter newer than what exists or is known, or names neither.
func (s *subject) news(c *candidate) bool {
	volume, ofVolumes := last(c.Volumes)
	chapter, ofChapters := last(c.Chapters)
	if ofVolumes && s.TrackVolumes && volume > s.Volume {
		return true
	}
	if ofChapters && s.TrackChapters && chapter > s.ownedChapter() {
		return true
	}
	return !ofVolumes && !ofChapters
}

// ownedChapter returns the latest known chapter, including those in existing volumes.
func (s *subject) ownedChapter() float64 {
	out := s.Chapter
	if s.VolumeChapters == nil {
		return out
	}
	all, _, err := volumeChapters(s.VolumeChapters)
	if err != nil { // validated when it was stored
		return out
	}
	for volume, end := range all {
		if volume <= s.OwnedVolume {
			out = max(out, end)
		}
	}
	return out
}

// Record stores the result of a poll and publishes events. It may be called again with the same result.
func (p *Poll) Record(ctx context.Context, d *db.DB, publish events.Publish, in *Result) (*Outcome, error) {
	now := time.Now().UTC()
	all, total, known := in.candidates(now, p.recorded)
	out := &Outcome{}
	var told []events.Event
	err := d.Tx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		told, *out = nil, Outcome{Candidates: total, Known: known}
		if err := p.rename(ctx, tx, in); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, "select from release_source where tenant_id = app.tenant() and id = $1 and plugin_id is not null for no key update", p.ID)
		switch {
		case err != nil:
			return err
		case tag.RowsAffected() == 0 && in.sources != nil: // it has named other sources
			out.Known, out.Refused = 0, total
			return nil
		case tag.RowsAffected() == 0:
			return fault.Missing("Release source")
		}
		if len(all) > 0 {
			if told, err = p.insert(ctx, tx, all, out); err != nil {
				return err
			}
		}
		out.Refused = out.Candidates - out.Announced - out.Ignored - out.Known
		return p.note(ctx, tx, in, out)
	})
	if err != nil {
		return nil, err
	}
	publish(ctx, db.ScopeOf(ctx).TenantID(), append(told, events.ReleaseSourcePolled(p.ID, p.Plugin, in.failure() != nil))...)
	return out, nil
}

// rename replaces the plugin's sources by those that it has named, if any.
func (p *Poll) rename(ctx context.Context, tx pgx.Tx, in *Result) error {
	if in.sources == nil {
		return nil
	}
	var b pgx.Batch
	// Locked before its sources, as in its deletion.
	b.Queue("select from plugin where tenant_id = app.tenant() and id = $1 for key share", p.PluginID)
	// Locks the polled source and those to be removed in one order, as does a reset of all.
	b.Queue("select from release_source where tenant_id = app.tenant() and plugin_id = $1 order by id for no key update", p.PluginID)
	QueueSources(&b, p.PluginID, namedIn(in.sources))
	return tx.SendBatch(ctx, &b).Close()
}

// insert stores the usable candidates and returns the events.
func (p *Poll) insert(ctx context.Context, tx pgx.Tx, all []*candidate, out *Outcome) ([]events.Event, error) {
	about, err := p.subjects(ctx, tx, all)
	if err != nil {
		return nil, err
	}
	fresh := map[uuid.UUID]*candidate{}
	all = slices.DeleteFunc(all, func(c *candidate) bool {
		s := about[c.SeriesID]
		if s == nil || c.Confidence < s.Threshold {
			return true
		}
		if c.ID == uuid.Nil {
			c.ID = uuid.Must(uuid.NewV7())
		}
		c.State = ignored
		if s.speaks(c.Language, p.languages) && s.news(c) {
			c.State = announced
		}
		fresh[c.ID] = c
		return false
	})
	if err := forgetGone(ctx, tx, all); err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, `insert into release (tenant_id, id, source_id, series_id, external_release_id, info, volumes, chapters, language, format_hints, group_or_uploader,
		  payload_url, media_url, media_url_kind, confidence, metadata, state, observed_at, released_at)
		select app.tenant(), x.id, $1, x.series_id, x.external_release_id, x.info, x.volumes, x.chapters, x.language, x.format_hints, x.group_or_uploader,
		  x.payload_url, x.media_url, x.media_url_kind, x.confidence, x.metadata, x.state, x.observed_at, x.released_at
		from jsonb_to_recordset($2) as x(id uuid, series_id uuid, external_release_id text, info text, volumes jsonb, chapters jsonb, language text, format_hints jsonb,
		  group_or_uploader text, payload_url text, media_url text, media_url_kind text, confidence double precision, metadata jsonb, state text,
		  observed_at timestamptz, released_at timestamptz)
		on conflict do nothing returning id`, p.ID, all)
	if err != nil {
		return nil, err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return nil, err
	}
	out.Known += len(all) - len(ids)
	var told []events.Event
	latest := map[uuid.UUID]*subject{} // latest known volume and chapter of series after this
	for _, id := range ids {
		c := fresh[id]
		s := about[c.SeriesID]
		if c.State != announced {
			out.Ignored++
			continue
		}
		out.Announced++
		if latest[s.ID] == nil {
			latest[s.ID] = &subject{Chapter: -1, Volume: -1}
		}
		volume, _ := last(c.Volumes)
		chapter, _ := last(c.Chapters)
		latest[s.ID].Volume, latest[s.ID].Chapter = max(latest[s.ID].Volume, volume), max(latest[s.ID].Chapter, chapter)
		if len(told) < mostTold && among(c.Language, p.notifyIn) && (len(p.notifyBy) == 0 || slices.Contains(p.notifyBy, p.Plugin)) {
			told = append(told, events.ReleaseAnnounced(c.event(p, s)))
		}
	}
	return told, advance(ctx, tx, latest)
}

// advance increases the latest known volumes and chapters of series. They stay updated as of the last change by people.
func advance(ctx context.Context, tx pgx.Tx, latest map[uuid.UUID]*subject) error {
	var ids []uuid.UUID
	var volumes, chapters []float64
	for id, s := range latest {
		ids, volumes, chapters = append(ids, id), append(volumes, s.Volume), append(chapters, s.Chapter)
	}
	_, err := tx.Exec(ctx, `update series_tracking t set latest_volume = greatest(t.latest_volume, nullif(u.volume, -1)),
		  latest_chapter = greatest(t.latest_chapter, nullif(u.chapter, -1))
		from unnest($1::uuid[], $2::double precision[], $3::double precision[]) as u(id, volume, chapter)
		where t.tenant_id = app.tenant() and t.series_id = u.id
		  and (u.volume > coalesce(t.latest_volume, -1) or u.chapter > coalesce(t.latest_chapter, -1))`, ids, volumes, chapters)
	return err
}

// event returns the event for an announced release.
func (c *candidate) event(p *Poll, s *subject) events.Release {
	out := events.Release{ID: c.ID, SeriesID: s.ID, SourceID: p.ID, SeriesTitle: s.Title, Plugin: p.Plugin}
	if end, ok := last(c.Volumes); ok {
		out.Volume = &end
	}
	if end, ok := last(c.Chapters); ok {
		out.Chapter = &end
	}
	if c.Language != nil {
		out.Language = *c.Language
	}
	return out
}

// failure returns the error of the plugin's own source, or nil.
func (r *Result) failure() *string {
	if r.Failed != nil {
		out := cut.Chars(*r.Failed, 1000)
		return &out
	}
	if r.UpstreamStatus == nil || *r.UpstreamStatus < 400 {
		return nil
	}
	return new(fmt.Sprintf("The source answers with status %.0f", min(*r.UpstreamStatus, 999)))
}

// note stores the outcome of a poll to which the plugin has responded, and deletes the oldest releases beyond the
// limit. The plugin's data for the next poll is stored unless the source was reset meanwhile. The last of several
// polls covers all series as of the moment at which the first asked which are due: others may be due since. If the
// plugin was stopped, the next poll begins after the last series that it has reached, or with the first if it reached
// none. The next whole poll then has no ETag: it would hide the rest of what the plugin was about to announce.
func (p *Poll) note(ctx context.Context, tx pgx.Tx, in *Result, out *Outcome) error {
	failure := in.failure()
	moves, next := failure == nil, p.resume
	if in.TimedOut {
		moves, next = true, in.reached
	}
	_, err := tx.Exec(ctx, `update release_source set last_polled_at = now(), last_summary = $2, last_error = $3,
		last_error_at = case when $3::text is null then last_error_at else now() end,
		covered_at = case when $3::text is null and $4::uuid is null and resume_after is not distinct from $8 then coalesce(round_at, $9, now()) else covered_at end,
		round_at = case when not $10 or resume_after is distinct from $8 then round_at when $4::uuid is not null then coalesce(round_at, $9, now()) end,
		resume_after = case when $10 and resume_after is not distinct from $8 then $4 else resume_after end,
		etag = case when $11 then null when $5 and $3::text is null and etag is not distinct from $6 then $7 else etag end
		where tenant_id = app.tenant() and id = $1`, p.ID, out.summary(), failure, next, in.ETag != nil && !p.partial(), p.ETag, line(in.ETag, 1000), p.ResumeAfter, p.asOf, moves, in.TimedOut)
	if err != nil || out.Announced+out.Ignored == 0 {
		return err
	}
	return p.trim(ctx, tx)
}
