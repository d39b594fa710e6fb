package db

import (
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Tenant is a scope without a user: for sign-in, set-up, operators, clean-up.
type Tenant uuid.UUID

// Enter binds the transaction to the tenant. It does the same as app.use_tenant without a function call, which would
// take as long as another empty statement.
func (t Tenant) Enter(b *pgx.Batch) {
	b.Queue("select set_config('app.tenant', $1, true), set_config('app.account', '', true)", uuid.UUID(t).String())
}

func (t Tenant) TenantID() uuid.UUID { return uuid.UUID(t) }

func (t Tenant) UserID() uuid.UUID { return uuid.Nil }

// Task is the scope of a worker that holds a task. Entering fails (see LeaseLost) once the lease is lost.
type Task struct {
	Tenant uuid.UUID
	ID     uuid.UUID
	Epoch  int32
}

// Enter binds the transaction to the task's tenant, and locks the task against cancellation until commit.
func (t Task) Enter(b *pgx.Batch) {
	b.Queue("select app.hold_task($1, $2, $3)", t.Tenant, t.ID, t.Epoch)
}

// TenantID is the task's tenant.
func (t Task) TenantID() uuid.UUID { return t.Tenant }

// UserID is nobody's: the task is the tenant's.
func (t Task) UserID() uuid.UUID { return uuid.Nil }

// Acting is the scope of a worker that runs a task on behalf of a user, with the user's rights. Like a request, it
// fails if the user is disabled or deleted.
type Acting struct {
	Task
	Account uuid.UUID
}

// Enter binds the transaction to the task and to the user.
func (a Acting) Enter(b *pgx.Batch) {
	a.Task.Enter(b)
	b.Queue("select from app.enter($1, $2, null, null, '')", a.Tenant, a.Account)
	NoStatementTimeout(b) // no client waits for a task
}

// UserID is the user on whose behalf the task runs.
func (a Acting) UserID() uuid.UUID { return a.Account }

// NoStatementTimeout lifts the time limit for a statement of a request (app.enter) from the rest of the transaction.
// DATABASE_TIMEOUT still bounds all of it.
func NoStatementTimeout(b *pgx.Batch) { StatementTimeout(b, 0) }

// StatementTimeout sets the time limit for each statement of the rest of the transaction; zero is none.
func StatementTimeout(b *pgx.Batch, limit time.Duration) {
	b.Queue("select set_config('statement_timeout', $1, true)", strconv.FormatInt(limit.Milliseconds(), 10))
}
