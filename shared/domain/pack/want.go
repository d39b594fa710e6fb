package pack

import (
	"context"
	"log/slog"
	"time"

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

// askWithin bounds how long a reader's page waits for the task to be queued.
const askWithin = 2 * time.Second

// Want queues the task that makes the pack of a book. It serves a reader who waits for a page: a failure is noted
// and changes nothing for them.
func (w *Wanter) Want(ctx context.Context, i *page.Index) {
	if !w.asked.First(i.BookID) {
		return
	}
	tenant := httpapi.TenantOf(ctx).ID
	// Not ended by a client that turns to the next page.
	ctx, cancel := context.WithTimeout(db.In(context.WithoutCancel(ctx), db.Tenant(tenant)), askWithin)
	defer cancel()
	var b pgx.Batch
	var id uuid.UUID
	err := Queue(&b, i.BookID, &id)
	if err == nil {
		err = w.Database.Run(ctx, &b)
	}
	if err != nil {
		w.asked.Again(i.BookID)
		slog.Warn("a page pack cannot be asked for", "book", i.BookID, "error", err)
		return
	}
	w.Added.Tell(ctx, tenant)
}
