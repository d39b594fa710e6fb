package pack

import (
	"context"
	"log/slog"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/page"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Wanter asks for page packs of books that are being read.
type Wanter struct {
	Database *db.DB
	Added    task.Added // told that there is a task

	asked task.Once
}

// Want queues the task that makes the pack of a book. It serves a reader who waits for a page: a failure is noted
// and changes nothing for them.
func (w *Wanter) Want(ctx context.Context, i *page.Index) {
	if !w.asked.First(i.BookID) {
		return
	}
	var b pgx.Batch
	var id uuid.UUID
	err := Queue(&b, i.BookID, &id)
	if err == nil {
		err = w.Database.Run(db.In(ctx, db.Tenant(httpapi.TenantOf(ctx).ID)), &b)
	}
	if err == nil {
		w.Added.Tell(ctx, httpapi.TenantOf(ctx).ID)
	}
	if err != nil {
		slog.Warn("a page pack cannot be asked for", "book", i.BookID, "error", err)
	}
}
