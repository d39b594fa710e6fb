package scanner

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/domain/scan/follow"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
)

// Purged is the result and checkpoint of a purge.
type Purged struct {
	Books  int `json:"booksPurged"`
	Series int `json:"seriesRemoved"`
	// Kept are the books that are still marked deleted, and Because says why.
	Kept    int      `json:"booksKept,omitempty"`
	Because []string `json:"keptBecause,omitempty"`
}

// keeps are, in SQL, why a purge of library $1, one that nobody has asked for where $3 is true, keeps book k for now.
var keeps = []struct{ when, why string }{
	{scan.KeptOutSQL("$1"), "the limit of books keeps files out of the library, and they may be theirs"},
	{scan.UnlistedSQL("$1"), "their files may be in folders of the library that could not be listed"},
	{`exists (select from book b where b.tenant_id = app.tenant() and b.size = k.size and b.deleted_at is null and ` + book.NeverReadSQL + `)`,
		"files of the same size have not been read yet and may be theirs"},
	{`(exists (select from book b where b.tenant_id = app.tenant() and b.library_id = $1 and b.deleted_at is null and ` + book.NeverReadSQL + `) and ` + follow.ReadOrEditedSQL("k") + `)`,
		"people have read or edited them, and files of the library have not been read yet and may be theirs"},
	{`exists (select from book b join scan s on s.tenant_id = b.tenant_id and s.library_id = b.library_id and not s.settled
		where b.tenant_id = app.tenant() and b.fingerprint = k.fingerprint and b.fingerprint <> '' and b.library_id <> k.library_id and b.deleted_at is null)`,
		"a scan of another library has found their files and has not ended"},
	{`(` + scan.UnseenElsewhereSQL("$1") + ` and ` + follow.ChosenSQL + `)`,
		"people have read, edited or chosen them, and their files may be in another library that is not fully scanned, " +
			"because of the limit of books or a folder that cannot be listed"},
	{`($3 and k.deleted_at >= ` + lookedElsewhere + ` and ` + follow.KeptSQL + `)`,
		"more than their files would be lost with them, and their files may be in another library that has not been fully scanned since"},
}

// Purge handles purge_deleted tasks: it permanently deletes the books marked deleted, with their progress, and the
// emptied series if the setting purge.purge_empty_series allows it. It keeps a book whose file may be an unread one,
// under another name or in another library: one of the same size or, for books that people have read or edited, any
// unread file of the book's own library. It also keeps books whose content was found by a scan of another library that
// is not settled. While the limit of books keeps files out of the library, or a folder cannot be listed, it keeps all
// books; if that holds for another library, it keeps the books that people have read, edited or chosen. A purge after a
// scan also keeps books with which more than the file would be lost until every other library was scanned. Library
// files are never touched.
func (s *Scanner) Purge(ctx context.Context, h task.Held) (any, error) {
	var p scan.PurgeParams
	if err := json.Unmarshal(h.Params, &p); err != nil {
		return nil, fmt.Errorf("read parameters of the purge: %w", err)
	}
	var done Purged
	if err := h.Resume(&done); err != nil {
		return nil, err
	}
	for {
		n, series, err := s.purge(ctx, h, p.AfterScan)
		if err != nil {
			return nil, err
		}
		done.Books, done.Series = done.Books+n, done.Series+series
		if n < writeBatch {
			done.Kept, done.Because, err = s.kept(ctx, h, p.AfterScan)
			return done, err
		}
		if task.MustPause(ctx) {
			return nil, task.Paused(done)
		}
	}
}

// lookedElsewhere is SQL for the time since which every library except $1 was scanned completely; infinity if there is
// no other. A scan that began before what its library covers has changed does not count.
const lookedElsewhere = `(select coalesce(min(case when l.looked_at >= coalesce(l.reshaped_at, '-infinity') then l.looked_at else '-infinity' end), 'infinity') from library l
	where l.tenant_id = app.tenant() and l.id <> $1)`

// purge deletes one batch of books.
func (s *Scanner) purge(ctx context.Context, h task.Held, afterScan bool) (removed, emptied int, err error) {
	var b pgx.Batch
	var books []written
	var series []uuid.UUID
	var heirs []follow.Book
	unfinished := false
	kept := ""
	for _, k := range keeps {
		kept += " and not " + k.when
	}
	queueLock(&b, *h.LibraryID)
	db.Value(&b, &unfinished, "select "+scan.UnfinishedSQL, h.LibraryID)
	db.All(&b, &books, `delete from book where tenant_id = app.tenant() and id in (
		  select k.id from book k where k.tenant_id = app.tenant() and k.library_id = $1 and k.deleted_at is not null and ($2::uuid is null or k.series_id = $2)
		    and not `+scan.UnfinishedSQL+kept+`
		  limit $4)
		returning id, series_id, revision`, h.LibraryID, h.SeriesID, afterScan, writeBatch)
	db.Values(&b, &series, `select app.drop_empty_series(array(
		select id from series where tenant_id = app.tenant() and library_id = $1 and book_count = 0 and ($2::uuid is null or id = $2)))`, h.LibraryID, h.SeriesID)
	follow.Heirs(&b, &heirs)
	if err := s.Database.Run(ctx, &b); err != nil {
		return 0, 0, err
	}
	if follow.Again(heirs) {
		s.Added.Tell(ctx, h.Tenant)
	}
	var out []events.Event
	for _, w := range books {
		out = append(out, events.BookDeleted(events.Book{ID: w.ID, SeriesID: w.SeriesID, LibraryID: *h.LibraryID}))
	}
	for _, id := range series {
		out = append(out, events.SeriesDeleted(events.Series{ID: id, LibraryID: *h.LibraryID}))
	}
	s.Publish(ctx, h.Tenant, append(out, follow.Events(heirs)...)...)
	if unfinished {
		return 0, 0, fault.New(fault.Conflict, "A scan of the library has started and may find the files in other places; purge after it ends")
	}
	return len(books), len(series), nil
}

// kept counts the books that a purge has kept, and says why: of each the first reason.
func (s *Scanner) kept(ctx context.Context, h task.Held, afterScan bool) (n int, because []string, err error) {
	var first strings.Builder
	for i, k := range keeps {
		fmt.Fprintf(&first, " when %s then %d", k.when, i)
	}
	rows, err := db.List[struct {
		Reason *int `db:"reason"` // nil: the file is gone since
		Books  int  `db:"books"`
	}](ctx, s.Database, "select case"+first.String()+` end as reason, count(*) as books from book k
		where k.tenant_id = app.tenant() and k.library_id = $1 and k.deleted_at is not null and ($2::uuid is null or k.series_id = $2)
		group by 1 order by 1`, h.LibraryID, h.SeriesID, afterScan)
	for _, r := range rows {
		n += r.Books
		if r.Reason != nil {
			because = append(because, keeps[*r.Reason].why)
		}
	}
	return n, because, err
}
