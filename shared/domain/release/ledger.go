package release

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// The states of a release.
const (
	announced = "announced"
	dismissed = "dismissed"
	acquired  = "marked_acquired"
	ignored   = "ignored"
)

// Span is a range of volumes or chapters.
type Span struct {
	Start float64 `json:"start"`
	End   float64 `json:"end"`
}

// Release is an announced release.
type Release struct {
	ID                uuid.UUID       `json:"id" db:"id"`
	SeriesID          uuid.UUID       `json:"seriesId" db:"series_id"`
	SeriesTitle       string          `json:"seriesTitle" db:"series_title"`
	SourceID          uuid.UUID       `json:"sourceId" db:"source_id"`
	ExternalReleaseID string          `json:"externalReleaseId" db:"external_release_id" doc:"The source's id of the release"`
	InfoHash          *string         `json:"infoHash" db:"info" doc:"Info hash of a torrent"`
	Volumes           []Span          `json:"volumes" db:"volumes" nullable:"true"`
	Chapters          []Span          `json:"chapters" db:"chapters" nullable:"true"`
	Language          *string         `json:"language" db:"language"`
	FormatHints       json.RawMessage `json:"formatHints" db:"format_hints"`
	GroupOrUploader   *string         `json:"groupOrUploader" db:"group_or_uploader"`
	PayloadURL        string          `json:"payloadUrl" db:"payload_url" doc:"Page where the release can be found"`
	MediaURL          *string         `json:"mediaUrl" db:"media_url"`
	MediaURLKind      *string         `json:"mediaUrlKind" db:"media_url_kind" enum:"torrent,magnet,direct,other"`
	Confidence        float64         `json:"confidence" db:"confidence" doc:"Confidence of the plugin that the release belongs to the series, 0 to 1"`
	Metadata          json.RawMessage `json:"metadata" db:"metadata"`
	State             string          `json:"state" db:"state" enum:"announced,dismissed,marked_acquired,ignored,hidden"`
	ObservedAt        time.Time       `json:"observedAt" db:"observed_at"`
	ReleasedAt        *time.Time      `json:"releasedAt" db:"released_at"`
	CreatedAt         time.Time       `json:"createdAt" db:"created_at"`
}

const releaseColumns = `r.id, r.series_id, s.title as series_title, r.source_id, r.external_release_id, r.info, r.volumes, r.chapters, r.language, r.format_hints,
	r.group_or_uploader, r.payload_url, r.media_url, r.media_url_kind, r.confidence, r.metadata, r.state, r.observed_at, r.released_at, r.created_at`

// there is an SQL condition: release r is visible, since its source was not removed.
const there = "r.source_id not in (select g.id from release_source g where g.tenant_id = app.tenant() and g.plugin_id is null)"

// Filter filters a list of releases.
type Filter struct {
	State     string `query:"state" enum:"announced,dismissed,marked_acquired,ignored,hidden,all" default:"announced"`
	SeriesID  string `query:"seriesId" format:"uuid"`
	SourceID  string `query:"sourceId" format:"uuid"`
	Language  string `query:"language" maxLength:"100" doc:"Language code as in releases, for example en"`
	LibraryID string `query:"libraryId" format:"uuid"`
}

// where returns SQL for the releases r that match the filter, ignoring one of its fields, and the parameters.
func (f Filter) where(without string) (string, []any) {
	where, args := []string{"r.tenant_id = app.tenant()", there}, []any{}
	for _, c := range []struct {
		name, sql string
		value     any
	}{{"state", "r.state = $n", text(f.State, "all")}, {"seriesId", "r.series_id = $n", some(httpapi.OptionalID(f.SeriesID))},
		{"sourceId", "r.source_id = $n", some(httpapi.OptionalID(f.SourceID))}, {"language", "r.language = $n", text(f.Language, "")},
		{"libraryId", "exists (select from series x where x.tenant_id = app.tenant() and x.id = r.series_id and x.library_id = $n)", some(httpapi.OptionalID(f.LibraryID))}} {
		if c.value != nil && c.name != without {
			args = append(args, c.value)
			where = append(where, strings.ReplaceAll(c.sql, "$n", fmt.Sprintf("$%d", len(args))))
		}
	}
	return strings.Join(where, " and "), args
}

func text(value, every string) any {
	if value == "" || value == every {
		return nil
	}
	return value
}

func some(id *uuid.UUID) any {
	if id == nil {
		return nil
	}
	return *id
}

// orders maps sort fields to SQL.
var orders = map[string]string{"observed_at": "r.observed_at", "released_at": "r.released_at", "created_at": "r.created_at", "confidence": "r.confidence", "series": "s.title_sort"}

// order returns the SQL order of a list.
func order(by httpapi.Sorting) (string, error) {
	field, desc, err := by.LatestFirst("observed_at").By("observed_at", "released_at", "created_at", "confidence", "series")
	if err != nil {
		return "", err
	}
	switch {
	case desc && field == "released_at": // the only one that may be null
		return orders[field] + " desc nulls last, r.id", nil
	case desc:
		return orders[field] + " desc, r.id", nil
	}
	return orders[field] + ", r.id", nil
}

func (f Filter) list(ctx context.Context, d *db.DB, by httpapi.Sorting, p httpapi.Paging) (*httpapi.Page[Release], error) {
	sort, err := order(by)
	if err != nil {
		return nil, err
	}
	var b pgx.Batch
	load := f.queue(&b, sort, p)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	page, total := load()
	return httpapi.NewPage(ctx, p, page, total), nil
}

