package release

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/format/language"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Tracking is the tracking configuration of a series.
type Tracking struct {
	SeriesID                    uuid.UUID       `json:"seriesId" db:"series_id"`
	Tracked                     bool            `json:"tracked" db:"tracked"`
	TrackChapters               bool            `json:"trackChapters" db:"track_chapters"`
	TrackVolumes                bool            `json:"trackVolumes" db:"track_volumes"`
	LatestKnownChapter          *float64        `json:"latestKnownChapter" db:"latest_chapter"`
	LatestKnownVolume           *int32          `json:"latestKnownVolume" db:"latest_volume"`
	Languages                   []string        `json:"languages" db:"languages" nullable:"true" doc:"Null means the setting release_tracking.default_languages"`
	VolumeChapterMap            json.RawMessage `json:"volumeChapterMap" db:"volume_chapters" doc:"Last chapter of each volume"`
	PollIntervalOverrideS       *int32          `json:"pollIntervalOverrideS" db:"poll_interval" doc:"Minimum number of seconds between polls; null means whenever a source is polled"`
	ConfidenceThresholdOverride *float64        `json:"confidenceThresholdOverride" db:"confidence_threshold" doc:"Null means 0.7"`
	CreatedAt                   time.Time       `json:"createdAt" db:"created_at"`
	UpdatedAt                   time.Time       `json:"updatedAt" db:"updated_at"`
}

// TrackingBody changes the tracking of a series; null leaves a field that cannot be null.
type TrackingBody struct {
	Tracked                     *bool                             `json:"tracked,omitempty" nullable:"true"`
	TrackChapters               *bool                             `json:"trackChapters,omitempty" nullable:"true"`
	TrackVolumes                *bool                             `json:"trackVolumes,omitempty" nullable:"true"`
	LatestKnownChapter          httpapi.Optional[float64]         `json:"latestKnownChapter,omitempty" minimum:"0" maximum:"9999999"`
	LatestKnownVolume           httpapi.Optional[int32]           `json:"latestKnownVolume,omitempty" minimum:"0" maximum:"9999999"`
	Languages                   httpapi.Optional[[]string]        `json:"languages,omitempty" maxItems:"50" doc:"ISO 639-1 codes; an empty list means all languages"`
	VolumeChapterMap            httpapi.Optional[json.RawMessage] `json:"volumeChapterMap,omitempty" doc:"An object that maps each volume to its last chapter, or to an object with start and end"`
	PollIntervalOverrideS       httpapi.Optional[int32]           `json:"pollIntervalOverrideS,omitempty" minimum:"60" maximum:"31536000"`
	ConfidenceThresholdOverride httpapi.Optional[float64]         `json:"confidenceThresholdOverride,omitempty" minimum:"0" maximum:"1"`
}

const trackingColumns = `t.series_id, t.tracked, t.track_chapters, t.track_volumes, t.latest_chapter, floor(t.latest_volume)::integer as latest_volume, t.languages, t.volume_chapters,
	t.poll_interval, t.confidence_threshold, t.created_at, t.updated_at`

// tracking returns the tracking of a series, by default untracked.
func tracking(ctx context.Context, d *db.DB, series uuid.UUID) (*Tracking, error) {
	out, err := db.Get[Tracking](ctx, d, `select s.id as series_id, coalesce(t.tracked, false) as tracked, coalesce(t.track_chapters, true) as track_chapters,
		  coalesce(t.track_volumes, true) as track_volumes, t.latest_chapter, floor(t.latest_volume)::integer as latest_volume, t.languages, t.volume_chapters, t.poll_interval, t.confidence_threshold,
		  coalesce(t.created_at, s.created_at) as created_at, coalesce(t.updated_at, s.created_at) as updated_at
		from series s left join series_tracking t on t.tenant_id = app.tenant() and t.series_id = s.id where s.tenant_id = app.tenant() and s.id = $1`, series)
	if err == nil && out == nil {
		err = fault.Missing("Series")
	}
	return out, err
}

// maxVolumes is the maximum number of volumes in a volumeChapterMap.
const maxVolumes = 2000

