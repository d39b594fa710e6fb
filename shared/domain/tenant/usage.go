package tenant

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
)

// Measure lists the objects of tenants with a limit in the media bucket and stores their total size. Between
// measurements app.keep_rendition adds to it; expired objects are noticed only here. It stops after patience, and the
// next call continues; the order is random, so that every tenant gets its turn. The scheduler calls it.
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
		if err := measure(ctx, system, media, bucket, id, end); err != nil {
			failures = errors.Join(failures, fmt.Errorf("measure tenant %s: %w", id, err))
		}
	}
	return failures
}

// place is how far the measurement of a tenant has come: the last key, the size of the objects up to it, and the usage
// at the start.
type place struct {
	Key    string `db:"place"`
	Sum    int64  `db:"place_sum"`
	Before int64  `db:"place_before"`
}

// measure measures a tenant. It stores its place after each page of the listing and goes on there if it was stopped: a
// tenant may have more objects than can be listed in the lifetime of a function.
func measure(ctx context.Context, system *db.DB, media *blob.Store, bucket string, id uuid.UUID, end time.Time) error {
	ctx = db.In(ctx, db.Tenant(id))
	at, err := db.Get[place](ctx, system, `insert into rendition_usage as u (tenant_id) select id from tenant where id = app.tenant()
		on conflict (tenant_id) do update set place_before = case when u.place = '' then u.bytes else u.place_before end
		returning place, place_sum, place_before`)
	if err != nil || at == nil {
		return err
	}
	expiring := blob.Expiring + id.String() + "/"
	for _, prefix := range []string{id.String() + "/", expiring} {
		after := ""
		if strings.HasPrefix(at.Key, prefix) {
			after = at.Key
		} else if strings.HasPrefix(at.Key, expiring) {
			continue
		}
		for page, err := range media.List(ctx, bucket, prefix, after) {
			if err != nil {
				return err
			}
			if len(page) == 0 {
				break
			}
			for _, o := range page {
				at.Sum += o.Size
			}
			at.Key = page[len(page)-1].Key
			if _, err := db.Exec(ctx, system, "update rendition_usage set place = $1, place_sum = $2 where tenant_id = app.tenant()", at.Key, at.Sum); err != nil {
				return err
			}
			if time.Now().After(end) {
				return nil
			}
		}
	}
	// What was added meanwhile may be below a prefix that was already listed.
	_, err = db.Exec(ctx, system, `update rendition_usage set bytes = $1 + greatest(0, bytes - $2), measured_at = now(), place = '', place_sum = 0
		where tenant_id = app.tenant()`, at.Sum, at.Before)
	return err
}
