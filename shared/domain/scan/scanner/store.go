package scanner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/longbox/longbox/shared/cut"
	"github.com/longbox/longbox/shared/domain/analysis"
	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/content"
	"github.com/longbox/longbox/shared/domain/cover"
	"github.com/longbox/longbox/shared/domain/pack"
	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/domain/scan/follow"
	"github.com/longbox/longbox/shared/domain/strategy"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// store writes the results of a batch in one transaction and one round trip.
func (s *Scanner) store(ctx context.Context, h task.Held, found []analyzed, sets map[uuid.UUID]*strategy.Set) error {
	if len(found) == 0 {
		return nil
	}
	slices.SortFunc(found, func(a, b analyzed) int { return strings.Compare(a.Key, b.Key) })
	var b pgx.Batch
	out, err := queueFound(&b, h.ParentID, found, sets)
	if err != nil {
		return err
	}
	alone := h.ParentID == nil
	out.arranged, err = s.runAndArrange(ctx, &b, sets, len(out.moves) > 0 || alone, func() map[uuid.UUID][]uuid.UUID {
		return unsettled(found, sets, out.moves, out.moved, alone)
	})
	if err != nil {
		return fmt.Errorf("store %d analysed books: %w", len(found), err)
	}
	if follow.Again(out.moved) {
		s.Added.Tell(ctx, h.Tenant)
	}
	s.Publish(ctx, h.Tenant, out.events(found)...) // first: if packs fail, the retry finds these books read, and tells nobody
	if s.Packs {
		return s.addPacks(ctx, h.Tenant, found, out.moved)
	}
	return nil
}

// queueFound adds all writes for a batch, including those for the scan if there is one.
func queueFound(b *pgx.Batch, scanID *uuid.UUID, found []analyzed, sets map[uuid.UUID]*strategy.Set) (*outcome, error) {
	out := &outcome{}
	if scanID != nil {
		queueProcessed(b, *scanID, found)
	}
	ids, libraries := make([]uuid.UUID, len(found)), make([]uuid.UUID, len(found))
	for i, a := range found {
		ids[i], libraries[i] = a.ID, a.LibraryID
	}
	queueLock(b, libraries...)
	queueLockBooks(b, ids)
	var err error
	if out.moves, err = queueMoves(b, scanID, found); err != nil {
		return nil, err
	}
	queueRefuted(b, found, &out.enriched.refuted)
	queueDisplaced(b, scanID, found)
	genres, tags := func(r *analysis.Result) []string { return r.Genres }, func(r *analysis.Result) []string { return r.Tags }
	queueForgotten(b, "genre", "genres", found, genres)
	queueForgotten(b, "tag", "tags", found, tags)
	if err := queueResults(b, found, sets, &out.stored); err != nil {
		return nil, err
	}
	queuePackages(b, found)
	queueLockSeries(b, ids)
	queueDescriptions(b, found, withdraw)
	queueSeriesMetadata(b, found, &out.enriched.metadata)
	queueDescriptions(b, found, fillIn)
	queueTaxonomy(b, "genre", "genres", found, genres, &out.enriched.genres)
	queueTaxonomy(b, "tag", "tags", found, tags, &out.enriched.tags)
	queueAlternateTitles(b, found, &out.enriched.titles)
	queueClamp(b, found) // before the progress of a new book moves to the book that it turns out to be
	queueFollowFound(b, scanID, found, &out.moved)
	if len(out.moves) > 0 {
		follow.Heirs(b, &out.moved)
	}
	cover.QueueShowing(b, newCovers(found), &out.showing)
	if scanID != nil {
		db.One(b, &out.status, scan.ByTaskSQL, scanID)
	}
	return out, nil
}

// queueProcessed counts a batch in its scan, with the errors of its books. A worker that dies while listing leaves
// books to two tasks: the error of a book is added once.
func queueProcessed(b *pgx.Batch, scanID uuid.UUID, found []analyzed) {
	texts := make([]string, 0, len(found))
	for _, a := range found {
		if a.problem != nil {
			texts = append(texts, clip(a.Key+": "+a.problem.Message, 500))
		}
	}
	b.Queue(`update scan set files_processed = least(files_processed + $2, files_total), error_count = error_count + cardinality(n.texts),
		errors = (errors || n.texts)[1:$4] from (select array(select t from unnest($3::text[]) t where t <> all(x.errors)) as texts
			from scan x where x.tenant_id = app.tenant() and x.id = $1 for update) n
		where tenant_id = app.tenant() and id = $1`, scanID, len(found), texts, scan.ErrorsKept)
}

