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
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// renewWithin bounds how long a reader's answer waits for the task to be queued.
const renewWithin = 2 * time.Second

// Renewer queues a new analysis of books whose file is another one than was analysed.
type Renewer struct {
	Database *db.DB
	Added    task.Added // told that there is a task

	asked task.Once
}

// renew queues the analysis, in the tenant's name: whoever met the change need not be allowed to ask for it. The
// answer is an error already; a failure here is noted and changes nothing about it.
func (w *Renewer) renew(ctx context.Context, i *Index) {
	if w == nil || !w.asked.First(i.BookID) {
		return
	}
	tenant := httpapi.TenantOf(ctx).ID
	// Not ended by a client that goes away.
	ctx, cancel := context.WithTimeout(db.In(context.WithoutCancel(ctx), db.Tenant(tenant)), renewWithin)
	defer cancel()
	var b pgx.Batch
	var id uuid.UUID
	err := task.AddFor(&b, task.Analysis(i.BookID), task.OfBook(i.BookID), &id)
	if err == nil {
		err = w.Database.Run(ctx, &b)
	}
	if err != nil {
		w.asked.Again(i.BookID)
		slog.Warn("the analysis of a changed book cannot be queued", "book", i.BookID, "error", err)
		return
	}
	w.Added.Tell(ctx, tenant)
}

// Changed takes notice of a failed read of a book's file: where the file is another one than was analysed, or gone,
// what is remembered of it is dropped and its analysis queued.
func (s *Server) Changed(ctx context.Context, i *Index, err error) {
	if Lost(err) {
		s.Finder.Forget(ctx, i.BookID)
		s.Renew.renew(ctx, i)
	}
}

// Lost tells by a failed read that the object is gone, or another one than was described.
func Lost(err error) bool {
	return errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrChanged) || errors.Is(err, blob.ErrRange)
}
