package pack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
)

const (
	expireStep  = 1000 // packs per step: at most what the store takes in one request
	expireFor   = 20 * time.Second
	expireEvery = 24 * time.Hour // per tenant
)

// Expirer deletes the packs of books that are gone or have other content. It goes through each tenant's packs once a
// day, and remembers where it is. It is for one goroutine.
type Expirer struct {
	System *db.DB
	Media  *blob.Store
	Bucket string

	step   int                     // zero: expireStep
	places map[uuid.UUID]uuid.UUID // by tenant, the last book of a pass that goes on
	done   map[uuid.UUID]time.Time // by tenant, when the last pass ended
}

// Expire goes on for some seconds, at least a step per tenant, and returns the number of deleted packs. The scheduler
// calls it every hour.
func (e *Expirer) Expire(ctx context.Context, now time.Time) (int, error) {
	return e.until(ctx, now, time.Now().Add(expireFor))
}

func (e *Expirer) until(ctx context.Context, now, end time.Time) (int, error) {
	rows, err := e.System.Pool().Query(ctx, "select id from tenant where exists (select from page_pack k where k.tenant_id = tenant.id)")
	if err != nil {
		return 0, fmt.Errorf("find page packs: %w", err)
	}
	tenants, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return 0, fmt.Errorf("find page packs: %w", err)
	}
	if e.done == nil {
		e.done, e.places = map[uuid.UUID]time.Time{}, map[uuid.UUID]uuid.UUID{}
	}
	removed := 0
	var failures error
	for _, t := range tenants {
		if ended, known := e.done[t]; known && now.Sub(ended) < expireEvery {
			continue
		}
		n, ended, err := e.tenant(db.In(ctx, db.Tenant(t)), t, end)
		removed += n
		failures = errors.Join(failures, err)
		if ended {
			delete(e.places, t)
			e.done[t] = now
		}
	}
	return removed, failures
}

// tenant continues the pass through a tenant's packs, and reports whether it has ended. Packs that the store refuses to
// delete do not block the others.
func (e *Expirer) tenant(ctx context.Context, tenant uuid.UUID, end time.Time) (removed int, ended bool, refused error) {
	step := cmp.Or(e.step, expireStep)
	for {
		packs, err := nextPacks(ctx, e.System, e.places[tenant], step)
		if err != nil {
			return removed, false, errors.Join(refused, err)
		}
		if len(packs) == 0 {
			return removed, true, refused
		}
		last := packs[len(packs)-1].Book
		n, err := drop(ctx, e.System, e.Media, e.Bucket, slices.DeleteFunc(packs, func(p packed) bool { return p.Key == "" }))
		removed += n
		if errors.As(err, new(*blob.Undeleted)) {
			refused = cmp.Or(refused, err)
		} else if err != nil {
			return removed, false, errors.Join(refused, err)
		}
		if e.places[tenant] = last; !time.Now().Before(end) {
			return removed, false, refused
		}
	}
}

// packed is the pack of a book.
type packed struct {
	Book uuid.UUID `db:"book_id"`
	Key  string    `db:"key"` // "" if the book needs it
}

// nextPacks returns the next packs, in the order of their books.
func nextPacks(ctx context.Context, d *db.DB, after uuid.UUID, limit int) ([]packed, error) {
	return db.List[packed](ctx, d, `select k.book_id, case when b.id is null then k.key else '' end as key
		from (select book_id, key, fingerprint from page_pack where tenant_id = app.tenant() and book_id > $1 order by book_id limit $2) k
		left join book b on b.tenant_id = app.tenant() and b.id = k.book_id and b.fingerprint = k.fingerprint order by k.book_id`, after, limit)
}

// drop deletes packs and returns their number. If the store refuses some, the error is a blob.Undeleted.
func drop(ctx context.Context, d *db.DB, media *blob.Store, bucket string, stale []packed) (int, error) {
	if len(stale) == 0 {
		return 0, nil
	}
	objects, books, keys := make([]blob.Object, len(stale)), make([]uuid.UUID, len(stale)), make([]string, len(stale))
	for i, s := range stale {
		objects[i], books[i], keys[i] = blob.Object{Key: s.Key}, s.Book, s.Key
	}
	// Objects first: a row without an object is found again by this, an object without a row only by the daily sweep.
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

// remove deletes a pack. The object first, as in drop.
func remove(ctx context.Context, d *db.DB, media *blob.Store, bucket string, book uuid.UUID, key string) error {
	if err := media.Delete(ctx, bucket, key); err != nil {
		return err
	}
	_, err := db.Exec(ctx, d, "delete from page_pack where tenant_id = app.tenant() and book_id = $1 and key = $2", book, key)
	return err
}