// storeEach is store with a fallback: if the database rejects the data of one book, the others are stored anyway. The
// book gets an error of its own, so that no other task meets it again.
func (s *Scanner) storeEach(ctx context.Context, h task.Held, found []analyzed, sets map[uuid.UUID]*strategy.Set) error {
	err := s.store(ctx, h, found, sets)
	var refused *pgconn.PgError
	// Data exceptions, and limits.
	if !errors.As(err, &refused) || !strings.HasPrefix(refused.Code, "22") && !strings.HasPrefix(refused.Code, "54") {
		return err
	}
	if half := len(found) / 2; half > 0 {
		if err := s.storeEach(ctx, h, found[:half], sets); err != nil {
			return err
		}
		return s.storeEach(ctx, h, found[half:], sets)
	}
	one := &found[0]
	if one.problem != nil {
		return err
	}
	slog.Error("cannot store the analysis of a book", "key", one.Key, "library", one.LibraryID, "tenant", h.Tenant, "error", err)
	one.Result, one.problem = nil, &analysis.Problem{Type: "other", Message: "the result of the analysis cannot be stored; the worker's log has the reason",
		Err: err}
	return s.store(ctx, h, found, sets)
}

// tellUnread counts what a task leaves unread, when it fails for good, as errors of the scan. If it cannot, because the
// worker has died or its time is up, the end of the scan counts it: see scan.Settler.
func (s *Scanner) tellUnread(ctx context.Context, h task.Held, p analyzeParams, failure error) error {
	var b pgx.Batch
	var status *scan.Status
	e := fault.From(failure)
	if e.Code == fault.Internal {
		files := len(p.Keys) + len(p.Sidecars)
		e = unread{books: files, err: failure}.explain(files)
	}
	scan.QueueUnread(&b, h.ParentID, &h.ID, new(clip(fault.Line(e.Message), 450)))
	db.One(&b, &status, scan.ByTaskSQL, h.ParentID)
	if err := s.Database.Run(ctx, &b); err != nil || status == nil {
		return err
	}
	s.Publish(ctx, h.Tenant, status.Event(), status.TaskEvent())
	return nil
}

// addPacks adds the tasks that make page packs for books with expensive pages.
func (s *Scanner) addPacks(ctx context.Context, tenant uuid.UUID, found []analyzed, moved []follow.Book) error {
	var b pgx.Batch
	for _, a := range found {
		if a.Result == nil || !slices.ContainsFunc(a.Pages, func(p analysis.Page) bool { return !p.Direct() }) ||
			slices.ContainsFunc(moved, func(f follow.Book) bool { return f.ID == a.ID && f.What == follow.Gone }) {
			continue
		}
		id := a.ID
		if i := slices.IndexFunc(moved, func(f follow.Book) bool { return f.Was != nil && *f.Was == id }); i >= 0 {
			id = moved[i].ID
		}
		var taskID uuid.UUID
		if err := pack.Queue(&b, id, &taskID); err != nil {
			return err
		}
	}
	if b.Len() == 0 {
		return nil
	}
	if err := s.Database.Run(ctx, &b); err != nil {
		return err
	}
	s.Added.Tell(ctx, tenant)
	return nil
}

// resultRow is a book after its analysis, as queueResults passes it to the database.
type resultRow struct {
	ID        uuid.UUID `json:"id"`
	Revision  int       `json:"revision"`
	Keep      bool      `json:"keep"`  // the number: it is a position that the scan has set
	Named     bool      `json:"named"` // number, volume and chapter are of the file's name alone
	Number    *float64  `json:"number"`
	Chapter   *float64  `json:"chapter"`
	Volume    *int      `json:"volume"`
	ErrorType *string   `json:"error_type"`
	ErrorText *string   `json:"error_text"`
	Direction *string   `json:"direction"`
	Day       *int64    `json:"day"`
	// If one of these is nil, the book keeps its value.
	Format *string `json:"format"`
	Print  *string `json:"print"`
	Size   *int64  `json:"size"`
	Pages  *int    `json:"pages"`
	Title  *string `json:"title"`
	Sort   *string `json:"sort"`
	Search *string `json:"search"`
}

