package plugin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/schedule"
	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/format/cronexpr"
	"github.com/longbox/longbox/shared/platform/db"
)

// keepSchedule stores a plugin's sync schedule where schedulers find it. A pending due time stays, unless the schedule
// changed.
const keepSchedule = `with this as (select id, sync_cron_schedule as cron from plugin where tenant_id = app.tenant() and id = $1),
	gone as (delete from plugin_schedule c using this where c.tenant_id = app.tenant() and c.plugin_id = this.id and this.cron is null)
	insert into plugin_schedule as c (tenant_id, plugin_id, cron) select app.tenant(), this.id, this.cron from this where this.cron is not null
	on conflict (tenant_id, plugin_id) do update set cron = excluded.cron, next_at = null, after_id = null where c.cron <> excluded.cron`

// dueSync is a plugin whose sync is due, or that no scheduler has seen before.
type dueSync struct {
	Tenant uuid.UUID  `db:"tenant_id"`
	Plugin uuid.UUID  `db:"plugin_id"`
	Cron   string     `db:"cron"`
	Zone   string     `db:"zone"`
	Met    bool       `db:"met"`
	After  *uuid.UUID `db:"after_id"` // the user whose task was started last in this round
}

// usersAtOnce is the number of users per pass; the next pass continues with the others.
const usersAtOnce = 200

// scheduledPriority is the priority of a sync that nobody waits for: like other work of plugins that arrives by itself
// and in large numbers, it must not run before scans, analyses and covers.
const scheduledPriority = 335

// SyncDue starts the sync tasks of the users with autoSync, of plugins whose schedule is due, for every tenant, and
// returns their number. Concurrent calls are safe. A schedule is in the tenant's time zone.
func SyncDue(ctx context.Context, system *db.DB, now time.Time) (started int, failures error) {
	_, failures = schedule.Each(ctx, system, "plugins that are due to sync", func(d dueSync) (bool, error) {
		n, err := d.start(ctx, system, now)
		if err != nil { // one plugin's error must not block the others
			_, put := db.Exec(db.In(ctx, db.Tenant(d.Tenant)), system, "update plugin_schedule set next_at = $2 where tenant_id = app.tenant() and plugin_id = $1", d.Plugin, now.Add(time.Hour))
			err = fmt.Errorf("sync of plugin %s of tenant %s: %w", d.Plugin, d.Tenant, errors.Join(err, put))
		}
		started += n
		return n > 0, err
	}, `select c.tenant_id, c.plugin_id, c.cron, coalesce(z.value, '') as zone, c.next_at is not null as met, c.after_id from plugin_schedule c
		join tenant t on t.id = c.tenant_id and t.status = 'active'
		left join setting z on z.tenant_id = c.tenant_id and z.key = $2
		where c.next_at is null or c.next_at <= $1 order by c.next_at nulls first limit 1000`, now, setting.SchedulerZone)
	return started, failures
}

// start starts some due tasks in one transaction. Once all are started, it sets when the plugin is next due.
func (d dueSync) start(ctx context.Context, system *db.DB, now time.Time) (started int, err error) {
	times, err := cronexpr.Parse(d.Cron, d.Zone)
	if err != nil {
		return 0, err
	}
	err = system.Tx(db.In(ctx, db.Tenant(d.Tenant)), func(ctx context.Context, tx pgx.Tx) error {
		// The plugin is locked first, as by its deletion.
		if _, err := tx.Exec(ctx, "select from plugin where tenant_id = app.tenant() and id = $1 for key share", d.Plugin); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `select from plugin_schedule where tenant_id = app.tenant() and plugin_id = $1 and cron = $2
			and (next_at is null) = not $4 and (next_at is null or next_at <= $3) and after_id is not distinct from $5 for update`, d.Plugin, d.Cron, now, d.Met, d.After)
		if err != nil || tag.RowsAffected() == 0 {
			return err // another scheduler was first
		}
		var all []mine
		if d.Met { // otherwise nothing is due yet
			rows, err := tx.Query(ctx, "select "+ownColumns+` from user_plugin u join plugin p on p.tenant_id = u.tenant_id and p.id = u.plugin_id
				join account a on a.tenant_id = u.tenant_id and a.id = u.account_id and a.is_active
				where u.tenant_id = app.tenant() and u.plugin_id = $1 and u.enabled and p.enabled and (u.config -> '`+hostMember+`' -> 'autoSync') = 'true'
				  and coalesce((p.manifest -> 'capabilities' ->> 'userReadSync')::boolean, false) and `+connectedSQL+`
				  and ($2::uuid is null or u.id > $2) order by u.id limit $3`, d.Plugin, d.After, usersAtOnce)
			if err != nil {
				return err
			}
			if all, err = pgx.CollectRows(rows, pgx.RowToStructByName[mine]); err != nil {
				return err
			}
		}
		var b pgx.Batch
		ids, err := enqueueFor(&b, syncColumn, new(scheduledPriority), all)
		if err != nil {
			return err
		}
		var last *uuid.UUID
		if len(all) == usersAtOnce {
			last = &all[usersAtOnce-1].ID
		}
		b.Queue(`update plugin_schedule set after_id = $2, next_at = case when $2::uuid is null then $3 else next_at end
			where tenant_id = app.tenant() and plugin_id = $1`, d.Plugin, last, times.Next(now))
		if err := tx.SendBatch(ctx, &b).Close(); err != nil {
			return err
		}
		started = len(ids())
		return nil
	})
	if err != nil {
		return 0, err
	}
	return started, nil
}
