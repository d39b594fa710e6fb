package account

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/sharing"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

const userColumns = "id, username, email, role, is_active, email_verified, permissions, last_login_at, created_at, updated_at"

// UserFilter filters the list of users; an empty field does not filter.
type UserFilter struct {
	Role           string `query:"role" enum:"reader,maintainer,admin" doc:"Only users with this role"`
	SharingTag     string `query:"sharingTag" maxLength:"100" doc:"Only users that are directly allowed or denied the sharing tag of this name, not through a group"`
	SharingTagMode string `query:"sharingTagMode" enum:"allow,deny" doc:"Only users with a direct grant of this kind for that sharing tag, or for any tag if sharingTag is omitted"`
}

func listUsers(ctx context.Context, d *db.DB, f UserFilter, limit, offset int) ([]User, int64, error) {
	const these = ` from account a where a.tenant_id = app.tenant() and ($1 = '' or a.role = $1) and ($2 = '' and $3 = '' or exists (
		select from sharing_grant g join sharing_tag t on t.tenant_id = g.tenant_id and t.id = g.sharing_tag_id
		where g.tenant_id = app.tenant() and g.account_id = a.id and ($2 = '' or lower(t.name) = lower($2)) and ($3 = '' or g.mode = $3)))`
	var b pgx.Batch
	var users []User
	var total int64
	db.All(&b, &users, "select "+userColumns+these+" order by lower(username), id limit $4 offset $5", f.Role, f.SharingTag, f.SharingTagMode, limit, offset)
	db.Value(&b, &total, "select count(*)"+these, f.Role, f.SharingTag, f.SharingTagMode)
	return users, total, d.Run(ctx, &b)
}

// UserDetails is a user in full.
type UserDetails struct {
	User
	SharingTags []sharing.UserGrant `json:"sharingTags" nullable:"false" doc:"Direct grants of the user, without those of access groups"`
}

func getUser(ctx context.Context, d *db.DB, id uuid.UUID) (*UserDetails, error) {
	var b pgx.Batch
	var u *User
	out := &UserDetails{}
	db.One(&b, &u, "select "+userColumns+" from account where tenant_id = app.tenant() and id = $1", id)
	sharing.QueueGrants(&b, &out.SharingTags, id)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if u == nil {
		return nil, fault.Missing("User")
	}
	out.User = *u
	return out, nil
}

// toStore is a validated user with the password hash.
type toStore struct {
	Registration
	id               uuid.UUID
	hash             string
	role             string
	permissions      []string
	active, verified bool
	claimed          bool // the address is only the user's own claim
}

const insertAccount = `insert into account (tenant_id, id, username, email, password_hash, role, permissions, is_active, email_verified, email_claimed)
	select app.tenant(), $1, $2, $3, $4, $5, $6, $7, $8, $9`

func (u toStore) args() []any {
	return []any{u.id, u.Username, u.Email, u.hash, u.role, append([]string{}, u.permissions...), u.active, u.verified, u.claimed}
}

// insertUser stores a user and, unless nil, the hash of a verification token.
func insertUser(ctx context.Context, d *db.DB, u toStore, verification []byte) (*User, error) {
	var b pgx.Batch
	var stored *User
	db.One(&b, &stored, insertAccount+" returning "+userColumns, u.args()...)
	if verification != nil {
		b.Queue("insert into verification_token (tenant_id, account_id, hash, expires_at) values (app.tenant(), $1, $2, $3)",
			u.id, verification, time.Now().Add(verificationLife))
	}
	if err := d.Run(ctx, &b); err != nil {
		return nil, taken(err, u.Username, u.Email)
	}
	return stored, nil
}

// CreateFirst creates the first user of the tenant, an administrator; false if there is a user already. Of several
// concurrent calls one wins.
func CreateFirst(ctx context.Context, d *db.DB, n Registration) (id uuid.UUID, created bool, err error) {
	var b pgx.Batch
	var rows int64
	id = AddFirst(&b, n, &rows)
	err = d.Run(ctx, &b)
	return id, rows == 1, err
}

