package preference

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

func list(ctx context.Context, d *db.DB) ([]Preference, error) {
	return typed(db.List[Preference](ctx, d,
		"select key, value, updated_at from preference where tenant_id = app.tenant() and account_id = app.account() order by key"))
}

func get(ctx context.Context, d *db.DB, key string) (*Preference, error) {
	p, err := db.Get[Preference](ctx, d,
		"select key, value, updated_at from preference where tenant_id = app.tenant() and account_id = app.account() and key = $1", key)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return nil, fault.New(fault.NotFound, "Preference %q is not set", key)
	}
	p.ValueType = typeOf(p.Value)
	return p, nil
}

// set stores all values or none. One user's values are stored one request after the other, so that several at once do
// not all find room; what replaces a value needs none.
func set(ctx context.Context, d *db.DB, values map[string]json.RawMessage) ([]Preference, error) {
	keys := slices.Sorted(maps.Keys(values))
	vals := make([]string, len(keys))
	for i, k := range keys {
		vals[i] = string(values[k])
	}
	var b pgx.Batch
	var stored []Preference
	b.Queue("select pg_advisory_xact_lock(hashtextextended('preferences ' || app.account()::text, 0))")
	db.All(&b, &stored, `with mine as materialized (
		  select key from preference where tenant_id = app.tenant() and account_id = app.account()),
		fresh as (
		  select count(*) as n from unnest($1::text[]) k where k not in (select key from mine))
		insert into preference as p (tenant_id, account_id, key, value)
		select app.tenant(), app.account(), k, v::jsonb from unnest($1::text[], $2::text[]) as u(k, v), fresh
		where fresh.n = 0 or (select count(*) from mine) + fresh.n <= $3
		on conflict (tenant_id, account_id, key) do update set value = excluded.value, updated_at = now()
		returning key, value, updated_at`, keys, vals, maxKeys)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if len(stored) < len(values) {
		return nil, fault.New(fault.BadRequest, "A user can keep %d preferences; delete some first", maxKeys)
	}
	return typed(stored, nil)
}

func remove(ctx context.Context, d *db.DB, key string) (bool, error) {
	n, err := db.Exec(ctx, d, "delete from preference where tenant_id = app.tenant() and account_id = app.account() and key = $1", key)
	return n > 0, err
}

func typed(all []Preference, err error) ([]Preference, error) {
	for i := range all {
		all[i].ValueType = typeOf(all[i].Value)
	}
	return all, err
}
