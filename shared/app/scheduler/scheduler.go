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
	Within    time.Duration // time limit of a round of Run; zero is ten minutes
}

// Scheduler runs the rounds.
type Scheduler struct {
	base    *app.Base
	system  *db.DB
	every   time.Duration
	within  time.Duration
	scans   *scan.Settler
	expiry  *expiry // nil where the media bucket has lifecycle rules
	cleaned time.Time
}

// cleanEvery is the interval at which old tasks, metrics, tokens, renditions and covers are deleted.
const cleanEvery = time.Hour

// measureFor limits the time for measuring tenants in one round, to a third of an invocation.
const measureFor = 20 * time.Second

// forgetFor limits the time for deleting old tasks in one round.
const forgetFor = 20 * time.Second

// fillFor limits the time of each backfill in one round. Backfills run after the upgrade that added them.
const fillFor = 5 * time.Second

// sweepFor limits the time in one round for deleting the releases of removed sources.
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
		scans := &scan.Settler{Database: base.Database, Publish: base.Publish, Added: base.Tasks.To(system)}
		return &Scheduler{base: base, system: system, every: c.Every, within: cmp.Or(c.Within, 10*time.Minute), scans: scans, expiry: expires(c, base)}, nil
	})
}

// Run does a round at the start and then one every few seconds until ctx ends. It waits for the database first, because
// scans on start are requested only once.
func (s *Scheduler) Run(ctx context.Context) {
	for err := s.awake(ctx); err != nil; err = s.awake(ctx) {
		if ctx.Err() != nil {
			return
		}
		slog.Error("the database does not answer yet; the scheduler is waiting for it", "error", fault.Line(err.Error()))
	}
	s.bounded(ctx, "scans on start failed", func(ctx context.Context) error { _, err := scan.OnStart(ctx, s.system); return err })
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	for {
		s.bounded(ctx, "scheduler round failed", func(ctx context.Context) error { return s.Round(ctx, time.Now()) })
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// bounded runs do with a time limit. A statement without a response, because the database host is gone, must not block
// the scheduler forever.
func (s *Scheduler) bounded(ctx context.Context, what string, do func(ctx context.Context) error) {
	limited, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	if err := do(limited); err != nil && ctx.Err() == nil {
		slog.Error(what, "error", fault.Line(err.Error()))
	}
}

// Round does everything that is due now. A failed step does not stop the others, except when the database is
// unreachable: this is reported once.
func (s *Scheduler) Round(ctx context.Context, now time.Time) error {
	rescued, err := task.Rescue(ctx, s.system, func(h task.Held, e events.Event) { s.tell(ctx, h, e) })
	if rescued > 0 {
		slog.Warn("took back tasks of workers that stopped responding", "count", rescued)
	}
	if errors.As(err, new(*pgconn.ConnectError)) {
		return err
	}
	for _, due := range []func(ctx context.Context, system *db.DB, now time.Time) (int, error){scan.Due, duplicate.Due, cover.Due,
		plugin.SyncDue, release.Due, plugin.JobsDue, export.Due, pdfcache.Due} {
		_, failed := due(ctx, s.system, now)
		err = errors.Join(err, failed)
	}
	_, swept := release.Sweep(ctx, s.system, sweepFor)
	err = errors.Join(err, swept)
	for _, f := range []db.Fill{taxonomy.Fill, reference.Fill, book.Fill} {
		err = errors.Join(err, f.Run(ctx, s.system, fillFor))
	}
	if s.base.Tasks != nil {
		err = errors.Join(err, s.base.Tasks.All(ctx, s.system))
	}
	err = errors.Join(err, s.scans.All(ctx, s.system)) // last, because after a move of very many books one takes long
	if now.Sub(s.cleaned) < cleanEvery {
		return err
	}
	s.cleaned = now
	_, forget := task.Forget(ctx, s.system, forgetFor)
	_, figures := metric.Forget(ctx, s.system)
	_, tokens := account.ForgetTokens(ctx, s.system)
	_, signIns := oidc.Forget(ctx, s.system)
	_, packs := pack.Expire(ctx, s.system, s.base.Media, s.base.Bucket)
	return errors.Join(err, forget, figures, tokens, signIns, packs, s.expire(ctx, now), cover.Sweep(ctx, s.system, s.base.Media, s.base.Bucket, now),
		tenant.Measure(ctx, s.system, s.base.Media, s.base.Bucket, measureFor))
}

// tell publishes the end of a task whose worker has died. The event of a scan is sent where the scan is settled.
func (s *Scheduler) tell(ctx context.Context, h task.Held, e events.Event) {
	if h.Type == task.ScanLibrary {
		s.scans.Ended(ctx, h.Tenant, h.ID)
		return
	}
	s.base.Publish(ctx, h.Tenant, e)
}

// expires returns the deletion of expired objects, or nil for an AWS bucket, which has lifecycle rules.
func expires(c Config, base *app.Base) *expiry {
	if c.Blob.MediaEndpoint == "" {
		return nil
	}
	return &expiry{media: base.Media, bucket: base.Bucket, places: map[string]string{}, done: map[string]time.Time{}}
}

// expire deletes expired objects, and uploads that a dead process left unfinished.
func (s *Scheduler) expire(ctx context.Context, now time.Time) error {
	if s.expiry == nil {
		return nil
	}
	err := s.expiry.delete(ctx, now, expireFor)
	_, aborted := s.base.Media.AbortStale(ctx, s.base.Bucket, now.Add(-blob.Unfinished))
	return errors.Join(err, aborted)
}
