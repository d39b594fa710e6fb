package duplicate

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/platform/db"
)

// Due queues the search for duplicates of every tenant that wants one by now, and tells how many. One that is waiting or
// running is not doubled. Several schedulers may call it at once.
func Due(ctx context.Context, system *db.DB, now time.Time) (int, error) {
	n, err := setting.Due(ctx, system, setting.DeduplicationCron, setting.DeduplicationEnabled, now, func(ctx context.Context, tx pgx.Tx) (bool, error) {
		var b pgx.Batch
		var id uuid.UUID
		fresh := uuid.Must(uuid.NewV7())
		if err := queue(&b, fresh, &id); err != nil {
			return false, err
		}
		err := tx.SendBatch(ctx, &b).Close()
		return id == fresh, err
	})
	if n > 0 {
		slog.Info("searches for duplicates queued", "count", n)
	}
	return n, err
}
