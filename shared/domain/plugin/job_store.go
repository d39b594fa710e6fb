package plugin

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
)

// mostJobs is the maximum number of jobs per library.
const mostJobs = 20

// Columns of a Job. If a run has not recorded its end, its task is consulted: a killed worker or a cancelled task
// records nothing. A task's error may name series, so callers from whom series are hidden do not get it.
const (
	open       = "j.last_run_status in ('pending', 'running')"
	jobColumns = `j.id, j.library_id, j.name, j.enabled, j.cron_schedule, j.timezone, j.config, j.last_run_at, j.created_at, j.updated_at,
		case when ` + open + ` then coalesce(nullif(t.status, 'pending'), case when t.id is null then 'cancelled' else j.last_run_status end)
		  else j.last_run_status end as last_run_status,
		case when app.limited() then null when ` + open + ` then t.last_error else j.last_run_message end as last_run_message`
	itsTask = " left join task t on t.tenant_id = j.tenant_id and t.id = j.task_id"
	jobIs   = "tenant_id = app.tenant() and library_id = $1 and id = $2"
)

// queueLibrary asks whether a library exists.
func queueLibrary(b *pgx.Batch, exists *bool, id uuid.UUID) {
	db.Value(b, exists, "select exists (select from library where tenant_id = app.tenant() and id = $1)", id)
}

func listJobs(ctx context.Context, d *db.DB, library uuid.UUID, limit, offset int) (page []Job, total int64, err error) {
	var b pgx.Batch
	var exists bool
	queueLibrary(&b, &exists, library)
	db.All(&b, &page, "select "+jobColumns+" from library_job j"+itsTask+" where j.tenant_id = app.tenant() and j.library_id = $1 order by j.created_at, j.id limit $2 offset $3",
		library, limit, offset)
	db.Value(&b, &total, "select count(*) from library_job where tenant_id = app.tenant() and library_id = $1", library)
	if err := d.Run(ctx, &b); err != nil {
		return nil, 0, err
	}
	if !exists {
		return nil, 0, fault.Missing("Library")
	}
	return page, total, nil
}

func getJob(ctx context.Context, d *db.DB, library, id uuid.UUID) (*Job, error) {
	j, err := db.Get[Job](ctx, d, "select "+jobColumns+" from library_job j"+itsTask+" where j.tenant_id = app.tenant() and j.library_id = $1 and j.id = $2", library, id)
	if err == nil && j == nil {
		err = fault.Missing("Job")
	}
	return j, err
}

// servesSQL is a condition: the plugin whose name is in a parameter may be asked about library $1.
func servesSQL(name string) string {
	return "exists (select from plugin p where p.tenant_id = app.tenant() and p.name = " + name + " and p.plugin_type = '" + system + "' and (p.library_ids = '{}' or $1 = any(p.library_ids)))"
}

// checkProvider returns why a plugin cannot be a job's, or nil.
func checkProvider(p *Plugin, name string, library uuid.UUID) error {
	switch {
	case p == nil || p.PluginType != system:
		return fault.Invalid("config.provider", "there is no plugin %q", name)
	case !p.serves(library):
		return fault.Invalid("config.provider", "the plugin %s does not serve this library", name)
	}
	return nil
}

// addJob stores a new job. The scheduler computes its due time.
func addJob(ctx context.Context, d *db.DB, j *Job) (*Job, error) {
	var b pgx.Batch
	var exists bool
	var p *runnable
	var out *Job
	b.Queue("select from library where tenant_id = app.tenant() and id = $1 for no key update", j.LibraryID) // nobody else adds one until commit
	queueLibrary(&b, &exists, j.LibraryID)
	db.One(&b, &p, selectNamed, j.Config.plugin())
	db.One(&b, &out, `with j as (insert into library_job (tenant_id, id, library_id, name, enabled, cron_schedule, timezone, config)
		  select app.tenant(), $2, l.id, $3, $4, $5, $6, $7 from library l where l.tenant_id = app.tenant() and l.id = $1 and `+servesSQL("$8")+`
		    and (select count(*) from library_job o where o.tenant_id = app.tenant() and o.library_id = l.id) < `+fmt.Sprint(mostJobs)+`
		  returning *) select `+jobColumns+" from j"+itsTask, j.LibraryID, j.ID, j.Name, j.Enabled, j.CronSchedule, j.Timezone, j.Config, j.Config.plugin())
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if !exists {
		return nil, fault.Missing("Library")
	}
	if err := checkProvider(p.plugin(), j.Config.plugin(), j.LibraryID); err != nil {
		return nil, err
	}
	if out == nil {
		return nil, fault.New(fault.Conflict, "The library already has %d jobs, the most it can have; delete one first", mostJobs)
	}
	return out, nil
}