// AddFirst adds the statement of CreateFirst to the caller's batch; created receives 1, or 0 if there is a user
// already.
func AddFirst(b *pgx.Batch, n Registration, created *int64) uuid.UUID {
	id := uuid.Must(uuid.NewV7())
	u := toStore{id: id, Registration: n, hash: auth.HashPassword(n.Password), role: auth.Admin, active: true, verified: true}
	b.Queue("select pg_advisory_xact_lock(hashtextextended('longbox first user ' || app.tenant(), 0))")
	db.Affected(b, created, insertAccount+" where not exists (select from account where tenant_id = app.tenant())", u.args()...)
	return id
}

// SetPassword gives a user a new password, found by user name or e-mail address; nil if there is none. It enables the
// user and ends all sessions. It does not vouch for the address.
func SetPassword(ctx context.Context, d *db.DB, login, password string) (*User, error) {
	const id = ` where tenant_id = app.tenant() and %s = (select id from account
		where tenant_id = app.tenant() and (lower(username) = lower($1) or lower(email) = lower($1))
		order by lower(username) = lower($1) desc limit 1)`
	var b pgx.Batch
	var stored *User
	login = composed(login)
	db.One(&b, &stored, `update account set password_hash = $2, is_active = true, generation = generation + 1, email_verified = true,
			email_claimed = email_claimed or not email_verified, updated_at = now()`+fmt.Sprintf(id, "id")+" returning "+userColumns,
		login, auth.HashPassword(password))
	b.Queue("delete from refresh_token"+fmt.Sprintf(id, "account_id"), login)
	b.Queue("delete from verification_token"+fmt.Sprintf(id, "account_id"), login)
	return stored, d.Run(ctx, &b)
}

// taken turns a unique violation into the Conflict that names the field.
func taken(err error, username, email string) error {
	switch {
	case db.Conflict(err, "account_username"):
		return fault.Taken("username", "There is already a user called %q", username)
	case db.Conflict(err, "account_email"):
		return fault.Taken("email", "There is already a user with the address %q", email)
	}
	return err
}

// unconfirmed matches accounts a that wait for confirmation: registered and inactive. A user of an identity provider
// that has not verified the address does not count, disabled or not.
const unconfirmed = ` not a.email_verified and not a.is_active
	and not exists (select from oidc_identity o where o.tenant_id = a.tenant_id and o.account_id = a.id)`

// useVerification activates the waiting account of this token; nil if there is none.
func useVerification(ctx context.Context, d *db.DB, hash []byte) (*activated, error) {
	return db.Get[activated](ctx, d, `with t as (
			delete from verification_token where tenant_id = app.tenant() and hash = $1 returning account_id, expires_at)
		update account a set is_active = true, email_verified = true, updated_at = now() from t
		where a.tenant_id = app.tenant() and a.id = t.account_id and t.expires_at > now() and`+unconfirmed+`
		returning a.id, a.generation`, hash)
}

type activated struct {
	ID         uuid.UUID `db:"id"`
	Generation int32     `db:"generation"`
}

type waiting struct {
	Username string `db:"username"`
	Email    string `db:"email"`
}

// renewVerification replaces the token of an account that waits for confirmation, at most once a minute.
func renewVerification(ctx context.Context, d *db.DB, email string, hash []byte) (*waiting, error) {
	return db.Get[waiting](ctx, d, `with w as (
			select a.id, a.username, a.email from account a
			where a.tenant_id = app.tenant() and lower(a.email) = lower($1) and`+unconfirmed+`),
		t as (
			insert into verification_token as v (tenant_id, account_id, hash, expires_at)
			select app.tenant(), w.id, $2, $3 from w
			on conflict (tenant_id, account_id) do update set hash = excluded.hash, expires_at = excluded.expires_at, created_at = now()
				where v.created_at < now() - interval '1 minute'
			returning account_id)
		select w.username, w.email from w join t on t.account_id = w.id`, composed(email), hash, time.Now().Add(verificationLife))
}
