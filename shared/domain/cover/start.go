package cover

import "github.com/longbox/longbox/shared/domain/task"

// Making is the task that makes covers, of the type BookCovers or SeriesCovers; force also makes those that are there.
func Making(typ string, force bool) task.Spec { return spec(typ, force) }
