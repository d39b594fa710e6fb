package page

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// Renewer queues a new analysis of books whose file is another one than was analysed.
type Renewer struct {
	Database *db.DB
	Added    task.Added // told that there is a task

	asked task.Once
}

// renew queues the analysis. The answer is an error already; a failure here is noted and changes nothing about it.
func (w *Renewer) renew(ctx context.Context, i *Index) {
	if w == nil {
		return
	}
	err := w.asked.Add(ctx, w.Database, w.Added, i.BookID, func(b *pgx.Batch, id *uuid.UUID) error {
		return task.AddFor(b, task.Analysis(i.BookID), task.OfBook(i.BookID), id)
	})
	if err != nil {
		slog.Warn("the analysis of a changed book cannot be queued", "book", i.BookID, "error", err)
	}
}

// changed takes notice of a failed read of a book's file: where the file is another one than was analysed, or gone,
// what is remembered of it is dropped and its analysis queued. With the library's folder away nothing is known of the
// file: the error says that.
func (s *Server) changed(ctx context.Context, i *Index, err error) error {
	switch {
	case !blob.Lost(err):
		return err
	case errors.Is(err, blob.ErrNotFound) && s.root(ctx, i) == away:
		return fault.Wrap(err, fault.Unavailable, "The folder of this book's library is not there or is empty: check that its disk is mounted").After(retryAfter)
	}
	s.renew(ctx, i)
	return err
}

// renew drops what is remembered of a book whose file is another one, and has it analysed.
func (s *Server) renew(ctx context.Context, i *Index) {
	s.Finder.forget(ctx, i.BookID)
	s.Renew.renew(ctx, i)
}

// What the folder of a library is.
const (
	there  = "there"
	away   = "away" // or empty, as where a disk is mounted
	ailing = "ailing"
)

// root is what the folder of the book's library is, in a short time. It is asked where a file cannot be read only.
func (s *Server) root(ctx context.Context, i *Index) string {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	holds, err := s.Content.Store.Holds(ctx, i.Bucket, i.Prefix)
	switch {
	case errors.Is(err, blob.ErrNotFound), err == nil && !holds:
		return away
	case err != nil:
		return ailing
	}
	return there
}

// Stale is the answer to a reader where it is.
func Stale(err error) error {
	if errors.Is(err, blob.ErrNotFound) {
		return fault.Wrap(err, fault.NotFound, "The file of this book is gone; what became of it is being looked up")
	}
	return fault.Wrap(err, fault.Conflict, "The file of this book has changed and is being analysed again; try again shortly")
}
