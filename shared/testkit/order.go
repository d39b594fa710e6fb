package testkit

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// LockedInOrder makes sure that other, which waits for what the statement first locks, has not locked before what the
// statement second needs: a deadlock otherwise.
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
