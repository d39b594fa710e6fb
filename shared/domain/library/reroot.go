package library

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/filesystem"
	"github.com/longbox/longbox/shared/platform/db"
)

// Reroot updates the libraries of the entered tenant whose bucket no longer belongs to any root: they get the bucket
// that serves their path now. That may belong to a root above or below the old one. A path below no root stays as it
// is.
func Reroot(ctx context.Context, d *db.DB, roots []filesystem.Root) error {
	type place struct {
		ID     uuid.UUID `db:"id"`
		Path   string    `db:"path"`
		Bucket string    `db:"bucket"`
		Prefix string    `db:"prefix"`
	}
	all, err := db.List[place](ctx, d, "select id, path, bucket, prefix from library where tenant_id = app.tenant()")
	if err != nil {
		return err
	}
	var b pgx.Batch
	for _, l := range all {
		if _, _, err := filesystem.Resolve(roots, "s3://"+l.Bucket+"/"+l.Prefix); err == nil {
			continue // its root still serves it
		}
		if bucket, prefix, err := filesystem.Resolve(roots, l.Path); err == nil {
			b.Queue("update library set bucket = $3, prefix = $4 where tenant_id = app.tenant() and id = $1 and path = $2", l.ID, l.Path, bucket, prefix)
		}
	}
	if b.Len() == 0 {
		return nil
	}
	return d.Run(ctx, &b)
}
