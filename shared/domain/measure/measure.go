package measure

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/longbox/longbox/shared/domain/content"
	"github.com/longbox/longbox/shared/domain/pack"
	"github.com/longbox/longbox/shared/domain/page"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
)

// atOnce is the number of pages of a book that are read in parallel: they are small, and the time is spent waiting for
// the store.
const atOnce = 8

// Measurer reads the sizes of pages.
type Measurer struct {
	Database *db.DB
	Content  *content.Reader // reads the library
	Media    *blob.Store     // holds the page packs
	Bucket   string
	Publish  events.Publish
	Added    task.Added // called after the analysis of a changed file was queued
}

// sized is a book with the sizes of its pages: 0 if never looked for.
type sized struct {
	index     *page.Index
	SeriesID  uuid.UUID `db:"series_id"`
	LibraryID uuid.UUID `db:"library_id"`
	Revision  int32     `db:"revision"` // of the page index
	Widths    []int32   `db:"widths"`
	Heights   []int32   `db:"heights"`
}

// Result is the result of the task, and its counts so far if it pauses.
type Result struct {
	Pages   int `json:"pages"`   // with a size
	Unknown int `json:"unknown"` // without a size where one is expected
}

// Measure handles measure_pages tasks. A run that pauses or fails stores its results; the next one continues with the
// rest.
func (m *Measurer) Measure(ctx context.Context, h task.Held) (any, error) {
	if h.BookID == nil {
		return nil, fault.New(fault.BadRequest, "A task of type %s needs a book", task.MeasurePages)
	}
	var so Result
	if err := h.Resume(&so); err != nil {
		return nil, err
	}
	b, err := m.load(ctx, *h.BookID)
	if err != nil || b == nil {
		return so, err
	}
	found, paused, failure := m.read(ctx, b)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if found.Pages+found.Unknown > 0 {
		if err := m.store(ctx, h, b, found); err != nil {
			return nil, errors.Join(failure, err)
		}
	}
	so.Pages, so.Unknown = so.Pages+found.Pages, so.Unknown+found.Unknown
	switch {
	case failure != nil:
		return nil, m.explain(ctx, h, b.index, failure)
	case paused:
		return nil, task.Paused(so)
	}
	return so, nil
}

// load returns the book; nil if it is gone, or its changed file is not analysed yet.
func (m *Measurer) load(ctx context.Context, id uuid.UUID) (*sized, error) {
	var b pgx.Batch
	var i *page.Index
	var s *sized
	page.Queue(&b, &i, id)
	db.One(&b, &s, `select b.series_id, b.library_id, p.revision, p.widths, p.heights from book b join page_index p on `+content.SameVersionSQL+`
		where b.tenant_id = app.tenant() and b.id = $1 and b.deleted_at is null`, id)
	// The index was rewritten between the two statements.
	if err := m.Database.Run(ctx, &b); err != nil || i == nil || s == nil || len(s.Widths) != i.Count {
		return nil, err
	}
	s.index = i
	return s, nil
}

// read reads the pages of unknown size, and writes the sizes into b.
func (m *Measurer) read(ctx context.Context, b *sized) (found Result, paused bool, err error) {
	g, shared := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	var begun []int
	for i, width := range b.Widths {
		at, ok := m.place(b.index, i+1)
		if width != 0 || !ok {
			continue
		}
		if paused = len(begun) > 0 && task.MustPause(ctx); paused || shared.Err() != nil {
			break
		}
		begun = append(begun, i)
		read := fault.Guarded(func() (_ any, err error) {
			b.Widths[i], b.Heights[i], err = m.size(shared, at)
			return nil, err
		})
		g.Go(func() error {
			_, err := read()
			return err
		})
	}
	err = g.Wait()
	for _, i := range begun {
		switch {
		case b.Widths[i] > 0:
			found.Pages++
		case b.Widths[i] < 0:
			found.Unknown++
		}
	}
	return found, paused, err
}

// store stores the sizes, unless the index has changed to another version of the file, and publishes an event.
func (m *Measurer) store(ctx context.Context, h task.Held, b *sized, found Result) error {
	n, err := db.Exec(ctx, m.Database, `update page_index p set widths = $2, heights = $3 from book b
		where p.tenant_id = app.tenant() and p.book_id = $1 and p.revision = $4 and (p.file_size, p.file_etag, p.file_modified) = ($5, $6, $7)
		  and p.offsets = $8 and `+content.SameVersionSQL, h.BookID, b.Widths, b.Heights, b.Revision, b.index.Size, b.index.ETag, b.index.Modified, b.index.Offsets)
	if err == nil && n > 0 && found.Pages > 0 {
		m.Publish(ctx, h.Tenant, events.BookUpdated(events.Book{ID: *h.BookID, SeriesID: b.SeriesID, LibraryID: b.LibraryID}, "pages"))
	}
	return err
}

// lostPack says that a page pack is missing, or differs from its row.
type lostPack struct{ error }

func (l lostPack) Unwrap() error { return l.error }

// explain turns a failed read into the task's error, and queues the repair: an analysis of the file, or a new page
// pack. An error of unknown cause is returned unchanged.
func (m *Measurer) explain(ctx context.Context, h task.Held, i *page.Index, failure error) error {
	const none = "The pages were not measured"
	packed := errors.As(failure, new(lostPack))
	if !packed {
		failure = m.Content.Explain(ctx, none, i.Bucket, i.Object(), failure)
	}
	switch {
	case packed && blob.Unreachable(failure):
		return fault.Wrap(failure, fault.Unavailable, "%s: the media bucket is not reachable at the moment; try again later", none)
	case !blob.Lost(failure):
		return failure
	}
	var b pgx.Batch
	var id uuid.UUID
	var err error
	what := "the book's file is gone or has changed; its analysis is queued"
	if packed {
		what = "the book's page pack is gone; a new one is queued"
		err = pack.Queue(&b, *h.BookID, &id)
	} else {
		err = task.AddFor(&b, task.Analysis(*h.BookID), task.OfBook(*h.BookID), &id)
	}
	if err == nil {
		err = m.Database.Run(ctx, &b)
	}
	if err != nil {
		return errors.Join(failure, err)
	}
	m.Added.Tell(ctx, h.Tenant)
	return fault.Wrap(failure, fault.Conflict, "%s: %s", none, what)
}
