package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/schema"
)

const database = "longbox"

// role is a login role without special rights. The schema decides what it may access.
type role struct{ name, password string }

// Bootstrap creates missing roles and the database. It runs at every start and does not change existing ones.
func (c *Cluster) Bootstrap(ctx context.Context) (err error) {
	conn, err := c.connect(ctx)
	if err != nil {
		return fmt.Errorf("database: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	c.version = conn.PgConn().ParameterStatus("server_version")
	for _, r := range []role{
		{"longbox_owner", c.secrets.PostgresOwner},
		{"longbox_app", c.secrets.PostgresApp},
		{"longbox_system", c.secrets.PostgresSystem},
	} {
		if err := r.ensure(ctx, conn); err != nil {
			return fmt.Errorf("database role %s: %w", r.name, err)
		}
	}
	if err := schema.EnsureLimited(ctx, conn); err != nil {
		return fmt.Errorf("database %w", err)
	}
	if err := ensureDatabase(ctx, conn); err != nil {
		return fmt.Errorf("database %s: %w", database, err)
	}
	return nil
}

// ensure creates the role. "create role" takes no parameters, but names and generated passwords are letters and digits,
// so they need no quoting.
func (r role) ensure(ctx context.Context, conn *pgx.Conn) error {
	there, err := schema.Exists(ctx, conn, "select exists (select from pg_roles where rolname = $1)", r.name)
	if err != nil || there {
		return err
	}
	_, err = conn.Exec(ctx, fmt.Sprintf(
		"create role %s login nosuperuser nocreatedb nocreaterole nobypassrls noreplication password '%s'", r.name, r.password))
	return err
}

func ensureDatabase(ctx context.Context, conn *pgx.Conn) error {
	there, err := schema.Exists(ctx, conn, "select exists (select from pg_database where datname = $1)", database)
	if err != nil {
		return err
	}
	if !there {
		if _, err := conn.Exec(ctx, "create database "+database+
			" owner longbox_owner template template0 encoding 'UTF8' locale 'C.UTF-8'"); err != nil {
			return err
		}
	}
	_, err = conn.Exec(ctx, "revoke all on database "+database+" from public; "+
		"grant connect, temporary on database "+database+" to longbox_app, longbox_system")
	return err
}
