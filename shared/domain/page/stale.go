package page

import (
	"context"
	"errors"
	"log/slog"

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
// what is remembered of it is dropped and its analysis queued.
func (s *Server) changed(ctx context.Context, i *Index, err error) {
	if blob.Lost(err) {
		s.Finder.forget(ctx, i.BookID)
		s.Renew.renew(ctx, i)
	}
}

// Stale is the answer to a reader where it is.
func Stale(err error) error {
	if errors.Is(err, blob.ErrNotFound) {
		return fault.Wrap(err, fault.NotFound, "The file of this book is gone; what became of it is being looked up")
	}
	return fault.Wrap(err, fault.Conflict, "The file of this book has changed and is being analysed again; try again shortly")
}
