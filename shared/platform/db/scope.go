package db

import (
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Tenant is a scope in nobody's name: sign-in, set-up, operators, clean-up.
type Tenant uuid.UUID

// Enter binds the transaction to the tenant. It is what app.use_tenant does, but for the call of a
// function, which takes as long again as an empty statement.
func (t Tenant) Enter(b *pgx.Batch) {
	b.Queue("select set_config('app.tenant', $1, true), set_config('app.account', '', true)", uuid.UUID(t).String())
}

// TenantID is the tenant.
func (t Tenant) TenantID() uuid.UUID { return uuid.UUID(t) }

// Task is the scope of a worker that holds a task: entering fails (see ErrLost) once the lease is lost.
type Task struct {
	Tenant uuid.UUID
	ID     uuid.UUID
	Epoch  int32
}

// Enter binds the transaction to the task's tenant and locks the task against cancelling until commit.
func (t Task) Enter(b *pgx.Batch) {
	b.Queue("select app.hold_task($1, $2, $3)", t.Tenant, t.ID, t.Epoch)
}

// TenantID is the task's tenant.
func (t Task) TenantID() uuid.UUID { return t.Tenant }

// Acting is the scope of a worker that does a task in the name of a user, who sees and changes by it what they see and
// change by themselves. It fails as a request does where the user is disabled or gone.
type Acting struct {
	Task
	Account uuid.UUID
}

// Enter binds the transaction to the task and to the user.
func (a Acting) Enter(b *pgx.Batch) {
	a.Task.Enter(b)
	b.Queue("select from app.enter($1, $2, null, null, '')", a.Tenant, a.Account)
	b.Queue("select set_config('statement_timeout', '0', true)") // of requests; nobody waits for a task
}
