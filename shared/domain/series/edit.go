package series

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/reference"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/format/language"
	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// MetadataBody is the body of PATCH and PUT of a series' metadata. Null clears a field; in a PUT, so does absence.
type MetadataBody struct {
	Title     httpapi.Optional[string] `json:"title,omitempty" maxLength:"1000" nullable:"false" doc:"A title that is set is also locked; it cannot be null, since a series always has a title"`
	TitleSort httpapi.Optional[string] `json:"titleSort,omitempty" maxLength:"1000" doc:"Null or the title itself makes it follow the title, also when the title changes"`
	Summary   httpapi.Optional[string] `json:"summary,omitempty" maxLength:"60000"`
	SharedBody
}

// SharedBody holds the fields that may also be changed for several series at once.
type SharedBody struct {
	Publisher         httpapi.Optional[string]            `json:"publisher,omitempty" maxLength:"500"`
	Imprint           httpapi.Optional[string]            `json:"imprint,omitempty" maxLength:"500"`
	Status            httpapi.Optional[string]            `json:"status,omitempty" enum:"ongoing,ended,hiatus,abandoned,unknown"`
	ReadingDirection  httpapi.Optional[string]            `json:"readingDirection,omitempty" enum:"ltr,rtl,ttb,webtoon"`
	Language          httpapi.Optional[string]            `json:"language,omitempty" maxLength:"100" doc:"BCP 47 language tag, for example ja or pt-BR"`
	AgeRating         httpapi.Optional[int32]             `json:"ageRating,omitempty" minimum:"0" maximum:"99"`
	Year              httpapi.Optional[int32]             `json:"year,omitempty" minimum:"1" maximum:"9999"`
	TotalChapterCount httpapi.Optional[float64]           `json:"totalChapterCount,omitempty" minimum:"0" maximum:"9999999"`
	TotalVolumeCount  httpapi.Optional[int32]             `json:"totalVolumeCount,omitempty" minimum:"0" maximum:"9999999"`
	Authors           httpapi.Optional[[]book.AuthorBody] `json:"authors,omitempty" maxItems:"200"`
	CustomMetadata    httpapi.Optional[json.RawMessage]   `json:"customMetadata,omitempty" doc:"JSON object, stored unchanged"`
}

// Amended is the metadata after a change.
type Amended struct {
	ID uuid.UUID `json:"id"`
	Metadata
}

// FullMetadata is the full record of a series without its books.
type FullMetadata struct {
	SeriesID uuid.UUID `json:"seriesId"`
	Metadata
	AlternateTitles []reference.Title  `json:"alternateTitles" nullable:"false"`
	ExternalLinks   []reference.Link   `json:"externalLinks" nullable:"false"`
	ExternalRatings []reference.Rating `json:"externalRatings" nullable:"false"`
	Genres          []book.Term        `json:"genres" nullable:"false"`
	Tags            []book.Term        `json:"tags" nullable:"false"`
}

func (d *Details) metadata() *FullMetadata {
	return &FullMetadata{SeriesID: d.ID, Metadata: d.Metadata, AlternateTitles: d.AlternateTitles, ExternalLinks: d.ExternalLinks,
		ExternalRatings: d.ExternalRatings, Genres: d.Genres, Tags: d.Tags}
}

// LockChanges sets (true) or clears (false) locks; absent or null leaves a lock as it is.
type LockChanges map[string]*bool

// Schema lists every lock.
func (LockChanges) Schema(huma.Registry) *huma.Schema { return book.LockChangeSchema(lockNames) }

// UnmarshalJSON ignores members that are not locks.
func (c *LockChanges) UnmarshalJSON(data []byte) (err error) {
	*c, err = book.ReadLocks(lockNames, data)
	return err
}

