package scanner

import (
	"slices"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/domain/scan/follow"
	"github.com/longbox/longbox/shared/platform/events"
)

// outcome is what a batch of analysed books changed in the database.
type outcome struct {
	status   *scan.Status // of the scan; nil if there is none
	moves    []*move      // of books to the series in their metadata
	stored   []stored     // books, except those that changed meanwhile
	enriched struct {     // series changed by what their books contain
		refuted, metadata, genres, tags, titles []enriched
	}
	showing  []events.Series // series that show one of the new covers
	moved    []follow.Book   // books that turned out to be moved ones
	arranged []events.Event
}

// stored is a book after its analysis.
type stored struct {
	ID        uuid.UUID `db:"id"`
	SeriesID  uuid.UUID `db:"series_id"`
	LibraryID uuid.UUID `db:"library_id"`
}

// events returns all events.
func (o *outcome) events(found []analyzed) []events.Event {
	covered := newCovers(found)
	before := map[uuid.UUID]bool{} // books that had been read before
	for _, a := range found {
		before[a.ID] = a.bookRow.Fingerprint != ""
	}
	out := moveEvents(o.moves)
	for _, w := range withoutMoved(o.stored, o.moved) {
		read := events.BookUpdated(events.Book(w), "analysis")
		read.Elsewhere = before[w.ID]
		out = append(out, read)
		if slices.Contains(covered, w.ID) {
			out = append(out, events.CoverUpdated(events.BookEntity, w.ID, &w.LibraryID))
		}
	}
	for _, w := range o.showing {
		out = append(out, events.CoverUpdated(events.SeriesEntity, w.ID, &w.LibraryID))
	}
	told := map[enriched]bool{}
	for _, series := range slices.Concat(o.enriched.refuted, o.enriched.metadata, o.enriched.genres, o.enriched.tags, o.enriched.titles) {
		if !told[series] {
			told[series] = true
			out = append(out, events.SeriesUpdated(events.Series(series)))
		}
	}
	out = append(out, o.arranged...)
	out = append(out, follow.Events(o.moved)...)
	if o.status != nil {
		out = append(out, o.status.Event(), o.status.TaskEvent())
	}
	return out
}

// newCovers returns the books with a new cover.
func newCovers(found []analyzed) (books []uuid.UUID) {
	for _, a := range found {
		if a.Result != nil && a.CoverPrint() != a.CoverWas {
			books = append(books, a.ID)
		}
	}
	return books
}

// withoutMoved removes the books that became others.
func withoutMoved(books []stored, moved []follow.Book) []stored {
	return slices.DeleteFunc(books, func(w stored) bool {
		return slices.ContainsFunc(moved, func(f follow.Book) bool { return f.Was != nil && *f.Was == w.ID })
	})
}
