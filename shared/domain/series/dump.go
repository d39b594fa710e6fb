package series

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/domain/reference"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// FullPaging is httpapi.Paging for full records.
type FullPaging struct {
	Page     int `query:"page" default:"1" minimum:"1" maximum:"9007199254740991" doc:"Page number, starting at 1"`
	PageSize int `query:"pageSize" default:"50" minimum:"0" doc:"Items per page; 0 means 50, and values over 100 mean 100"`
}

func (p FullPaging) paging() httpapi.Paging {
	return book.FullInput{Full: true}.Of(httpapi.Paging(p))
}

// Indexed holds what a companion program needs to find a series in other services.
type Indexed struct {
	ID              uuid.UUID      `json:"id" db:"id"`
	LocalMaxVolume  *int32         `json:"localMaxVolume" db:"max_volume"`
	LocalMaxChapter *float64       `json:"localMaxChapter" db:"max_chapter"`
	VolumesOwned    int64          `json:"volumesOwned" db:"volumes_owned" doc:"Number of books that are a whole volume"`
	ExternalIDs     []reference.ID `json:"externalIds" db:"-" nullable:"false"`
}

// dumps registers the lists from which companion programs read everything.
func dumps(a *httpapi.API, d *db.DB) {
	httpapi.Register(a, operation("GET", "/full", "listFullSeries", "List full records of all series, by name unless sort is given", auth.SeriesRead),
		func(ctx context.Context, in *struct {
			ScopeInput
			TermsInput
			FullPaging
			httpapi.Sorting
		}) (*httpapi.Page[Details], error) {
			s, err := in.narrow(in.scope())
			if err != nil {
				return nil, err
			}
			q, err := sorted(s, in.Sorting)
			if err != nil {
				return nil, err
			}
			p := in.paging()
			page, total, err := full(ctx, d, q, p)
			if err != nil {
				return nil, err
			}
			return httpapi.NewPage(ctx, p, page, total), nil
		})
	httpapi.Register(a, operation("GET", "/external-index", "listSeriesExternalIndex", "List the external ids of all series, with the volumes and chapters present", auth.SeriesRead),
		func(ctx context.Context, in *struct {
			httpapi.Paging
			httpapi.Sorting
			Full bool `query:"full" doc:"Ignored"`
		}) (*httpapi.Page[Indexed], error) {
			q, err := sorted(scope{}, in.Sorting)
			if err != nil {
				return nil, err
			}
			page, total, err := index(ctx, d, q, in.Paging)
			if err != nil {
				return nil, err
			}
			return httpapi.NewPage(ctx, in.Paging, page, total), nil
		})
}

func sorted(s scope, by httpapi.Sorting) (query, error) {
	field, desc, err := s.order(by)
	return all(s, field, desc), err
}

const kept = book.PageIDsSQL

// queueKeep selects and keeps the ids of a page.
func (q query) queueKeep(b *pgx.Batch, total *int64, p httpapi.Paging) {
	b.Queue(book.KeepPageSQL+q.page()+book.KeptEndSQL, append(append([]any{}, q.args...), p.Limit(), p.Offset())...)
	db.Value(b, total, q.total, q.totalArgs...)
}

type keptMetadata struct {
	SeriesID uuid.UUID `db:"id"`
	metadataRow
}

type warning struct {
	SeriesID uuid.UUID `db:"id"`
	Problem  string    `db:"problem"`
}

const (
	keptMetadataSQL = "select id, " + metadataColumns + " from series where tenant_id = app.tenant() and id = any" + kept
	keptWarningsSQL = `select s.id, k.problem from series s join sidecar k on k.tenant_id = app.tenant() and k.library_id = s.library_id and k.about = s.path
		where s.tenant_id = app.tenant() and s.id = any` + kept + ` and k.kind <> 'opf' and k.problem is not null order by k.key`
	indexedSQL = "select p.id, c.max_volume, c.max_chapter, c.volumes_owned from (" + book.KeptIDsSQL + `) p
		cross join lateral (select max(b.volume) as max_volume, max(b.chapter) as max_chapter,
		  count(*) filter (where b.volume is not null and b.chapter is null) as volumes_owned
		  from book b where b.tenant_id = app.tenant() and b.series_id = p.id and b.deleted_at is null) c`
)

// full returns a page of full records in one round trip.
func full(ctx context.Context, d *db.DB, q query, p httpapi.Paging) ([]Details, int64, error) {
	var b pgx.Batch
	load := q.queueFull(&b, p)
	if err := d.Run(ctx, &b); err != nil {
		return nil, 0, err
	}
	page, total := load()
	return page, total, nil
}

// queueFull adds the select of a page of full records to the batch, with one statement per related table.
func (q query) queueFull(b *pgx.Batch, p httpapi.Paging) (load func() ([]Details, int64)) {
	var total int64
	var rows []row
	var described []keptMetadata
	var warned []warning
	var read []progress.SeriesReadings
	q.queueKeep(b, &total, p)
	db.All(b, &rows, query{ids: book.KeptIDsSQL}.sql(), p.Limit(), 0)
	db.All(b, &described, keptMetadataSQL)
	db.All(b, &warned, keptWarningsSQL)
	progress.QueueAllSeriesReadings(b, &read, kept)
	references := reference.QueueAll(b, kept)
	genres, tags := book.QueueAllTerms(b, "series", "genre"), book.QueueAllTerms(b, "series", "tag")
	return func() ([]Details, int64) {
		readings, warnings, metadata := map[uuid.UUID]progress.Readings{}, map[uuid.UUID][]string{}, map[uuid.UUID]Metadata{}
		for _, r := range read {
			readings[r.SeriesID] = r.Readings
		}
		for _, w := range warned {
			warnings[w.SeriesID] = append(warnings[w.SeriesID], w.Problem)
		}
		for _, m := range described {
			metadata[m.SeriesID] = m.metadata(append([]string{}, warnings[m.SeriesID]...))
		}
		of, genresOf, tagsOf := references(), genres(), tags()
		out := make([]Details, 0, len(rows))
		for _, r := range rows {
			m, there := metadata[r.ID]
			if !there { // deleted meanwhile
				continue
			}
			out = append(out, Details{Series: r.series(), Readings: readings[r.ID], Metadata: m, OfSeries: of(r.ID),
				Genres: append([]book.Term{}, genresOf[r.ID]...), Tags: append([]book.Term{}, tagsOf[r.ID]...)})
		}
		return out, total
	}
}

// index returns a page of the ids and titles of series in other services.
func index(ctx context.Context, d *db.DB, q query, p httpapi.Paging) ([]Indexed, int64, error) {
	var b pgx.Batch
	var total int64
	var out []Indexed
	q.queueKeep(&b, &total, p)
	db.All(&b, &out, indexedSQL)
	ids := reference.QueueAllIDs(&b, kept)
	if err := d.Run(ctx, &b); err != nil {
		return nil, 0, err
	}
	of := ids()
	for i := range out {
		out[i].ExternalIDs = append([]reference.ID{}, of[out[i].ID]...)
	}
	return out, total, nil
}