// resultOf returns the row of a book.
func resultOf(a analyzed, set *strategy.Set) resultRow {
	r := resultRow{ID: a.ID, Revision: a.Revision, Keep: set.Positions(), Named: a.NumberStrategy == "filename", Number: a.file.Number, Chapter: a.file.Chapter, Volume: a.file.Volume}
	if a.problem != nil {
		r.ErrorType, r.ErrorText = &a.problem.Type, new(clip(a.problem.Message, 1000))
		return r
	}
	r.Format, r.Print, r.Size, r.Direction = &a.Result.Format, &a.Result.Fingerprint, new(a.Size), nonEmpty(a.Direction)
	r.Pages, r.Day = new(cmp.Or(len(a.Pages), a.SpineCount)), releaseDay(&a.Metadata)
	if set.Positioned() { // the scan names it
		return r
	}
	title, sort := a.file.Title, naming.SortTitle(a.file.Title)
	if a.Metadata.TitleSort != "" && title == naming.Line(strings.TrimSpace(a.Metadata.Title)) {
		sort = clip(a.Metadata.TitleSort, 1000)
	}
	r.Title, r.Sort, r.Search = &title, &sort, new(naming.Normalize(title))
	return r
}

// queueResults stores the analyses, except of books that changed meanwhile; out receives the stored ones. A book that
// could not be read now, but was in this version of its file (known), keeps what its file said.
func queueResults(b *pgx.Batch, found []analyzed, sets map[uuid.UUID]*strategy.Set, out *[]stored) error {
	rows := make([]resultRow, len(found))
	for i, a := range found {
		rows[i] = resultOf(a, sets[a.LibraryID])
	}
	db.All(b, out, `update book k set
		  analyzed = u.error_type is null, error_type = u.error_type, error_message = u.error_text,
		  error_at = case when u.error_type is null then null else now() end,
		  format = coalesce(u.format, k.format), fingerprint = coalesce(u.print, k.fingerprint), size = coalesce(u.size, k.size),
		  first_read_at = coalesce(k.first_read_at, case when k.fingerprint = '' and u.print is not null then now() end),
		  title = case when 'titleLock' = any(l.locks) then k.title else coalesce(u.title, k.title) end,
		  title_sort = case when 'titleLock' = any(l.locks) or `+sortHeld+` then k.title_sort
		    else coalesce(case when 'titleSortLock' = any(l.locks) then `+book.SortTitleSQL("u.title")+` else u.sort end, k.title_sort) end,
		  search_title = case when 'titleLock' = any(l.locks) then k.search_title else coalesce(u.search, k.search_title) end,
		  number = case when 'numberLock' = any(l.locks) or u.keep or s.known and not u.named then k.number else u.number end,
		  volume = case when 'volumeLock' = any(l.locks) or s.known and not u.named then k.volume else u.volume end,
		  chapter = case when 'chapterLock' = any(l.locks) or s.known and not u.named then k.chapter else u.chapter end,
		  release_day = case when u.error_type is not null or l.locks && '{yearLock,monthLock,dayLock}' then k.release_day else u.day end,
		  reading_direction = case when s.known then k.reading_direction else u.direction end, page_count = coalesce(u.pages, k.page_count), updated_at = now()
		from jsonb_to_recordset($1) as u(id uuid, revision integer, keep boolean, named boolean, number double precision, chapter double precision, volume integer,
		    error_type text, error_text text, direction text, day bigint, format text, print text, size bigint, pages integer,
		    title text, sort text, search text)
		  left join lateral (select coalesce((select m.locks from book_metadata m where m.tenant_id = app.tenant() and m.book_id = u.id), '{}') as locks) l on true
		  left join lateral (select u.error_type is not null and exists (select from book b join page_index p on `+content.SameVersionSQL+`
		    where b.tenant_id = app.tenant() and b.id = u.id and p.revision >= 0) as known) s on true
		where k.tenant_id = app.tenant() and k.id = u.id and k.revision = u.revision
		returning k.id, k.series_id, k.library_id`, toJSON(rows))
	queuePositions(b, found)
	if err := queueMetadata(b, found); err != nil {
		return err
	}
	queueIndexes(b, found)
	for _, a := range found {
		if a.Result != nil {
			queueReferences(b, a)
		}
	}
	return nil
}

