package pack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
)

// Limits of Expire: packs per request to the store, at most what it takes, and the time; each tenant has one request.
const (
	expireStep = 1000
	expireFor  = 20 * time.Second
)

// Expire deletes the packs of books that are gone or have other content, for every tenant, and returns their number.
// The scheduler calls it.
func Expire(ctx context.Context, system *db.DB, media *blob.Store, bucket string) (int, error) {
	return expireAll(ctx, system, media, bucket, expireStep)
}

func expireAll(ctx context.Context, system *db.DB, media *blob.Store, bucket string, step int) (int, error) {
	rows, err := system.Pool().Query(ctx, "select distinct tenant_id from page_pack")
	if err != nil {
		return 0, fmt.Errorf("find page packs: %w", err)
	}
	tenants, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return 0, fmt.Errorf("find page packs: %w", err)
	}
	removed := 0
	end := time.Now().Add(expireFor)
	var failures error
	for _, t := range tenants {
		n, err := expire(db.In(ctx, db.Tenant(t)), system, media, bucket, step, end)
		removed += n
		failures = errors.Join(failures, err)
	}
	return removed, failures
}

// expire deletes the packs of a tenant, as far as the time allows. Those that the store refuses do not block the
// others.
func expire(ctx context.Context, d *db.DB, media *blob.Store, bucket string, step int, end time.Time) (removed int, refused error) {
	for after, more := uuid.Nil, true; more; {
		stale, err := stalePacks(ctx, d, after, step)
		if err != nil || len(stale) == 0 {
			return removed, errors.Join(refused, err)
		}
		n, err := drop(ctx, d, media, bucket, stale)
		removed += n
		if errors.As(err, new(*blob.Undeleted)) {
			refused = cmp.Or(refused, err)
		} else if err != nil {
			return removed, errors.Join(refused, err)
		}
		after, more = stale[len(stale)-1].Book, len(stale) == step && time.Now().Before(end)
	}
	return removed, refused
}

// packed is the pack of a book.
type packed struct {
	Book uuid.UUID `db:"book_id"`
	Key  string    `db:"key"`
}

// stalePacks returns the next packs, in the order of the books, that no book needs.
func stalePacks(ctx context.Context, d *db.DB, after uuid.UUID, limit int) ([]packed, error) {
	return db.List[packed](ctx, d, `select k.book_id, k.key from page_pack k
		left join book b on b.tenant_id = k.tenant_id and b.id = k.book_id and b.fingerprint = k.fingerprint
		where k.tenant_id = app.tenant() and k.book_id > $1 and b.id is null order by k.book_id limit $2`, after, limit)
}

// drop deletes packs and returns their number. If the store refuses some, the error is a blob.Undeleted.
func drop(ctx context.Context, d *db.DB, media *blob.Store, bucket string, stale []packed) (int, error) {
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
	if err != nil {
		return 0, err
	}
	return int(n), refused
}

// remove deletes a pack. The object first: a row without an object is found again, an object without a row never.
func remove(ctx context.Context, d *db.DB, media *blob.Store, bucket string, book uuid.UUID, key string) error {
	if err := media.Delete(ctx, bucket, key); err != nil {
		return err
	}
	_, err := db.Exec(ctx, d, "delete from page_pack where tenant_id = app.tenant() and book_id = $1 and key = $2", book, key)
	return err
}
