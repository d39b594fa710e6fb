package setting

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

const columns = "key, value, version, updated_at, updated_by"

// written returns the rows of the settings (all, or those in keys) by key, and when the tenant was created.
func written(ctx context.Context, d *db.DB, keys []string) (map[string]record, time.Time, error) {
	var b pgx.Batch
	var rows []record
	var since time.Time
	db.All(&b, &rows, "select "+columns+" from setting where tenant_id = app.tenant() and ($1::text[] is null or key = any($1))", keys)
	db.Value(&b, &since, "select created_at from tenant where id = app.tenant()")
	if err := d.Run(ctx, &b); err != nil {
		return nil, since, err
	}
	return byKey(rows), since, nil
}

func byKey(rows []record) map[string]record {
	out := make(map[string]record, len(rows))
	for _, r := range rows {
		out[r.Key] = r
	}
	return out
}

// write is one validated value to store.
type write struct {
	definition *definition
	value      string
}

// store writes all values or none, each with a line of history. Writers of one tenant are serialized, so that the old
// value in the history is the one that was replaced. The time is when the writer's turn came, not when it began to
// wait.
func store(ctx context.Context, d *db.DB, writes []write, reason *string) ([]Setting, error) {
	ids, keys := make([]uuid.UUID, len(writes)), make([]string, len(writes))
	values, defaults := make([]string, len(writes)), make([]string, len(writes))
	for i, w := range writes {
		id, err := uuid.NewV7()
		if err != nil {
			return nil, err
		}
		ids[i], keys[i], values[i], defaults[i] = id, w.definition.Key, w.value, w.definition.Default
	}
	var b pgx.Batch
	var rows []record
	b.Queue("select pg_advisory_xact_lock(hashtextextended('setting ' || app.tenant()::text, 0))")
	db.All(&b, &rows, `with new as (
		  select * from unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) as n(id, key, value, fallback)),
		history as (
		  insert into setting_history (tenant_id, id, key, old_value, new_value, changed_by, changed_at, change_reason, ip_address)
		  select app.tenant(), n.id, n.key, coalesce(s.value, n.fallback), n.value, app.account(), clock_timestamp(), $5, nullif($6, '')
		  from new n left join setting s on s.tenant_id = app.tenant() and s.key = n.key)
		insert into setting as s (tenant_id, key, value, version, updated_at, updated_by)
		select app.tenant(), n.key, n.value, 2, clock_timestamp(), app.account() from new n
		on conflict (tenant_id, key) do update
		  set value = excluded.value, version = s.version + 1, updated_at = excluded.updated_at, updated_by = excluded.updated_by
		returning `+columns, ids, keys, values, defaults, reason, httpapi.ClientIP(ctx))
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	stored := byKey(rows)
	out := make([]Setting, len(writes))
	for i, w := range writes {
		out[i] = w.definition.from(stored, time.Time{})
	}
	return out, nil
}

// history returns a page of the changes of a setting, newest first, and their total.
func history(ctx context.Context, d *db.DB, def *definition, p httpapi.Paging) ([]Change, int64, error) {
	var b pgx.Batch
	var out []Change
	var total int64
	db.All(&b, &out, `select id, key, old_value, new_value, changed_by, changed_at, change_reason, ip_address from setting_history
		where tenant_id = app.tenant() and key = $1 order by changed_at desc, id desc limit $2 offset $3`, def.Key, p.Limit(), p.Offset())
	db.Value(&b, &total, "select count(*) from setting_history where tenant_id = app.tenant() and key = $1", def.Key)
	if err := d.Run(ctx, &b); err != nil {
		return nil, 0, err
	}
	for i := range out {
		out[i].SettingID = def.id()
	}
	return out, total, nil
}
