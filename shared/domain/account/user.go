package account

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// UserUpdate changes a user as an administrator; an absent field stays.
type UserUpdate struct {
	Username    httpapi.Optional[string]   `json:"username,omitempty" maxLength:"64" nullable:"false" doc:"1 to 64 characters"`
	Email       httpapi.Optional[string]   `json:"email,omitempty" maxLength:"254" nullable:"false"`
	Password    httpapi.Optional[string]   `json:"password,omitempty" maxLength:"1024" nullable:"false" doc:"At least 8 characters; a change ends all sessions of the user"`
	Role        httpapi.Optional[string]   `json:"role,omitempty" nullable:"false" doc:"One of reader, maintainer and admin"`
	Permissions httpapi.Optional[[]string] `json:"permissions,omitempty" doc:"Permissions in addition to those of the role; null means none"`
	IsActive    httpapi.Optional[bool]     `json:"isActive,omitempty" nullable:"false" doc:"False ends all sessions of the user and disables the user's API keys. True, from a caller with SystemAdmin, also confirms the e-mail address"`
}

// NewUser is a user to be created by an administrator.
type NewUser struct {
	Username    string                     `json:"username" maxLength:"64"`
	Email       string                     `json:"email" maxLength:"254"`
	Password    string                     `json:"password" maxLength:"1024" doc:"At least 8 characters"`
	Role        httpapi.Optional[string]   `json:"role,omitempty" doc:"One of reader, maintainer and admin; defaults to reader"`
	Permissions httpapi.Optional[[]string] `json:"permissions,omitempty" doc:"Permissions in addition to those of the role"`
	IsActive    httpapi.Optional[bool]     `json:"isActive,omitempty" doc:"Defaults to true"`
}

func (s *service) createUser(ctx context.Context, in NewUser) (*User, error) {
	if err := s.database.Enter(ctx); err != nil { // permission first, before any expensive work
		return nil, err
	}
	u := toStore{id: uuid.Must(uuid.NewV7()), Registration: Registration{in.Username, in.Email, in.Password},
		role: auth.Reader, active: true, verified: true, claimed: !vouches(ctx)}
	bad := u.Check()
	if in.Role.Value != nil {
		u.role = *in.Role.Value
		bad = append(bad, checkRole(u.role)...)
	}
	permissions, faults := auth.CheckPermissions(in.Permissions.Or(nil))
	u.permissions = permissions
	if in.IsActive.Value != nil {
		u.active = *in.IsActive.Value
	}
	if err := fault.InvalidFields(append(bad, faults...)); err != nil {
		return nil, err
	}
	if err := checkRank(auth.CallerOf(ctx), u.role, u.permissions); err != nil {
		return nil, err
	}
	u.hash = auth.HashPassword(u.Password)
	return insertUser(ctx, s.database, u, nil)
}

func (s *service) updateUser(ctx context.Context, id uuid.UUID, in UserUpdate) (*User, error) {
	var passwordHash *string
	if in.Password.Set {
		if err := s.database.Enter(ctx); err != nil {
			return nil, err
		}
		if err := fault.InvalidFields(checkPassword(in.Password.Or(""))); err != nil {
			return nil, err
		}
		passwordHash = new(auth.HashPassword(*in.Password.Value))
	}
	var stored *User
	err := s.database.Tx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		locked, err := lock(ctx, tx, id)
		if err != nil {
			return err
		}
		next, err := in.apply(locked.target)
		if err != nil {
			return err
		}
		c := auth.CallerOf(ctx)
		if err := checkRank(c, locked.target.Role, locked.target.Permissions); err != nil {
			return err
		}
		if err := checkRank(c, next.Role, next.Permissions); err != nil {
			return err
		}
		if locked.isLastAdmin() && (next.Role != auth.Admin || !next.IsActive) {
			return fault.New(fault.Conflict, "%q is the last active administrator and cannot be disabled or given another role; make another user an administrator first", locked.target.Username)
		}
		stored, err = updateUser(ctx, tx, userChange{
			User: next, passwordHash: passwordHash, claimed: in.claim(ctx, locked.target, next),
			endSessions: passwordHash != nil || locked.target.IsActive && !next.IsActive,
			forgetMail:  next.EmailVerified || next.Email != locked.target.Email, // a mail to the old address confirms nothing
		})
		return err
	})
	if err != nil {
		return nil, taken(err, composed(in.Username.Or("")), composed(in.Email.Or("")))
	}
	s.bump(ctx, auth.CallerOf(ctx).Tenant)
	return stored, nil
}

