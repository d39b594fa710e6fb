package metric

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
)

// slots is the number of buckets of the histogram of durations.
const slots = 96

// sums are the columns of figures, over rows of task_metric.
const sums = `sum(succeeded)::bigint as succeeded, sum(failed)::bigint as failed, sum(timed)::bigint as timed, sum(duration_ms)::bigint as duration_ms,
	min(min_ms) as min_ms, max(max_ms) as max_ms, sum(items)::bigint as items, sum(bytes)::bigint as bytes`

// kept selects the rows within the retention period.
const kept = "from task_metric where tenant_id = app.tenant() and hour >= app.task_metrics_since(app.tenant())"

// byTypeSQL sums up the histograms bucket by bucket: unnesting them takes ten times as long.
func byTypeSQL() string {
	durations := make([]string, slots)
	for i := range durations {
		durations[i] = fmt.Sprintf("sum(durations[%d])", i+1)
	}
	return "select type, " + sums + `, min(hour) as since, sum(retried)::bigint as retried, sum(waited)::bigint as waited, sum(wait_ms)::bigint as wait_ms,
		array[` + strings.Join(durations, ", ") + "]::bigint[] as durations " + kept + " group by type order by type"
}

// errorsSQL selects the last failure of each type. It is a separate query: ordered by time, the rows above would be
// sorted with their histograms. Errors may name files: callers from whom series are hidden get only the times. Of tasks
// for one user ($1), only administrators get the errors.
const errorsSQL = "select distinct on (type) type, case when app.limited() or type = any($1) and not app.administers() then '' else last_error end as last_error, last_error_at " +
	kept + " and last_error_at is not null order by type, last_error_at desc"

const queueSQL = `select count(*) filter (where status = 'pending') as pending, count(*) filter (where status = 'running' and lease_until < now()) as stale,
	count(*) filter (where status = 'running' and (lease_until < now()) is not true) as running,
	(extract(epoch from now() - min(created_at) filter (where status = 'pending' and not ` + task.PutOffSQL + `)) * 1000)::bigint as oldest_ms
	from task t where tenant_id = app.tenant() and status in ('pending', 'running')`

// tasks returns the metrics and the current queue in one round trip.
func tasks(ctx context.Context, d *db.DB) (*Tasks, error) {
	var b pgx.Batch
	var rows []typeRow
	var failures []failure
	var queue *Queue
	out := Tasks{ByType: []Type{}}
	setting.Value(&b, setting.TaskMetricsDays, &out.Retention)
	db.All(&b, &rows, byTypeSQL())
	db.All(&b, &failures, errorsSQL, task.Personal)
	db.One(&b, &queue, queueSQL)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	out.UpdatedAt, out.Queue = time.Now().UTC(), *queue
	out.Summary = summarize(rows, out.UpdatedAt)
	last := map[string]failure{}
	for _, f := range failures {
		last[f.Type] = f
	}
	for i := range rows {
		out.ByType = append(out.ByType, rows[i].record(last[rows[i].Type]))
	}
	return &out, nil
}

// historySQL selects the metrics per $1 (hour or day) since $2, for one type or, for "", all.
const historySQL = "select date_trunc($1, hour, 'UTC') as period, " + sums + " " + kept + " and hour >= $2 and ($3 = '' or type = $3) group by 1 order by 1"

// pointRow holds the sums of an hour or day.
type pointRow struct {
	figures
	Period time.Time `db:"period"`
}

// history returns the metrics of the last days, in steps of an hour or a day.
func history(ctx context.Context, d *db.DB, days int, granularity, taskType string) (*History, error) {
	step := time.Hour
	if granularity == "day" {
		step = 24 * time.Hour
	}
	out := History{To: time.Now().UTC(), Granularity: granularity, Points: []Point{}}
	out.From = out.To.Add(-time.Duration(days) * 24 * time.Hour).Truncate(step)
	rows, err := db.List[pointRow](ctx, d, historySQL, granularity, out.From, taskType)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		p := Point{PeriodStart: r.Period, Count: r.Succeeded + r.Failed, Succeeded: r.Succeeded, Failed: r.Failed, MinDurationMs: r.MinMs,
			MaxDurationMs: r.MaxMs, AvgDurationMs: average(r.DurationMs, r.Timed), ItemsProcessed: r.Items, BytesProcessed: r.Bytes}
		if taskType != "" {
			p.TaskType = &taskType
		}
		out.Points = append(out.Points, p)
	}
	return &out, nil
}

// turn blocks counting until the transaction ends, with the same lock as the counting function: both lock several rows.
const turn = "select pg_advisory_xact_lock(7269, hashtext(app.tenant()::text))"

// cleanUp deletes the rows outside the retention period.
func cleanUp(ctx context.Context, d *db.DB) (*Cleaned, error) {
	var b pgx.Batch
	var out Cleaned
	setting.Value(&b, setting.TaskMetricsDays, &out.RetentionDays)
	b.Queue(turn)
	db.Affected(&b, &out.DeletedCount, "delete from task_metric where tenant_id = app.tenant() and hour < app.task_metrics_since(app.tenant())")
	db.Value(&b, &out.OldestRemaining, "select min(hour) from task_metric where tenant_id = app.tenant()")
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	return &out, nil
}

// removeAll deletes all metrics of the tenant.
func removeAll(ctx context.Context, d *db.DB) (*Removed, error) {
	var b pgx.Batch
	var out Removed
	b.Queue(turn)
	db.Affected(&b, &out.DeletedCount, "delete from task_metric where tenant_id = app.tenant()")
	return &out, d.Run(ctx, &b)
}

// Forget deletes the rows of every tenant outside its retention period, and returns their number. The scheduler calls
// it.
func Forget(ctx context.Context, system *db.DB) (int64, error) {
	tag, err := system.Pool().Exec(ctx, `with kept as materialized (select id, app.task_metrics_since(id) as since from tenant)
		delete from task_metric m using kept k where m.tenant_id = k.id and m.hour < k.since`)
	if err != nil {
		return 0, fmt.Errorf("delete old task metrics: %w", err)
	}
	return tag.RowsAffected(), nil
}
