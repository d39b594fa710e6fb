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

// Fill is a backfill of rows from before an upgrade. Migrations leave it to the scheduler.
type Fill struct {
	Table    string // has a row for each tenant that is not done; system_wide
	Function string // fills that many next rows of the tenant, and deletes its row in Table after the last
	AtOnce   int    // rows per transaction
	What     string // what the rows lack, for messages
}

// Run fills rows for the given time. The rest waits for the next call.
func (f Fill) Run(ctx context.Context, system *DB, given time.Duration) error {
	rows, _ := system.Pool().Query(ctx, "select f.tenant_id from "+f.Table+" f join tenant t on t.id = f.tenant_id where t.status <> 'deleting' order by f.tenant_id limit 1000")
	tenants, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID]) // also returns the error of Query
	if err != nil {
		return fmt.Errorf("find tenants without %s: %w", f.What, err)
	}
	until := time.Now().Add(given)
	var failures error
	for _, id := range tenants { // a failed tenant does not stop the others
		for left := true; left; {
			if !time.Now().Before(until) {
				return failures
			}
			var b pgx.Batch
			b.Queue("select "+f.Function+"($1)", f.AtOnce)
			Value(&b, &left, "select exists (select from "+f.Table+" where tenant_id = app.tenant())")
			if err := system.Run(In(ctx, Tenant(id)), &b); err != nil {
				failures = errors.Join(failures, fmt.Errorf("add %s of tenant %s: %w", f.What, id, err))
				break
			}
			if !left {
				slog.Info("added all "+f.What+" of a tenant", "tenant", id)
			}
		}
	}
	return failures
}
