package book

import (
	"cmp"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Entry is a book in a list; it carries the rest of the record if the list was asked for full records.
type Entry struct {
	Book
	*Rest
}

// Rest holds the fields of Details that Book lacks.
type Rest struct {
	ReadCount       int64      `json:"readCount" required:"false" doc:"Only with full: how often the caller has completed the book"`
	LastCompletedAt *time.Time `json:"lastCompletedAt" required:"false" doc:"Only with full: when the caller last completed the book"`
	Metadata        *Metadata  `json:"metadata" required:"false" doc:"Only with full; null until the book is analysed"`
	Genres          []Term     `json:"genres" required:"false" nullable:"false" doc:"Only with full"`
	Tags            []Term     `json:"tags" required:"false" nullable:"false" doc:"Only with full"`
}

// MaxFull is the maximum page size of full records.
const MaxFull = 100

// FullInput is the query parameter that asks a list for full records.
type FullInput struct {
	Full bool `query:"full" doc:"Return full records, at most 100 per page"`
}

// Of returns the paging, limited to MaxFull if full records were asked for.
func (in FullInput) Of(p httpapi.Paging) httpapi.Paging {
	if !in.Full {
		return p
	}
	return httpapi.Paging{Page: p.Page, PageSize: min(cmp.Or(p.PageSize, 50), MaxFull)}
}

// The ids of a page are selected once and kept for the other statements of the transaction: KeepPageSQL, a select of
// ids in order with limit and offset, and KeptEndSQL together form that statement. PageIDsSQL is the array of the ids.
const (
	KeepPageSQL = "select set_config('app.page', coalesce(array_agg(p.id order by p.pos), '{}')::text, true) from (select id, row_number() over () as pos from ("
	KeptEndSQL  = ") x) p"
	PageIDsSQL  = "(current_setting('app.page', true)::uuid[])"
	KeptIDsSQL  = "select u.id from unnest" + PageIDsSQL + " with ordinality u(id, nth) order by u.nth"
)

type keptMetadata struct {
	BookID uuid.UUID `db:"book_id"`
	metadataRow
}

const keptMetadataSQL = "select book_id, " + metadataColumns + " from book_metadata where tenant_id = app.tenant() and book_id = any" + PageIDsSQL

// queueEntries adds a page and the total of the list to the batch; load returns both after the batch has run.
func (q query) queueEntries(b *pgx.Batch, p httpapi.Paging, full bool) (load func() ([]Entry, int64, error)) {
	if full {
		return q.queueFull(b, p)
	}
	var rows []row
	var total int64
	q.queue(b, &rows, &total, p.Limit(), p.Offset())
	return func() ([]Entry, int64, error) {
		out := make([]Entry, len(rows))
		for i, r := range rows {
			out[i].Book = r.book()
		}
		return out, total, nil
	}
}

// queueFull is queueEntries for full records, with one statement per related table.
func (q query) queueFull(b *pgx.Batch, p httpapi.Paging) (load func() ([]Entry, int64, error)) {
	var total int64
	var rows []row
	var described []keptMetadata
	var read []progress.BookReadings
	b.Queue(KeepPageSQL+q.page(p.Offset())+KeptEndSQL, append(append([]any{}, q.args...), p.Limit(), p.Offset())...)
	db.Value(b, &total, q.total, q.totalArgs...)
	db.All(b, &rows, pageSQL(KeptIDsSQL, 0), p.Limit(), 0)
	db.All(b, &described, keptMetadataSQL)
	progress.QueueAllReadings(b, &read, PageIDsSQL)
	genres, tags := QueueAllTerms(b, "book", "genre"), QueueAllTerms(b, "book", "tag")
	return func() ([]Entry, int64, error) {
		readings, metadata := map[uuid.UUID]progress.Readings{}, map[uuid.UUID]*Metadata{}
		for _, r := range read {
			readings[r.BookID] = r.Readings
		}
		for _, r := range described {
			m, err := r.metadata()
			if err != nil {
				return nil, 0, err
			}
			metadata[r.BookID] = m
		}
		genresOf, tagsOf := genres(), tags()
		out := make([]Entry, len(rows))
		for i, r := range rows {
			of := readings[r.ID]
			out[i] = Entry{r.book(), &Rest{of.ReadCount, of.LastCompletedAt, metadata[r.ID], append([]Term{}, genresOf[r.ID]...), append([]Term{}, tagsOf[r.ID]...)}}
		}
		return out, total, nil
	}
}
