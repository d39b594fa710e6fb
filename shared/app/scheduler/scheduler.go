// Package scheduler wires functions/scheduler.
package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/longbox/longbox/shared/app"
	"github.com/longbox/longbox/shared/domain/account"
	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/cover"
	"github.com/longbox/longbox/shared/domain/duplicate"
	"github.com/longbox/longbox/shared/domain/export"
	"github.com/longbox/longbox/shared/domain/metric"
	"github.com/longbox/longbox/shared/domain/oidc"
	"github.com/longbox/longbox/shared/domain/orphan"
	"github.com/longbox/longbox/shared/domain/pack"
	"github.com/longbox/longbox/shared/domain/pack/pdfcache"
	"github.com/longbox/longbox/shared/domain/plugin"
	"github.com/longbox/longbox/shared/domain/reference"
	"github.com/longbox/longbox/shared/domain/release"
	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/domain/taxonomy"
	"github.com/longbox/longbox/shared/domain/tenant"
	"github.com/longbox/longbox/shared/domain/upload"
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
	packs   *pack.Expirer
	cleaned time.Time // when the hourly cleaning was complete
	step    int       // where it continues
}

// cleanEvery is the interval at which old tasks, metrics, tokens, renditions and covers are deleted.
const cleanEvery = time.Hour

// roundFor limits the time of a round without the settling of scans. In Lambda a round begins every minute: only those
// that settle a very large move overlap.
const roundFor = 50 * time.Second

// spare is the part of the round's time for the last statement of a part whose own time is up.
const spare = 2 * time.Second

// stepFor is the time that a step of the hourly cleaning needs at most, as a rule. Only the first of a round begins
// with less, so that each has its turn.
const stepFor = 25 * time.Second

// measureFor limits the time for measuring tenants in one round.
const measureFor = 20 * time.Second

// forgetFor limits the time for deleting old tasks in one round.
const forgetFor = 20 * time.Second

// uploadsFor limits the time for aborting expired uploads in one round.
const uploadsFor = 20 * time.Second

// fillFor limits the time of each backfill in one round. Backfills run after the upgrade that added them.
const fillFor = 5 * time.Second

// sweepFor limits the time in one round for deleting the releases of removed sources.
const sweepFor = 5 * time.Second

// New prepares the rounds.
func New(c Config) (*Scheduler, *app.Base, error) {
	if c.Every < time.Second || c.Every > time.Minute {
		return nil, nil, fmt.Errorf("SCHEDULER_EVERY: must be 1s to 1m, is %s", c.Every)
	}
	if err := c.Database.Validate(); err != nil { // before a setting is replaced
		return nil, nil, err
	}
	c.Database.Connect = 0 // nobody waits for an answer: a slow database is worth the time
	return app.Wire(c.Config, func(base *app.Base) (*Scheduler, error) {
		system, err := base.OpenSystem(c.Database, c.SystemURL, 2)
		if err != nil {
			return nil, err
		}
		scans := &scan.Settler{Database: base.Database, Publish: base.Publish, Added: base.Tasks.To(system)}
		return &Scheduler{base: base, system: system, every: c.Every, within: cmp.Or(c.Within, 10*time.Minute), scans: scans, expiry: expires(c, base),
			packs: &pack.Expirer{System: system, Media: base.Media, Bucket: base.Bucket}}, nil
	})
}

