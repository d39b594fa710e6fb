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

// A source may have announced more than can be deleted while somebody waits. One that goes is of no plugin from then
// on: that is all that is done at once, and nothing shows or polls it. The scheduler deletes what it has announced,
// step by step, and at last the source.

// QueueRemoval has the sources of a plugin go, which is to be deleted next.
func QueueRemoval(b *pgx.Batch, plugin uuid.UUID) { queueGone(b, "s.plugin_id = $1", plugin) }

// queueGone has sources s go that meet a condition. They are locked in the order in which reset locks them.
func queueGone(b *pgx.Batch, condition string, args ...any) {
	b.Queue(`update release_source set plugin_id = null, enabled = false, next_at = null, updated_at = now()
		where tenant_id = app.tenant() and id in (select s.id from release_source s where s.tenant_id = app.tenant() and `+condition+` order by s.id for update)`, args...)
}

const (
	sweepStep = 2000 // releases that are deleted at once
	sweepGone = 200  // sources that are looked for at once
)

// Sweep deletes what sources have announced that have gone, of every tenant, for about so long; the next call goes on.
// Several schedulers may call it at once. It tells how many releases it has deleted.
func Sweep(ctx context.Context, system *db.DB, within time.Duration) (deleted int64, err error) {
	until := time.Now().Add(within)
	last := goneSource{At: time.Unix(0, 0)}
	for full := true; full && time.Now().Before(until); {
		all, failure := goneAfter(ctx, system, last)
		if failure != nil {
			return deleted, errors.Join(err, fmt.Errorf("find sources that have gone: %w", failure))
		}
		for _, s := range all {
			for more := true; more && time.Now().Before(until); {
				n, failure := sweep(db.In(ctx, db.Tenant(s.Tenant)), system, s.ID)
				if failure != nil { // the others go on
					err = errors.Join(err, fmt.Errorf("delete what the source %s of the tenant %s has announced: %w", s.ID, s.Tenant, failure))
				}
				deleted, more = deleted+n, n == sweepStep
			}
			last = s
		}
		full = len(all) == sweepGone
	}
	if deleted > 0 {
		slog.Info("releases of sources that have gone were deleted", "count", deleted)
	}
	return deleted, err
}

// goneSource is a source that has gone, and when.
type goneSource struct {
	Tenant uuid.UUID `db:"tenant_id"`
	ID     uuid.UUID `db:"id"`
	At     time.Time `db:"updated_at"`
}

// goneAfter are some of the sources that have gone, those first that went first, after one of them.
func goneAfter(ctx context.Context, system *db.DB, last goneSource) ([]goneSource, error) {
	rows, err := system.Pool().Query(ctx, `select tenant_id, id, updated_at from release_source where plugin_id is null and (updated_at, id) > ($2, $3)
		order by updated_at, id limit $1`, sweepGone, last.At, last.ID)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[goneSource])
}

// sweep deletes some of what a source has announced that has gone, and the source where nothing is left. It waits for
// nobody, so that nobody who holds some of it waits for this in turn.
func sweep(ctx context.Context, system *db.DB, source uuid.UUID) (deleted int64, err error) {
	err = system.Tx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `delete from release where tenant_id = app.tenant() and id in (select r.id from release r
			where r.tenant_id = app.tenant() and r.source_id = $1 order by r.created_at, r.id limit $2 for update skip locked)`, source, sweepStep)
		if err != nil || tag.RowsAffected() == sweepStep {
			deleted = tag.RowsAffected()
			return err
		}
		deleted = tag.RowsAffected()
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

// forgetGone deletes of releases that come those that a source which has gone has announced in the same series by the
// same torrent: they would keep the new ones out until they are swept.
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

// trimStep is how many releases are forgotten at once; a poll brings fewer.
const trimStep = 5000

// trim forgets releases of a source, and of all, where there are too many: first those that are ignored, which few look
// at, then the oldest. A poll has nobody to be told that there is no room, and what is new counts for more. What is
// more than a step, or somebody else is changing, stays until the next time.
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

// tooManySQL selects of the releases r that meet a condition those of which there are more than $1, $2 at most.
func tooManySQL(condition string) string {
	where := "from release r where r.tenant_id = app.tenant() and " + condition
	return "select r.id " + where + " order by r.state <> '" + ignored + "', r.created_at, r.id limit (select least(greatest(count(*) - $1, 0), $2) " + where + ")"
}
