package scanner

import (
	"context"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/cover"
	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/domain/scan/follow"
	"github.com/longbox/longbox/shared/domain/strategy"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
)

// Batch sizes: books per transaction; books analysed before the results are stored (and sidecars per task); series
// renumbered, or looked for elsewhere, at once.
const (
	writeBatch    = 500
	analyzeBatch  = 100
	renumberBatch = 50
	renameBatch   = 500
)

// written is a book after a batch.
type written struct {
	ID       uuid.UUID `db:"id"`
	SeriesID uuid.UUID `db:"series_id"`
	Revision int       `db:"revision"`
}

// write writes the collected changes, as far as the tenant's limit allows.
func (r *run) write(ctx context.Context, part collected) error {
	for try := 1; ; try++ {
		admitted, refused, err := r.admit(ctx, part)
		if err != nil {
			return err
		}
		err = r.writeAll(ctx, admitted, refused)
		if err == nil {
			return r.gather(ctx, len(admitted.changes))
		}
		if !fault.Is(err, fault.Conflict) || try == 3 { // otherwise a concurrent scan of the tenant has used up the limit
			return err
		}
	}
}

// gather lets Postgres update its statistics if a scan has written much compared to them (app.gather_statistics). For a
// very large table that may exceed the statement timeout: then the scan goes on without.
func (r *run) gather(ctx context.Context, n int) error {
	if n == 0 {
		return nil
	}
	r.written += int64(n)
	var b pgx.Batch
	var gathered bool
	db.Value(&b, &gathered, "select app.gather_statistics($1)", r.written)
	if err := r.Database.Run(ctx, &b); err != nil {
		if ctx.Err() != nil || db.LeaseLost(err) {
			return err
		}
		slog.Warn("cannot gather table statistics; the scan may be slow until autovacuum does", "library", r.library.ID, "error", err)
		gathered = true // try again after the same number
	}
	if gathered {
		r.written = 0
	}
	return nil
}

// writeAll writes the collected changes in one transaction and one round trip: counters, series, books, and the tasks
// that analyse them. Events are published after commit.
func (r *run) writeAll(ctx context.Context, part collected, refused int) error {
	var b pgx.Batch
	var done changed
	var status *scan.Status
	b.Queue(`update scan set files_total = files_total + $2, files_processed = files_processed + $3
		where tenant_id = app.tenant() and id = $1`, r.scanID, part.seen, part.unchanged)
	r.queueRefused(&b, refused)
	if len(part.changes)+len(part.sidecars) > 0 {
		queueLock(&b, r.library.ID)
	}
	if len(part.changes) > 0 {
		if err := r.queueChanges(&b, part.changes, &done); err != nil {
			return err
		}
	}
	if err := r.queueSidecars(&b, part.sidecars); err != nil {
		return err
	}
	db.One(&b, &status, scan.ByTaskSQL, r.scanID)
	if err := r.Database.Run(ctx, &b); err != nil {
		return err
	}
	if len(part.changes)+len(part.sidecars) > 0 {
		r.Added.Tell(ctx, r.tenant)
	}
	out := done.events(r)
	if status != nil {
		out = append(out, status.Event(), status.TaskEvent())
	}
	r.Publish(ctx, r.tenant, out...)
	return nil
}

// changed is the result of queueChanges and queueDeleted after their batch has run.
type changed struct {
	series   []uuid.UUID // new ones
	emptied  []uuid.UUID // deleted series without a book
	books    []written
	restored map[uuid.UUID]bool // books that had been marked deleted
	deleted  []written
	moved    []follow.Book   // of the deleted ones
	showing  []events.Series // series that show the cover of a restored or missing book
}

