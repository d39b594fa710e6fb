package cover

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/schedule"
	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
)

// Due queues the making of missing covers for every tenant whose schedule is due, and returns the number of tasks.
func Due(ctx context.Context, system *db.DB, now time.Time) (int, error) {
	total := 0
	var failures error
	for key, typ := range map[string]string{setting.BookCoverCron: task.BookCovers, setting.SeriesCoverCron: task.SeriesCovers} {
		n, err := schedule.Due(ctx, system, key, "", now, func(b *pgx.Batch, fresh uuid.UUID, id *uuid.UUID) error {
			s := Making(typ, false)
			s.ID = fresh
			return task.AddFor(b, s, task.OfAll(), id)
		})
		total, failures = total+n, errors.Join(failures, err)
	}
	if total > 0 {
		slog.Info("cover tasks queued", "count", total)
	}
	return total, failures
}
