package cover

import (
	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/task"
)

// Params are those of the tasks. What they are about is the first that is set of BookIDs, the task's book, SeriesIDs, the
// task's series and its library; else everything that the tenant has.
type Params struct {
	Force     bool        `json:"force"`
	BookIDs   []uuid.UUID `json:"bookIds"`
	SeriesIDs []uuid.UUID `json:"seriesIds"`
}

// forced are the params by request; the target adds the ids.
type forced struct {
	Force bool `json:"force"`
}

// spec is a task of one of the two types; its target says of what.
func spec(typ string, force bool) task.Spec {
	key := typ + ":"
	if force {
		key += "force:"
	}
	return task.Spec{Type: typ, Params: forced{force}, DedupeKey: key}
}
