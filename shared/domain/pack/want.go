package pack

import (
	"context"
	"log/slog"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/page"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
)

// Requester requests page packs of books that are being read.
type Requester struct {
	Database *db.DB
	Added    task.Added // called after a task was added

	asked task.Once
}

// Want queues the task that makes the pack of a book. A reader is waiting for a page: a failure is only logged.
func (w *Requester) Want(ctx context.Context, i *page.Index) {
	err := w.asked.Add(ctx, w.Database, w.Added, i.BookID, func(b *pgx.Batch, id *uuid.UUID) error { return Queue(b, i.BookID, id) })
	if err != nil {
		slog.Warn("cannot queue the task for a page pack", "book", i.BookID, "error", err)
	}
}