// sortHeld is SQL: the titleSort of book k is locked and has a value.
const sortHeld = "exists (select from book_metadata m where m.tenant_id = app.tenant() and m.book_id = k.id and " + book.SortHeld + ")"

// queueClamp moves the progress in books that have fewer pages than before, because the file was replaced or is read
// for the first time, to the last page; the same for books that were marked as read before their page count was known.
// The old position is kept as long as the book may be found elsewhere. In a book with more pages, because its file is
// complete again, progress returns to the page that was sent last. A text has no pages: there readers count positions
// of their own.
func queueClamp(b *pgx.Batch, found []analyzed) {
	var ids []uuid.UUID
	for _, a := range found {
		if a.Result != nil && (a.changed() || a.fresh()) {
			ids = append(ids, a.ID)
		}
	}
	if len(ids) == 0 {
		return
	}
	// Who turns a page now waits, and is not overwritten.
	b.Queue("select from progress where tenant_id = app.tenant() and book_id = any($1) order by book_id, account_id for no key update", ids)
	b.Queue(`with reader as materialized (
		  select p.book_id, p.account_id, p.current_page, k.page_count, p.current_page > k.page_count or p.completed and p.current_page = 0 as beyond,
		    (select s.page from reading_session s where s.tenant_id = p.tenant_id and s.account_id = p.account_id and s.book_id = p.book_id
		      and s.page is not null and s.pass = (select max(x.pass) from reading_session x where x.tenant_id = s.tenant_id and x.account_id = s.account_id and x.book_id = s.book_id)
		      order by s.ended_at desc, s.recorded_at desc, s.id desc limit 1) as told
		  from book k join progress p on p.tenant_id = k.tenant_id and p.book_id = k.id
		  where k.tenant_id = app.tenant() and k.id = any($1) and k.page_count > 0 and (p.completed and p.current_page = 0
		    or exists (select from page_index i where i.tenant_id = k.tenant_id and i.book_id = k.id and cardinality(i.names) > 0))),
		kept as (
		  update displaced d set pages = o.pages || d.pages from (select book_id, jsonb_object_agg(account_id, current_page) as pages from reader where beyond group by 1) o
		  where d.tenant_id = app.tenant() and d.book_id = o.book_id)
		update progress p set current_page = case when o.beyond then o.page_count else least(o.told, o.page_count) end from reader o
		where p.tenant_id = app.tenant() and p.account_id = o.account_id and p.book_id = o.book_id
		  and (o.beyond or o.told > o.current_page and o.page_count > o.current_page)`, ids)
}

// releaseDay computes the same as the database's app.release_day, which corrects any difference. Written with the rest
// of the book it costs nothing.
func releaseDay(m *analysis.Metadata) *int64 {
	if m.Year == nil {
		return nil
	}
	month, day := 1, 1
	if m.Month != nil {
		month = *m.Month
	}
	if m.Day != nil {
		day = *m.Day
	}
	return new(int64(*m.Year)*10_000 + int64(month)*100 + int64(day))
}

// queuePositions is the last resort of the number strategy smart: a book without a number in its metadata or file name
// takes its position in natural file order.
func queuePositions(b *pgx.Batch, found []analyzed) {
	var books []uuid.UUID
	for _, a := range found {
		if a.file.Position && a.NumberStrategy == "smart" {
			books = append(books, a.ID)
		}
	}
	if len(books) == 0 {
		return
	}
	// Materialized: otherwise a plan without statistics numbers the whole series once per book.
	b.Queue(`with r as materialized (select id, row_number() over (partition by series_id order by app.file_order(key) collate natural_order, key) as n
		from book where tenant_id = app.tenant() and deleted_at is null
		  and series_id in (select k.series_id from book k where k.tenant_id = app.tenant() and k.id = any($1)))
		update book b set number = r.n from r
		where b.tenant_id = app.tenant() and b.id = r.id and b.id = any($1) and b.number is null
		  and not exists (select from book_metadata m where m.tenant_id = app.tenant() and m.book_id = b.id and 'numberLock' = any(m.locks))`, books)
}

