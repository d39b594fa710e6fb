package cover

import (
	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/task"
)

// Params are those of the tasks. What they are about is the first that is set of BookIDs, the task's book, SeriesIDs,
// the task's series and its library; else everything that the tenant has.
type Params struct {
	Force     bool        `json:"force"`
	BookIDs   []uuid.UUID `json:"bookIds"`
	SeriesIDs []uuid.UUID `json:"seriesIds"`
}

// forced are the params by request; the target adds the ids.
type forced struct {
	Force bool `json:"force"`
}

// Making is the task that makes covers, of the type BookCovers or SeriesCovers, of what its target says; force also makes those
// that are there.
func Making(typ string, force bool) task.Spec {
	key := typ + ":"
	if force {
		key += "force:"
	}
	return task.Spec{Type: typ, Params: forced{force}, DedupeKey: key}
}
