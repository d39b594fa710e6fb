package plugin

import (
	"context"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
)

// StartMatch starts the task that finds a series in what a plugin knows, or finds the one that waits already, and tells
// added; as changes the task. NotFound where there is no such plugin or series.
func StartMatch(ctx context.Context, d *db.DB, added task.Added, plugin, series uuid.UUID, as func(*task.Spec)) (*Enqueued, error) {
	s := &service{&Runner{Database: d, Added: added}}
	return s.enqueue(ctx, plugin, "Series", "s.id = $2", series, as)
}