// queue adds a page and the total to the batch; load returns both after the batch has run.
func (f Filter) queue(b *pgx.Batch, sort string, p httpapi.Paging) (load func() ([]Release, int64)) {
	var page []Release
	var total int64
	where, args := f.where("")
	db.All(b, &page, pageSQL(where, sort, len(args)), append(append([]any{}, args...), p.Limit(), p.Offset())...)
	db.Value(b, &total, totalSQL(where), args...)
	return func() ([]Release, int64) { return page, total }
}

// pageSQL selects a page of releases; limit and offset follow n parameters.
func pageSQL(where, sort string, n int) string {
	return fmt.Sprintf(`select %s from release r join series s on s.tenant_id = app.tenant() and s.id = r.series_id where %s order by %s limit $%d offset $%d`,
		releaseColumns, where, sort, n+1, n+2)
}

func totalSQL(where string) string { return "select count(*) from release r where " + where }

// ofOne lists the releases of one series; NotFound if there is no such series.
func ofOne(ctx context.Context, d *db.DB, series uuid.UUID, state string, p httpapi.Paging) (*httpapi.Page[Release], error) {
	sort, err := order(httpapi.Sorting{})
	if err != nil {
		return nil, err
	}
	var load func() ([]Release, int64)
	if err := progress.OfSeries(ctx, d, series, func(b *pgx.Batch) {
		load = Filter{State: state, SeriesID: series.String()}.queue(b, sort, p)
	}); err != nil {
		return nil, err
	}
	page, total := load()
	return httpapi.NewPage(ctx, p, page, total), nil
}

// Facets count the filtered releases per value of a field; each ignores the filter's own condition on that field.
type Facets struct {
	Languages []LanguageFacet `json:"languages" nullable:"false"`
	Libraries []LibraryFacet  `json:"libraries" nullable:"false"`
	Series    []SeriesFacet   `json:"series" nullable:"false" doc:"At most 500 series, those with most releases first"`
}

// LanguageFacet counts releases of a language.
type LanguageFacet struct {
	Language string `json:"language" db:"language"`
	Count    int64  `json:"count" db:"count" minimum:"1"`
}

// LibraryFacet counts releases of the series of a library.
type LibraryFacet struct {
	LibraryID   uuid.UUID `json:"libraryId" db:"library_id"`
	LibraryName string    `json:"libraryName" db:"library_name"`
	Count       int64     `json:"count" db:"count" minimum:"1"`
}

// SeriesFacet counts releases of a series.
type SeriesFacet struct {
	SeriesID    uuid.UUID `json:"seriesId" db:"series_id"`
	SeriesTitle string    `json:"seriesTitle" db:"series_title"`
	LibraryID   uuid.UUID `json:"libraryId" db:"library_id"`
	LibraryName string    `json:"libraryName" db:"library_name"`
	Count       int64     `json:"count" db:"count" minimum:"1"`
}

func (f Filter) facets(ctx context.Context, d *db.DB) (*Facets, error) {
	var b pgx.Batch
	out := &Facets{[]LanguageFacet{}, []LibraryFacet{}, []SeriesFacet{}}
	where, args := f.where("language")
	db.All(&b, &out.Languages, "select r.language, count(*) as count from release r where "+where+" and r.language is not null group by 1 order by 2 desc, 1 limit 500", args...)
	where, args = f.where("libraryId")
	db.All(&b, &out.Libraries, "select s.library_id, l.name as library_name, count(*) as count from release r join series s on s.tenant_id = app.tenant() and s.id = r.series_id "+
		"join library l on l.tenant_id = app.tenant() and l.id = s.library_id where "+where+" group by 1, 2 order by 3 desc, 2, 1 limit 500", args...)
	where, args = f.where("seriesId")
	db.All(&b, &out.Series, "select r.series_id, s.title as series_title, s.library_id, l.name as library_name, count(*) as count "+
		"from release r join series s on s.tenant_id = app.tenant() and s.id = r.series_id join library l on l.tenant_id = app.tenant() and l.id = s.library_id where "+
		where+" group by 1, 2, 3, 4 order by 5 desc, 2, 1 limit 500", args...)
	return out, d.Run(ctx, &b)
}

var missing = fault.Missing("Release")

// moved is a release after a change, with the library of its series.
type moved struct {
	Release
	LibraryID uuid.UUID `db:"library_id"`
}

// move changes the state of a release; nil keeps it.
func move(ctx context.Context, d *db.DB, id uuid.UUID, state *string) (*moved, error) {
	out, err := db.Get[moved](ctx, d, `update release r set state = coalesce($2, r.state) from series s
		where r.tenant_id = app.tenant() and r.id = $1 and `+there+` and s.tenant_id = app.tenant() and s.id = r.series_id returning `+releaseColumns+", s.library_id", id, state)
	if err == nil && out == nil {
		err = missing
	}
	return out, err
}

// place locates a series whose releases were changed.
type place struct {
	SeriesID  uuid.UUID `db:"series_id"`
	LibraryID uuid.UUID `db:"library_id"`
}

// moveAll changes the state of several releases; "" deletes them.
func moveAll(ctx context.Context, d *db.DB, ids []uuid.UUID, state string) (all []place, err error) {
	sql, args := `update release r set state = $2 from these, series s`, []any{ids, state}
	if state == "" {
		sql, args = "delete from release r using these, series s", []any{ids}
	}
	return db.List[place](ctx, d, `with these as (select r.id from release r where r.tenant_id = app.tenant() and r.id = any($1) and `+there+` order by r.id for update of r) `+sql+`
		where r.tenant_id = app.tenant() and r.id = these.id and s.tenant_id = app.tenant() and s.id = r.series_id returning r.series_id, s.library_id`, args...)
}
