package scanner

import (
	"context"
	"maps"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
)

// followed is what became of a book because content was found in another place: see app.follow_content. What app.follow_over
// tells beside that has another What: left, series or emptied.
type followed struct {
	What        string     `db:"what"` // moved, added or gone
	ID          uuid.UUID  `db:"id"`
	Was         *uuid.UUID `db:"was"` // the row made of the file in its new place, gone now
	SeriesID    uuid.UUID  `db:"series_id"`
	CameSeries  uuid.UUID  `db:"came_series"` // of its place; gone where it is not SeriesID
	LeftSeries  uuid.UUID  `db:"left_series"`
	LeftGone    bool       `db:"left_gone"` // that series had no other book and was removed
	LibraryID   uuid.UUID  `db:"library_id"`
	LeftLibrary uuid.UUID  `db:"left_library"`
	Again       *string    `db:"again"` // its key, where it is analysed again
}

// follow lets books follow their content. Those that must be analysed again get a task in the same statement: nobody knows
// before which they are, and after it a worker may die.
func follow(b *pgx.Batch, out *[]followed, function string, args ...any) {
	b.Queue(`with f as materialized (`+function+`),
		again as (
		  insert into task (tenant_id, id, type, priority, library_id, params)
		  select app.tenant(), gen_random_uuid(), $1, $2, library_id, jsonb_build_object('keys', array_agg(again), 'force', true) from f where again is not null group by library_id
		  returning pg_notify($3, ''))
		select f.* from f`, append([]any{task.AnalyzeBooks, task.Priority(task.AnalyzeBooks), task.Wake}, args...)...).Query(func(rows pgx.Rows) error {
		some, err := pgx.CollectRows(rows, pgx.RowToStructByName[followed])
		*out = append(*out, some...)
		return err
	})
}

func queueFollow(b *pgx.Batch, library uuid.UUID, scanID *uuid.UUID, gone, came, changed []uuid.UUID, out *[]followed) {
	follow(b, out, "select c.*, $4::uuid as library_id, $4::uuid as left_library from app.follow_content($4, $5, $6, $7, $8) c", library, scanID, gone, came, changed)
}

// queueFollowOver looks whether books have gone to other libraries, or come from there, by a scan that has ended, and by those before
// it whose end nobody saw.
func queueFollowOver(b *pgx.Batch, scanID uuid.UUID, out *[]followed) {
	const those = "s.tenant_id = app.tenant() and not s.settled and s.library_id = (select library_id from scan where tenant_id = app.tenant() and id = $1)"
	b.Queue("select from scan s where "+those+" order by s.id for update", scanID)
	follow(b, out, "select * from app.follow_over(null, $4, null)", scanID)
	b.Queue("update scan s set settled = true from task t where "+those+" and t.tenant_id = s.tenant_id and t.id = s.id and t.status not in ('pending', 'running')", scanID)
}

// followOver is the same for books of a library that were just read, or marked deleted, without a scan. It is a look of its own, after
// that was written: of two that belong together, the one that looks last sees both.
func (s *Scanner) followOver(ctx context.Context, tenant, library uuid.UUID, books []uuid.UUID) error {
	if len(books) == 0 {
		return nil
	}
	var b pgx.Batch
	var moved []followed
	follow(&b, &moved, "select * from app.follow_over($4, null, $5)", library, books)
	if err := s.Database.Run(ctx, &b); err != nil {
		return err
	}
	s.tellFollowed(ctx, tenant, moved)
	return nil
}

// tellFollowed tells listeners of books that followed their content, and workers of those that are analysed again.
func (s *Scanner) tellFollowed(ctx context.Context, tenant uuid.UUID, books []followed) {
	if len(books) == 0 {
		return
	}
	if again(books) {
		s.Added.Tell(ctx, tenant)
	}
	s.Publish(ctx, tenant, followEvents(books)...)
}

// queueFollowGone looks whether books that were just marked deleted have appeared elsewhere.
func queueFollowGone(b *pgx.Batch, library uuid.UUID, scanID *uuid.UUID, books []gone, out *[]followed) {
	ids := make([]uuid.UUID, len(books))
	for i, g := range books {
		ids[i] = g.ID
	}
	queueFollow(b, library, scanID, ids, nil, nil, out)
}

