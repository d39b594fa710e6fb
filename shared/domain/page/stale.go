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

// Renewer queues a new analysis of books whose file has changed since it was analysed.
type Renewer struct {
	Database *db.DB
	Added    task.Added // called after a task was added

	asked task.Once
}

// renew queues the analysis. The response is an error anyway; a failure here is only logged.
func (w *Renewer) renew(ctx context.Context, i *Index) {
	if w == nil {
		return
	}
	err := w.asked.Add(ctx, w.Database, w.Added, i.BookID, func(b *pgx.Batch, id *uuid.UUID) error {
		return task.AddFor(b, task.Analysis(i.BookID), task.OfBook(i.BookID), id)
	})
	if err != nil {
		slog.Warn("cannot queue the analysis of a changed book", "book", i.BookID, "error", err)
	}
}

// changed handles a failed read of a book's file. If the file has changed or is gone, it drops the cached index and
// queues an analysis. If the library's folder is away, nothing is known about the file, and the error says so.
func (s *Server) changed(ctx context.Context, i *Index, err error) error {
	switch {
	case !blob.Lost(err):
		return err
	case errors.Is(err, blob.ErrNotFound) && s.root(ctx, i) == away:
		return fault.Wrap(err, fault.Unavailable, "The folder of this book's library is missing or empty: check that its disk is mounted").After(retryAfter)
	}
	s.renew(ctx, i)
	return err
}

// renew drops the cached index of a book whose file has changed, and queues its analysis.
func (s *Server) renew(ctx context.Context, i *Index) {
	s.Finder.forget(ctx, i.BookID)
	s.Renew.renew(ctx, i)
}

// The states of a library's folder.
const (
	there  = "there"
	away   = "away" // or empty, like the mount point of a disk
	ailing = "ailing"
)

// root returns the state of the folder of the book's library, within two seconds. It is called only after a read has
// failed.
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

// Stale is the error for a file that is gone or has changed.
func Stale(err error) error {
	if errors.Is(err, blob.ErrNotFound) {
		return fault.Wrap(err, fault.NotFound, "The file of this book is gone; a scan will look for it")
	}
	return fault.Wrap(err, fault.Conflict, "The file of this book has changed and is being analysed again; try again shortly")
}
