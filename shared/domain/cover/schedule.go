package cover

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
)

// Due queues the making of missing covers for every tenant that wants it by now, and tells how many tasks. One that is waiting
// or running is not doubled. Several schedulers may call it at once.
func Due(ctx context.Context, system *db.DB, now time.Time) (int, error) {
	total := 0
	var failures error
	for key, typ := range map[string]string{setting.BookCoverCron: task.BookCovers, setting.SeriesCoverCron: task.SeriesCovers} {
		n, err := setting.Due(ctx, system, key, "", now, func(ctx context.Context, tx pgx.Tx) (bool, error) {
			var b pgx.Batch
			var id uuid.UUID
			s := spec(typ, false)
			s.ID = uuid.Must(uuid.NewV7())
			if err := task.AddFor(&b, s, task.OfAll(), &id); err != nil {
				return false, err
			}
			err := tx.SendBatch(ctx, &b).Close()
			return id == s.ID, err
		})
		total, failures = total+n, errors.Join(failures, err)
	}
	if total > 0 {
		slog.Info("tasks that make covers queued", "count", total)
	}
	return total, failures
}
