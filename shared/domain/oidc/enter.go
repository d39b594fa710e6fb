package oidc

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/longbox/longbox/shared/domain/account"
	"github.com/longbox/longbox/shared/domain/sharing"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// refusal is why a sign-in failed: an error code of RFC 6749, section 4.1.2.1, and a sentence for people.
type refusal struct{ code, text string }

func (r *refusal) Error() string { return r.text }

func denied(text string) error { return &refusal{"access_denied", text} }

// entered is the user who signs in.
type entered struct {
	*account.Match
	made    bool // just now
	changed bool // the user's permissions
	moved   bool // to other access groups
}

// enter finds or creates the user, and updates role and groups. It retries if a concurrent request was first: one that
// took the user name, signed in as the same user, or deleted the user or an access group.
func enter(ctx context.Context, d *db.DB, p *Provider, who *identity) (out *entered, err error) {
	for range 3 {
		err = d.Tx(ctx, func(ctx context.Context, tx pgx.Tx) error {
			out, err = enterOnce(ctx, tx, p, who)
			return err
		})
		if !overtaken(err) {
			return out, err
		}
	}
	return nil, fault.Wrap(err, fault.Conflict, "Another request is changing the same user or an access group; sign in again")
}

// overtaken reports whether an error is caused by a concurrent request.
func overtaken(err error) bool {
	var pg *pgconn.PgError
	return fault.Is(err, fault.Conflict) || fault.Is(err, fault.NotFound) ||
		errors.As(err, &pg) && slices.Contains([]string{"23503", "23505", "40P01"}, pg.Code)
}

func enterOnce(ctx context.Context, tx pgx.Tx, p *Provider, who *identity) (*entered, error) {
	out := &entered{}
	role := p.role(who.groups)
	linked, err := out.find(ctx, tx, p, who)
	if err != nil {
		return nil, err
	}
	if out.Match == nil {
		if err := out.make(ctx, tx, p, who, role); err != nil {
			return nil, err
		}
	}
	if !out.IsActive {
		return nil, denied("This user is disabled; ask an administrator")
	}
	if role != "" && role != out.Role {
		if out.changed, err = account.SetRole(ctx, tx, out.ID, role); err != nil {
			return nil, err
		}
		if !out.changed {
			httpapi.Note(ctx, slog.String("oidc", "the user keeps the role "+out.Role+" instead of "+role+
				": the last administrator stays one, and an address that is not verified brings no higher role"))
		}
	}
	var b pgx.Batch
	if linked {
		b.Queue("update oidc_identity set last_login_at = now() where tenant_id = app.tenant() and provider_id = $1 and subject = $2", p.ID, who.subject)
	} else {
		b.Queue("insert into oidc_identity (tenant_id, provider_id, subject, account_id) values (app.tenant(), $1, $2, $3)", p.ID, who.subject, out.ID)
	}
	var moved int64
	if who.groups != nil {
		sharing.QueueMembership(&b, out.ID, p.ID, who.groups, &moved)
	}
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return nil, err
	}
	out.moved = moved > 0
	out.changed = out.changed || out.moved
	return out, nil
}

// find looks up the user; linked reports whether they have signed in at this provider before.
func (e *entered) find(ctx context.Context, tx pgx.Tx, p *Provider, who *identity) (linked bool, err error) {
	var b pgx.Batch
	var known *uuid.UUID
	// Serializes concurrent sign-ins of the same user, so that only one is created.
	b.Queue("select pg_advisory_xact_lock(hashtextextended('longbox oidc ' || app.tenant() || ' ' || $1::text || ' ' || $2::text, 0))", p.ID, who.subject)
	db.Value(&b, &known, "select account_id from oidc_identity where tenant_id = app.tenant() and provider_id = $1 and subject = $2", p.ID, who.subject)
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return false, err
	}
	b = pgx.Batch{}
	if known != nil {
		account.QueueByID(&b, &e.Match, *known)
		err := tx.SendBatch(ctx, &b).Close()
		return e.Match != nil, err // the user and the link may just have been deleted
	}
	if !printable(who.email, 1, 254) { // no account has such an address
		return false, nil
	}
	var same *account.Match
	account.QueueByEmail(&b, &same, who.email)
	if err := tx.SendBatch(ctx, &b).Close(); err != nil || same == nil {
		return false, err
	}
	if !who.verified || !same.Verified {
		help := "ask an administrator"
		if who.verified {
			help += " to enable the user again (isActive)"
		}
		return false, denied("A user with this e-mail address already exists, but the address is not verified, so the user may not be you. " +
			"Sign in with your password, or " + help)
	}
	var other bool
	b = pgx.Batch{}
	db.Value(&b, &other, "select exists (select from oidc_identity where tenant_id = app.tenant() and account_id = $1 and provider_id = $2)", same.ID, p.ID)
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return false, err
	}
	if other {
		return false, denied("The user with this e-mail address belongs to another account of the identity provider; ask an administrator")
	}
	e.Match = same
	return false, nil
}

// make creates the user, if the provider may create users. The first user of a tenant must be an administrator: with
// any other the set-up would count as done.
func (e *entered) make(ctx context.Context, tx pgx.Tx, p *Provider, who *identity, role string) (err error) {
	if !p.CreateUsers {
		return denied("You have no account here; ask an administrator for one with your e-mail address")
	}
	role = cmp.Or(role, p.DefaultRole)
	var some bool
	if err := tx.QueryRow(ctx, "select exists (select from account where tenant_id = app.tenant())").Scan(&some); err != nil {
		return err
	}
	if !some && role != auth.Admin {
		return denied("This server has no administrator yet; somebody must complete its set-up first, or sign in here as an administrator")
	}
	e.Match, err = account.AddExternal(ctx, tx, account.External{Username: who.username, Email: who.email, Verified: who.verified, Role: role})
	if fault.Is(err, fault.BadRequest) {
		return denied("A new account needs an e-mail address, and the identity provider sends no valid one for you; ask an administrator")
	}
	e.made, e.changed = err == nil, err == nil
	return err
}
