package pack

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
)

// Expire deletes the packs of books that are gone or have other content, for every tenant, and returns their number.
// The scheduler calls it.
func Expire(ctx context.Context, system *db.DB, media *blob.Store, bucket string) (int, error) {
	rows, err := system.Pool().Query(ctx, "select distinct tenant_id from page_pack")
	if err != nil {
		return 0, fmt.Errorf("find page packs: %w", err)
	}
	tenants, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return 0, fmt.Errorf("find page packs: %w", err)
	}
	removed := 0
	var failures error
	for _, t := range tenants {
		n, err := expire(db.In(ctx, db.Tenant(t)), system, media, bucket)
		removed += n
		failures = errors.Join(failures, err)
	}
	return removed, failures
}

func expire(ctx context.Context, d *db.DB, media *blob.Store, bucket string) (int, error) {
	type row struct {
		Book uuid.UUID `db:"book_id"`
		Key  string    `db:"key"`
	}
	stale, err := db.List[row](ctx, d, `select k.book_id, k.key from page_pack k
		left join book b on b.tenant_id = k.tenant_id and b.id = k.book_id and b.fingerprint = k.fingerprint
		where k.tenant_id = app.tenant() and b.id is null limit 1000`) // at most what one delete request takes
	if err != nil || len(stale) == 0 {
		return 0, err
	}
	objects, books, keys := make([]blob.Object, len(stale)), make([]uuid.UUID, len(stale)), make([]string, len(stale))
	for i, s := range stale {
		objects[i], books[i], keys[i] = blob.Object{Key: s.Key}, s.Book, s.Key
	}
	// Objects first: a row without an object is found again, an object without a row never.
	_, refused := media.DeleteAll(ctx, bucket, "", objects)
	kept := []string{}
	if left := new(blob.Undeleted); errors.As(refused, &left) {
		kept = left.Keys
	} else if refused != nil {
		return 0, refused
	}
	n, err := db.Exec(ctx, d, `delete from page_pack k using unnest($1::uuid[], $2::text[]) s (book_id, key)
		where k.tenant_id = app.tenant() and k.book_id = s.book_id and k.key = s.key and k.key <> all($3)`, books, keys, kept)
	return int(n), errors.Join(refused, err)
}

// remove deletes a pack. The object first: a row without an object is found again, an object without a row never.
func remove(ctx context.Context, d *db.DB, media *blob.Store, bucket string, book uuid.UUID, key string) error {
	if err := media.Delete(ctx, bucket, key); err != nil {
		return err
	}
	_, err := db.Exec(ctx, d, "delete from page_pack where tenant_id = app.tenant() and book_id = $1 and key = $2", book, key)
	return err
}
