package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/seal"
)

// Operator holds the dependencies of the commands.
type Operator struct {
	System *db.DB // as longbox_system, which sees every tenant and, within one, its rows
	Redis  redis.UniversalClient
	Events *events.Publisher
	Media  *blob.Store
	Bucket string // of the media store
	// Library aborts what is being uploaded to a tenant that is deleted.
	Library *blob.Store
	Key     *seal.Key // encrypts secrets; nil: secrets cannot be stored
	// Settle is how long other processes may use a cached tenant if they could not be notified of a change, because
	// Redis was unavailable.
	Settle time.Duration
	// Temp is the folder where an export is written before it is stored; "" is the system's folder for temporary files.
	Temp string
}

// DefaultSettle is longer than any process caches a tenant.
const DefaultSettle = 6 * time.Second

// StatementTimeout limits one round trip. A round trip handles a batch of rows, never a whole tenant.
const StatementTimeout = time.Minute

// spare is how much of an invocation's time is left unused by a command that can continue later: enough for the round
// trip that has begun.
const spare = StatementTimeout + 15*time.Second

var nameShape = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// row is a tenant.
type row struct {
	ID                uuid.UUID `db:"id"`
	Name              string    `db:"name"`
	Hosts             []string  `db:"hosts"`
	Status            string    `db:"status"`
	StatusAt          time.Time `db:"status_at"`
	SecretAt          time.Time `db:"secret_at"`
	CreatedAt         time.Time `db:"created_at"`
	MaxBooks          *int64    `db:"max_books"`
	MaxRenditionBytes *int64    `db:"max_rendition_bytes"`
	MaxScans          *int64    `db:"max_scans"`
	MaxRequests       *int64    `db:"max_requests"`
}

const columns = "id, name, hosts, status, status_at, secret_at, created_at, max_books, max_rendition_bytes, max_scans::bigint, max_requests::bigint"

// The statuses of a tenant.
const (
	active    = "active"
	suspended = "suspended"
	deleting  = "deleting"
)

// find returns a tenant by name, or NotFound.
func (o *Operator) find(ctx context.Context, name string) (*row, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	t, err := db.Get[row](nobody(ctx), o.System, "select "+columns+" from tenant where name = $1", name)
	if err != nil {
		return nil, err
	}
	if t == nil {
		return nil, noTenant(name)
	}
	return t, nil
}

func noTenant(name string) error {
	return &fault.Error{Code: fault.NotFound, Message: fmt.Sprintf("name: there is no tenant %q", name),
		Fields: []fault.Field{{Field: "name", Message: "is not a tenant"}}}
}

func checkName(name string) error {
	if !nameShape.MatchString(name) {
		return fault.Invalid("name", "must be 1 to 63 lower-case letters, digits and hyphens, beginning and ending with a letter or digit")
	}
	return nil
}

// nobody returns ctx without a tenant: longbox_system sees the tenant table and the tables that are searched across
// tenants.
func nobody(ctx context.Context) context.Context { return db.In(ctx, db.Tenant(uuid.Nil)) }

func in(ctx context.Context, t *row) context.Context { return db.In(ctx, db.Tenant(t.ID)) }

// announce tells every process to reload the tenant, and the relays to recheck every listener. It returns false if
// Redis could not be reached: then it takes up to Settle, and listeners stay for up to half a minute.
func (o *Operator) announce(ctx context.Context, t *row) bool {
	err := o.Events.ChangeAccess(ctx, t.ID)
	if errors.Is(err, events.ErrDelayed) {
		wait, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		err = o.Events.Flush(wait)
	}
	if err != nil {
		slog.Warn("cannot announce a change of a tenant; other processes notice it within seconds, listeners within half a minute",
			"tenant", t.Name, "tenantId", t.ID, "error", err)
	}
	return err == nil
}

// settled waits until no process can still use what it cached before since.
func (o *Operator) settled(ctx context.Context, since time.Time) error {
	var now time.Time
	if err := o.System.Pool().QueryRow(ctx, "select now()").Scan(&now); err != nil {
		return fmt.Errorf("read the database's clock: %w", err)
	}
	timer := time.NewTimer(since.Add(o.Settle).Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// late reports whether the invocation's time is nearly up.
func late(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < spare
}