// changeJob changes a job. A running run keeps its config.
func changeJob(ctx context.Context, d *db.DB, library, id uuid.UUID, c *JobChange) (*Job, error) {
	var b pgx.Batch
	var exists bool
	var p *runnable
	var out *Job
	name := ""
	if c.Config.Value != nil {
		name = c.Config.Value.plugin()
	}
	db.Value(&b, &exists, "select exists (select from library_job where "+jobIs+")", library, id)
	db.One(&b, &p, selectNamed, name)
	db.One(&b, &out, `with j as (update library_job set updated_at = now(), config = coalesce($3, config),
		    name = case when $4 then coalesce(nullif($5, ''), $6 || substr(coalesce($3, config) ->> 'provider', length('plugin:') + 1)) else name end,
		    cron_schedule = coalesce($7, cron_schedule), timezone = case when $8 then $9 else timezone end, enabled = coalesce($10, enabled),
		    next_run_at = case when $7 is not null or $8 or $10 is not null then null else next_run_at end
		  where `+jobIs+` and ($3::jsonb is null or `+servesSQL("$11")+`)
		  returning *) select `+jobColumns+" from j"+itsTask,
		library, id, c.Config.Value, c.Name.Set, c.Name.Value, nameless, c.CronSchedule.Value, c.Timezone.Set, c.Timezone.Value, c.Enabled.Value, name)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if exists && out == nil && c.Config.Value != nil {
		if err := checkProvider(p.plugin(), name, library); err != nil {
			return nil, err
		}
	}
	if out == nil {
		return nil, fault.Missing("Job")
	}
	return out, nil
}

// removeJob deletes a job and cancels its run; the caller publishes the events.
func removeJob(ctx context.Context, d *db.DB, library, id uuid.UUID) ([]events.Event, error) {
	gone, err := db.Get[struct {
		Task *uuid.UUID `db:"task_id"`
	}](ctx, d, "delete from library_job where "+jobIs+" returning case when last_run_status in ('pending', 'running') then task_id end as task_id", library, id)
	if err != nil {
		return nil, err
	}
	if gone == nil {
		return nil, fault.Missing("Job")
	}
	if gone.Task == nil {
		return nil, nil
	}
	told, err := task.Cancel(ctx, d, *gone.Task)
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.BadRequest) { // it has already ended
		return nil, nil
	}
	return told, err
}

// jobParams are the parameters of a job's task.
type jobParams struct {
	JobID uuid.UUID `json:"jobId"`
}

// queueStart starts a run of a job; library, if not nil, must be the job's. started receives fresh, or the id of the
// unfinished run. The task is locked before the job, as by its worker.
func queueStart(b *pgx.Batch, library *uuid.UUID, job, fresh uuid.UUID, priority *int, started *uuid.UUID) error {
	err := task.AddFor(b, task.Spec{ID: fresh, Type: task.RefreshLibrary, Params: jobParams{job}, Priority: priority, DedupeKey: task.RefreshLibrary + ":" + job.String()},
		task.Found(`select j.library_id, null::uuid as series_id, null::uuid as book_id, '{}'::jsonb as params from library_job j
			where j.tenant_id = app.tenant() and j.id = $1 and ($2::uuid is null or j.library_id = $2)`, job, library), started)
	b.Queue(`update library_job set task_id = $2, last_run_at = now(), last_run_status = 'pending', last_run_message = null
		where tenant_id = app.tenant() and id = $1 and exists (select from task t where t.tenant_id = app.tenant() and t.id = $2)`, job, fresh)
	return err
}

// startJob is queueStart in its own round trip; NotFound if there is no such job.
func startJob(ctx context.Context, d *db.DB, library *uuid.UUID, job, fresh uuid.UUID, priority *int) (started uuid.UUID, err error) {
	var b pgx.Batch
	if err := queueStart(&b, library, job, fresh, priority, &started); err != nil {
		return uuid.Nil, err
	}
	err = d.Run(ctx, &b)
	if err == nil && started == uuid.Nil {
		err = fault.Missing("Job")
	}
	return started, err
}