// events returns the events; the series count as touched.
func (c *changed) events(r *run) (out []events.Event) {
	for _, id := range c.series {
		out = append(out, events.SeriesCreated(events.Series{ID: id, LibraryID: r.library.ID}))
	}
	for _, id := range c.emptied {
		out = append(out, events.SeriesDeleted(events.Series{ID: id, LibraryID: r.library.ID}))
	}
	ref := func(w written) events.Book {
		r.touched[w.SeriesID] = true
		return events.Book{ID: w.ID, SeriesID: w.SeriesID, LibraryID: r.library.ID}
	}
	for _, w := range c.books {
		switch {
		case w.Revision == 0:
			out = append(out, events.BookCreated(ref(w)))
		case c.restored[w.ID]:
			out = append(out, events.BookUpdated(ref(w), "deleted", "file"))
		default:
			out = append(out, events.BookUpdated(ref(w), "file"))
		}
	}
	moved := map[uuid.UUID]bool{}
	for _, f := range c.moved {
		if f.What == follow.Heir {
			continue
		}
		moved[f.ID] = true
		r.touched[f.SeriesID], r.touched[f.LeftSeries] = true, true
	}
	for _, w := range c.deleted {
		e := events.BookUpdated(ref(w), "deleted")
		if !moved[w.ID] {
			out = append(out, e)
		}
	}
	for _, w := range c.showing {
		if !slices.Contains(c.emptied, w.ID) {
			out = append(out, events.CoverUpdated(events.SeriesEntity, w.ID, &w.LibraryID))
		}
	}
	return append(out, follow.Events(c.moved)...)
}

// left returns the series from which books are gone. A book may continue in another series at once: then nothing else
// records that it was in this one.
func (c *changed) left() (out []uuid.UUID) {
	for _, w := range c.deleted {
		out = append(out, w.SeriesID)
	}
	for _, f := range c.moved {
		if f.What != follow.Heir { // may be in another library
			out = append(out, f.LeftSeries)
		}
	}
	return out
}

// queueLock serializes the writers of a library before they lock any book: otherwise one could hold a book while it
// waits for the counters that another holds. Libraries, including those of the heirs of their series, which get what
// belongs to a deleted series, are locked in the order of their ids; none of the given libraries can be deleted until
// commit.
func queueLock(b *pgx.Batch, libraries ...uuid.UUID) {
	b.Queue(`insert into library_count (tenant_id, library_id) select tenant_id, id from library where tenant_id = app.tenant() and id = any($1) order by id for key share
		on conflict do nothing`, libraries)
	b.Queue("select app.lock_libraries($1)", libraries)
}

// queueLockBooks blocks people's edits of books until commit. A statement that changes only books without a given lock
// must follow it: such a statement sees the locks as they were at its start, not after an edit for which it had to
// wait.
func queueLockBooks(b *pgx.Batch, ids []uuid.UUID) {
	b.Queue("select from book where tenant_id = app.tenant() and id = any($1) order by id for no key update", ids)
}

// queueLockSeries is queueLockBooks for the series of some books, for statements that change only what is empty or not
// locked in a series.
func queueLockSeries(b *pgx.Batch, books []uuid.UUID) {
	b.Queue(`select from series where tenant_id = app.tenant() and id in (select k.series_id from book k where k.tenant_id = app.tenant() and k.id = any($1))
		order by id for no key update`, books)
}

// queueChanges syncs the books of changed files and adds the tasks that analyse them.
func (r *run) queueChanges(b *pgx.Batch, changes []change, done *changed) error {
	files := make([]strategy.File, len(changes))
	var places []strategy.Place
	done.restored = map[uuid.UUID]bool{}
	for i, c := range changes {
		if c.Restored {
			done.restored[c.ID] = true
		}
		files[i] = r.set.Read(c.Object.Key, nil)
		if !c.Known || !files[i].Later { // an existing book has its series
			places = append(places, files[i].Place)
		}
	}
	added := queueSeries(b, r.library.ID, r.rules, places)
	if len(done.restored) > 0 {
		r.queueForget(b, changes)
	}
	r.queueBooks(b, changes, files, &done.books)
	queueAdded(b, r.scanID, added, &done.series)
	if len(done.restored) > 0 { // possibly into another series
		db.Values(b, &done.emptied, "select app.drop_empty_series(array(select id from series where tenant_id = app.tenant() and library_id = $1 and book_count = 0))", r.library.ID)
		follow.Heirs(b, &done.moved)
		cover.QueueShowing(b, slices.Collect(maps.Keys(done.restored)), &done.showing)
	}
	return r.queueAnalysis(b, changes)
}

