package preference

import (
	"context"
	"encoding/json"

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

// set stores all values or none.
func set(ctx context.Context, d *db.DB, values map[string]json.RawMessage) ([]Preference, error) {
	keys, vals := make([]string, 0, len(values)), make([]string, 0, len(values))
	for k, v := range values {
		keys, vals = append(keys, k), append(vals, string(v))
	}
	var b pgx.Batch
	var stored []Preference
	db.All(&b, &stored, `insert into preference as p (tenant_id, account_id, key, value)
		select app.tenant(), app.account(), k, v::jsonb from unnest($1::text[], $2::text[]) as u(k, v)
		where (select count(*) from preference where tenant_id = app.tenant() and account_id = app.account()) < $3
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
