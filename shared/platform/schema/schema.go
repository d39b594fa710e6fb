// Package schema migrates a database to the schema of this build.
package schema

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib" // goose uses database/sql
	"github.com/pressly/goose/v3"

	"github.com/longbox/longbox/migrations"
)

// Pending returns the version of the database's schema, that of this build, and which of its migrations are missing. A
// newer build may have migrated the database. Pending changes nothing, except that it creates goose's version table if
// there is none.
func Pending(ctx context.Context, ownerURL string) (version, own int64, missing []int64, err error) {
	conn, err := open(ownerURL)
	if err != nil {
		return 0, 0, nil, fmt.Errorf("DATABASE_OWNER_URL: %w", err)
	}
	defer conn.Close()
	p, err := goose.NewProvider(goose.DialectPostgres, conn, migrations.FS)
	if err != nil {
		return 0, 0, nil, fmt.Errorf("migrate: %w", err)
	}
	states, err := p.Status(ctx)
	if err != nil {
		return 0, 0, nil, fmt.Errorf("migrate: %w", err)
	}
	for _, s := range states {
		if s.State == goose.StatePending {
			missing = append(missing, s.Source.Version)
		}
	}
	if version, own, err = p.GetVersions(ctx); err != nil {
		return 0, 0, nil, fmt.Errorf("migrate: %w", err)
	}
	return version, own, missing, nil
}

// Migrate applies the missing migrations as the owner role. It returns their number, and the number of indexes that it
// rebuilt because the system's collation rules changed. Concurrent calls wait for one another.
func Migrate(ctx context.Context, ownerURL string) (applied, reindexed int, err error) {
	conn, err := open(ownerURL)
	if err != nil {
		return 0, 0, fmt.Errorf("DATABASE_OWNER_URL: %w", err)
	}
	defer conn.Close()
	lock, err := conn.Conn(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("DATABASE_OWNER_URL: %w", err)
	}
	defer lock.Close()
	if err := wait(ctx, lock); err != nil {
		return 0, 0, fmt.Errorf("migrate: lock: %w", err)
	}
	reindexed, err = refreshCollations(ctx, conn)
	if err != nil {
		return 0, 0, fmt.Errorf("migrate: order of text: %w", err)
	}
	p, err := goose.NewProvider(goose.DialectPostgres, conn, migrations.FS)
	if err != nil {
		return 0, reindexed, fmt.Errorf("migrate: %w", err)
	}
	results, err := p.Up(ctx)
	if err != nil {
		return len(results), reindexed, fmt.Errorf("migrate: %w", err)
	}
	return len(results), reindexed, nil
}

// open returns connections whose sessions may be silent for as long as a migration takes: those that wait for it, hold
// the lock or keep goose's place.
func open(ownerURL string) (*sql.DB, error) {
	config, err := pgx.ParseConfig(ownerURL)
	if err != nil {
		return nil, err
	}
	return stdlib.OpenDB(*config, stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "set idle_session_timeout = 0")
		return err
	})), nil
}

// again is the interval of attempts to take the lock.
const again = 100 * time.Millisecond

// wait takes the lock that allows one migration at a time. It polls: a statement that waits in the server would block
// the "create index concurrently" of the lock's holder.
func wait(ctx context.Context, lock *sql.Conn) error {
	tick := time.NewTicker(again)
	defer tick.Stop()
	for {
		var ours bool
		if err := lock.QueryRowContext(ctx, "select pg_try_advisory_lock(726601)").Scan(&ours); ours || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
