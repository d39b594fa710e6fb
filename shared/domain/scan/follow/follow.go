// Package follow lets books follow their content, in the batch that finds it in another place, and returns the events.
//
// Tables: those of the books, through app.follow_content and app.follow_over; task.
package follow

import (
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/events"
)

// The Whats. app.follow_content returns the first three; app.follow_over returns all but the last, which is Heirs'.
const (
	Moved       = "moved"   // the book continues in another place
	Added       = "added"   // a book made for the content that a followed book has left behind at its file
	Gone        = "gone"    // a book whose content is nowhere: it is marked deleted
	Left        = "left"    // the book has left its library for another one, where it is Moved
	Emptied     = "emptied" // a series, not a book, was deleted because all its books had left
	SeriesMoved = "series"  // a series, not a book, continues in another library, in place of the series Was
	Heir        = "heir"    // a series, not a book, has inherited what people have chosen and written for another one
)

// Book is the result for a book whose content was found in another place: see app.follow_content.
type Book struct {
	What        string     `db:"what"`
	ID          uuid.UUID  `db:"id"`
	Was         *uuid.UUID `db:"was"` // the row made for the file in its new place, deleted now
	SeriesID    uuid.UUID  `db:"series_id"`
	CameSeries  uuid.UUID  `db:"came_series"` // the series of its place; deleted unless it is SeriesID
	LeftSeries  uuid.UUID  `db:"left_series"`
	LeftGone    bool       `db:"left_gone"` // that series had no other book and was deleted
	LibraryID   uuid.UUID  `db:"library_id"`
	LeftLibrary uuid.UUID  `db:"left_library"`
	Again       *string    `db:"again"` // its key, if it is analysed again
	Named       bool       `db:"named"` // a task was added that names books of its library
}

// ReadOrEditedSQL returns a condition: people have read or edited the book of this alias.
func ReadOrEditedSQL(book string) string {
	return fmt.Sprintf(`(exists (select from progress p where p.tenant_id = %[1]s.tenant_id and p.book_id = %[1]s.id)
	or exists (select from completion c where c.tenant_id = %[1]s.tenant_id and c.book_id = %[1]s.id)
	or exists (select from book_metadata m where m.tenant_id = %[1]s.tenant_id and m.book_id = %[1]s.id and m.locks <> '{}'))`, book)
}

// fromFolders is a condition: the names of the folders above series x are all of its custom_metadata. A scan writes
// them, as the option storeSkippedAs of its library's strategy says.
const fromFolders = `exists (select from library l cross join lateral (select coalesce(l.series_config ->> 'storeSkippedAs', '') as field) o
	  where l.tenant_id = x.tenant_id and l.id = x.library_id and l.series_strategy = 'publisher_hierarchy'
	    and x.custom_metadata = jsonb_build_object(o.field, x.custom_metadata ->> o.field)
	    and starts_with(x.path || '/', replace(x.custom_metadata ->> o.field, ' / ', '/') || '/'))`

// ChosenSQL is a condition: people have read, edited or chosen book k, or its series, in a way that no file does.
var ChosenSQL = `(` + ReadOrEditedSQL("k") + `
	or exists (select from book_cover x where x.tenant_id = k.tenant_id and x.book_id = k.id)
	or exists (select from collection_member x where x.tenant_id = k.tenant_id and (x.book_id = k.id or x.series_id = k.series_id))
	or exists (select from wanted x where x.tenant_id = k.tenant_id and (x.book_id = k.id or x.series_id = k.series_id))
	or exists (select from series x where x.tenant_id = k.tenant_id and x.id = k.series_id and (x.locks <> '{}'
	  or num_nonnulls(x.custom_title_sort, x.cover_source) > 0 or x.custom_metadata is not null and not ` + fromFolders + `))
	or exists (select from series_cover x where x.tenant_id = k.tenant_id and x.series_id = k.series_id)
	or exists (select from series_rating x where x.tenant_id = k.tenant_id and x.series_id = k.series_id)
	or exists (select from series_sharing_tag x where x.tenant_id = k.tenant_id and x.series_id = k.series_id)
	or exists (select from series_tracking x where x.tenant_id = k.tenant_id and x.series_id = k.series_id and x.tracked))`