// queueForget lets restored files be read as new ones if their content may belong to another book (app.follow_content):
// if nobody has read or edited the restored book, and people have done so with a missing book of the same content. It
// does not apply if a complete scan has found both: copies are separate books. While the guard holds scans, the new
// book of a moved file may be marked deleted before the old one is found gone.
func (r *run) queueForget(b *pgx.Batch, changes []change) {
	var ids []uuid.UUID
	var seen []time.Time
	for _, c := range changes {
		if c.Restored {
			ids, seen = append(ids, c.ID), append(seen, c.Seen)
		}
	}
	b.Queue(`update book n set fingerprint = '', first_read_at = null, analyzed = false
		from unnest($2::uuid[], $3::timestamptz[]) as u(id, seen)
		where n.tenant_id = app.tenant() and n.id = u.id and n.deleted_at is not null and n.seen_at <= u.seen and n.fingerprint <> '' and not `+follow.ReadOrEditedSQL("n")+`
		  and exists (select from book o where o.tenant_id = app.tenant() and o.library_id = $1 and o.fingerprint = n.fingerprint and o.id <> n.id
		    and o.deleted_at is not null and o.created_at < n.created_at and `+follow.ReadOrEditedSQL("o")+`
		    and not exists (select from scan f join task t on t.tenant_id = f.tenant_id and t.id = f.id
		      where f.tenant_id = app.tenant() and f.library_id = $1 and t.status = 'completed' and coalesce(t.params ->> 'path', '') = ''
		        and t.completed_at > coalesce(n.first_read_at, n.created_at) and t.completed_at < o.deleted_at))`, r.library.ID, ids, seen)
}

