package book

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// Details is the full record of a book.
type Details struct {
	Book
	progress.Readings
	Metadata *Metadata `json:"metadata" doc:"Null until the book is analysed"`
	Genres   []Term    `json:"genres" nullable:"false" doc:"Genres of the book itself; the record of its series has those of the series"`
	Tags     []Term    `json:"tags" nullable:"false" doc:"Tags of the book itself; the record of its series has those of the series"`
}

// Term is a genre or a tag.
type Term struct {
	ID          uuid.UUID `json:"id" db:"id"`
	Name        string    `json:"name" db:"name"`
	SeriesCount int64     `json:"seriesCount" db:"series_count" minimum:"0"`
	CreatedAt   time.Time `json:"createdAt" db:"created_at"`
}

// TermColumns is the select list of a Term t; table is genre or tag.
func TermColumns(table string) string {
	return "t.id, t.name, t.created_at, (select count(*) from series_" + table + " x where x.tenant_id = app.tenant() and x." + table + "_id = t.id) as series_count"
}

// HasTerm is an SQL condition: a series or book (owner) has the genre or tag (table) t.
func HasTerm(owner, table string) string {
	return strings.NewReplacer("{o}", owner, "{t}", table).Replace(`case when (select app.allowed()) is null
		then exists (select from {o}_{t} x where x.tenant_id = app.tenant() and x.{t}_id = t.id) else t.id in (select app.allowed_terms('{o}', '{t}')) end`)
}

// QueueTerms adds the select of the genres or tags (table) of a series or book (owner) to the batch.
func QueueTerms(b *pgx.Batch, dst *[]Term, table, owner string, id uuid.UUID) {
	db.All(b, dst, "select "+TermColumns(table)+" from "+owner+"_"+table+" l join "+table+" t on t.tenant_id = l.tenant_id and t.id = l."+table+`_id
		where l.tenant_id = app.tenant() and l.`+owner+"_id = $1 order by t.name collate natural_order, t.id", id)
}

// QueueAllTerms asks for the genres or tags (table) of the series or books (owner) of the kept page. load has them by
// owner, once the batch has run. The series of each term are counted once.
func QueueAllTerms(b *pgx.Batch, owner, table string) (load func() map[uuid.UUID][]Term) {
	var rows []struct {
		OwnerID uuid.UUID `db:"owner_id"`
		Term
	}
	db.All(b, &rows, `with l as materialized (select l.`+owner+`_id as owner_id, l.`+table+`_id as id from `+owner+`_`+table+` l
		  where l.tenant_id = app.tenant() and l.`+owner+`_id = any`+PageIDsSQL+`),
		t as materialized (select u.id, t.name, t.created_at, (select count(*) from series_`+table+` x
		    where x.tenant_id = app.tenant() and x.`+table+`_id = u.id) as series_count
		  from (select distinct id from l) u cross join lateral (select t.name, t.created_at from `+table+` t
		    where t.tenant_id = app.tenant() and t.id = u.id limit 1) t)
		select l.owner_id, t.id, t.name, t.created_at, t.series_count from l join t on t.id = l.id order by t.name collate natural_order, t.id`)
	return func() map[uuid.UUID][]Term {
		out := map[uuid.UUID][]Term{}
		for _, r := range rows {
			out[r.OwnerID] = append(out[r.OwnerID], r.Term)
		}
		return out
	}
}

func get(ctx context.Context, d *db.DB, id uuid.UUID, deleted bool) (*Details, error) {
	var b pgx.Batch
	load := QueueDetails(&b, id, deleted)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	return load()
}

// QueueDetails adds the select of the full record to the batch; deleted includes books whose file is gone. load returns
// it after the batch has run, NotFound if there is no such book.
func QueueDetails(b *pgx.Batch, id uuid.UUID, deleted bool) (load func() (*Details, error)) {
	var rows []row
	var meta *metadataRow
	var read *progress.Readings
	out := Details{}
	ids := "select b.id from book b where b.tenant_id = app.tenant() and b.id = $1 and (b.deleted_at is null or $2)"
	db.All(b, &rows, pageSQL(ids, 2), id, deleted, 1, 0)
	db.One(b, &meta, "select "+metadataColumns+" from book_metadata where tenant_id = app.tenant() and book_id = $1", id)
	progress.QueueReadings(b, &read, id)
	QueueTerms(b, &out.Genres, "genre", "book", id)
	QueueTerms(b, &out.Tags, "tag", "book", id)
	return func() (_ *Details, err error) {
		if len(rows) == 0 {
			return nil, fault.Missing("Book")
		}
		out.Book, out.Readings = rows[0].book(), *read
		out.Metadata, err = meta.metadata()
		return &out, err
	}
}
