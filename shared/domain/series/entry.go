package series

import (
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/reference"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Entry is a series in a list; it carries the rest of the record if the list was asked for full records.
type Entry struct {
	Series
	*Rest
}

// Rest holds the fields of Details that Series lacks.
type Rest struct {
	ReadCount       int64                  `json:"readCount" required:"false" doc:"Only with full: how often the caller has completed all books of the series"`
	LastCompletedAt *time.Time             `json:"lastCompletedAt" required:"false" doc:"Only with full: when the caller last completed all books of the series"`
	Metadata        Metadata               `json:"metadata" required:"false" doc:"Only with full"`
	AlternateTitles []reference.Title      `json:"alternateTitles" required:"false" nullable:"false" doc:"Only with full"`
	ExternalIDs     []reference.ExternalID `json:"externalIds" required:"false" nullable:"false" doc:"Only with full"`
	ExternalLinks   []reference.Link       `json:"externalLinks" required:"false" nullable:"false" doc:"Only with full"`
	ExternalRatings []reference.Rating     `json:"externalRatings" required:"false" nullable:"false" doc:"Only with full"`
	Genres          []book.Term            `json:"genres" required:"false" nullable:"false" doc:"Only with full"`
	Tags            []book.Term            `json:"tags" required:"false" nullable:"false" doc:"Only with full"`
}

// queueEntries adds a page and the total of the list to the batch; load returns both after the batch has run.
func (q query) queueEntries(b *pgx.Batch, p httpapi.Paging, full bool) (load func() ([]Entry, int64)) {
	if !full {
		page := q.queue(b, p.Limit(), p.Offset())
		return func() ([]Entry, int64) {
			all, total := page()
			out := make([]Entry, len(all))
			for i, s := range all {
				out[i].Series = s
			}
			return out, total
		}
	}
	page := q.queueFull(b, p)
	return func() ([]Entry, int64) {
		all, total := page()
		out := make([]Entry, len(all))
		for i := range all {
			d := &all[i]
			out[i] = Entry{d.Series, &Rest{ReadCount: d.ReadCount, LastCompletedAt: d.LastCompletedAt, Metadata: d.Metadata, AlternateTitles: d.AlternateTitles,
				ExternalIDs: d.ExternalIDs, ExternalLinks: d.ExternalLinks, ExternalRatings: d.ExternalRatings, Genres: d.Genres, Tags: d.Tags}}
		}
		return out, total
	}
}
