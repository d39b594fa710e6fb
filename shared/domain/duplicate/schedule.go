package duplicate

import (
	"context"
	"log/slog"
	"time"

	"github.com/longbox/longbox/shared/domain/schedule"
	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/platform/db"
)

// Due queues the search for every tenant whose schedule is due, and returns their number.
func Due(ctx context.Context, system *db.DB, now time.Time) (int, error) {
	n, err := schedule.Due(ctx, system, setting.DeduplicationCron, setting.DeduplicationEnabled, now, queue)
	if n > 0 {
		slog.Info("searches for duplicates queued", "count", n)
	}
	return n, err
}
