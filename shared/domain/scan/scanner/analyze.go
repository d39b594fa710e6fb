package scanner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"golang.org/x/sync/errgroup"

	"github.com/longbox/longbox/shared/domain/analysis"
	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/content"
	"github.com/longbox/longbox/shared/domain/cover"
	"github.com/longbox/longbox/shared/domain/strategy"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// CoverFunc renders and stores the cover of a book from the bytes of its image, so that it exists when the first list
// is shown. print is analysis.Result.CoverPrint. If it cannot be rendered, the returned text is a warning of the book.
// If it cannot be stored, which is the error, it is made on its first request.
type CoverFunc func(ctx context.Context, tenant, book uuid.UUID, secret []byte, print string, size, quality int, image []byte) (warning string, err error)

type analyzeParams struct {
	BookIDs []uuid.UUID `json:"bookIds,omitempty"`
	Keys    []string    `json:"keys,omitempty"` // of the task's library
	// Sidecars are files beside the books that were created, changed or deleted.
	Sidecars []string `json:"sidecars,omitempty"`
	// Force analyses books again that were analysed before.
	Force bool `json:"force,omitempty"`
	// Counted says that the parent is no scan, but counts the books in its progress.
	Counted bool `json:"counted,omitempty"`
}

// bookRow is a book to analyse.
type bookRow struct {
	ID          uuid.UUID `db:"id"`
	SeriesID    uuid.UUID `db:"series_id"`
	LibraryID   uuid.UUID `db:"library_id"`
	Key         string    `db:"key"`
	Size        int64     `db:"size"`
	ETag        string    `db:"etag"`
	Modified    time.Time `db:"modified_at"`
	Revision    int       `db:"revision"`
	Format      string    `db:"format"`
	Number      *float64  `db:"number"`
	Volume      *int      `db:"volume"`
	Chapter     *float64  `db:"chapter"`
	Fingerprint string    `db:"fingerprint"`
	CoverWas    string    `db:"cover_was"` // cover.Print
	Twins       []string  `db:"twins"`     // fingerprints of other books of the same size, which may have moved here
	Bucket      string    `db:"bucket"`
	Prefix      string    `db:"prefix"`
	strategies
	SeriesPath   string          `db:"series_path"`
	Rules        json.RawMessage `db:"rules"`
	Secret       []byte          `db:"secret"`
	Tenant       uuid.UUID       `db:"tenant_id"`
	CoverSize    int             `db:"cover_size"`
	CoverQuality int             `db:"cover_quality"`

	besides []*packageDocument // package documents that override the file, highest precedence first
}

// analyzed is a book and its analysis, or its problem.
type analyzed struct {
	bookRow
	*analysis.Result
	file      strategy.File // interpreted by the strategies
	problem   *analysis.Problem
	uncovered error // why its cover was not stored
}

// analysisPlace is the checkpoint of an analysis: books are analysed in the order of their keys.
type analysisPlace struct {
	From string // first remaining key
	Done int
	suspects
}

// AnalyzeBooks handles analyze_books and analyze_book tasks.
func (s *Scanner) AnalyzeBooks(ctx context.Context, h task.Held) (any, error) {
	var p analyzeParams
	if err := json.Unmarshal(h.Params, &p); err != nil {
		return nil, fmt.Errorf("read parameters of the analysis: %w", err)
	}
	out, err := s.analyzeBooks(ctx, h, p)
	if err != nil && !p.Counted && h.ParentID != nil && ctx.Err() == nil && h.Last(err) {
		if e := s.tellUnread(ctx, h, p, err); e != nil {
			slog.Error("cannot record unread files in the scan", "scan", h.ParentID, "task", h.ID, "error", e)
		}
	}
	return out, err
}