// edits registers the operations by which people change a series.
func edits(a *httpapi.API, d *db.DB, publish events.Publish, added task.Added) {
	bulk(a, d, publish)
	resets(a, d, publish, added)
	op := httpapi.Group{Path: "/api/v1/series/{id}", Tag: "Series"}.Op
	change := func(ctx context.Context, id uuid.UUID, body *MetadataBody, replace bool) (*Amended, error) {
		done, err := amend(ctx, d, added, id, body, replace)
		if err != nil {
			return nil, err
		}
		if len(done.fields) > 0 {
			publish(ctx, httpapi.TenantOf(ctx).ID, events.SeriesUpdated(events.Series{ID: id, LibraryID: done.library}, done.fields...))
		}
		return done.answer, nil
	}
	httpapi.Register(a, op("PATCH", "", "patchSeries", "Rename a series and lock its title", auth.SeriesWrite),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			Body struct {
				Title httpapi.Optional[string] `json:"title,omitempty" maxLength:"1000" nullable:"false"`
			}
		}) (*Amended, error) {
			return change(ctx, in.ID, &MetadataBody{Title: in.Body.Title}, false)
		})
	httpapi.Register(a, op("GET", "/metadata", "getSeriesMetadata", "Get the metadata of a series", auth.SeriesRead),
		func(ctx context.Context, in *httpapi.IDInput) (*FullMetadata, error) {
			found, err := get(ctx, d, in.ID)
			if err != nil {
				return nil, err
			}
			return found.metadata(), nil
		})
	for _, c := range []struct {
		method, id, summary string
		replace             bool
	}{{"PATCH", "patchSeriesMetadata", "Update metadata fields of a series; a new title is locked", false},
		{"PUT", "putSeriesMetadata", "Replace the metadata of a series: clear absent fields except the title", true}} {
		httpapi.Register(a, op(c.method, "/metadata", c.id, c.summary, auth.SeriesWrite),
			func(ctx context.Context, in *struct {
				httpapi.IDInput
				Body MetadataBody
			}) (*Amended, error) {
				return change(ctx, in.ID, &in.Body, c.replace)
			})
	}
	httpapi.Register(a, op("DELETE", "/metadata", "resetSeriesMetadata",
		"Reset a series to what its files say: delete all other metadata, uploaded covers and locks, and analyse its books again", auth.SeriesWrite),
		func(ctx context.Context, in *httpapi.IDInput) (*FullMetadata, error) {
			out, err := reset(ctx, d, in.ID)
			if err != nil {
				return nil, err
			}
			publish(ctx, httpapi.TenantOf(ctx).ID, events.SeriesUpdated(events.Series{ID: in.ID, LibraryID: out.LibraryID}),
				events.CoverUpdated(events.SeriesEntity, in.ID, &out.LibraryID))
			added.Tell(ctx, httpapi.TenantOf(ctx).ID)
			return out.metadata(), nil
		})
	httpapi.Register(a, op("GET", "/metadata/locks", "getSeriesLocks", "Get the metadata locks of a series; only users can change locked fields", auth.SeriesRead),
		func(ctx context.Context, in *httpapi.IDInput) (*Locks, error) { return changeLocks(ctx, d, in.ID, nil) })
	httpapi.Register(a, op("PUT", "/metadata/locks", "putSeriesLocks", "Lock or unlock metadata fields of a series", auth.SeriesWrite),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			Body LockChanges
		}) (*Locks, error) {
			return changeLocks(ctx, d, in.ID, in.Body)
		})
}