// queueBooks inserts new books and updates those whose file has changed or returned. An unchanged book that returns
// needs no analysis, unless the scan is deep or the book was still to be read again (app.follow_content): a pending
// read has another revision by now. Books that another look has seen since stay unchanged. With the number strategy
// file_order a new book gets its position within the batch, which is nearly always final; arrange corrects the rest at
// the end. A restored book, and in a deep scan every book, is put into the series of its key, unless the metadata
// decides. A restored book does not count as updated; nor does one that an earlier attempt of the scan has created,
// before it is read.
func (r *run) queueBooks(b *pgx.Batch, changes []change, files []strategy.File, out *[]written) {
	f := struct {
		ids                                             []uuid.UUID
		dirs, keys, etags, formats, titles, sorts, find []string
		sizes                                           []int64
		modified, seen                                  []time.Time
		numbers, chapters                               []*float64
		volumes                                         []*int
		later                                           []bool
	}{}
	for i, c := range changes {
		file := files[i]
		f.ids, f.dirs, f.keys = append(f.ids, c.ID), append(f.dirs, file.Path), append(f.keys, c.Object.Key)
		f.etags, f.formats, f.titles = append(f.etags, c.Object.ETag), append(f.formats, c.Format), append(f.titles, file.Title)
		f.sorts, f.find = append(f.sorts, naming.SortTitle(file.Title)), append(f.find, naming.Normalize(file.Title))
		f.sizes, f.modified, f.seen = append(f.sizes, c.Object.Size), append(f.modified, c.Object.Modified), append(f.seen, c.Seen)
		f.numbers, f.volumes, f.chapters = append(f.numbers, file.Number), append(f.volumes, file.Volume), append(f.chapters, file.Chapter)
		f.later = append(f.later, file.Later)
	}
	db.All(b, out, `with changed as (
		  insert into book as k (tenant_id, id, library_id, series_id, key, size, etag, modified_at, format, title, title_sort,
		    search_title, number, volume, chapter, seen_at)
		  select app.tenant(), u.id, $1, coalesce(o.series_id, s.id), u.key, u.size, u.etag, u.modified, u.format, u.title, u.sort, u.search,
		    case when $17 then row_number() over (partition by u.dir order by app.file_order(u.key) collate natural_order, u.key) else u.number end, u.volume, u.chapter, u.seen
		  from unnest($4::uuid[], $5::text[], $6::text[], $7::bigint[], $8::text[], $9::timestamptz[], $10::text[], $11::text[],
		      $12::text[], $13::text[], $14::double precision[], $15::integer[], $16::double precision[], $18::timestamptz[], $19::boolean[])
		    as u(id, dir, key, size, etag, modified, format, title, sort, search, number, volume, chapter, seen, later)
		  left join book o on o.tenant_id = app.tenant() and o.library_id = $1 and o.key = u.key and (u.later or not $3 and o.deleted_at is null)
		  left join series s on s.tenant_id = app.tenant() and s.library_id = $1 and s.path = u.dir
		  where coalesce(o.series_id, s.id) is not null
		  on conflict (tenant_id, library_id, key) do update set series_id = excluded.series_id,
		    size = excluded.size, etag = excluded.etag, modified_at = excluded.modified_at, deleted_at = null,
		    analyzed = k.analyzed and not $3 and (k.size, k.etag, k.modified_at) = (excluded.size, excluded.etag, excluded.modified_at)
		      and not exists (select from page_index x where x.tenant_id = k.tenant_id and x.book_id = k.id and x.revision < 0),
		    error_type = null, error_message = null, error_at = null,
		    placed_at = case when k.deleted_at is null then k.placed_at else now() end,
		    revision = k.revision + 1, updated_at = now(), seen_at = excluded.seen_at
		    where k.seen_at <= excluded.seen_at
		  returning id, series_id, revision, placed_at is not distinct from now() as restored,
		    first_read_at is null and created_at >= (select created_at from task where tenant_id = app.tenant() and id = $2) as created),
		counted as (
		  update scan set books_created = books_created + (select count(*) from changed where revision = 0),
		    books_updated = books_updated + (select count(*) from changed where revision > 0 and not restored and created is not true),
		    books_restored = books_restored + (select count(*) from changed where restored)
		  where tenant_id = app.tenant() and id = $2)
		select id, series_id, revision from changed`, r.library.ID, r.scanID, r.params.Mode == scan.Deep, f.ids, f.dirs, f.keys, f.sizes,
		f.etags, f.modified, f.formats, f.titles, f.sorts, f.find, f.numbers, f.volumes, f.chapters, r.set.Positions(), f.seen, f.later)
}

// queueAnalysis adds the tasks that analyse the changed books. They contain keys: another writer may have added a book
// with the same key and another id. Books that need no analysis, as most restored ones, count as processed.
func (r *run) queueAnalysis(b *pgx.Batch, changes []change) error {
	keys := make([]string, len(changes))
	for i, c := range changes {
		keys[i] = c.Object.Key
	}
	tasks, err := r.queueTasks(b, slices.Chunk(keys, int(r.batch)), `jsonb_build_object('keys', jsonb_agg(b.key order by b.key)) as params
		from book b where b.tenant_id = app.tenant() and b.library_id = $1 and b.key = any($2) and b.deleted_at is null and `+book.NeverReadSQL+`
		having count(*) > 0`)
	if err != nil || r.scanID == nil {
		return err
	}
	b.Queue(`update scan set files_processed = least(files_processed + $2 - (
		  select coalesce(sum(jsonb_array_length(t.params -> 'keys')), 0) from task t where t.tenant_id = app.tenant() and t.id = any($3)), files_total)
		where tenant_id = app.tenant() and id = $1`, r.scanID, len(keys), tasks)
	return nil
}

