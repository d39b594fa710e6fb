package scanner

import (
	"context"
	"maps"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/scan/follow"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
)

// followOver lets books that were read or marked deleted without a scan follow their content to other libraries.
func (s *Scanner) followOver(ctx context.Context, tenant, library uuid.UUID, books []uuid.UUID) error {
	if len(books) == 0 {
		return nil
	}
	var b pgx.Batch
	var moved []follow.Book
	follow.OverLibraries(&b, library, books, &moved)
	if err := s.Database.Run(ctx, &b); err != nil {
		return err
	}
	s.tellFollowed(ctx, tenant, moved)
	return nil
}

// followFresh is followOver for books that a task has read for the first time, by library. A scan does so for its tasks
// when it ends; if it has failed before them, each does so itself. A task locks its scan when it stores what it has
// read: so the scan was settled before and this sees it, or it is settled after and sees the books.
func (s *Scanner) followFresh(ctx context.Context, h task.Held, fresh map[uuid.UUID][]uuid.UUID) error {
	if h.ParentID != nil && len(fresh) > 0 {
		var b pgx.Batch
		var settled bool
		db.Value(&b, &settled, "select settled from scan where tenant_id = app.tenant() and id = $1", h.ParentID)
		if err := s.Database.Run(ctx, &b); err != nil || !settled {
			return err
		}
	}
	for library, books := range fresh {
		if err := s.followOver(ctx, h.Tenant, library, books); err != nil {
			return err
		}
	}
	return nil
}

// followRead is followFresh for the books of a condition that an earlier run of the task has read, and may not have let
// follow.
func (s *Scanner) followRead(ctx context.Context, h task.Held, where string, args pgx.NamedArgs) error {
	var b pgx.Batch
	var read []stored
	args["started"] = h.Started
	db.All(&b, &read, `select b.id, b.series_id, b.library_id from book b
		where b.tenant_id = app.tenant() and b.deleted_at is null and `+where+` and b.first_read_at >= @started`, args)
	if err := s.Database.Run(ctx, &b); err != nil {
		return err
	}
	fresh := map[uuid.UUID][]uuid.UUID{}
	for _, r := range read {
		fresh[r.LibraryID] = append(fresh[r.LibraryID], r.ID)
	}
	return s.followFresh(ctx, h, fresh)
}

// tellFollowed publishes events for books that followed their content, and wakes workers for those that are analysed
// again.
func (s *Scanner) tellFollowed(ctx context.Context, tenant uuid.UUID, books []follow.Book) {
	if len(books) == 0 {
		return
	}
	if follow.Again(books) {
		s.Added.Tell(ctx, tenant)
	}
	s.Publish(ctx, tenant, follow.Events(books)...)
}

// queueFollowGone checks whether books that were just marked deleted have appeared elsewhere.
func queueFollowGone(b *pgx.Batch, library uuid.UUID, scanID *uuid.UUID, books []lostBook, out *[]follow.Book) {
	ids := make([]uuid.UUID, len(books))
	for i, g := range books {
		ids[i] = g.ID
	}
	follow.Content(b, library, scanID, ids, nil, nil, out)
}

// queueFollowFound checks whether the content of analysed books belongs to other books, which are gone or have changed
// content too; and whether the former content of these books is elsewhere.
func queueFollowFound(b *pgx.Batch, scanID *uuid.UUID, found []analyzed, out *[]follow.Book) {
	came, changed := freshOnes(found), map[uuid.UUID][]uuid.UUID{} // by library
	for _, a := range found {
		// A deep scan reads everything again, including content that could not be matched before.
		if !a.fresh() && (a.changed() || a.Result != nil && scanID != nil) {
			changed[a.LibraryID] = append(changed[a.LibraryID], a.ID)
		}
	}
	libraries := maps.Clone(came)
	maps.Copy(libraries, changed)
	for library := range libraries {
		follow.Content(b, library, scanID, nil, came[library], changed[library], out)
	}
}

// fresh reports whether the book was read for the first time: it may have been elsewhere before.
func (a analyzed) fresh() bool { return a.Result != nil && a.bookRow.Fingerprint == "" }

// freshOnes returns the fresh books by library.
func freshOnes(found []analyzed) map[uuid.UUID][]uuid.UUID {
	out := map[uuid.UUID][]uuid.UUID{}
	for _, a := range found {
		if a.fresh() {
			out[a.LibraryID] = append(out[a.LibraryID], a.ID)
		}
	}
	return out
}

// changed reports whether the file has other content, possibly unreadable: the book may be elsewhere.
func (a analyzed) changed() bool {
	return a.bookRow.Fingerprint != "" && (a.Result == nil || a.Result.Fingerprint != a.bookRow.Fingerprint)
}

// queueDisplaced records books whose content is about to change, before the new content is stored.
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

// renamed is a series whose folder was renamed, and the series made for the new name.
type renamed struct {
	ID  uuid.UUID `db:"id"`
	Was uuid.UUID `db:"was"`
}

// renameSeries lets series that have lost all their books continue in a folder that has appeared with the same files,
// before any of them is read.
func (r *run) renameSeries(ctx context.Context) error {
	if r.at.Deleted == 0 && !r.at.Emptied {
		return nil
	}
	for part := range slices.Chunk(slices.Collect(maps.Keys(r.touched)), renameBatch) {
		var b pgx.Batch
		var found []renamed
		b.Queue("select from scan where tenant_id = app.tenant() and id = $1 for update", r.scanID)
		queueLock(&b, r.library.ID)
		db.All(&b, &found, "select id, was from app.rename_series($1, $2, $3)", r.library.ID, r.scanID, part)
		if err := r.Database.Run(ctx, &b); err != nil {
			return err
		}
		var out []events.Event
		for _, n := range found {
			delete(r.touched, n.Was)
			out = append(out, events.SeriesDeleted(events.Series{ID: n.Was, LibraryID: r.library.ID}),
				follow.SeriesRenamed(events.Series{ID: n.ID, LibraryID: r.library.ID}))
		}
		r.Publish(ctx, r.tenant, out...)
	}
	return nil
}