func (s *Scanner) analyzeBooks(ctx context.Context, h task.Held, p analyzeParams) (any, error) {
	if len(p.Sidecars) > 0 {
		return s.takeIn(ctx, h, p.Sidecars)
	}
	if len(p.Keys) > 0 {
		return s.analyze(ctx, h, p.Force, "b.key = any(@keys) and b.library_id = @library", pgx.NamedArgs{"keys": p.Keys, "library": h.LibraryID})
	}
	if p.Counted && h.ParentID != nil { // a failed one that is retried has no parent any more
		return s.analyzeCounted(ctx, h, p)
	}
	return s.analyze(ctx, h, p.Force, "b.id = any(@books)", pgx.NamedArgs{"books": p.BookIDs})
}

// AnalyzeSeries handles analyze_series tasks: it analyses every book of a series, or only those never analysed.
func (s *Scanner) AnalyzeSeries(ctx context.Context, h task.Held) (any, error) {
	var p struct {
		OnlyNew bool `json:"onlyNew"`
	}
	if err := json.Unmarshal(h.Params, &p); err != nil {
		return nil, fmt.Errorf("read parameters of the analysis: %w", err)
	}
	return s.analyze(ctx, h, !p.OnlyNew, "b.series_id = @series", pgx.NamedArgs{"series": h.SeriesID})
}

// analyze reads the books of a condition that were never analysed, or with force all.
func (s *Scanner) analyze(ctx context.Context, h task.Held, force bool, where string, args pgx.NamedArgs) (any, error) {
	var at analysisPlace
	if err := h.Resume(&at); err != nil {
		return nil, err
	}
	if h.Epoch > 1 {
		if err := s.followRead(ctx, h, where, args); err != nil {
			return nil, err
		}
	}
	books, err := s.toAnalyze(ctx, force, at, where, args)
	if err != nil {
		return nil, err
	}
	if h.Deaths > 0 {
		return s.analyzeAlone(ctx, h, books, at)
	}
	var lost unread
	of := at.Done + len(books)
	for len(books) > 0 {
		part := books[:min(len(books), analyzeBatch)]
		var p partly
		err := s.Reading(ctx, func() (err error) {
			p, err = s.analyzePart(ctx, h, part)
			return err
		})
		if err != nil {
			return nil, err
		}
		at.Done += p.done
		lost.add(p.unread)
		books = append(p.left, books[len(part):]...)
		at.From = part[len(part)-1].Key + after
		if len(books) > 0 {
			at.From = books[0].Key
		}
		switch {
		// The store is unreachable; or the checkpoint would skip what was not read.
		case lost.err != nil && (p.done == 0 && blob.Unreachable(p.err) || task.MustPause(ctx)):
			return nil, lost.explain(of)
		case len(books) > 0 && task.MustPause(ctx):
			return nil, task.Paused(at)
		case lost.err == nil && of > analyzeBatch:
			if err := s.tellAnalyzed(ctx, h, at, of); err != nil {
				return nil, err
			}
		}
	}
	if lost.err != nil {
		return nil, lost.explain(of)
	}
	return map[string]int{"booksAnalyzed": at.Done}, nil
}

// toAnalyze reads the books that analyze has to read, in the order of their keys.
func (s *Scanner) toAnalyze(ctx context.Context, force bool, at analysisPlace, where string, args pgx.NamedArgs) ([]bookRow, error) {
	args["force"], args["from"], args["suspects"] = force, at.From, at.ids()
	return db.List[bookRow](ctx, s.Database, `select b.id, b.series_id, b.library_id, b.key, b.size, b.etag, b.modified_at, b.revision,
		b.format, b.number, b.volume, b.chapter, b.fingerprint, `+cover.Print+` as cover_was, l.bucket, l.prefix, `+strategyColumns+`,
		case when b.fingerprint = '' then array(
		  (select x.fingerprint from book x where x.tenant_id = app.tenant() and x.library_id = b.library_id and x.size = b.size and x.deleted_at is not null limit 8)
		  union all (select x.fingerprint from book x where x.tenant_id = app.tenant() and x.size = b.size and x.deleted_at is null and x.id <> b.id limit 8))
		  else '{}' end as twins, l.title_preprocessing_rules as rules, s.path as series_path, t.secret, t.id as tenant_id,
		`+cover.Settings+`
		from book b join library l on l.tenant_id = b.tenant_id and l.id = b.library_id
		join series s on s.tenant_id = b.tenant_id and s.id = b.series_id join tenant t on t.id = b.tenant_id
		left join page_index p on p.tenant_id = b.tenant_id and p.book_id = b.id
		where b.tenant_id = app.tenant() and b.deleted_at is null and `+where+`
		  and (`+book.NeverReadSQL+` or @force) and (b.key >= @from or b.id = any(@suspects)) order by b.key`, args)
}