// queueTasks adds a task that reads files of the library for each part of the keys, as children of the scan if there is
// one. params is SQL: the column params and the rest of a query, as in task.Found, whose arguments are the library and
// the keys. It returns the ids of the tasks, including those for which the query finds nothing.
func (r *run) queueTasks(b *pgx.Batch, parts iter.Seq[[]string], params string) (ids []uuid.UUID, err error) {
	for part := range parts {
		id := uuid.Must(uuid.NewV7())
		target := task.Found("select $1::uuid as library_id, null::uuid as series_id, null::uuid as book_id, "+params, r.library.ID, part)
		if err := task.AddNew(b, task.Spec{ID: id, Type: task.AnalyzeBooks, ParentID: r.scanID}, target, new(int64)); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	if r.scanID != nil {
		task.QueueChildren(b, *r.scanID, ids)
	}
	return ids, nil
}

// queueDeleted marks books whose files are gone. Everything about them is kept for their return, after which an
// unchanged file is not read again; books that have appeared elsewhere return at once. If a file changed and was
// deleted before it was read again, the book keeps the old content and gets the old size, since content is searched for
// by both. Books that another look has seen since stay unchanged.
func (r *run) queueDeleted(b *pgx.Batch, books []lostBook, done *changed) {
	ids, revisions, seen := make([]uuid.UUID, len(books)), make([]int, len(books)), make([]time.Time, len(books))
	for i, g := range books {
		ids[i], revisions[i], seen[i] = g.ID, g.Revision, g.Seen
	}
	cover.QueueShowing(b, ids, &done.showing) // while they still exist
	db.All(b, &done.deleted, `with gone as (
		  update book k set deleted_at = now(), updated_at = now(), seen_at = u.seen,
		    size = case when k.analyzed then k.size else coalesce((select x.file_size from page_index x where x.tenant_id = k.tenant_id and x.book_id = k.id), k.size) end
		  from unnest($2::uuid[], $3::integer[], $4::timestamptz[]) as u(id, revision, seen)
		  where k.tenant_id = app.tenant() and k.id = u.id and k.revision = u.revision and k.deleted_at is null and k.seen_at <= u.seen
		  returning k.id, k.series_id, k.revision),
		counted as (
		  update scan set books_deleted = books_deleted + (select count(*) from gone)
		  where tenant_id = app.tenant() and id = $1)
		select id, series_id, revision from gone`, r.scanID, ids, revisions, seen)
	queueFollowGone(b, r.library.ID, r.scanID, books, &done.moved)
}

// deleteGone marks the books whose files are gone, in batches.
func (r *run) deleteGone(ctx context.Context) error {
	for len(r.at.Vanished) > 0 {
		part := r.at.Vanished[:min(len(r.at.Vanished), writeBatch)]
		var b pgx.Batch
		var done changed
		var status *scan.Status
		b.Queue("select from scan where tenant_id = app.tenant() and id = $1 for update", r.scanID)
		queueLock(&b, r.library.ID)
		r.queueDeleted(&b, part, &done)
		db.One(&b, &status, scan.ByTaskSQL, r.scanID)
		arranged, err := r.runAndArrange(ctx, &b, map[uuid.UUID]*strategy.Set{r.library.ID: r.set}, true, func() map[uuid.UUID][]uuid.UUID {
			return map[uuid.UUID][]uuid.UUID{r.library.ID: done.left()}
		})
		if err != nil {
			return err
		}
		if follow.Again(done.moved) {
			r.Added.Tell(ctx, r.tenant)
		}
		out := append(done.events(r), arranged...)
		if status != nil {
			out = append(out, status.Event(), status.TaskEvent())
		}
		r.Publish(ctx, r.tenant, out...)
		r.at.Vanished, r.at.Deleted = r.at.Vanished[len(part):], r.at.Deleted+len(part)
		if task.MustPause(ctx) {
			return r.pause()
		}
	}
	return nil
}
