package export

import (
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
)

// asUser is the scope of what a task reads in a user's name: it fails when the lease is lost, as that of the task does,
// and then enters the tenant as a request of the user would, by app.enter. That refuses a user who is disabled or may
// not read what is exported, sets app.account, and makes the transaction longbox_limited where sharing tags hide
// something: the policies of that role leave it out of every query.
type asUser struct {
	task    db.Task
	account uuid.UUID
	needs   []string // permissions
}

// Enter binds the transaction.
func (s asUser) Enter(b *pgx.Batch) {
	s.task.Enter(b)
	for _, p := range s.needs {
		b.Queue("select from app.enter($1, $2, null, null, $3)", s.task.Tenant, s.account, p)
	}
	// A batch of a task may take longer than a request.
	b.Queue("select set_config('statement_timeout', $1, true)", (30 * time.Second).String())
}

// TenantID is the task's tenant.
func (s asUser) TenantID() uuid.UUID { return s.task.Tenant }