// vouches reports whether the caller's word counts as verification of an address. Only an administrator's does: whoever
// owns the address can sign in as this user through an identity provider, and bring a role.
func vouches(ctx context.Context) bool { return auth.CallerOf(ctx).May(auth.SystemAdmin) }

// claim returns whether the address is unverified after a change; nil leaves it as it is. A manager vouches neither for
// a user whose password they know nor by enabling one who has not confirmed the address. Nor does an administrator who
// disables such a user.
func (in UserUpdate) claim(ctx context.Context, was, next User) *bool {
	admin, enabled := vouches(ctx), in.IsActive.Or(false)
	decided := next.EmailVerified && !was.EmailVerified
	readdressed := next.Email != was.Email
	knows := in.Password.Set && !admin && was.ID != auth.CallerOf(ctx).AccountID
	if readdressed && !admin || decided || knows || enabled && admin {
		return new(!admin || decided && !enabled)
	}
	return nil
}

// apply returns the user after the change.
func (in UserUpdate) apply(u User) (User, error) {
	was := u.Username
	u.Username, u.Email, u.Role = composed(in.Username.Or(u.Username)), composed(in.Email.Or(u.Email)), in.Role.Or(u.Role)
	var bad []fault.Field
	if in.Username.Set || in.Email.Set {
		bad = append(bad, checkNames(u.Username, u.Email, was)...)
	}
	bad = append(bad, checkRole(u.Role)...)
	if in.Permissions.Set {
		permissions, faults := auth.CheckPermissions(in.Permissions.Or(nil))
		u.Permissions, bad = permissions, append(bad, faults...)
	}
	if in.IsActive.Set {
		if in.IsActive.Value == nil {
			bad = append(bad, fault.Field{Field: "isActive", Message: "must be true or false"})
		} else {
			u.IsActive = *in.IsActive.Value
			u.EmailVerified = true // somebody has decided; an earlier mail must not undo that. See claim
		}
	}
	return u, fault.InvalidFields(bad)
}

// Rows of a table deleted per transaction, far within DATABASE_TIMEOUT, and the time per request.
const (
	removeRows = 5000
	removeTime = 20 * time.Second
)

// readTables are the tables that grow with what a user reads, and their keys within one user.
var readTables = [][2]string{{"reading_session", "id"}, {"completion", "id"}, {"progress", "book_id"}}

var errReadMuch = &fault.Error{Code: fault.Unavailable, RetryAfter: time.Second,
	Message: "The user has read too much to be deleted in one request; delete the user again to continue"}

// deleteUser first disables the user, so that nothing is added any more, and deletes what they have read in many short
// transactions. If it stops in between, the user stays disabled and the next call continues.
func (s *service) deleteUser(ctx context.Context, id uuid.UUID) error {
	if err := s.remove(ctx, id, "update account set is_active = false, generation = generation + 1, updated_at = now()"); err != nil {
		return err
	}
	if err := deleteRead(ctx, s.database, id, time.Now().Add(removeTime)); err != nil {
		return err
	}
	return s.remove(ctx, id, "delete from account")
}

