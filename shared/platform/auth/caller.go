package auth

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/longbox/longbox/shared/platform/db"
)

// Caller is who sends a request, and the scope its SQL runs in: the database checks account, key and
// permission in the same round trip that does the work.
type Caller struct {
	Tenant     uuid.UUID
	AccountID  uuid.UUID
	Generation *int32    // of a token or password; nil for an API key
	KeyHash    []byte    // of an API key; nil otherwise
	Expires    time.Time // of a token; zero when it does not end by itself
	Permission string    // what the operation needs; "" is any signed-in user
	SeesAll    bool      // the operation is for those alone who see every series
	Forget     func()    // drops the remembered credential when the database refuses it; may be nil

	// Who the caller is, known once the database was entered.
	Username      string
	Email         string
	Role          string
	EmailVerified bool
	Extra         []string // permissions beyond the role's
	Permissions   []string // effective: role and extra, limited by the key's
	Limited       bool     // sees only the series that sharing tags leave
	Entered       bool
}

// TenantID is the caller's tenant.
func (c *Caller) TenantID() uuid.UUID { return c.Tenant }

// Enter checks the caller and binds the transaction to its tenant and account.
func (c *Caller) Enter(b *pgx.Batch) {
	b.Queue("select username, email, role, email_verified, extra, permissions, app.limited() from app.enter($1, $2, $3, $4, $5)",
		c.Tenant, c.AccountID, c.Generation, c.KeyHash, c.Permission).QueryRow(func(row pgx.Row) error {
		if err := row.Scan(&c.Username, &c.Email, &c.Role, &c.EmailVerified, &c.Extra, &c.Permissions, &c.Limited); err != nil {
			var pg *pgconn.PgError
			if c.Forget != nil && errors.As(err, &pg) && pg.Code == "LB401" {
				c.Forget()
			}
			return err
		}
		c.Entered = true
		return nil
	})
	if c.SeesAll {
		b.Queue("select app.must_see_all()")
	}
}

// May tells whether the entered caller holds the permission.
func (c *Caller) May(permission string) bool { return slices.Contains(c.Permissions, permission) }

// CallerOf is the caller of a request, or nil on a public operation.
func CallerOf(ctx context.Context) *Caller { c, _ := db.ScopeOf(ctx).(*Caller); return c }