// KeptSQL is a condition: more than the file would be lost with book k. An edit of a series locks only its
// title, and files write some of the same fields: besides ChosenSQL, those fields count, too.
var KeptSQL = `(` + ChosenSQL + `
	or exists (select from external_id x where x.tenant_id = k.tenant_id and (x.book_id = k.id or x.series_id = k.series_id))
	or exists (select from external_link x where x.tenant_id = k.tenant_id and (x.book_id = k.id or x.series_id = k.series_id))
	or exists (select from book_genre x where x.tenant_id = k.tenant_id and x.book_id = k.id)
	or exists (select from book_tag x where x.tenant_id = k.tenant_id and x.book_id = k.id)
	or exists (select from series x where x.tenant_id = k.tenant_id and x.id = k.series_id
	  and num_nonnulls(x.custom_metadata, x.summary, x.publisher, x.imprint, x.status, x.reading_direction, x.language,
	    x.age_rating, x.year, x.total_chapter_count, x.total_volume_count, x.authors) > 0)
	or exists (select from series_genre x where x.tenant_id = k.tenant_id and x.series_id = k.series_id)
	or exists (select from series_tag x where x.tenant_id = k.tenant_id and x.series_id = k.series_id)
	or exists (select from alternate_title x where x.tenant_id = k.tenant_id and x.series_id = k.series_id)
	or exists (select from external_rating x where x.tenant_id = k.tenant_id and x.series_id = k.series_id))`

// queue lets books follow their content. The same statement adds tasks for those that must be analysed again, and for
// series whose books came from another library with names that its folder or file has not: they are unknown before it,
// and after it the worker may die. Within a library, the caller names the books.
func queue(b *pgx.Batch, out *[]Book, function string, args ...any) {
	b.Queue(`with f as materialized (`+function+`),
		again as (
		  insert into task (tenant_id, id, type, priority, library_id, params)
		  select app.tenant(), gen_random_uuid(), $4, $5, library_id, jsonb_build_object('keys', array_agg(again), 'force', true) from f where again is not null group by library_id
		  returning pg_notify($1, '')),
		named as (`+naming(`select f.library_id, f.id as series_id from f join series s on s.tenant_id = app.tenant() and s.id = f.id
		    where f.what = '`+SeriesMoved+`' and 'title' = any(s.locks)
		  union
		  select f.library_id, coalesce(s.id, f.series_id) from f left join f s on s.what = '`+SeriesMoved+`' and s.was = f.series_id
		    where f.what = '`+Moved+`' and f.id in (select l.id from f l where l.what = '`+Left+`') and exists (select from book_metadata m
		      where m.tenant_id = app.tenant() and m.book_id = f.id and m.locks && '{volumeLock,chapterLock}')`)+`)
		select f.*, f.library_id in (select n.library_id from named n) as named from f`,
		append([]any{task.Wake, task.RenumberSeries, task.Priority(task.RenumberSeries), task.AnalyzeBooks, task.Priority(task.AnalyzeBooks)}, args...)...).Query(collect(out))
	Heirs(b, out)
}

// naming is SQL that adds a task per series of a query, if its library's titles contain that of the series. Its
// arguments are the channel, and the task's type and priority.
func naming(series string) string {
	return `insert into task (tenant_id, id, type, priority, library_id, series_id, params)
		  select app.tenant(), gen_random_uuid(), $2, $3, x.library_id, x.series_id, '{}' from (` + series + `) x
		    join library l on l.tenant_id = app.tenant() and l.id = x.library_id and l.book_strategy = 'series_name'
		    where not exists (select from task t where t.tenant_id = app.tenant() and t.library_id = x.library_id and t.series_id = x.series_id
		      and t.type = $2 and t.created_at = now()) -- of this transaction
		  returning library_id, pg_notify($1, '')`
}

func collect(out *[]Book) func(rows pgx.Rows) error {
	return func(rows pgx.Rows) error {
		some, err := pgx.CollectRows(rows, pgx.RowToStructByName[Book])
		*out = append(*out, some...)
		return err
	}
}

// Heirs adds the select of the heirs of series that this transaction has deleted; see app.hand_left. A title that they
// may have inherited is in those of their books, if the library's contain it.
func Heirs(b *pgx.Batch, out *[]Book) {
	b.Queue(`with h as materialized (
		  select '`+Heir+`' as what, id, null::uuid as was, id as series_id, id as came_series, id as left_series, false as left_gone,
		    null::text as again, library_id, library_id as left_library, 'title' = any(locks) as titled
		  from series where tenant_id = app.tenant() and id = any(string_to_array(current_setting('app.heirs', true), ' ')::uuid[])),
		named as (`+naming("select library_id, series_id from h where titled")+`)
		select what, id, was, series_id, came_series, left_series, left_gone, again, library_id, left_library,
		  library_id in (select n.library_id from named n) as named from h`, task.Wake, task.RenumberSeries, task.Priority(task.RenumberSeries)).Query(collect(out))
}