// remove runs an SQL statement, without its condition, on a user whom the caller may delete.
func (s *service) remove(ctx context.Context, id uuid.UUID, statement string) error {
	c := auth.CallerOf(ctx)
	err := s.database.Tx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		locked, err := lock(ctx, tx, id)
		if err != nil {
			return err
		}
		if id == c.AccountID {
			return fault.New(fault.BadRequest, "You cannot delete yourself; ask another administrator")
		}
		if err := checkRank(c, locked.target.Role, locked.target.Permissions); err != nil {
			return err
		}
		if locked.isLastAdmin() {
			return fault.New(fault.Conflict, "%q is the last active administrator and cannot be deleted; make another user an administrator first", locked.target.Username)
		}
		var b pgx.Batch
		db.NoStatementTimeout(&b) // the rest of what the user has
		b.Queue("delete from refresh_token where tenant_id = app.tenant() and account_id = $1", id)
		b.Queue(statement+" where tenant_id = app.tenant() and id = $1", id)
		return tx.SendBatch(ctx, &b).Close()
	})
	if err == nil {
		s.bump(ctx, c.Tenant)
	}
	return err
}

// deleteRead deletes what a user has read, until end.
func deleteRead(ctx context.Context, d *db.DB, id uuid.UUID, end time.Time) error {
	for _, t := range readTables {
		for n := int64(removeRows); n == removeRows; {
			if time.Now().After(end) {
				return errReadMuch
			}
			var b pgx.Batch
			db.NoStatementTimeout(&b)
			of := fmt.Sprintf(" from %s where tenant_id = app.tenant() and account_id = $1", t[0])
			db.Affected(&b, &n, fmt.Sprintf("delete%s and %s = any(array(select %[2]s%[1]s limit $2))", of, t[1]), id, removeRows)
			if err := d.Run(ctx, &b); err != nil {
				return err
			}
		}
	}
	return nil
}

// locked is a user, locked until the end of the transaction, and the number of other active administrators.
type locked struct {
	target User
	others int
}

func (l locked) isLastAdmin() bool {
	return l.target.Role == auth.Admin && l.target.IsActive && l.others == 0
}

// lock locks a user. Concurrent changes of a tenant's users are serialized; otherwise each of two could remove the
// administrator that the other one relies on. The other administrators are not locked: they go on reading.
func lock(ctx context.Context, tx pgx.Tx, id uuid.UUID) (locked, error) {
	var b pgx.Batch
	var target *User
	var others int
	b.Queue("select pg_advisory_xact_lock(hashtextextended('longbox administrators ' || app.tenant(), 0))")
	db.One(&b, &target, "select "+userColumns+" from account where tenant_id = app.tenant() and id = $1 for update", id)
	db.Value(&b, &others, "select count(*) from account where tenant_id = app.tenant() and id <> $1 and role = 'admin' and is_active", id)
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return locked{}, err
	}
	if target == nil {
		return locked{}, fault.Missing("User")
	}
	return locked{target: *target, others: others}, nil
}

// userChange is a user after a change, and what else the change does.
type userChange struct {
	User
	passwordHash            *string // nil: unchanged
	claimed                 *bool   // the result of claim
	endSessions, forgetMail bool
}

// updateUser stores a changed user.
func updateUser(ctx context.Context, tx pgx.Tx, u userChange) (*User, error) {
	var b pgx.Batch
	var stored *User
	db.One(&b, &stored, `update account set username = $2, email = $3, role = $4, permissions = $5, is_active = $6, email_verified = $7,
			password_hash = coalesce($8, password_hash), generation = generation + case when $9 then 1 else 0 end,
			email_claimed = coalesce($10, email_claimed), updated_at = now()
		where tenant_id = app.tenant() and id = $1 returning `+userColumns,
		u.ID, u.Username, u.Email, u.Role, u.Permissions, u.IsActive, u.EmailVerified, u.passwordHash, u.endSessions, u.claimed)
	if u.endSessions {
		b.Queue("delete from refresh_token where tenant_id = app.tenant() and account_id = $1", u.ID)
	}
	if u.forgetMail {
		b.Queue("delete from verification_token where tenant_id = app.tenant() and account_id = $1", u.ID)
	}
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return nil, err
	}
	return stored, nil
}