// queueMetadata stores the metadata of books, except locked fields, and the warnings. Next to a locked title the file's
// titleSort is not stored either: it belongs to another title.
func queueMetadata(b *pgx.Batch, found []analyzed) error {
	var ids []uuid.UUID
	var revisions []int
	var documents, warnings []string
	for _, a := range found {
		if a.Result == nil {
			continue
		}
		ids, revisions = append(ids, a.ID), append(revisions, a.Revision)
		document, err := json.Marshal(struct {
			analysis.Metadata
			Genres []string `json:"genres,omitempty"`
			Tags   []string `json:"tags,omitempty"`
		}{a.Metadata, a.Genres, a.Tags})
		if err != nil {
			return fmt.Errorf("metadata of %s: %w", a.Key, err)
		}
		documents, warnings = append(documents, string(document)), append(warnings, toJSON(clipAll(a.Warnings)))
	}
	b.Queue(`insert into book_metadata as m (tenant_id, book_id, metadata, warnings)
		select app.tenant(), u.id, u.document::jsonb, case u.warnings when '[]' then '{}' else array(select jsonb_array_elements_text(u.warnings::jsonb)) end
		from unnest($1::uuid[], $2::integer[], $3::text[], $4::text[]) as u(id, revision, document, warnings)
		join book k on k.tenant_id = app.tenant() and k.id = u.id and k.revision = u.revision
		on conflict (tenant_id, book_id) do update set
		  metadata = app.keep_locked(excluded.metadata, m.metadata, m.locks || case when 'titleLock' = any(m.locks) then '{titleSortLock}' else '{}' end::text[]),
		  warnings = excluded.warnings, updated_at = now()`, ids, revisions, documents, warnings)
	return nil
}

// queueReferences stores a book's external ids and links.
func queueReferences(b *pgx.Batch, a analyzed) {
	if a.bookRow.Fingerprint != "" { // read before, possibly with other references
		b.Queue(`delete from external_id where tenant_id = app.tenant() and book_id = $1 and source in ('epub', 'pdf', 'opf') and source <> $2`, a.ID, a.ExternalSource)
		b.Queue(`delete from external_link where tenant_id = app.tenant() and book_id = $1 and source_name = 'comicinfo' and $2::text = ''`, a.ID, a.Link)
	}
	if a.ExternalID != "" {
		b.Queue(`insert into external_id (tenant_id, id, book_id, source, external_id) select app.tenant(), $1, $2, $5, $3
			where exists (select from book where tenant_id = app.tenant() and id = $2 and revision = $4)
			on conflict (tenant_id, book_id, source) where book_id is not null do update set external_id = excluded.external_id, updated_at = now()`,
			uuid.Must(uuid.NewV7()), a.ID, a.ExternalID, a.Revision, a.ExternalSource)
	}
	if a.Link != "" {
		b.Queue(`insert into external_link (tenant_id, id, book_id, source_name, url) select app.tenant(), $1, $2, 'comicinfo', $3
			where exists (select from book where tenant_id = app.tenant() and id = $2 and revision = $4)
			on conflict (tenant_id, book_id, source_name) where book_id is not null do update set url = excluded.url, updated_at = now()`,
			uuid.Must(uuid.NewV7()), a.ID, clip(a.Link, 2000), a.Revision)
	}
}

// clip returns a text that can be stored, of at most about n bytes: a NUL in one text would make the whole batch fail.
func clip(s string, n int) string {
	return strings.ToValidUTF8(strings.ReplaceAll(cut.Brief(s, n), "\x00", ""), "")
}

func clipAll(list []string) []string {
	out := make([]string, 0, min(len(list), 50))
	for _, s := range list[:min(len(list), 50)] {
		out = append(out, clip(s, 500))
	}
	return out
}

func nonEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
