package release

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
)

// A source may have announced more releases than can be deleted while somebody waits. Removing a source only detaches
// it from its plugin: then nothing shows or polls it. The scheduler deletes its releases in steps, and finally the
// source.

// QueueRemoval removes the sources of a plugin, which is deleted next.
func QueueRemoval(b *pgx.Batch, plugin uuid.UUID) { queueGone(b, "s.plugin_id = $1", plugin) }

// queueGone removes the sources s that match a condition. They are locked in the same order as in reset.
func queueGone(b *pgx.Batch, condition string, args ...any) {
	b.Queue(`update release_source set plugin_id = null, enabled = false, next_at = null, updated_at = now()
		where tenant_id = app.tenant() and id in (select s.id from release_source s where s.tenant_id = app.tenant() and `+condition+` order by s.id for update)`, args...)
}

const (
	sweepStep = 2000 // releases per delete
	sweepGone = 200  // sources per select
)

// Sweep deletes the releases of removed sources, of every tenant, for about the given time; the next call continues.
// Concurrent calls are safe. It returns the number of deleted releases.
func Sweep(ctx context.Context, system *db.DB, within time.Duration) (deleted int64, err error) {
	until := time.Now().Add(within)
	last := goneSource{At: time.Unix(0, 0)}
	for full := true; full && time.Now().Before(until); {
		all, failure := goneAfter(ctx, system, last)
		if failure != nil {
			return deleted, errors.Join(err, fmt.Errorf("find removed release sources: %w", failure))
		}
		for _, s := range all {
			for more := true; more && time.Now().Before(until); {
				n, failure := sweep(db.In(ctx, db.Tenant(s.Tenant)), system, s.ID)
				if failure != nil { // continues with the others
					err = errors.Join(err, fmt.Errorf("delete releases of source %s of tenant %s: %w", s.ID, s.Tenant, failure))
				}
				deleted, more = deleted+n, n == sweepStep
			}
			last = s
		}
		full = len(all) == sweepGone
	}
	if deleted > 0 {
		slog.Info("releases of removed sources deleted", "count", deleted)
	}
	return deleted, err
}

// goneSource is a removed source, and when it was removed.
type goneSource struct {
	Tenant uuid.UUID `db:"tenant_id"`
	ID     uuid.UUID `db:"id"`
	At     time.Time `db:"updated_at"`
}

// goneAfter returns the next batch of removed sources, oldest first.
func goneAfter(ctx context.Context, system *db.DB, last goneSource) ([]goneSource, error) {
	rows, err := system.Pool().Query(ctx, `select tenant_id, id, updated_at from release_source where plugin_id is null and (updated_at, id) > ($2, $3)
		order by updated_at, id limit $1`, sweepGone, last.At, last.ID)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[goneSource])
}

// sweep deletes a batch of a removed source's releases, and the source once none are left. It skips locked rows, so
// that it cannot deadlock.
func sweep(ctx context.Context, system *db.DB, source uuid.UUID) (deleted int64, err error) {
	err = system.Tx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `delete from release where tenant_id = app.tenant() and id in (select r.id from release r
			where r.tenant_id = app.tenant() and r.source_id = $1 order by r.created_at, r.id limit $2 for update skip locked)`, source, sweepStep)
		if deleted = tag.RowsAffected(); err != nil || deleted == sweepStep {
			return err
		}
		_, err = tx.Exec(ctx, `delete from release_source where tenant_id = app.tenant() and id in (select s.id from release_source s
			where s.tenant_id = app.tenant() and s.id = $1 and s.plugin_id is null
			  and not exists (select from release r where r.tenant_id = app.tenant() and r.source_id = s.id) for update skip locked)`, source)
		return err
	})
	if err != nil {
		return 0, err
	}
	return deleted, nil
}

// forgetGone deletes releases of removed sources with the same series and torrent as new ones: they would block the new
// ones until they are swept.
func forgetGone(ctx context.Context, tx pgx.Tx, all []*candidate) error {
	var series []uuid.UUID
	var info []string
	for _, c := range all {
		if c.Info != nil {
			series, info = append(series, c.SeriesID), append(info, *c.Info)
		}
	}
	if info == nil {
		return nil
	}
	_, err := tx.Exec(ctx, `delete from release where tenant_id = app.tenant() and id in (select r.id from unnest($1::uuid[], $2::text[]) u (series, info)
		join release r on r.tenant_id = app.tenant() and r.series_id = u.series and r.info = u.info
		join release_source g on g.tenant_id = app.tenant() and g.id = r.source_id and g.plugin_id is null order by r.id for update of r)`, series, info)
	return err
}

// trimStep is the maximum number of releases deleted at once; a poll adds fewer.
const trimStep = 5000

// trim deletes releases beyond the limits, per source and in total: first ignored ones, which few people look at, then
// the oldest. A poll cannot report that there is no room, and new releases matter more. What exceeds a step, or is
// locked, stays until the next time.
func (p *Poll) trim(ctx context.Context, tx pgx.Tx) error {
	var b pgx.Batch
	queue := func(of string, args ...any) {
		b.Queue(`delete from release where tenant_id = app.tenant() and id in (select l.id from release l
			where l.tenant_id = app.tenant() and l.id in (`+tooManySQL(of)+`) order by l.id for update skip locked)`, args...)
	}
	queue("r.source_id = $3", p.kept, p.trimStep, p.ID)
	queue(there, p.keptOfAll, p.trimStep)
	return tx.SendBatch(ctx, &b).Close()
}

// tooManySQL selects, from the releases r that match a condition, those in excess of $1, at most $2.
func tooManySQL(condition string) string {
	where := "from release r where r.tenant_id = app.tenant() and " + condition
	return "select r.id " + where + " order by r.state <> '" + ignored + "', r.created_at, r.id limit (select least(greatest(count(*) - $1, 0), $2) " + where + ")"
}
