package account

import (
	"context"
	"crypto/rand"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/cut"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// External is a user of an identity provider, to be created here.
type External struct {
	Username string // preferred
	Email    string
	Verified bool // the provider has verified the address
	Role     string
}

// Match is an account that an External may belong to.
type Match struct {
	ID         uuid.UUID `db:"id"`
	Generation int32     `db:"generation"`
	IsActive   bool      `db:"is_active"`
	Role       string    `db:"role"`
	Verified   bool      `db:"email_verified"` // not only claimed
}

const matchColumns = "id, generation, is_active, role, email_verified and not email_claimed as email_verified"

// QueueByID adds the query for an account to a batch; dst is nil if there is none.
func QueueByID(b *pgx.Batch, dst **Match, id uuid.UUID) {
	db.One(b, dst, "select "+matchColumns+" from account where tenant_id = app.tenant() and id = $1", id)
}

// QueueByEmail adds the query for the account with an e-mail address to a batch; dst is nil if there is none. Addresses
// are unique.
func QueueByEmail(b *pgx.Batch, dst **Match, email string) {
	db.One(b, dst, "select "+matchColumns+" from account where tenant_id = app.tenant() and lower(email) = lower($1)", composed(email))
}

// AddExternal creates a user without a password and with a free user name. BadRequest if the provider's e-mail address
// is invalid; Conflict if a concurrent request was first: then the caller may retry.
func AddExternal(ctx context.Context, tx pgx.Tx, e External) (*Match, error) {
	email := composed(e.Email)
	if msg := emailFault(email); msg != "" {
		return nil, fault.Invalid("email", "%s", msg)
	}
	base := nameFor(e.Username, email)
	stem, _, _ := strings.Cut(base, "@")
	wishes := []string{base}
	for n := 2; n <= 20; n++ {
		wishes = append(wishes, begun(stem, maxUsername-3)+"-"+strconv.Itoa(n))
	}
	wishes = append(wishes, begun(stem, maxUsername-9)+"-"+strings.ToLower(rand.Text()[:8]))
	u := toStore{Registration: Registration{Email: email}, id: uuid.Must(uuid.NewV7()), hash: auth.NoPassword(),
		role: e.Role, active: true, verified: e.Verified}
	if err := tx.QueryRow(ctx, `select w.name from unnest($1::text[]) with ordinality w(name, n)
		where not exists (select from account a where a.tenant_id = app.tenant() and lower(a.username) = lower(w.name)) order by w.n limit 1`,
		wishes).Scan(&u.Username); err != nil {
		return nil, err
	}
	if bad := checkNames(u.Username, u.Email, ""); len(bad) > 0 {
		return nil, fault.InvalidFields(bad)
	}
	if _, err := tx.Exec(ctx, insertAccount, u.args()...); err != nil {
		return nil, taken(err, u.Username, u.Email)
	}
	return &Match{ID: u.id, Generation: 1, IsActive: true, Role: e.Role, Verified: e.Verified}, nil
}

// nameFor derives a user name from the provider's data; it never equals somebody else's address.
func nameFor(wish, email string) string {
	local, _, _ := strings.Cut(email, "@")
	for _, name := range []string{wish, local} {
		name = composed(strings.Map(func(r rune) rune {
			if r == ':' || r == unicode.ReplacementChar || !unicode.IsPrint(r) {
				return -1
			}
			return r
		}, name))
		if same(name, email) && utf8.RuneCountInString(name) <= maxUsername {
			return name
		}
		name, _, _ = strings.Cut(name, "@")
		if name = begun(name, maxUsername); name != "" {
			return name
		}
	}
	return "user"
}

// begun is the beginning of a name, in characters.
func begun(name string, most int) string { return strings.TrimSpace(cut.Chars(name, most)) }

// SetRole changes a user's role, unless they are the last active administrator. If the address is only claimed,
// somebody without SystemAdmin may know the password: then no role brings further permissions. It reports whether
// anything changed.
func SetRole(ctx context.Context, tx pgx.Tx, id uuid.UUID, role string) (bool, error) {
	l, err := lock(ctx, tx, id)
	if err != nil {
		return false, err
	}
	if l.target.Role == role || l.isLastAdmin() {
		return false, nil
	}
	more := len(auth.RolePermissions(role)) > len(auth.RolePermissions(l.target.Role)) // each role includes the lower ones
	set, err := tx.Exec(ctx, `update account set role = $2, updated_at = now()
		where tenant_id = app.tenant() and id = $1 and not (email_claimed and $3)`, id, role, more)
	return set.RowsAffected() > 0, err
}