// tellAnalyzed stores the progress of a long analysis, and the checkpoint from which another run continues if this one
// dies.
func (s *Scanner) tellAnalyzed(ctx context.Context, h task.Held, at analysisPlace, of int) error {
	var b pgx.Batch
	if err := task.QueueProgress(&b, h, int64(at.Done), int64(of), at); err != nil {
		return err
	}
	if err := s.Database.Run(ctx, &b); err != nil {
		return err
	}
	s.Publish(ctx, h.Tenant, task.ProgressEvent(h, int64(at.Done), int64(of)))
	return nil
}

// partly is the result for a few books.
type partly struct {
	done int
	left []bookRow // not read because of a pause
	unread
}

// closed is the problem of a file that the store lists but never opens.
const closed = "the file cannot be opened: check its permissions. Links that lead out of the library are not followed. " +
	"The file is skipped until it changes or is retried"

// unread counts books, or files beside them, that could not be read for external reasons, with the first one and its
// reason.
type unread struct {
	books int
	key   string
	err   error
}

func (u *unread) add(more unread) {
	u.books += more.books
	if u.err == nil {
		u.key, u.err = more.key, more.err
	}
}

// unopened is a book whose file the store did not return.
type unopened struct {
	analyzed
	err error
}

// explain returns the error of a task with that many books.
func (u unread) explain(of int) *fault.Error {
	first := ""
	if u.key != "" {
		first = ", the first of them " + clip(u.key, 200)
	}
	if blob.Unreachable(u.err) || errors.Is(u.err, blob.ErrDenied) {
		return fault.Wrap(u.err, fault.Unavailable, "%d of %d files could not be read from the store%s", u.books, of, first)
	}
	return fault.Wrap(u.err, fault.Unavailable, "%d of %d files could not be read%s; the worker's log has the cause, with the id of the task", u.books, of, first)
}

// analyzePart reads a few books in parallel and stores the results.
func (s *Scanner) analyzePart(ctx context.Context, h task.Held, part []bookRow) (p partly, err error) {
	if err := s.packages(ctx, part); err != nil {
		return p, err
	}
	found, left, failed := s.read(ctx, part)
	if err := ctx.Err(); err != nil {
		return p, err
	}
	var lost unread
	for _, f := range failed {
		if errors.Is(f.err, blob.ErrClosed) && h.Last(f.err) {
			f.problem = &analysis.Problem{Type: "other", Message: closed, Err: f.err}
			found = append(found, f.analyzed)
		} else {
			lost.add(unread{1, f.Key, f.err})
		}
	}
	tellUncovered(h, found)
	there, gone, err := s.present(ctx, found)
	if err != nil {
		return p, err
	}
	if err := s.record(ctx, h, there); err != nil {
		return p, err
	}
	if err := s.leaveToScan(ctx, h, gone); err != nil {
		return p, err
	}
	return partly{len(found), left, lost}, nil
}

// tellUncovered logs that covers could not be stored (the media bucket is full). The books are analysed anyway: such a
// cover is made on its first request.
func tellUncovered(h task.Held, found []analyzed) {
	n := 0
	var first error
	for _, a := range found {
		if a.uncovered != nil {
			n, first = n+1, cmp.Or(first, a.uncovered)
		}
	}
	if n > 0 {
		slog.Warn("cannot store covers; each is made on its first request", "covers", n, "task", h.ID, "tenant", h.Tenant, "error", first)
	}
}

