package cover

import "github.com/longbox/longbox/shared/domain/task"

// Making describes the task that makes covers, of type BookCovers or SeriesCovers; force also makes existing ones
// again.
func Making(typ string, force bool) task.Spec { return spec(typ, force) }
