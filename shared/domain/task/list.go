package task

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Filter selects tasks; a zero field does not restrict.
type Filter struct {
	Status    string
	Type      string
	LibraryID *uuid.UUID
}

// taskRow is a Task as it is read from the database.
type taskRow struct {
	Task
	Current int64 `db:"progress_current"`
	Total   int64 `db:"progress_total"`
}

const (
	// The params, result and error of a task for a whole library may name any file, so callers from whom series are
	// hidden do not see them. Those of a task for a user are visible to that user and administrators.
	about       = "app.limited() and t.series_id is null and t.book_id is null or t.params ->> 'userId' <> app.account()::text and not app.administers()"
	taskColumns = `t.id, t.type, t.status, t.priority, case when ` + about + ` then '{}' else t.params end as params, t.library_id, l.name as library_name,
		t.series_id, s.title as series_title, t.book_id, b.title as book_title, t.parent_id, t.attempts, t.max_attempts,
		t.scheduled_for, t.locked_by, t.lease_until, ` + counts + `,
		case when ` + about + ` then null else t.result end as result, case when ` + about + ` then null else t.last_error end as last_error, t.created_at, t.started_at, t.completed_at`
	taskNames = ` left join library l on l.tenant_id = t.tenant_id and l.id = t.library_id
		left join series s on s.tenant_id = t.tenant_id and s.id = t.series_id
		left join book b on b.tenant_id = t.tenant_id and b.id = t.book_id` + countedBy
	taskFilter = `tenant_id = app.tenant() and ($1 = '' or status = $1) and ($2 = '' or type = $2) and ($3::uuid is null or library_id = $3)`
)

// task returns the record to show.
func (r *taskRow) task() Task {
	t := r.Task
	t.Progress = Progress{r.Current, r.Total, describe(t.TaskType, t.Status, r.Current, r.Total)}
	return t
}

// list returns a page of the tasks, newest first, and their total in one round trip.
func list(ctx context.Context, d *db.DB, f Filter, p httpapi.Paging) ([]Task, int64, error) {
	var b pgx.Batch
	var rows []taskRow
	var total int64
	db.All(&b, &rows, "select "+taskColumns+" from (select * from task where "+taskFilter+
		" order by created_at desc, id limit $4 offset $5) t"+taskNames+" order by t.created_at desc, t.id",
		f.Status, f.Type, f.LibraryID, p.Limit(), p.Offset())
	db.Value(&b, &total, "select count(*) from task where "+taskFilter, f.Status, f.Type, f.LibraryID)
	if err := d.Run(ctx, &b); err != nil {
		return nil, 0, err
	}
	out := make([]Task, len(rows))
	for i := range rows {
		out[i] = rows[i].task()
	}
	return out, total, nil
}

// get returns one task, or nil.
func get(ctx context.Context, d *db.DB, id uuid.UUID) (*Task, error) {
	row, err := db.Get[taskRow](ctx, d, "select "+taskColumns+" from task t"+taskNames+" where t.tenant_id = app.tenant() and t.id = $1", id)
	if err != nil || row == nil {
		return nil, err
	}
	return new(row.task()), nil
}

// TypeStats counts tasks by status. A running task whose lease has expired counts as stale, not running.
type TypeStats struct {
	Pending   int64 `json:"pending"`
	Running   int64 `json:"running"`
	Completed int64 `json:"completed"`
	Failed    int64 `json:"failed"`
	Cancelled int64 `json:"cancelled"`
	Stale     int64 `json:"stale" doc:"Running tasks whose worker has not been heard from for longer than its lease"`
	Total     int64 `json:"total"`
}

// Stats are the counts of all tasks, and per type.
type Stats struct {
	TypeStats
	ByType map[string]TypeStats `json:"byType"`
}

type statsRow struct {
	Type   string `db:"type"`
	Status string `db:"status"`
	Count  int64  `db:"n"`
}

func (s *TypeStats) add(status string, n int64) {
	switch status {
	case Pending:
		s.Pending += n
	case Running:
		s.Running += n
	case Completed:
		s.Completed += n
	case Failed:
		s.Failed += n
	case Cancelled:
		s.Cancelled += n
	default:
		s.Stale += n
	}
	s.Total += n
}

func stats(ctx context.Context, d *db.DB) (*Stats, error) {
	rows, err := db.List[statsRow](ctx, d, `select type, case when status = 'running' and lease_until < now() then 'stale' else status end as status,
		count(*) as n from task where tenant_id = app.tenant() group by 1, 2`)
	if err != nil {
		return nil, err
	}
	out := &Stats{ByType: map[string]TypeStats{}}
	for _, r := range rows {
		byType := out.ByType[r.Type]
		byType.add(r.Status, r.Count)
		out.ByType[r.Type] = byType
		out.add(r.Status, r.Count)
	}
	return out, nil
}

// notLast excludes from the tasks t, of each library that is not deleted:
//   - the newest scan, which is the library's scan state,
//   - the newest completed scan of the whole library, since which later file moves are looked for (app.scans_since): a
//     scan whose files were gone is that one after a day,
//   - scans since then that have not seen all files: books whose files are gone must not be purged.
const notLast = ` and (t.type <> 'scan_library' or t.library_id is null
	or not exists (select from library l where l.tenant_id = t.tenant_id and l.id = t.library_id) or exists (select from task n
	where n.tenant_id = t.tenant_id and n.library_id = t.library_id and n.type = t.type and n.id > t.id)
	and ((t.status <> 'completed' or coalesce(t.params ->> 'path', '') <> '')
	    and not exists (select from scan s where s.tenant_id = t.tenant_id and s.id = t.id and s.files_refused + s.unlisted > 0)
	  or exists (select from task n
	  where n.tenant_id = t.tenant_id and n.library_id = t.library_id and n.type = t.type and n.id > t.id
	    and n.status = 'completed' and coalesce(n.params ->> 'path', '') = ''
	    and not exists (select from scan s where s.tenant_id = n.tenant_id and s.id = n.id and s.files_gone > 0 and n.completed_at >= now() - interval '1 day'))))`

// purgeTime limits a request to delete ended tasks.
const purgeTime = 20 * time.Second

var errManyTasks = &fault.Error{Code: fault.Unavailable, RetryAfter: time.Second,
	Message: "There are too many tasks to delete in one request; send it again to continue"}

// purge deletes the tasks that ended at least that many days ago, in steps. Those that are locked stay.
func purge(ctx context.Context, d *db.DB, days int) (deleted int64, err error) {
	return purgeIn(ctx, d, days, deleteStep, time.Now().Add(purgeTime))
}

func purgeIn(ctx context.Context, d *db.DB, days int, step int64, end time.Time) (deleted int64, err error) {
	for {
		var b pgx.Batch
		var n int64
		db.NoStatementTimeout(&b)
		db.Affected(&b, &n, `delete from task where tenant_id = app.tenant() and id = any(array(select t.id from task t
			where t.tenant_id = app.tenant() and t.completed_at <= now() - $1::interval`+notLast+` limit $2 for update of t skip locked))`,
			time.Duration(days)*24*time.Hour, step)
		if err := d.Run(ctx, &b); err != nil {
			return 0, err
		}
		if deleted += n; n < step {
			return deleted, nil
		}
		if time.Now().After(end) {
			return 0, errManyTasks
		}
	}
}