// queueFollowFound looks whether what was found in books is that of others: of books that are gone, or whose files have
// other content too; and whether what these books were is elsewhere.
func queueFollowFound(b *pgx.Batch, scanID *uuid.UUID, found []analyzed, out *[]followed) {
	came, changed := freshOnes(found), map[uuid.UUID][]uuid.UUID{} // by library
	for _, a := range found {
		// A deep scan reads all again, which was in no state to be found meanwhile.
		if !a.fresh() && (a.changed() || a.Result != nil && scanID != nil) {
			changed[a.LibraryID] = append(changed[a.LibraryID], a.ID)
		}
	}
	libraries := maps.Clone(came)
	maps.Copy(libraries, changed)
	for library := range libraries {
		queueFollow(b, library, scanID, nil, came[library], changed[library], out)
	}
}

// fresh tells that the book was read for the first time: it may be one that was elsewhere before.
func (a analyzed) fresh() bool { return a.Result != nil && a.bookRow.Fingerprint == "" }

// freshOnes are the fresh ones of the books, by library.
func freshOnes(found []analyzed) map[uuid.UUID][]uuid.UUID {
	out := map[uuid.UUID][]uuid.UUID{}
	for _, a := range found {
		if a.fresh() {
			out[a.LibraryID] = append(out[a.LibraryID], a.ID)
		}
	}
	return out
}

// changed tells that the book's file is another one, perhaps one that cannot be read: the book may be elsewhere.
func (a analyzed) changed() bool {
	return a.bookRow.Fingerprint != "" && (a.Result == nil || a.Result.Fingerprint != a.bookRow.Fingerprint)
}

// queueDisplaced notes which books' files have other content now, before that is stored.
func queueDisplaced(b *pgx.Batch, scanID *uuid.UUID, found []analyzed) {
	var ids []uuid.UUID
	var revisions []int
	var prints []*string
	for _, a := range found {
		if !a.changed() {
			continue
		}
		ids, revisions, prints = append(ids, a.ID), append(revisions, a.Revision), append(prints, nil)
		if a.Result != nil {
			prints[len(prints)-1] = &a.Result.Fingerprint
		}
	}
	if len(ids) > 0 {
		b.Queue("select app.note_displaced($1, $2, $3, $4)", scanID, ids, revisions, prints)
	}
}

// again tells that some of the books are analysed again.
func again(books []followed) bool {
	return slices.ContainsFunc(books, func(f followed) bool { return f.Again != nil })
}

// followEvents are what listeners are told of books that moved, and of their series.
func followEvents(books []followed) (out []events.Event) {
	told := map[uuid.UUID]bool{}
	series := func(id, library uuid.UUID, event func(events.Series) events.Event) {
		if !told[id] {
			told[id] = true
			out = append(out, event(events.Series{ID: id, LibraryID: library}))
		}
	}
	for _, a := range books {
		switch a.What {
		case "left":
			out = append(out, events.BookDeleted(events.Book{ID: a.ID, SeriesID: a.LeftSeries, LibraryID: a.LeftLibrary}))
			continue
		case "emptied":
			series(a.ID, a.LeftLibrary, events.SeriesDeleted)
			continue
		case "series":
			out = append(out, events.SeriesDeleted(events.Series{ID: a.ID, LibraryID: a.LeftLibrary}))
			series(*a.Was, a.LibraryID, events.SeriesDeleted)
			series(a.ID, a.LibraryID, seriesRenamed)
			continue
		}
		if a.Was != nil {
			out = append(out, events.BookDeleted(events.Book{ID: *a.Was, SeriesID: a.CameSeries, LibraryID: a.LibraryID}))
		}
		book := events.Book{ID: a.ID, SeriesID: a.SeriesID, LibraryID: a.LibraryID}
		switch a.What {
		case "moved":
			out = append(out, events.BookUpdated(book, "path"))
		case "added":
			out = append(out, events.BookCreated(book))
		case "gone":
			out = append(out, events.BookUpdated(book, "deleted"))
		}
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
