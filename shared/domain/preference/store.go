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

func list(ctx context.Context, d *db.DB, limit, offset int) ([]Preference, int64, error) {
	var b pgx.Batch
	var page []Preference
	var total int64
	db.All(&b, &page, `select key, value, updated_at from preference where tenant_id = app.tenant() and account_id = app.account()
		order by key limit $1 offset $2`, limit, offset)
	db.Value(&b, &total, "select count(*) from preference where tenant_id = app.tenant() and account_id = app.account()")
	err := d.Run(ctx, &b)
	page, err = typed(page, err)
	return page, total, err
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

// set stores all values or none; field is their place in the request. Requests of one user are serialized, so that they
// cannot exceed the limits. A replaced value counts only by the bytes by which it grows.
func set(ctx context.Context, d *db.DB, field string, values map[string]json.RawMessage) ([]Preference, error) {
	keys := slices.Sorted(maps.Keys(values))
	vals := make([]string, len(keys))
	for i, k := range keys {
		vals[i] = string(values[k])
	}
	var b pgx.Batch
	var stored []Preference
	var count int64
	b.Queue("select pg_advisory_xact_lock(hashtextextended('preferences ' || app.account()::text, 0))")
	db.All(&b, &stored, `with mine as materialized (
		  select key, octet_length(value::text) as bytes from preference where tenant_id = app.tenant() and account_id = app.account()),
		sent as materialized (
		  select k as key, v::jsonb as value from unnest($1::text[], $2::text[]) as u(k, v)),
		room as (
		  select count(*) filter (where m.key is null) as fresh, sum(octet_length(s.value::text)) as bytes, coalesce(sum(m.bytes), 0) as replaced
		  from sent s left join mine m using (key))
		insert into preference as p (tenant_id, account_id, key, value)
		select app.tenant(), app.account(), s.key, s.value from sent s, room
		where (room.fresh = 0 or (select count(*) from mine) + room.fresh <= $3)
		  and (room.bytes <= room.replaced or (select coalesce(sum(bytes), 0) from mine) - room.replaced + room.bytes <= $4)
		on conflict (tenant_id, account_id, key) do update set value = excluded.value, updated_at = now()
		returning key, value, updated_at`, keys, vals, maxKeys, maxAll)
	db.Value(&b, &count, `select count(*) from (
		select key from preference where tenant_id = app.tenant() and account_id = app.account() union select unnest($1::text[])) k`, keys)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	switch {
	case len(stored) == len(values):
		return typed(stored, nil)
	case count > maxKeys:
		return nil, fault.New(fault.BadRequest, "A user can keep %d preferences; delete some first", maxKeys)
	}
	return nil, fault.Invalid(field, "would make this user's preferences larger than %d bytes of JSON; delete or shorten some first", maxAll)
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
