package pdfcache

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/schedule"
	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
)

// Params of a task that removes packs.
type Params struct {
	All bool `json:"all"` // also younger ones than the setting says
}

// Result is what such a task has done.
type Result struct {
	FilesDeleted   int64 `json:"filesDeleted"`
	BytesReclaimed int64 `json:"bytesReclaimed"`
}

// Making is the task that removes the packs that the setting says, or all.
func Making(all bool) task.Spec {
	key := task.CleanUpPDF
	if all {
		key += ":all"
	}
	return task.Spec{Type: task.CleanUpPDF, Params: Params{All: all}, DedupeKey: key}
}

// Due queues the clean-up of every tenant that wants it by now, and tells how many.
func Due(ctx context.Context, system *db.DB, now time.Time) (int, error) {
	n, err := schedule.Due(ctx, system, setting.PDFCacheCron, "", now, func(b *pgx.Batch, fresh uuid.UUID, id *uuid.UUID) error {
		s := Making(false)
		s.ID = fresh
		return task.Add(b, s, id)
	})
	if n > 0 {
		slog.Info("clean-ups of pages of PDF documents queued", "count", n)
	}
	return n, err
}
