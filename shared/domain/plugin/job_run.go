package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// A run of a job goes through the series of its library, then through the books, in the order of their paths. It works
// for a while, then yields the worker to other tasks and continues after them. Its checkpoint is stored continuously,
// so that it also continues there after its worker was killed. Only one run per plugin works at a time.
const (
	runFor     = time.Minute      // before it yields the worker
	turnAfter  = 15 * time.Second // interval of checks whether another run of the plugin has ended
	atOnce     = 100              // items per batch
	mostFaults = 5                // in a row; then the run is retried later
	saveAfter  = time.Second
)

// refreshing is the checkpoint of a run. The config is the one at its start.
type refreshing struct {
	retries
	Library uuid.UUID `json:"library"`
	Config  JobConfig `json:"config"`
	Kind    int       `json:"kind"`  // index into kinds
	After   string    `json:"after"` // place within the kind; all items up to it are done, except those below
	Left    []item    `json:"left"`
	Counts  refreshed `json:"counts"`
}

// refreshed counts the results of a run.
type refreshed struct {
	Total          int64 `json:"total"`
	Updated        int64 `json:"updated"`
	Unchanged      int64 `json:"unchanged"`
	NoID           int64 `json:"skippedNoId"`
	RecentlySynced int64 `json:"skippedRecentlySynced"`
	NotFound       int64 `json:"notFound"`
	Failed         int64 `json:"failed"`
}

// done returns the number of processed items.
func (r *refreshed) done() int64 {
	return r.Updated + r.Unchanged + r.NoID + r.RecentlySynced + r.NotFound + r.Failed
}

// message returns the result for people.
func (r *refreshed) message() string {
	out := fmt.Sprintf("%d of %d updated, %d unchanged", r.Updated, r.done(), r.Unchanged)
	for _, c := range []struct {
		n    int64
		what string
	}{{r.NotFound, "not found"}, {r.NoID, "without an id from the plugin"}, {r.RecentlySynced, "recently synced"}, {r.Failed, "failed"}} {
		if c.n > 0 {
			out += fmt.Sprintf(", %d %s", c.n, c.what)
		}
	}
	return out
}

// refresh is a run while a worker executes it.
type refresh struct {
	*Runner
	held  task.Held
	job   uuid.UUID
	until time.Time // end of its turn

	plugin *Plugin
	only   []string // fields of the kind, nil for all

	mu     sync.Mutex
	at     refreshing
	saved  time.Time
	faults int   // in a row
	stop   error // why no more items are started
}

// Refresh handles refresh_library_metadata tasks.
func (r *Runner) Refresh(ctx context.Context, h task.Held) (any, error) {
	var in jobParams
	if err := json.Unmarshal(h.Params, &in); err != nil {
		return nil, fault.New(fault.BadRequest, "The task does not name a job")
	}
	w := &refresh{Runner: r, held: h, job: in.JobID, until: time.Now().Add(runFor)}
	err := w.begin(ctx)
	if err == nil {
		err = w.work(ctx)
	}
	switch {
	case err == nil:
		return &w.at.Counts, w.record(ctx, "completed", w.at.Counts.message())
	case ctx.Err() == nil && h.Last(err):
		return nil, errors.Join(err, w.record(ctx, "failed", fault.Line(fault.From(err).Message)))
	}
	return nil, err
}

// begin resumes the run from its checkpoint, or starts it.
func (w *refresh) begin(ctx context.Context) error {
	if w.held.Place != nil {
		return errors.Join(w.held.Resume(&w.at), w.record(ctx, task.Running, ""))
	}
	j, err := db.Get[struct {
		Library uuid.UUID `db:"library_id"`
		Config  JobConfig `db:"config"`
	}](ctx, w.Database, "select library_id, config from library_job where tenant_id = app.tenant() and id = $1", w.job)
	if err != nil {
		return err
	}
	if j == nil {
		return fault.Missing("Job")
	}
	w.at.Library, w.at.Config = j.Library, j.Config
	var b pgx.Batch
	counts := make([]int64, len(j.Config.kinds()))
	for i, kind := range j.Config.kinds() {
		of := "series where"
		if kind == "book" {
			of = "book where deleted_at is null and"
		}
		db.Value(&b, &counts[i], "select count(*) from "+of+" tenant_id = app.tenant() and library_id = $1", j.Library)
	}
	if err := w.Database.Run(ctx, &b); err != nil {
		return err
	}
	for _, n := range counts {
		w.at.Counts.Total += n
	}
	return errors.Join(w.record(ctx, task.Running, ""), w.save(ctx))
}

// record stores the status of the run in the job. NotFound if the job was deleted.
func (w *refresh) record(ctx context.Context, status, message string) error {
	n, err := db.Exec(ctx, w.Database, `update library_job set task_id = $2, last_run_status = $3, last_run_message = nullif($4, ''),
		last_run_at = case when $3 = 'running' and last_run_status is distinct from 'running' then now() else last_run_at end
		where tenant_id = app.tenant() and id = $1`, w.job, w.held.ID, status, message)
	if err == nil && n == 0 {
		err = fault.Missing("Job")
	}
	return err
}

// save stores the checkpoint and publishes the progress.
func (w *refresh) save(ctx context.Context) error {
	w.saved = time.Now()
	c := &w.at.Counts
	c.Total = max(c.Total, c.done()) // items may have been added
	var b pgx.Batch
	if err := task.QueueProgress(&b, w.held, c.done(), c.Total, &w.at); err != nil {
		return err
	}
	if err := w.Database.Run(ctx, &b); err != nil {
		return err
	}
	w.Publish(ctx, w.held.Tenant, task.ProgressEvent(w.held, c.done(), c.Total))
	return nil
}

