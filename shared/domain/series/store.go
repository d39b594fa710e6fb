package series

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/domain/reference"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

type metadataRow struct {
	Metadata
	Locked []string `db:"locks"`
}

func (r *metadataRow) metadata(warnings []string) Metadata {
	m := r.Metadata
	m.Warnings, m.Locks = warnings, book.LockSet(lockNames, r.Locked)
	return m
}

// metadataColumns are the columns of a metadataRow.
const metadataColumns = `title, title_sort, summary, publisher, imprint, status, reading_direction, language, age_rating,
	year, total_chapter_count, total_volume_count, authors, custom_metadata, created_at, updated_at, locks`

// warningsSQL selects the problems of the sidecar files that describe series $1.
const warningsSQL = `select k.problem from series s join sidecar k on k.tenant_id = app.tenant() and k.library_id = s.library_id and k.about = s.path
	where s.tenant_id = app.tenant() and s.id = $1 and k.kind <> 'opf' and k.problem is not null order by k.key`

func get(ctx context.Context, d *db.DB, id uuid.UUID) (*Details, error) {
	var b pgx.Batch
	load := QueueDetails(&b, id)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	return load()
}

// QueueDetails adds the select of the full record to the batch. load returns it after the batch has run, NotFound if
// there is no such series.
func QueueDetails(b *pgx.Batch, id uuid.UUID) (load func() (*Details, error)) {
	var rows []row
	var meta *metadataRow
	var read *progress.Readings
	var warnings []string
	out := Details{}
	q := query{ids: "select s.id from series s where s.tenant_id = app.tenant() and s.id = $1", args: []any{id}}
	db.All(b, &rows, q.sql(), id, 1, 0)
	db.One(b, &meta, "select "+metadataColumns+` from series where tenant_id = app.tenant() and id = $1`, id)
	db.Values(b, &warnings, warningsSQL, id)
	progress.QueueSeriesReadings(b, &read, id)
	reference.Queue(b, &out.OfSeries, id)
	book.QueueTerms(b, &out.Genres, "genre", "series", id)
	book.QueueTerms(b, &out.Tags, "tag", "series", id)
	return func() (*Details, error) {
		if len(rows) == 0 {
			return nil, fault.Missing("Series")
		}
		out.Series, out.Metadata = rows[0].series(), meta.metadata(warnings)
		out.Readings = *read
		return &out, nil
	}
}
