package taxonomy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
)

// atOnce is how many books are filled in one transaction, for which the scans of their tenant wait.
const atOnce = 1000

// Fill gives books that were read before there were genres and tags of books those that their files named then, for some
// time; the rest waits for the next call. The scheduler calls it in every round, until no tenant is left.
func Fill(ctx context.Context, system *db.DB, given time.Duration) error {
	return fill(ctx, system, given, atOnce)
}

func fill(ctx context.Context, system *db.DB, given time.Duration, atOnce int) error {
	rows, err := system.Pool().Query(ctx, "select f.tenant_id from term_fill f join tenant t on t.id = f.tenant_id where t.status <> 'deleting' order by f.tenant_id limit 1000")
	if err != nil {
		return fmt.Errorf("find whose books lack genres: %w", err)
	}
	tenants, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return fmt.Errorf("find whose books lack genres: %w", err)
	}
	until := time.Now().Add(given)
	var failures error
	for _, id := range tenants { // one that fails keeps no other from its turn
		for left := true; left; {
			if !time.Now().Before(until) {
				return failures
			}
			var b pgx.Batch
			b.Queue("select app.fill_terms($1)", atOnce)
			db.Value(&b, &left, "select exists (select from term_fill where tenant_id = app.tenant())")
			if err := system.Run(db.In(ctx, db.Tenant(id)), &b); err != nil {
				failures = errors.Join(failures, fmt.Errorf("give the books of tenant %s their genres: %w", id, err))
				break
			}
			if !left {
				slog.Info("the books have the genres and tags that their files name", "tenant", id)
			}
		}
	}
	return failures
}