// check normalizes and validates the texts.
func (b *MetadataBody) check() error {
	var bad []fault.Field
	if b.Title.Set && b.Title.Value == nil {
		bad = append(bad, fault.Field{Field: "title", Message: "must not be null: a series always has a title"})
	}
	for _, f := range []struct {
		name string
		text *string
		line bool // a single line that must not be blank
	}{{"title", b.Title.Value, true}, {"titleSort", b.TitleSort.Value, true}, {"summary", b.Summary.Value, false},
		{"publisher", b.Publisher.Value, true}, {"imprint", b.Imprint.Value, true}} {
		if f.text == nil {
			continue
		}
		printable := naming.Printable(f.text)
		switch {
		case f.line && !printable:
			message := "must contain visible characters and no control characters"
			if f.name != "title" {
				message += ", or be null"
			}
			bad = append(bad, fault.Field{Field: f.name, Message: message})
		case strings.ContainsRune(*f.text, 0):
			bad = append(bad, fault.Field{Field: f.name, Message: "must not contain the character NUL"})
		}
	}
	if v := b.Authors.Value; v != nil {
		bad = append(bad, book.CheckAuthors(*v)...)
	}
	if v := b.Language.Value; v != nil {
		if *v = language.Tag(*v); *v == "" {
			bad = append(bad, fault.Field{Field: "language", Message: "must be a BCP 47 tag, for example ja or pt-BR"})
		}
	}
	if v := b.CustomMetadata.Value; v != nil {
		if err := book.CheckCustom(*v); err != nil {
			bad = append(bad, *err)
		}
	}
	return fault.InvalidFields(bad)
}

// column is a column that the body may change.
type column struct {
	field, name, kind string
	sent              bool
	value             any
}

func of[T any](field, name, kind string, o httpapi.Optional[T]) column {
	return column{field, name, kind, o.Set, o.Value}
}

func (b *MetadataBody) columns() []column {
	return []column{of("summary", "summary", "text", b.Summary), of("publisher", "publisher", "text", b.Publisher), of("imprint", "imprint", "text", b.Imprint),
		of("status", "status", "text", b.Status), of("readingDirection", "reading_direction", "text", b.ReadingDirection), of("language", "language", "text", b.Language),
		of("ageRating", "age_rating", "integer", b.AgeRating), of("year", "year", "integer", b.Year),
		of("totalChapterCount", "total_chapter_count", "double precision", b.TotalChapterCount),
		of("totalVolumeCount", "total_volume_count", "integer", b.TotalVolumeCount), of("authors", "authors", "jsonb", b.Authors),
		of("customMetadata", "custom_metadata", "jsonb", b.CustomMetadata)}
}

// amendment is the result of a change of metadata.
type amendment struct {
	answer  *Amended
	library uuid.UUID
	fields  []string // the written ones
}

// amend changes a series' metadata; replace clears absent fields except the title, which a series always has. The
// fields it writes no longer count as filled from series.json. If the books are named after the series, a task renames
// them. It takes one round trip.
func amend(ctx context.Context, d *db.DB, added task.Added, id uuid.UUID, body *MetadataBody, replace bool) (*amendment, error) {
	if err := body.check(); err != nil {
		return nil, err
	}
	var locks []string
	if body.Title.Set {
		locks = []string{"title"}
	}
	var b pgx.Batch
	var row *amendedRow
	var renaming int64
	if err := queueRenaming(&b, &renaming, id, body); err != nil {
		return nil, err
	}
	names := queueAmend(&b, &row, id, body, replace, locks)
	warnings := []string{}
	db.Values(&b, &warnings, warningsSQL, id)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if row == nil {
		return nil, fault.Missing("Series")
	}
	if renaming > 0 {
		added.Tell(ctx, httpapi.TenantOf(ctx).ID)
	}
	return &amendment{&Amended{id, row.metadata(warnings)}, row.LibraryID, names}, nil
}

// QueueFill adds the update of metadata fields by a plugin to the batch, which then locks the series. Unlike amend it
// sets no locks. It writes nothing if the locks have changed from locks meanwhile (Conflict). After the batch has run,
// renaming is greater than zero if a task to rename the books was added.
func QueueFill(b *pgx.Batch, renaming *int64, id uuid.UUID, locks []string, body *MetadataBody) error {
	if err := body.check(); err != nil {
		return err
	}
	if err := queueRenaming(b, renaming, id, body); err != nil {
		return err
	}
	var row *amendedRow
	b.Queue("select app.check_locks('series', $1, $2)", id, locks)
	queueAmend(b, &row, id, body, false, nil)
	return nil
}

