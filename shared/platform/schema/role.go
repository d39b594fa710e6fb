package schema

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Prepare creates the roles and the database of the URLs if they are missing, and sets the roles' passwords to those of
// the URLs. The first role owns the database; the others may connect to it. The user of adminURL must be able to create
// roles and databases. It need not be a superuser, which hosted servers do not offer.
func Prepare(ctx context.Context, adminURL, ownerURL string, otherURLs ...string) (err error) {
	var roles []*url.URL
	for _, raw := range append([]string{ownerURL}, otherURLs...) {
		u, err := url.Parse(raw)
		if err != nil || u.User.Username() == "" || strings.Trim(u.Path, "/") == "" {
			return errors.New("prepare the database: every DATABASE_…URL must be postgres://role:password@host/database")
		}
		roles = append(roles, u)
	}
	conn, err := pgx.Connect(ctx, adminURL)
	if err != nil {
		return fmt.Errorf("DATABASE_ADMIN_URL: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	if _, err := conn.Exec(ctx, "select pg_advisory_lock(726602)"); err != nil {
		return fmt.Errorf("prepare the database: %w", err)
	}
	for _, u := range roles {
		if err := ensureRole(ctx, conn, u); err != nil {
			return fmt.Errorf("role %s: %w", u.User.Username(), err)
		}
	}
	if err := EnsureLimited(ctx, conn); err != nil {
		return err
	}
	if err := ensureDatabase(ctx, conn, roles); err != nil {
		return fmt.Errorf("database %s: %w", strings.Trim(roles[0].Path, "/"), err)
	}
	return nil
}

// ensureRole keeps the password equal to the URL's. "create role" and "alter role" take no parameters.
func ensureRole(ctx context.Context, conn *pgx.Conn, u *url.URL) error {
	password, _ := u.User.Password()
	if strings.ContainsAny(password, `'\`) || password == "" {
		return errors.New(`the password in its URL is empty or contains a ' or \`)
	}
	there, err := Exists(ctx, conn, "select exists (select from pg_roles where rolname = $1)", u.User.Username())
	if err != nil {
		return err
	}
	command := "create role %s login nosuperuser nocreatedb nocreaterole nobypassrls noreplication password '%s'"
	if there {
		command = "alter role %s login password '%s'"
	}
	_, err = conn.Exec(ctx, fmt.Sprintf(command, pgx.Identifier{u.User.Username()}.Sanitize(), password))
	return err
}

func ensureDatabase(ctx context.Context, conn *pgx.Conn, roles []*url.URL) error {
	name := strings.Trim(roles[0].Path, "/")
	owner, database := pgx.Identifier{roles[0].User.Username()}.Sanitize(), pgx.Identifier{name}.Sanitize()
	there, err := Exists(ctx, conn, "select exists (select from pg_database where datname = $1)", name)
	if err != nil {
		return err
	}
	if !there {
		// Without superuser rights, a user can only give a database to a role that it may become. From Postgres 16 on
		// this needs more than membership, which the creator of a role has.
		may, err := Exists(ctx, conn, `select pg_has_role(current_user, $1::name,
			case when current_setting('server_version_num')::int >= 160000 then 'set' else 'member' end)`, roles[0].User.Username())
		if err != nil {
			return err
		}
		if !may {
			if _, err := conn.Exec(ctx, "grant "+owner+" to current_user"); err != nil {
				return err
			}
		}
		// The same sort order everywhere. From Postgres 17 on it does not depend on the machine.
		locale := "locale 'C.UTF-8'"
		if v17, err := Exists(ctx, conn, "select current_setting('server_version_num')::int >= 170000"); err != nil {
			return err
		} else if v17 {
			locale = "locale_provider builtin builtin_locale 'C.UTF-8' locale 'C'"
		}
		if _, err := conn.Exec(ctx, "create database "+database+" owner "+owner+" template template0 encoding 'UTF8' "+locale); err != nil {
			return err
		}
	}
	if _, err := conn.Exec(ctx, "revoke all on database "+database+" from public"); err != nil {
		return err
	}
	for _, u := range roles[1:] {
		if _, err := conn.Exec(ctx, "grant connect, temporary on database "+database+" to "+pgx.Identifier{u.User.Username()}.Sanitize()); err != nil {
			return err
		}
	}
	return nil
}

// Exists returns the boolean that the query selects.
func Exists(ctx context.Context, conn *pgx.Conn, query string, args ...any) (there bool, err error) {
	err = conn.QueryRow(ctx, query, args...).Scan(&there)
	return there, err
}

// EnsureLimited creates the role longbox_limited, which longbox_app becomes for users who may not see every series
// (migrations/00057_sharing.sql). It only becomes it with an explicit set role: the role between them does not inherit,
// so the policies of longbox_limited apply to longbox_limited alone. The user of conn must be able to create roles.
func EnsureLimited(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `do $$
		begin
			if not exists (select from pg_roles where rolname = 'longbox_limited') then
				create role longbox_limited nologin;
			end if;
			if not exists (select from pg_roles where rolname = 'longbox_may_limit') then
				create role longbox_may_limit nologin noinherit;
			end if;
			if not pg_has_role('longbox_app', 'longbox_limited', 'member') then
				grant longbox_limited to longbox_may_limit;
				grant longbox_may_limit to longbox_app;
			end if;
		end $$`)
	if err != nil {
		return fmt.Errorf("role longbox_limited: %w", err)
	}
	return nil
}
