package cover

import (
	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/task"
)

// Params are the parameters of the tasks. A task covers the first of these that is set: BookIDs, the task's book,
// SeriesIDs, the task's series, its library; else the whole tenant.
type Params struct {
	Force     bool        `json:"force"`
	BookIDs   []uuid.UUID `json:"bookIds"`
	SeriesIDs []uuid.UUID `json:"seriesIds"`
}

// forced are the parameters from a request; the target adds the ids.
type forced struct {
	Force bool `json:"force"`
}

// Making describes the task that makes covers, of type BookCovers or SeriesCovers; force also makes existing ones
// again.
func Making(typ string, force bool) task.Spec {
	key := typ + ":"
	if force {
		key += "force:"
	}
	return task.Spec{Type: typ, Params: forced{force}, DedupeKey: key}
}