// Content adds the matching of the books of one library that are gone, that were read for the first time (came), and
// whose files have other content (changed), so that content that moved keeps its book; out receives the results. scanID
// is nil outside a scan.
func Content(b *pgx.Batch, library uuid.UUID, scanID *uuid.UUID, gone, came, changed []uuid.UUID, out *[]Book) {
	queue(b, out, "select c.*, $6::uuid as library_id, $6::uuid as left_library from app.follow_content($6, $7, $8, $9, $10) c", library, scanID, gone, came, changed)
}

// AfterScan adds the matching of books that moved between libraries, for a scan that has ended, and for earlier scans
// whose end nobody settled: all of them are locked. It settles this scan and the cancelled ones; the others still have
// to be settled.
func AfterScan(b *pgx.Batch, scanID uuid.UUID, out *[]Book) {
	const those = "s.tenant_id = app.tenant() and not s.settled and s.library_id = (select library_id from scan where tenant_id = app.tenant() and id = $1)"
	queue(b, out, "select * from app.follow_over(null, $6, null)", scanID)
	b.Queue("update scan s set settled = true from task t where "+those+" and t.tenant_id = s.tenant_id and t.id = s.id and (s.id = $1 or t.status = 'cancelled')", scanID)
}

// OverLibraries is AfterScan without a scan, for books of a library that were just read or marked deleted. It needs a
// batch of its own, after that was written: of two matching books, the transaction that comes last sees both.
func OverLibraries(b *pgx.Batch, library uuid.UUID, books []uuid.UUID, out *[]Book) {
	queue(b, out, "select * from app.follow_over($6, null, $7)", library, books)
}

// Again reports whether some of the books are analysed again, or named.
func Again(books []Book) bool {
	return slices.ContainsFunc(books, func(f Book) bool { return f.Again != nil || f.Named })
}

// Events returns the events for books that moved, and for their series.
func Events(books []Book) (out []events.Event) {
	told := map[uuid.UUID]bool{}
	series := func(id, library uuid.UUID, event func(events.Series) events.Event) {
		if !told[id] {
			told[id] = true
			out = append(out, event(events.Series{ID: id, LibraryID: library}))
		}
	}
	for _, a := range books {
		switch a.What {
		case Left:
			out = append(out, events.BookDeleted(events.Book{ID: a.ID, SeriesID: a.LeftSeries, LibraryID: a.LeftLibrary}))
			continue
		case Emptied:
			series(a.ID, a.LeftLibrary, events.SeriesDeleted)
			continue
		case SeriesMoved:
			out = append(out, events.SeriesDeleted(events.Series{ID: a.ID, LibraryID: a.LeftLibrary}))
			series(*a.Was, a.LibraryID, events.SeriesDeleted)
			series(a.ID, a.LibraryID, SeriesRenamed)
			continue
		case Heir:
			series(a.ID, a.LibraryID, func(s events.Series) events.Event { return events.SeriesUpdated(s) })
			continue
		}
		if a.Was != nil {
			out = append(out, events.BookDeleted(events.Book{ID: *a.Was, SeriesID: a.CameSeries, LibraryID: a.LibraryID}))
		}
		book := events.Book{ID: a.ID, SeriesID: a.SeriesID, LibraryID: a.LibraryID}
		switch a.What {
		case Moved:
			out = append(out, events.BookUpdated(book, "path"))
		case Added:
			out = append(out, events.BookCreated(book))
		case Gone:
			out = append(out, events.BookUpdated(book, "deleted"))
		}
		if a.CameSeries != a.SeriesID {
			series(a.CameSeries, a.LibraryID, events.SeriesDeleted)
			series(a.SeriesID, a.LibraryID, SeriesRenamed)
		}
		if a.LeftGone {
			series(a.LeftSeries, a.LibraryID, events.SeriesDeleted)
		}
	}
	return out
}

// SeriesRenamed returns the event for a series that continues under another path.
func SeriesRenamed(s events.Series) events.Event { return events.SeriesUpdated(s, "path", "title") }
