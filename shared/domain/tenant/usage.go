package tenant

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
)

// Measure lists the objects of tenants with a limit in the media bucket and stores their total size. Between
// measurements app.keep_rendition adds to it; expired objects are noticed only here. After patience no further tenant
// is started; the order is random, so that every tenant gets its turn. The scheduler calls it.
func Measure(ctx context.Context, system *db.DB, media *blob.Store, bucket string, patience time.Duration) error {
	end := time.Now().Add(patience)
	rows, err := system.Pool().Query(ctx, "select id from tenant where max_rendition_bytes is not null and status <> 'deleting' order by random()")
	if err != nil {
		return fmt.Errorf("find tenants with a limit: %w", err)
	}
	tenants, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return fmt.Errorf("find tenants with a limit: %w", err)
	}
	var failures error
	for _, id := range tenants { // a failure for one does not affect the others
		if time.Now().After(end) {
			break
		}
		if err := measure(ctx, system, media, bucket, id); err != nil {
			failures = errors.Join(failures, fmt.Errorf("measure tenant %s: %w", id, err))
		}
	}
	return failures
}

func measure(ctx context.Context, system *db.DB, media *blob.Store, bucket string, id uuid.UUID) error {
	ctx = db.In(ctx, db.Tenant(id))
	before := int64(0)
	var b pgx.Batch
	db.Value(&b, &before, "select coalesce((select bytes from rendition_usage where tenant_id = app.tenant()), 0)")
	if err := system.Run(ctx, &b); err != nil {
		return err
	}
	sum := int64(0)
	for _, prefix := range []string{id.String() + "/", blob.Expiring + id.String() + "/"} {
		for page, err := range media.List(ctx, bucket, prefix, "") {
			if err != nil {
				return err
			}
			for _, o := range page {
				sum += o.Size
			}
		}
	}
	// What was added meanwhile may be below a prefix that was already listed.
	_, err := db.Exec(ctx, system, `insert into rendition_usage as u (tenant_id, bytes, measured_at)
		select id, $1, now() from tenant where id = app.tenant()
		on conflict (tenant_id) do update set bytes = excluded.bytes + greatest(0, u.bytes - $2), measured_at = excluded.measured_at`, sum, before)
	return err
}
