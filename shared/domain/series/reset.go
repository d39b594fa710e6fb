package series

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/library"
	"github.com/longbox/longbox/shared/domain/reference"
	"github.com/longbox/longbox/shared/domain/strategy"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Reset is the number of series that were reset.
type Reset struct {
	Count   int    `json:"count" minimum:"0"`
	Message string `json:"message"`
}

// resets registers the reset of several series.
func resets(a *httpapi.API, d *db.DB, publish events.Publish, added task.Added) {
	httpapi.Register(a, operation("POST", "/bulk/metadata/reset", "resetAllSeriesMetadata",
		"Reset several series to what their files say: delete all other metadata, uploaded covers and locks, and analyse their books again", auth.SeriesWrite),
		func(ctx context.Context, in *struct{ Body SeveralIDs }) (*Reset, error) {
			at, err := resetAll(ctx, d, in.Body.SeriesIDs)
			if err != nil {
				return nil, err
			}
			if len(at) > 0 {
				var told []events.Event
				for _, s := range at {
					told = append(told, events.SeriesUpdated(events.Series{ID: s.ID, LibraryID: s.LibraryID}), events.CoverUpdated(events.SeriesEntity, s.ID, &s.LibraryID))
				}
				publish(ctx, httpapi.TenantOf(ctx).ID, told...)
				added.Tell(ctx, httpapi.TenantOf(ctx).ID)
			}
			return &Reset{len(at), fmt.Sprintf("%d series were reset", len(at))}, nil
		})
}

// SeveralIDs names the series that one request changes.
type SeveralIDs struct {
	SeriesIDs []uuid.UUID `json:"seriesIds" nullable:"false" maxItems:"100" doc:"Unknown ids are ignored"`
}

// origin is the metadata of a series that its name and folders give by the rules and the strategy of its library.
type origin struct {
	id    uuid.UUID
	title string
	at    strategy.Place
}

// origins returns the origins of the given series; ids that no series has are ignored.
func origins(ctx context.Context, d *db.DB, ids []uuid.UUID) ([]origin, error) {
	rows, err := db.List[struct {
		ID       uuid.UUID           `db:"id"`
		Name     string              `db:"name"`
		Rules    []library.TitleRule `db:"rules"`
		Strategy string              `db:"series_strategy"`
		Config   json.RawMessage     `db:"series_config"`
		Key      *string             `db:"key"`
	}](ctx, d, `select s.id, s.name, l.title_preprocessing_rules as rules, l.series_strategy, l.series_config,
		  (select b.key from book b where b.tenant_id = app.tenant() and b.series_id = s.id
		    order by b.deleted_at is not null, app.file_order(b.key) collate natural_order, b.key limit 1) as key
		from series s join library l on l.tenant_id = s.tenant_id and l.id = s.library_id where s.tenant_id = app.tenant() and s.id = any($1)`, ids)
	if err != nil {
		return nil, err
	}
	out := make([]origin, len(rows))
	for i, r := range rows {
		out[i] = origin{id: r.ID, title: library.CleanTitle(r.Rules, r.Name)}
		set, bad := strategy.New(strategy.Options{Series: r.Strategy, SeriesConfig: r.Config, Book: "filename", Number: "file_order"})
		if bad == nil && r.Key != nil {
			out[i].at = set.Read(*r.Key, nil).Place
		}
	}
	return out, nil
}

// reset clears the metadata and locks of a series, sets what its name and folders give, as at creation, and has its
// books analysed again, so that they fill in the rest. Progress and ratings stay.
func reset(ctx context.Context, d *db.DB, id uuid.UUID) (*Details, error) {
	from, err := origins(ctx, d, []uuid.UUID{id})
	if err != nil {
		return nil, err
	}
	if len(from) == 0 {
		return nil, fault.Missing("Series")
	}
	var b pgx.Batch
	var at []events.Series
	if err := queueReset(&b, &at, from); err != nil {
		return nil, err
	}
	load := QueueDetails(&b, id)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	return load()
}

// resetAll resets the given series; ids that no series has are ignored.
func resetAll(ctx context.Context, d *db.DB, ids []uuid.UUID) (at []events.Series, err error) {
	from, err := origins(ctx, d, ids)
	if err != nil || len(from) == 0 {
		return nil, err
	}
	var b pgx.Batch
	if err := queueReset(&b, &at, from); err != nil {
		return nil, err
	}
	return at, d.Run(ctx, &b)
}

// queueReset adds the reset of series to the batch. Tasks come first, because they are locked before series. Each
// series gets a new task, as a running one may have read the books already.
func queueReset(b *pgx.Batch, at *[]events.Series, from []origin) error {
	n := len(from)
	ids, extra := make([]uuid.UUID, n), make([]*string, n)
	texts := map[string][]string{}
	for i, o := range from {
		ids[i] = o.id
		if o.at.Extra != nil {
			data, err := json.Marshal(o.at.Extra)
			if err != nil {
				return fmt.Errorf("custom metadata of series %s: %w", o.id, err)
			}
			text := string(data)
			extra[i] = &text
		}
		for name, text := range map[string]string{"title": o.title, "sort": naming.SortTitle(o.title), "search": naming.Normalize(o.title),
			"publisher": o.at.Publisher, "imprint": o.at.Imprint, "author": o.at.Author} {
			texts[name] = append(texts[name], text)
		}
	}
	var tasks int64
	if err := task.AddEach(b, task.Spec{Type: task.AnalyzeSeries}, &tasks, `select s.library_id, s.id as series_id, null::uuid as book_id, '{}'::jsonb as params
		from series s where s.tenant_id = app.tenant() and s.id = any($1) order by s.id`, ids); err != nil {
		return err
	}
	book.LockSeries(b, ids)
	db.All(b, at, `update series s set title = f.title, title_sort = f.sort, custom_title_sort = null, search_title = f.search, summary = null,
		  publisher = nullif(f.publisher, ''), imprint = nullif(f.imprint, ''), status = null, reading_direction = null, language = null, age_rating = null,
		  year = null, total_chapter_count = null, total_volume_count = null,
		  authors = case when f.author <> '' then jsonb_build_array(jsonb_build_object('name', f.author, 'role', 'writer')) end,
		  custom_metadata = f.extra::jsonb, locks = '{}', described = '{}', cover_source = null, updated_at = now()
		from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[])
		  f(id, title, sort, search, publisher, imprint, author, extra)
		where s.tenant_id = app.tenant() and s.id = f.id returning s.id, s.library_id`,
		ids, texts["title"], texts["sort"], texts["search"], texts["publisher"], texts["imprint"], texts["author"], extra)
	for _, table := range []string{"series_genre", "series_tag", "series_cover"} {
		b.Queue("delete from "+table+" where tenant_id = app.tenant() and series_id = any($1)", ids)
	}
	reference.QueueClear(b, ids)
	return nil
}
