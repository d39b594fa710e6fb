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

// Caller is the sender of a request and the scope of its SQL. The database checks account, key and permission in the
// same round trip that does the work.
type Caller struct {
	Tenant     uuid.UUID
	AccountID  uuid.UUID
	Generation *int32    // of a token or password; nil for an API key
	KeyHash    []byte    // of an API key; nil otherwise
	Expires    time.Time // of a token; zero when it does not expire
	Permission string    // required by the operation; "" means any signed-in user
	SeesAll    bool      // only for callers who see every series
	Forget     func()    // drops the cached credential when the database refuses it; may be nil

	// Set when the database was entered.
	Username      string
	Email         string
	Role          string
	EmailVerified bool
	Extra         []string // permissions beyond the role's
	Permissions   []string // effective: role and extra, limited by the key's
	Limited       bool     // sees only some series, because of sharing tags
	Entered       bool
}

// TenantID is the caller's tenant.
func (c *Caller) TenantID() uuid.UUID { return c.Tenant }

// UserID is the caller's account.
func (c *Caller) UserID() uuid.UUID { return c.AccountID }

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

// May reports whether the caller, once entered, has the permission.
func (c *Caller) May(permission string) bool { return slices.Contains(c.Permissions, permission) }

// CallerOf returns the caller of a request, or nil on a public operation.
func CallerOf(ctx context.Context) *Caller { c, _ := db.ScopeOf(ctx).(*Caller); return c }

// AccountOf returns the account of the context's caller, or uuid.Nil.
func AccountOf(ctx context.Context) uuid.UUID {
	if c := CallerOf(ctx); c != nil {
		return c.AccountID
	}
	return uuid.Nil
}