// work runs until everything is done, or it is time to stop.
func (w *refresh) work(ctx context.Context) error {
	asking, cancel := patience(ctx)
	defer cancel()
	for w.at.Kind < len(w.at.Config.kinds()) {
		switch turn, err := w.prepare(ctx); {
		case err != nil:
			return err
		case !turn:
			return task.Later(&w.at, turnAfter/2+rand.N(turnAfter))
		}
		var g errgroup.Group
		g.SetLimit(int(w.at.Config.MaxConcurrency))
		for _, i := range slices.Clone(w.at.Left) {
			g.Go(func() error {
				if w.goesOn(ctx) {
					a, err := w.askAbout(asking, w.plugin.ID, w.kind(), &i, options{only: w.only})
					w.finish(ctx, asking, &i, a, err)
				}
				return nil
			})
		}
		_ = g.Wait() // errors are in w.stop
		over := w.stop != nil || task.MustPause(ctx) || time.Now().After(w.until)
		if over || time.Since(w.saved) > saveAfter {
			if err := errors.Join(ctx.Err(), w.save(ctx)); err != nil {
				return err
			}
		}
		switch {
		case w.stop != nil:
			return w.wait()
		case over:
			return task.Paused(&w.at)
		}
	}
	return w.save(ctx)
}

// take reads the plugin and takes its turn, unless another run has it. A separate statement locks the row: the next one
// then sees what other transactions committed while this one waited.
func (w *refresh) take(ctx context.Context) (p *runnable, turn bool, err error) {
	var b pgx.Batch
	name := w.at.Config.plugin()
	b.Queue("select from plugin where tenant_id = app.tenant() and name = $1 for no key update", name)
	b.Queue(`update plugin p set job_task = $2 where p.tenant_id = app.tenant() and p.name = $1 and p.job_task is distinct from $2
		and not exists (select from task t where t.tenant_id = app.tenant() and t.id = p.job_task and t.status in ('pending', 'running'))`, name, w.held.ID)
	db.Value(&b, &turn, "select exists (select from plugin where tenant_id = app.tenant() and name = $1 and job_task = $2)", name, w.held.ID)
	db.One(&b, &p, selectNamed, name)
	return p, turn, w.Database.Run(ctx, &b)
}

func (w *refresh) kind() string { return w.at.Config.kinds()[w.at.Kind] }

// prepare checks that the plugin can still be asked and that it is the run's turn, and reads the next batch if the last
// one is done.
func (w *refresh) prepare(ctx context.Context) (turn bool, err error) {
	p, turn, err := w.take(ctx)
	if err != nil {
		return false, err
	}
	if err := w.at.Config.plan(p.plugin(), w.at.Library); err != nil {
		return false, err
	}
	if !turn {
		return false, nil
	}
	w.plugin, w.only = &p.Plugin, w.at.Config.fields(w.kind())
	if len(w.at.Left) > 0 {
		return true, nil
	}
	var b pgx.Batch
	var next []candidate
	db.All(&b, &next, nextOf(w.kind()), append(w.at.Config.arguments(w.plugin, w.at.Library), w.at.After, atOnce)...)
	if err := w.Database.Run(ctx, &b); err != nil {
		return false, err
	}
	if len(next) == 0 {
		w.at.Kind, w.at.After = w.at.Kind+1, ""
		return true, nil
	}
	for _, c := range next {
		w.at.After = c.Place
		switch {
		case c.NoID:
			w.at.Counts.NoID++
		case c.Recent:
			w.at.Counts.RecentlySynced++
		default:
			w.at.Left = append(w.at.Left, c.item)
		}
	}
	return true, nil
}

// goesOn reports whether another item may be started.
func (w *refresh) goesOn(ctx context.Context) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stop == nil && ctx.Err() == nil && !task.MustPause(ctx) && time.Now().Before(w.until)
}

// finish records the result of an item: it is done, or it will be retried.
func (w *refresh) finish(ctx, asking context.Context, i *item, a *answer, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	place := slices.IndexFunc(w.at.Left, func(l item) bool { return l.ID == i.ID })
	c := &w.at.Counts
	limited, isLimit := errors.AsType[*limit](err)
	missing := fault.Is(err, fault.NotFound)
	switch {
	case ctx.Err() != nil:
		return
	case isLimit:
		w.at.Left[place].External, w.stop = limited.found, err
		return
	case fault.Is(err, fault.TooManyRequests):
		w.stop = err
		return
	// Interrupted, or changed concurrently.
	case err != nil && (asking.Err() != nil || fault.Is(err, fault.Conflict)) && i.Tries < mostRefusals:
		w.at.Left[place].Tries++
		return
	case missing:
		c.NotFound++
	case err != nil:
		c.Failed++
		if w.faults++; w.faults >= mostFaults {
			w.stop = err
		}
	case a.done == nil:
		c.NotFound++
	case len(a.done.AppliedFields) > 0:
		c.Updated++
	default:
		c.Unchanged++
	}
	if err == nil || missing {
		w.faults, w.at.Waits, w.at.Refusals = 0, 0, 0
	}
	w.at.Left = slices.Delete(w.at.Left, place, place+1)
	if time.Since(w.saved) > saveAfter {
		if err := w.save(ctx); err != nil {
			w.stop = err
		}
	}
}

// wait decides about a run that cannot continue now: it continues later, or fails.
func (w *refresh) wait() error {
	if wait, ok := w.at.exactly(w.stop, false, fault.TooManyRequests); ok {
		return task.Later(&w.at, max(turnAfter, wait))
	}
	return w.stop
}