// check validates the body, and reduces a volumeChapterMap to its known members.
func (b *TrackingBody) check() error {
	var bad []fault.Field
	for i, l := range b.Languages.Or(nil) {
		if !language.IsCode(l) {
			bad = append(bad, fault.Field{Field: fmt.Sprintf("languages[%d]", i),
				Message: "must be the ISO 639-1 code of a language, two lower-case letters such as en"})
		}
	}
	if v := b.VolumeChapterMap.Value; v != nil {
		_, plain, err := volumeChapters(*v)
		if err != nil {
			bad = append(bad, fault.Field{Field: "volumeChapterMap", Message: err.Error()})
		}
		b.VolumeChapterMap.Value = &plain
	}
	return fault.InvalidFields(bad)
}

// volumeChapters reads the last chapter of each volume; plain is the same without anything else.
func volumeChapters(raw json.RawMessage) (out map[float64]float64, plain json.RawMessage, err error) {
	wrong := fmt.Errorf("must be an object of at most %d volumes, each with its last chapter, or with start and end", maxVolumes)
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil || all == nil || len(all) > maxVolumes {
		return nil, nil, wrong
	}
	out = make(map[float64]float64, len(all))
	kept := make(map[string]any, len(all))
	for k, v := range all {
		volume, err := strconv.ParseFloat(k, 64)
		if err != nil || !amount(volume) {
			return nil, nil, wrong
		}
		var span Span
		isSpan := json.Unmarshal(v, &span.End) != nil
		if isSpan && json.Unmarshal(v, &span) != nil || !amount(span.Start) || !amount(span.End) {
			return nil, nil, wrong
		}
		out[volume] = span.End
		name := strconv.FormatFloat(volume, 'f', -1, 64)
		kept[name] = span.End
		if isSpan {
			kept[name] = span
		}
	}
	plain, err = json.Marshal(kept)
	return out, plain, err
}

// amount reports whether a number is valid for a volume or chapter.
func amount(n float64) bool { return n == 0 || n >= 1e-6 && n <= 9_999_999 }

// track changes the tracking of a series.
func track(ctx context.Context, d *db.DB, series uuid.UUID, body *TrackingBody) (out *Tracking, library uuid.UUID, err error) {
	if err := body.check(); err != nil {
		return nil, library, err
	}
	var b pgx.Batch
	db.Value(&b, &library, "select library_id from series where tenant_id = app.tenant() and id = $1", series)
	db.One(&b, &out, `insert into series_tracking as t (tenant_id, series_id, tracked, track_chapters, track_volumes, latest_chapter, latest_volume, languages,
		  volume_chapters, poll_interval, confidence_threshold)
		select app.tenant(), s.id, coalesce($2, false), coalesce($3, true), coalesce($4, true), $6, $8, $10, $12, $14, $16 from series s
		where s.tenant_id = app.tenant() and s.id = $1
		on conflict (tenant_id, series_id) do update set tracked = coalesce($2, t.tracked), track_chapters = coalesce($3, t.track_chapters),
		  track_volumes = coalesce($4, t.track_volumes), latest_chapter = case when $5 then $6 else t.latest_chapter end,
		  latest_volume = case when $7 then $8 else t.latest_volume end, languages = case when $9 then $10 else t.languages end,
		  volume_chapters = case when $11 then $12 else t.volume_chapters end, poll_interval = case when $13 then $14 else t.poll_interval end,
		  confidence_threshold = case when $15 then $16 else t.confidence_threshold end, updated_at = now()
		returning `+trackingColumns, series, body.Tracked, body.TrackChapters, body.TrackVolumes,
		body.LatestKnownChapter.Set, body.LatestKnownChapter.Value, body.LatestKnownVolume.Set, body.LatestKnownVolume.Value,
		body.Languages.Set, body.Languages.Value, body.VolumeChapterMap.Set, body.VolumeChapterMap.Value, body.PollIntervalOverrideS.Set, body.PollIntervalOverrideS.Value,
		body.ConfidenceThresholdOverride.Set, body.ConfidenceThresholdOverride.Value)
	if err := d.Run(ctx, &b); err != nil {
		return nil, library, err
	}
	if out == nil {
		return nil, library, fault.Missing("Series")
	}
	return out, library, nil
}

// changed returns the event for a change of a series' tracking or releases.
func changed(series, library uuid.UUID, field string) events.Event {
	return events.SeriesUpdated(events.Series{ID: series, LibraryID: library}, field)
}
