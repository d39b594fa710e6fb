package scanner

import (
	"context"
	"maps"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
)

// adopted is a book whose file has moved: see app.adopt_moved.
type adopted struct {
	ID         uuid.UUID `db:"id"`
	Was        uuid.UUID `db:"was"` // the row made of the file in its new place, gone now
	SeriesID   uuid.UUID `db:"series_id"`
	CameSeries uuid.UUID `db:"came_series"` // of that row; gone where it is not SeriesID
	LeftSeries uuid.UUID `db:"left_series"`
	LeftGone   bool      `db:"left_gone"` // that series had no other book and was removed
	LibraryID  uuid.UUID `db:"library_id"`
}

const adopt = "select id, was, series_id, came_series, left_series, left_gone, $1::uuid as library_id from app.adopt_moved($1, $2, $3, $4)"

// queueAdoptGone looks whether books that were just marked deleted have appeared elsewhere.
func queueAdoptGone(b *pgx.Batch, library uuid.UUID, scanID *uuid.UUID, books []gone, out *[]adopted) {
	ids := make([]uuid.UUID, len(books))
	for i, g := range books {
		ids[i] = g.ID
	}
	db.All(b, out, adopt, library, scanID, ids, nil)
}

// queueAdoptCame looks whether books that were analysed for the first time are those of files that are gone.
func queueAdoptCame(b *pgx.Batch, scanID *uuid.UUID, found []analyzed, out *[]adopted) {
	came := map[uuid.UUID][]uuid.UUID{} // by library
	for _, a := range found {
		if a.fresh() {
			came[a.LibraryID] = append(came[a.LibraryID], a.ID)
		}
	}
	for library, ids := range came {
		var some []adopted
		b.Queue(adopt, library, scanID, nil, ids).Query(func(rows pgx.Rows) (err error) {
			some, err = pgx.CollectRows(rows, pgx.RowToStructByName[adopted])
			*out = append(*out, some...)
			return err
		})
	}
}

// fresh tells that the book was read for the first time: it may be one that was elsewhere before.
func (a analyzed) fresh() bool { return a.Result != nil && a.bookRow.Fingerprint == "" }

// adoptedEvents are what listeners are told of books that moved, and of their series.
func adoptedEvents(books []adopted) (out []events.Event) {
	told := map[uuid.UUID]bool{}
	series := func(id, library uuid.UUID, event func(events.Series) events.Event) {
		if !told[id] {
			told[id] = true
			out = append(out, event(events.Series{ID: id, LibraryID: library}))
		}
	}
	for _, a := range books {
		out = append(out, events.BookDeleted(events.Book{ID: a.Was, SeriesID: a.CameSeries, LibraryID: a.LibraryID}),
			events.BookUpdated(events.Book{ID: a.ID, SeriesID: a.SeriesID, LibraryID: a.LibraryID}, "path"))
		if a.CameSeries != a.SeriesID {
			series(a.CameSeries, a.LibraryID, events.SeriesDeleted)
			series(a.SeriesID, a.LibraryID, seriesRenamed)
		}
		if a.LeftGone {
			series(a.LeftSeries, a.LibraryID, events.SeriesDeleted)
		}
	}
	return out
}

func seriesRenamed(s events.Series) events.Event { return events.SeriesUpdated(s, "path", "title") }

// renamed is a series whose folder has another name now, and the series that had been made of that.
type renamed struct {
	ID  uuid.UUID `db:"id"`
	Was uuid.UUID `db:"was"`
}

// renameSeries lets series that have lost all their books go on where a folder with the same files has appeared, before
// any of them is read.
func (s *run) renameSeries(ctx context.Context) error {
	if s.at.Deleted == 0 {
		return nil
	}
	for part := range slices.Chunk(slices.Collect(maps.Keys(s.touched)), renameBatch) {
		var b pgx.Batch
		var found []renamed
		b.Queue("select from scan where tenant_id = app.tenant() and id = $1 for update", s.scanID)
		queueLock(&b, s.library.ID)
		db.All(&b, &found, "select id, was from app.rename_series($1, $2, $3)", s.library.ID, s.scanID, part)
		if err := s.Database.Run(ctx, &b); err != nil {
			return err
		}
		var out []events.Event
		for _, r := range found {
			delete(s.touched, r.Was)
			out = append(out, events.SeriesDeleted(events.Series{ID: r.Was, LibraryID: s.library.ID}),
				seriesRenamed(events.Series{ID: r.ID, LibraryID: s.library.ID}))
		}
		s.Publish(ctx, s.tenant, out...)
	}
	return nil
}