// Run does a round at the start and then one every few seconds until ctx ends. It waits for the database first. Scans
// on start are requested before each round until every library has one.
func (s *Scheduler) Run(ctx context.Context) {
	for err := s.awake(ctx); err != nil; err = s.awake(ctx) {
		if ctx.Err() != nil {
			return
		}
		slog.Error("the database does not answer yet; the scheduler is waiting for it", "error", fault.Line(err.Error()))
	}
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	scanned := map[uuid.UUID]bool{}
	for started := false; ; {
		started = started || s.bounded(ctx, "scans on start failed; the next round tries again", func(ctx context.Context) error {
			_, err := scan.OnStart(ctx, s.system, scanned)
			return err
		})
		s.bounded(ctx, "scheduler round failed", func(ctx context.Context) error { return s.Round(ctx, time.Now()) })
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// bounded runs do with a time limit, and reports whether it succeeded. A statement without a response, because the
// database host is gone, must not block the scheduler forever.
func (s *Scheduler) bounded(ctx context.Context, what string, do func(ctx context.Context) error) bool {
	limited, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	err := do(limited)
	if err != nil && ctx.Err() == nil {
		slog.Error(what, "error", fault.Line(err.Error()))
	}
	return err == nil
}

// Round does everything that is due now. A failed step does not stop the others, except when the database is
// unreachable: this is reported once.
func (s *Scheduler) Round(ctx context.Context, now time.Time) error {
	limited, cancel := context.WithTimeout(ctx, roundFor)
	defer cancel()
	scans, err := s.rescue(limited)
	if errors.As(err, new(*pgconn.ConnectError)) {
		return err
	}
	err = errors.Join(err, s.due(limited, now), s.clean(limited, now))
	for _, h := range scans { // last, because after a move of very many books one takes long
		err = errors.Join(err, s.scans.Settle(ctx, h.Tenant, h.ID))
	}
	return errors.Join(err, s.scans.All(ctx, s.system))
}

// rescue takes back the tasks of dead workers, and publishes those that have ended, except scans, which it returns: the
// event of a scan is sent where the scan is settled.
func (s *Scheduler) rescue(ctx context.Context) (scans []task.Held, err error) {
	_, err = task.Rescue(ctx, s.system, func(h task.Held, e events.Event) {
		if h.Type == task.ScanLibrary {
			scans = append(scans, h)
			return
		}
		s.base.Publish(ctx, h.Tenant, e)
	})
	return scans, err
}

// due does what is due in every round.
func (s *Scheduler) due(ctx context.Context, now time.Time) (err error) {
	for _, due := range []func(ctx context.Context, system *db.DB, now time.Time) (int, error){scan.Due, duplicate.Due, cover.Due,
		plugin.SyncDue, release.Due, plugin.JobsDue, export.Due, pdfcache.Due} {
		_, failed := due(ctx, s.system, now)
		err = errors.Join(err, failed)
	}
	_, swept := release.Sweep(ctx, s.system, left(ctx, sweepFor))
	err = errors.Join(err, swept)
	for _, f := range []db.Fill{taxonomy.Fill, reference.Fill, book.Fill} {
		err = errors.Join(err, f.Run(ctx, s.system, left(ctx, fillFor)))
	}
	if s.base.Tasks != nil {
		err = errors.Join(err, s.base.Tasks.All(ctx, s.system))
	}
	return err
}

// clean does the steps of the hourly cleaning. The next round continues with those for which no time is left.
func (s *Scheduler) clean(ctx context.Context, now time.Time) (err error) {
	if now.Sub(s.cleaned) < cleanEvery {
		return nil
	}
	media, bucket := s.base.Media, s.base.Bucket
	steps := []func() error{
		func() error { _, err := task.Forget(ctx, s.system, left(ctx, forgetFor)); return err },
		func() error { _, err := metric.Forget(ctx, s.system); return err },
		func() error { _, err := account.ForgetTokens(ctx, s.system); return err },
		func() error { _, err := oidc.Forget(ctx, s.system); return err },
		func() error { return upload.Forget(ctx, s.system, s.base.Library, left(ctx, uploadsFor)) },
		func() error { _, err := s.packs.Expire(ctx, now); return err },
		func() error { return s.expire(ctx, now) },
		func() error { return cover.Sweep(ctx, s.system, media, bucket, now, orphan.Packs) },
		func() error { return tenant.Measure(ctx, s.system, media, bucket, left(ctx, measureFor)) },
	}
	for first := s.step; s.step < len(steps); s.step++ {
		if rest := left(ctx, roundFor); rest <= 0 || rest < stepFor && s.step > first {
			return err
		}
		err = errors.Join(err, steps[s.step]())
	}
	s.step, s.cleaned = 0, now
	return err
}

// left is how long a part of a round may take: at most its own limit.
func left(ctx context.Context, limit time.Duration) time.Duration {
	end, _ := ctx.Deadline()
	return min(limit, time.Until(end)-spare)
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
	err := s.expiry.delete(ctx, now, left(ctx, expireFor)/time.Duration(len(blob.Lives)))
	_, aborted := s.base.Media.AbortStale(ctx, s.base.Bucket, now.Add(-blob.Unfinished))
	return errors.Join(err, aborted)
}
