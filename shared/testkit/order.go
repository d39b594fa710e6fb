package testkit

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// LockedInOrder checks for a deadlock: while other waits for the locks of the statement first, it must not hold those
// that the statement second needs.
func (d *Databases) LockedInOrder(t testing.TB, first, second string, other func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	done := make(chan error, 1)
	if err := pgx.BeginFunc(ctx, d.Owner.Pool(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, first); err != nil {
			return err
		}
		go func() { done <- other() }()
		d.AwaitLock(t)
		_, err := tx.Exec(ctx, second)
		return err
	}); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Together runs functions that insert into a table concurrently. Each continues when all have reached their insert, or
// wait for another one.
func (d *Databases) Together(t testing.TB, table string, all ...func()) {
	t.Helper()
	d.Exec(t, `create function meet() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock_shared(1); return new; end $$;
		create trigger meet before insert on `+table+` for each row execute function meet()`)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var done sync.WaitGroup
	defer done.Wait()
	if err := pgx.BeginFunc(ctx, d.Owner.Pool(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock(1)"); err != nil {
			return err
		}
		for _, one := range all {
			done.Go(one)
		}
		d.AwaitLocks(t, len(all))
		return nil
	}); err != nil {
		t.Error(err)
	}
}