// queueRenaming adds the task that renames the books if they are named after the series and its title changes. It must
// precede queueAmend, because tasks are locked before series.
func queueRenaming(b *pgx.Batch, renaming *int64, id uuid.UUID, body *MetadataBody) error {
	if !body.Title.Set {
		return nil
	}
	return task.AddNew(b, task.Spec{Type: task.RenumberSeries}, calledAfter(id, body.Title.Or("")), renaming)
}

// queueAmend adds the update by a validated body and the locks to the batch. It returns the names of the fields that it
// writes.
func queueAmend(b *pgx.Batch, row **amendedRow, id uuid.UUID, body *MetadataBody, replace bool, locks []string) (names []string) {
	title := body.Title.Or("")
	names, locks = []string{}, append([]string{}, locks...)
	if body.Title.Set {
		names = append(names, "title")
	}
	args, set := []any{id, body.Title.Set, title, naming.Normalize(title), locks}, []string{}
	arg := func(v any) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args))
	}
	for _, c := range body.columns() {
		if c.sent = c.sent || replace; c.sent {
			names = append(names, c.field)
		}
		set = append(set, fmt.Sprintf("%[1]s = case when %[2]s then %[3]s::%[4]s else s.%[1]s end", c.name, arg(c.sent), arg(c.value), c.kind))
	}
	sorted := body.TitleSort.Set || replace
	if sorted {
		names = append(names, "titleSort")
	}
	sent, sort, written := arg(sorted), arg(body.TitleSort.Value)+"::text", arg(names)+"::text[]"
	ofTitle := book.SortTitleSQL("case when $2 then $3 else s.title end")
	db.One(b, row, "update series s set "+strings.Join(set, ", ")+`,
		  title = case when $2 then $3 else s.title end, search_title = case when $2 then $4 else s.search_title end,
		  custom_title_sort = case when `+sent+` then nullif(`+sort+`, `+ofTitle+`) else s.custom_title_sort end,
		  title_sort = coalesce(case when `+sent+` then `+sort+` else s.custom_title_sort end,
		    case when 'titleSort' = any(s.locks) and not `+sent+` then s.title_sort else `+ofTitle+` end),
		  locks = array(select unnest(s.locks) union select unnest($5::text[])),
		  described = array(select unnest(s.described) except select unnest(`+written+`)),
		  updated_at = case when cardinality(`+written+`) > 0 then now() else s.updated_at end
		where s.tenant_id = app.tenant() and s.id = $1 returning s.library_id, `+metadataColumns, args...)
	return names
}

// calledAfter selects the series if its title changes and its books are named after it.
func calledAfter(id uuid.UUID, title string) task.Target {
	return task.Found(`select s.library_id, s.id as series_id, null::uuid as book_id, '{}'::jsonb as params
		from series s join library l on l.tenant_id = s.tenant_id and l.id = s.library_id
		where s.tenant_id = app.tenant() and s.id = $1 and s.title <> $2 and l.book_strategy = 'series_name'`, id, title)
}

type amendedRow struct {
	metadataRow
	LibraryID uuid.UUID `db:"library_id"`
}

// changeLocks sets and clears locks and returns all of them. Without a change it only reads, and waits for no writer.
func changeLocks(ctx context.Context, d *db.DB, id uuid.UUID, changes LockChanges) (*Locks, error) {
	on, off := book.SplitLocks(lockNames, changes)
	sql, args := "select s.locks from series s where s.tenant_id = app.tenant() and s.id = $1", []any{id}
	if len(on)+len(off) > 0 {
		sql = `update series s set locks = array(select x from unnest(s.locks) x where not x = any($3::text[]) union select unnest($2::text[])), updated_at = now()
			where s.tenant_id = app.tenant() and s.id = $1 returning s.locks`
		args = append(args, on, off)
	}
	row, err := db.Get[struct {
		Locks []string `db:"locks"`
	}](ctx, d, sql, args...)
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, fault.Missing("Series")
	}
	return new(Locks(book.LockSet(lockNames, row.Locks))), nil
}
