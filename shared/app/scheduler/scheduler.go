// Package scheduler wires functions/scheduler.
package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/longbox/longbox/shared/app"
	"github.com/longbox/longbox/shared/domain/account"
	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/cover"
	"github.com/longbox/longbox/shared/domain/duplicate"
	"github.com/longbox/longbox/shared/domain/export"
	"github.com/longbox/longbox/shared/domain/metric"
	"github.com/longbox/longbox/shared/domain/oidc"
	"github.com/longbox/longbox/shared/domain/pack"
	"github.com/longbox/longbox/shared/domain/pack/pdfcache"
	"github.com/longbox/longbox/shared/domain/plugin"
	"github.com/longbox/longbox/shared/domain/reference"
	"github.com/longbox/longbox/shared/domain/release"
	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/domain/taxonomy"
	"github.com/longbox/longbox/shared/domain/tenant"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
)

// Config of the function.
type Config struct {
	app.Config
	SystemURL string        `env:"DATABASE_SYSTEM_URL,required"`
	Every     time.Duration `env:"SCHEDULER_EVERY" envDefault:"5s"`
	Within    time.Duration // a round of Run ends; zero is ten minutes
}

// Scheduler does its rounds.
type Scheduler struct {
	base    *app.Base
	system  *db.DB
	every   time.Duration
	within  time.Duration
	scans   *scan.Settler
	expires bool // the store of renditions has no lifecycle rule of its own
	cleaned time.Time
}

// cleanEvery is how often old tasks, figures, tokens, renditions and covers are cleared away.
const cleanEvery = time.Hour

// measureFor is how long tenants are measured in one round: a third of what an invocation has.
const measureFor = 20 * time.Second

// fillFor is how long each of the fills goes on in one round, after the upgrade that brought it.
const fillFor = 5 * time.Second

// sweepFor is how long releases are deleted in one round whose sources have gone.
const sweepFor = 5 * time.Second

// New prepares the rounds.
func New(c Config) (*Scheduler, *app.Base, error) {
	if c.Every < time.Second || c.Every > time.Minute {
		return nil, nil, fmt.Errorf("SCHEDULER_EVERY: must be 1s to 1m, is %s", c.Every)
	}
	c.Database.Connect = 0 // nobody waits for an answer: a slow database is worth the time
	return app.Wire(c.Config, func(base *app.Base) (*Scheduler, error) {
		system, err := base.OpenSystem(c.Database, c.SystemURL, 2)
		if err != nil {
			return nil, err
		}
		scans := &scan.Settler{Database: base.Database, Publish: base.Publish}
		if base.Tasks != nil {
			scans.Added = base.Tasks.To(system)
		}
		return &Scheduler{base: base, system: system, every: c.Every, within: cmp.Or(c.Within, 10*time.Minute), scans: scans, expires: c.Blob.MediaEndpoint != ""}, nil
	})
}

// Run does a round at the start and one every few seconds until ctx ends. It begins when there is a database: scans on
// start are asked for once.
func (s *Scheduler) Run(ctx context.Context) {
	for err := s.awake(ctx); err != nil; err = s.awake(ctx) {
		if ctx.Err() != nil {
			return
		}
		slog.Error("the scheduler waits for the database", "error", fault.Line(err.Error()))
	}
	s.bounded(ctx, "scans on start", func(ctx context.Context) error { _, err := scan.OnStart(ctx, s.system); return err })
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	for {
		s.bounded(ctx, "scheduler round", func(ctx context.Context) error { return s.Round(ctx, time.Now()) })
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// bounded ends what takes too long: a statement whose answer never comes, since the database's machine is gone, must
// not be the last one.
func (s *Scheduler) bounded(ctx context.Context, what string, do func(ctx context.Context) error) {
	limited, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	if err := do(limited); err != nil && ctx.Err() == nil {
		slog.Error(what, "error", fault.Line(err.Error()))
	}
}

// Round does everything that is due now. What fails does not keep the rest from being done, except for the database:
// where it cannot be reached, that is said once.
func (s *Scheduler) Round(ctx context.Context, now time.Time) error {
	rescued, err := task.Rescue(ctx, s.system, func(h task.Held, e events.Event) { s.tell(ctx, h, e) })
	if rescued > 0 {
		slog.Warn("tasks of silent workers given back", "count", rescued)
	}
	if errors.As(err, new(*pgconn.ConnectError)) {
		return err
	}
	_, due := scan.Due(ctx, s.system, now)
	_, twice := duplicate.Due(ctx, s.system, now)
	_, covers := cover.Due(ctx, s.system, now)
	_, plugins := plugin.SyncDue(ctx, s.system, now)
	_, polls := release.Due(ctx, s.system, now)
	_, jobs := plugin.JobsDue(ctx, s.system, now)
	_, exports := export.Due(ctx, s.system, now)
	_, documents := pdfcache.Due(ctx, s.system, now)
	_, gone := release.Sweep(ctx, s.system, sweepFor)
	err = errors.Join(err, due, twice, covers, plugins, polls, jobs, exports, documents, gone)
	for _, f := range []db.Fill{taxonomy.Fill, reference.Fill, book.Fill} {
		err = errors.Join(err, f.Run(ctx, s.system, fillFor))
	}
	if s.base.Tasks != nil {
		err = errors.Join(err, s.base.Tasks.All(ctx, s.system))
	}
	err = errors.Join(err, s.scans.All(ctx, s.system)) // last, since one of very many books that have moved takes its time
	if now.Sub(s.cleaned) < cleanEvery {
		return err
	}
	s.cleaned = now
	_, forget := task.Forget(ctx, s.system)
	_, figures := metric.Forget(ctx, s.system)
	_, tokens := account.ForgetTokens(ctx, s.system)
	_, signIns := oidc.Forget(ctx, s.system)
	_, packs := pack.Expire(ctx, s.system, s.base.Media, s.base.Bucket)
	return errors.Join(err, forget, figures, tokens, signIns, packs, s.expire(ctx, now), cover.Sweep(ctx, s.system, s.base.Media, s.base.Bucket, now),
		tenant.Measure(ctx, s.system, s.base.Media, s.base.Bucket, measureFor))
}

// tell says that a task has ended whose worker has died; of a scan that is said where it is settled.
func (s *Scheduler) tell(ctx context.Context, h task.Held, e events.Event) {
	if h.Type == task.ScanLibrary {
		s.scans.Ended(ctx, h.Tenant, h.ID)
		return
	}
	s.base.Publish(ctx, h.Tenant, e)
}

// expire deletes page renditions and exports past their time, and what was stored of an object by a process that died.
// A bucket of AWS has lifecycle rules for it, which cost no listing.
func (s *Scheduler) expire(ctx context.Context, now time.Time) error {
	if !s.expires {
		return nil
	}
	var failures error
	for prefix, life := range blob.Lives {
		for _, err := range s.base.Media.DeletePages(ctx, s.base.Bucket, prefix, now.Add(-life)) {
			failures = errors.Join(failures, err)
		}
	}
	_, err := s.base.Media.AbortStale(ctx, s.base.Bucket, now.Add(-blob.Unfinished))
	return errors.Join(failures, err)
}
