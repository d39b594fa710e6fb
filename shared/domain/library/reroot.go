package library

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/filesystem"
	"github.com/longbox/longbox/shared/platform/db"
)

// Placed is a library and its place.
type Placed struct {
	ID     uuid.UUID `db:"id"`
	Name   string    `db:"name"`
	Path   string    `db:"path"`
	Bucket string    `db:"bucket"`
	Prefix string    `db:"prefix"`
}

// Reroot updates the libraries of the entered tenant whose bucket no longer belongs to any root: they get the bucket
// that serves their path now. That may belong to a root above or below the old one. It returns those whose path is
// below no root, too, by name: they stay as they are, and nothing serves them.
func Reroot(ctx context.Context, d *db.DB, roots []filesystem.Root) (lost []Placed, err error) {
	all, err := db.List[Placed](ctx, d, "select id, name, path, bucket, prefix from library where tenant_id = app.tenant() order by name")
	if err != nil {
		return nil, err
	}
	var b pgx.Batch
	for _, l := range all {
		if _, _, err := filesystem.Resolve(roots, "s3://"+l.Bucket+"/"+l.Prefix); err == nil {
			continue // its root still serves it
		}
		bucket, prefix, err := filesystem.Resolve(roots, l.Path)
		if err != nil {
			lost = append(lost, l)
			continue
		}
		b.Queue("update library set bucket = $3, prefix = $4 where tenant_id = app.tenant() and id = $1 and path = $2", l.ID, l.Path, bucket, prefix)
	}
	if b.Len() == 0 {
		return lost, nil
	}
	return lost, d.Run(ctx, &b)
}
