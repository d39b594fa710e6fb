package metric

import (
	"time"

	"github.com/longbox/longbox/shared/domain/task"
)

// Statement is one query.
type Statement struct {
	SQL  string
	Args []any
}

// Statements returns the queries of the operations. "all" reads every row of the tenant.
func Statements() map[string]Statement {
	week := time.Now().Add(-7 * 24 * time.Hour)
	return map[string]Statement{
		"all":         {SQL: byTypeSQL()},
		"errors":      {errorsSQL, []any{task.Personal}},
		"queue":       {SQL: queueSQL},
		"history":     {historySQL, []any{"hour", week, ""}},
		"of one type": {historySQL, []any{"day", week, "type 1"}},
	}
}
