package scan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/schedule"
	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/format/cronexpr"
	"github.com/longbox/longbox/shared/platform/db"
)

type due struct {
	Tenant   uuid.UUID `db:"tenant_id"`
	ID       uuid.UUID `db:"id"`
	Mode     string    `db:"scan_mode"`
	Cron     string    `db:"scan_cron"`
	Timezone string    `db:"scan_timezone"`
}

// served excludes the libraries of tenants that are suspended or being deleted. Scans missed meanwhile run once when
// the tenant is active again.
const served = " and exists (select from tenant t where t.id = library.tenant_id and t.status = 'active')"

const dueColumns = "tenant_id, id, scan_mode, coalesce(scan_cron, '') as scan_cron, coalesce(nullif(scan_timezone, ''), (" +
	"select value from setting s where s.tenant_id = library.tenant_id and s.key = '" + setting.SchedulerZone + "'), '') as scan_timezone"

// Due starts the due scans of every tenant, and sets the next time of each. Concurrent calls are safe: the due time is
// moved in the transaction that queues the scan.
func Due(ctx context.Context, system *db.DB, now time.Time) (int, error) {
	moved := followZone(ctx, system, now)
	all, err := find(ctx, system, batch, "next_scan_at <= $1 and is_active and scan_enabled"+served+" order by next_scan_at", now)
	if err != nil {
		return 0, errors.Join(moved, err)
	}
	started, err := startAll(ctx, system, all, now, func(d due) (*time.Time, error) {
		times, err := cronexpr.Parse(d.Cron, d.Timezone)
		if err != nil {
			return nil, err
		}
		return new(times.Next(now)), nil
	})
	return started, errors.Join(moved, err)
}

// followZone recomputes the next scans of libraries without their own time zone, after their tenant's zone has changed.
// Scans already due still run.
func followZone(ctx context.Context, system *db.DB, now time.Time) error {
	return schedule.Changed(ctx, system, setting.SchedulerZone, func(ctx context.Context, tx pgx.Tx, zone string) error {
		rows, err := tx.Query(ctx, `select id, scan_cron from library where tenant_id = app.tenant() and coalesce(scan_timezone, '') = ''
			and scan_cron is not null and next_scan_at > $1 order by id for update`, now)
		if err != nil {
			return err
		}
		var id uuid.UUID
		var cron string
		var ids []uuid.UUID
		var times []time.Time
		_, err = pgx.ForEachRow(rows, []any{&id, &cron}, func() error {
			parsed, err := cronexpr.Parse(cron, zone)
			if err != nil { // one library's error must not keep the others in the old zone
				slog.Error("cannot compute the next scan of a library; its time is unchanged", "library", id, "cron", cron, "zone", zone, "error", err)
				return nil
			}
			ids, times = append(ids, id), append(times, parsed.Next(now))
			return nil
		})
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `update library l set next_scan_at = u.at from unnest($1::uuid[], $2::timestamptz[]) as u(id, at)
			where l.tenant_id = app.tenant() and l.id = u.id`, ids, times)
		return err
	})
}

// OnStart queues a scan of every library that is configured to be scanned at system start, except those in done, to
// which it adds the others. So it can be called again after an error.
func OnStart(ctx context.Context, system *db.DB, done map[uuid.UUID]bool) (int, error) {
	return onStart(ctx, system, batch, done)
}

func onStart(ctx context.Context, system *db.DB, limit int, done map[uuid.UUID]bool) (int, error) {
	return startActive(ctx, system, limit, done, "", "scan_on_start")
}

// Resume queues a scan of every active library of a tenant that was suspended: notifications of the store were ignored
// meanwhile.
func Resume(ctx context.Context, system *db.DB, tenant uuid.UUID) error {
	_, err := startActive(ctx, system, batch, map[uuid.UUID]bool{}, Normal, "tenant_id = $3", tenant)
	return err
}

// batch is the number of libraries per query.
const batch = 1000

// startActive queues scans of the active libraries that match a condition, whose arguments begin with $3: in the given
// mode, or if that is empty in each library's own. It leaves out the libraries in done, and adds the others to it.
func startActive(ctx context.Context, system *db.DB, limit int, done map[uuid.UUID]bool, mode, only string, args ...any) (started int, failures error) {
	var last due
	for {
		all, err := find(ctx, system, limit, only+" and is_active and (tenant_id, id) > ($1, $2)"+served+" order by tenant_id, id",
			append([]any{last.Tenant, last.ID}, args...)...)
		if err != nil {
			return started, errors.Join(failures, err)
		}
		for _, d := range all {
			if done[d.ID] {
				continue
			}
			d.Mode = cmp.Or(mode, d.Mode)
			n, err := startAll(ctx, system, []due{d}, time.Time{}, nil)
			started, failures = started+n, errors.Join(failures, err)
			done[d.ID] = err == nil
		}
		if len(all) < limit {
			return started, failures
		}
		last = all[len(all)-1]
	}
}

func find(ctx context.Context, system *db.DB, limit int, where string, args ...any) ([]due, error) {
	rows, err := system.Pool().Query(ctx, "select "+dueColumns+" from library where "+where+" limit "+strconv.Itoa(limit), args...)
	if err != nil {
		return nil, fmt.Errorf("find due scans: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[due])
	if err != nil {
		return nil, fmt.Errorf("find due scans: %w", err)
	}
	return all, nil
}

func startAll(ctx context.Context, system *db.DB, all []due, now time.Time, next func(due) (*time.Time, error)) (int, error) {
	started := 0
	var failures error
	for _, d := range all {
		ok, err := startDue(ctx, system, d, now, next)
		if err != nil { // one tenant's error must not keep the others from being scanned
			failures = errors.Join(failures, fmt.Errorf("library %s: %w", d.ID, err))
			continue
		}
		if ok {
			started++
			slog.Info("scan queued", "tenant", d.Tenant, "library", d.ID, "mode", d.Mode)
		}
	}
	return started, failures
}

func startDue(ctx context.Context, system *db.DB, d due, now time.Time, next func(due) (*time.Time, error)) (bool, error) {
	started := false
	err := system.Tx(db.In(ctx, db.Tenant(d.Tenant)), func(ctx context.Context, tx pgx.Tx) error {
		if next != nil {
			at, err := next(d)
			if err != nil {
				return err
			}
			// Start looks for the unfinished scan, whose worker locks it before the library: so must this.
			if err := task.Lock(ctx, tx, dedupeKey(d.ID)); err != nil {
				return err
			}
			tag, err := tx.Exec(ctx, "update library set next_scan_at = $2 where tenant_id = app.tenant() and id = $1 and next_scan_at <= $3", d.ID, at, now)
			if err != nil || tag.RowsAffected() == 0 {
				return err // another scheduler was first
			}
		}
		var err error
		started, err = schedule.Add(func(b *pgx.Batch, fresh uuid.UUID, id *uuid.UUID) error {
			if next == nil { // whatever happened before now must be found
				return StartAgain(b, d.ID, Params{Mode: d.Mode}, fresh, id)
			}
			return Start(b, d.ID, Params{Mode: d.Mode}, fresh, id)
		}).In(ctx, tx)
		return err
	})
	return started && err == nil, err
}