// record stores the analyses of books, or their problems.
func (s *Scanner) record(ctx context.Context, h task.Held, found []analyzed) error {
	sets, err := describe(found)
	if err != nil {
		return err
	}
	if err := s.storeEach(ctx, h, found, sets); err != nil {
		return err
	}
	if err := s.followFresh(ctx, h, freshOnes(found)); err != nil {
		return err
	}
	if err := s.queueStale(ctx, h, found); err != nil {
		return err
	}
	return s.lookAgain(ctx, h, found)
}

// describe lets the strategies of each library name and place the books, and limits texts; it returns the strategies.
func describe(found []analyzed) (map[uuid.UUID]*strategy.Set, error) {
	sets := map[uuid.UUID]*strategy.Set{}
	for i := range found {
		a := &found[i]
		set := sets[a.LibraryID]
		if set == nil {
			var err error
			if set, err = a.strategies.set(); err != nil {
				return nil, err
			}
			sets[a.LibraryID] = set
		}
		if a.Result == nil {
			a.file = set.Read(a.Key, nil)
			continue
		}
		a.Genres, a.Tags = namesOf(a.Genres), namesOf(a.Tags)
		a.file = set.Read(a.Key, &strategy.Meta{Title: clip(a.Metadata.Title, 1000), Series: clip(a.Metadata.Series, 500), Number: a.Result.Number,
			Volume: a.Metadata.Volume, Chapter: a.Metadata.Chapter})
	}
	return sets, nil
}

// read analyses books in parallel. It returns the analysed ones even if the store failed for others; those are returned
// too, and the books left for another run because this one must pause.
func (s *Scanner) read(ctx context.Context, books []bookRow) (found []analyzed, left []bookRow, failed []unopened) {
	var g errgroup.Group
	g.SetLimit(s.Parallel)
	var mu sync.Mutex
	found = make([]analyzed, 0, len(books))
	for i, b := range books {
		if i > 0 && task.MustPause(ctx) {
			left = books[i:len(books):len(books)]
			break
		}
		g.Go(func() error {
			a, err := s.readOne(ctx, b)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = append(failed, unopened{analyzed{bookRow: b}, err})
			} else {
				found = append(found, a)
			}
			return nil
		})
	}
	_ = g.Wait() // the functions above store their own failures
	return found, left, failed
}

// books returns the reader of books' files.
func (s *Scanner) books() *content.Reader {
	if s.Content != nil {
		return s.Content
	}
	return &content.Reader{Store: s.Library}
}

func (s *Scanner) readFile(ctx context.Context, b bookRow) (a analyzed, err error) {
	a.bookRow = b
	defer func() {
		if p := recover(); p != nil { // one file must not fail the whole batch
			slog.ErrorContext(ctx, "analysis panicked", "book", b.ID, "key", b.Key, "panic", fmt.Sprint(p),
				"stack", string(debug.Stack()))
			a.problem, err = &analysis.Problem{Type: "other", Message: "the analysis of the file crashed; please report it"}, nil
		}
	}()
	listed := blob.Object{Key: b.Prefix + b.Key, Size: b.Size, ETag: b.ETag, Modified: b.Modified}
	res, err := analysis.File(ctx, s.books(), b.Bucket, listed, analysis.Options{CoverImage: s.Cover != nil, Without: b.Twins})
	if errors.As(err, &a.problem) {
		return a, nil
	}
	if err != nil {
		return a, err
	}
	a.Result = res
	if err := a.override(ctx, s.books()); err != nil {
		return a, err
	}
	if s.Cover != nil && len(res.CoverImage) > 0 {
		warning, err := s.Cover(ctx, b.Tenant, b.ID, b.Secret, res.CoverPrint(), b.CoverSize, b.CoverQuality, res.CoverImage)
		if err != nil && ctx.Err() != nil {
			return a, err
		}
		if warning != "" {
			res.Warnings = append(res.Warnings, warning)
		}
		res.CoverImage, a.uncovered = nil, err
	}
	return a, nil
}
