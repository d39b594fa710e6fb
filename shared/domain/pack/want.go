package pack

import (
	"context"
	"log/slog"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/page"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
)

const (
	// maxWanted limits the unfinished page packs that one account waits for, and those of all requests without an
	// account: a CDN's.
	maxWanted = 4
	// soon is the priority of the one that is made before analyses and covers; the account's others come after them.
	// So a book that can hardly be read without its pack does not wait for a whole library, and whoever leafs through
	// thousands of books takes no more than one of the worker's slots from it.
	soon = 550
)

// Requester requests page packs of books that are being read.
type Requester struct {
	Database *db.DB
	Added    task.Added // called after a task was added

	asked task.Once
}

// Want queues the task that makes the pack of a book, unless its reader waits for too many; then a later request of a
// page asks again. A reader is waiting for a page: a failure is only logged.
func (w *Requester) Want(ctx context.Context, i *page.Index) {
	account := auth.AccountOf(ctx)
	// Each account asks for itself: one that may have no more packs does not block others.
	err := w.asked.Add(ctx, w.Database, w.Added, uuid.NewSHA1(account, i.BookID[:]), func(b *pgx.Batch, id *uuid.UUID) error {
		return queueWanted(b, account, i.BookID, id)
	})
	if err != nil {
		slog.Warn("cannot queue the task for a page pack", "book", i.BookID, "error", err)
	}
}

// queueWanted is Queue for a reader. A task that is already pending gets the account and, if it may, the priority.
func queueWanted(b *pgx.Batch, account, book uuid.UUID, id *uuid.UUID) error {
	b.Queue("select pg_advisory_xact_lock(hashtextextended('page packs ' || app.tenant() || ' ' || $1::text, 0))", account) // who counts at once counts too few
	for _, first := range []bool{true, false} {
		s := making(book)
		s.By = &account
		if first {
			s.Priority = new(soon)
		}
		if err := task.AddFor(b, s, task.Found(`select null::uuid as library_id, null::uuid as series_id, $1::uuid as book_id, '{}'::jsonb as params
			from (select count(*) as n, coalesce(max(o.priority), 0) < $2 as first from task o
			  where o.tenant_id = app.tenant() and o.created_by = $3 and o.status in ('pending', 'running') and o.type = '`+task.PackBook+`' and o.book_id <> $1) o
			where n < $4 and first = $5`, book, soon, account, maxWanted, first), id); err != nil {
			return err
		}
	}
	return nil
}
