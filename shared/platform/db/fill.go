package db

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Fill is work on rows of before an upgrade, which migrations leave to the scheduler.
type Fill struct {
	Table    string // a row for each tenant that is not done; system_wide
	Function string // does the next rows of the tenant, as many as its argument, and deletes the row of Table after the last
	AtOnce   int    // how many rows are filled in one transaction
	What     string // in messages: what the rows lack
}

// Run fills for some time; the rest waits for the next call.
func (f Fill) Run(ctx context.Context, system *DB, given time.Duration) error {
	rows, err := system.Pool().Query(ctx, "select f.tenant_id from "+f.Table+" f join tenant t on t.id = f.tenant_id where t.status <> 'deleting' order by f.tenant_id limit 1000")
	if err != nil {
		return fmt.Errorf("find who lacks %s: %w", f.What, err)
	}
	tenants, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return fmt.Errorf("find who lacks %s: %w", f.What, err)
	}
	until := time.Now().Add(given)
	var failures error
	for _, id := range tenants { // one that fails keeps no other from its turn
		for left := true; left; {
			if !time.Now().Before(until) {
				return failures
			}
			var b pgx.Batch
			b.Queue("select "+f.Function+"($1)", f.AtOnce)
			Value(&b, &left, "select exists (select from "+f.Table+" where tenant_id = app.tenant())")
			if err := system.Run(In(ctx, Tenant(id)), &b); err != nil {
				failures = errors.Join(failures, fmt.Errorf("give tenant %s %s: %w", id, f.What, err))
				break
			}
			if !left {
				slog.Info("a tenant has all of "+f.What, "tenant", id)
			}
		}
	}
	return failures
}
