package apikey

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
)

const columns = "id, account_id, name, prefix, permissions, is_active, expires_at, last_used_at, created_at, updated_at"

func list(ctx context.Context, d *db.DB, limit, offset int) ([]APIKey, int64, error) {
	var b pgx.Batch
	var keys []APIKey
	var total int64
	db.All(&b, &keys, "select "+columns+` from api_key where tenant_id = app.tenant() and account_id = app.account()
		order by created_at, id limit $1 offset $2`, limit, offset)
	db.Value(&b, &total, "select count(*) from api_key where tenant_id = app.tenant() and account_id = app.account()")
	err := d.Run(ctx, &b)
	return keys, total, err
}

// queueEnds reads the expiry of the caller's key; nil if it has none.
func queueEnds(ctx context.Context, b *pgx.Batch, dst **time.Time) {
	db.Value(b, dst, "select expires_at from api_key where tenant_id = app.tenant() and account_id = app.account() and hash = $1",
		auth.CallerOf(ctx).KeyHash)
}

// keyEnds returns the expiry of the caller's key.
func keyEnds(ctx context.Context, d *db.DB) (ends *time.Time, err error) {
	var b pgx.Batch
	queueEnds(ctx, &b, &ends)
	return ends, d.Run(ctx, &b)
}

// load returns any key of the tenant, and the expiry of the caller's key.
func load(ctx context.Context, d *db.DB, id uuid.UUID) (k *APIKey, ends *time.Time, err error) {
	var b pgx.Batch
	db.One(&b, &k, "select "+columns+" from api_key where tenant_id = app.tenant() and id = $1", id)
	queueEnds(ctx, &b, &ends)
	err = d.Run(ctx, &b)
	return k, ends, err
}

// insert stores a key; nil if the caller has maxKeys already. Inserts of one user are serialized, so that concurrent
// requests cannot exceed the limit.
func insert(ctx context.Context, d *db.DB, k APIKey, hash []byte) (stored *APIKey, err error) {
	var b pgx.Batch
	b.Queue("select pg_advisory_xact_lock(hashtextextended('api keys ' || app.account()::text, 0))")
	db.One(&b, &stored, `insert into api_key (tenant_id, id, account_id, name, prefix, hash, permissions, expires_at)
		select app.tenant(), $1, app.account(), $2, $3, $4, $5, $6
		where (select count(*) from api_key where tenant_id = app.tenant() and account_id = app.account()) < $7
		returning `+columns, k.ID, k.Name, k.KeyPrefix, hash, k.Permissions, k.ExpiresAt, maxKeys)
	err = d.Run(ctx, &b)
	return stored, err
}

// save writes only the fields that were sent; nil if the key is not as it was read, or was deleted.
func save(ctx context.Context, d *db.DB, id uuid.UUID, in Update, k APIKey) (*APIKey, error) {
	return db.Get[APIKey](ctx, d, `update api_key set
			name = case when $2 then $3 else name end,
			permissions = case when $4 then $5 else permissions end,
			is_active = case when $6 then $7 else is_active end,
			expires_at = case when $8 then $9 else expires_at end,
			updated_at = now()
		where tenant_id = app.tenant() and id = $1 and updated_at = $10 returning `+columns,
		id, in.Name.Set, k.Name, in.Permissions.Set, k.Permissions, in.IsActive.Set, k.IsActive, in.ExpiresAt.Set, k.ExpiresAt, k.UpdatedAt)
}

func remove(ctx context.Context, d *db.DB, id uuid.UUID) error {
	_, err := db.Exec(ctx, d, "delete from api_key where tenant_id = app.tenant() and id = $1", id)
	return err
}
