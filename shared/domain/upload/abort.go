package upload

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
)

// left is an upload to abort.
type left struct {
	ID      uuid.UUID `db:"id"`
	Bucket  string    `db:"bucket"`
	Key     string    `db:"key"` // with the prefix
	StoreID string    `db:"store_id"`
	Old     bool      `db:"old"` // refused for so long that it is forgotten
}

// Limits of Forget: uploads per run, and how long it tries again after the expiry of one.
const (
	forgetAtOnce = 2000
	tryFor       = 7 * 24 * time.Hour
)

// abortAll aborts uploads, several at once, and returns those of which the store has nothing any more. One line of the
// log tells of the others: refused, or not reached before ctx ended.
func abortAll(ctx context.Context, store *blob.Store, all []left) (gone []left) {
	failed := make([]error, len(all))
	var g errgroup.Group
	g.SetLimit(8)
	for i, u := range all {
		g.Go(func() error {
			failed[i] = store.AbortParts(ctx, u.Bucket, u.Key, u.StoreID)
			return nil
		})
	}
	_ = g.Wait() // the errors are in failed
	var last error
	for i, u := range all {
		if failed[i] == nil {
			gone = append(gone, u)
		} else {
			last = failed[i]
		}
	}
	if last != nil {
		slog.WarnContext(ctx, "cannot abort uploads in parts; check that Longbox may abort them (s3:AbortMultipartUpload), and "+
			"give the bucket a lifecycle rule that does it", "count", len(all)-len(gone), "error", last)
	}
	return gone
}

// Abandon aborts the open uploads to a library that is about to be deleted; see the function.
func (u *Uploader) Abandon(ctx context.Context, library uuid.UUID) (done bool, err error) {
	return Abandon(ctx, u.Database, u.Store, &library)
}

// Abandon aborts the open uploads to one library, or to all of the entered tenant, and deletes their rows. Without
// done, the time is up and another call continues. Uploads of a store that aborts none are left to its lifecycle rule.
func Abandon(ctx context.Context, d *db.DB, store *blob.Store, library *uuid.UUID) (done bool, err error) {
	open, err := db.List[left](ctx, d, `select id, bucket, prefix || key as key, store_id, false as old from upload
		where tenant_id = app.tenant() and ($1::uuid is null or library_id = $1) and completed_at is null and bucket is not null`, library)
	if err != nil || len(open) == 0 {
		return err == nil, err
	}
	limited, cancel := context.WithTimeout(ctx, abandonWithin)
	defer cancel()
	gone := abortAll(limited, store, open)
	if len(gone) == 0 {
		return true, nil
	}
	_, err = db.Exec(ctx, d, "delete from upload where tenant_id = app.tenant() and id = any($1)", ids(gone))
	return len(gone) == len(open) && err == nil, err
}

// Forget deletes the expired uploads of every tenant, a limited number per run, after it has aborted those that were
// not completed. An upload that the store refuses to abort is tried again for a week. The scheduler calls it, with the
// role that sees all tenants.
func Forget(ctx context.Context, system *db.DB, store *blob.Store, patience time.Duration) error {
	if _, err := system.Pool().Exec(ctx, "delete from upload where expires_at < now() and (completed_at is not null or bucket is null)"); err != nil {
		return fmt.Errorf("delete completed uploads: %w", err)
	}
	// In random order, so that refused ones do not keep others waiting.
	rows, _ := system.Pool().Query(ctx, `select id, bucket, prefix || key as key, store_id, expires_at < now() - $2::interval as old from upload
		where expires_at < now() and completed_at is null order by random() limit $1`, forgetAtOnce, tryFor)
	expired, err := pgx.CollectRows(rows, pgx.RowToStructByName[left]) // also returns the error of Query
	if err != nil {
		return fmt.Errorf("find expired uploads: %w", err)
	}
	if len(expired) == 0 {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	gone := abortAll(limited, store, expired)
	for _, u := range expired {
		if u.Old {
			gone = append(gone, u)
		}
	}
	if _, err := system.Pool().Exec(ctx, "delete from upload where id = any($1) and expires_at < now()", ids(gone)); err != nil {
		return fmt.Errorf("delete expired uploads: %w", err)
	}
	return nil
}

func ids(all []left) []uuid.UUID {
	out := make([]uuid.UUID, len(all))
	for i, u := range all {
		out[i] = u.ID
	}
	return out
}
