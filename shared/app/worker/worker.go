// Package worker wires functions/worker, which runs the tasks of all tenants.
package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/app"
	"github.com/longbox/longbox/shared/app/books"
	"github.com/longbox/longbox/shared/domain/duplicate"
	"github.com/longbox/longbox/shared/domain/export"
	"github.com/longbox/longbox/shared/domain/ingest"
	"github.com/longbox/longbox/shared/domain/koreader/digest"
	"github.com/longbox/longbox/shared/domain/measure"
	"github.com/longbox/longbox/shared/domain/orphan"
	"github.com/longbox/longbox/shared/domain/pack"
	"github.com/longbox/longbox/shared/domain/plugin"
	"github.com/longbox/longbox/shared/domain/release"
	"github.com/longbox/longbox/shared/domain/rendition"
	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/domain/scan/scanner"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/format/imaging"
	"github.com/longbox/longbox/shared/platform/plug"
	"github.com/longbox/longbox/shared/platform/queue"
	"github.com/longbox/longbox/shared/platform/seal"
)

// Config of the function.
type Config struct {
	app.Config
	books.Reading
	SystemURL string `env:"DATABASE_SYSTEM_URL,required"` // the role that sees every tenant's tasks
	Plugins   plug.Config
	Seal      seal.Config
	Slots     int           `env:"WORKER_SLOTS" envDefault:"3"`      // tasks at once
	Parallel  int           `env:"WORKER_PARALLEL" envDefault:"8"`   // files of one task read at once
	Timeout   time.Duration `env:"ANALYSIS_TIMEOUT" envDefault:"1m"` // for one file
	Covers    bool          `env:"WORKER_COVERS" envDefault:"true"`  // render covers while analysing; else on first sight
	Poll      time.Duration `env:"WORKER_POLL" envDefault:"2s"`
	Lease     time.Duration `env:"WORKER_LEASE" envDefault:"30s"`  // a worker silent for so long has died
	Slice     time.Duration `env:"WORKER_SLICE" envDefault:"2s"`   // then a task makes room for another tenant's
	Margin    time.Duration `env:"WORKER_MARGIN" envDefault:"10s"` // before an invocation's end, to save the place
}

// Validate returns an error that names a setting out of bounds.
func (c Config) Validate() error {
	switch {
	case c.Slots < 1 || c.Slots > 64:
		return fmt.Errorf("WORKER_SLOTS: must be 1 to 64, is %d", c.Slots)
	case c.Parallel < 1 || c.Parallel > 64:
		return fmt.Errorf("WORKER_PARALLEL: must be 1 to 64, is %d", c.Parallel)
	case c.Timeout < time.Second || c.Timeout > 10*time.Minute:
		return fmt.Errorf("ANALYSIS_TIMEOUT: must be 1s to 10m, is %s", c.Timeout)
	case c.Poll < 100*time.Millisecond:
		return fmt.Errorf("WORKER_POLL: must be at least 100ms, is %s", c.Poll)
	case c.Lease < time.Second || c.Lease > 15*time.Minute:
		return fmt.Errorf("WORKER_LEASE: must be 1s to 15m, is %s", c.Lease)
	case c.Slice < 0:
		return fmt.Errorf("WORKER_SLICE: must not be negative, is %s", c.Slice)
	case c.Margin < time.Second || c.Margin > 5*time.Minute:
		return fmt.Errorf("WORKER_MARGIN: must be 1s to 5m, is %s", c.Margin)
	}
	return errors.Join(c.Database.Validate(), c.Reading.Validate(), c.Plugins.Validate())
}

// Worker runs the tasks of all tenants and handles the store's notifications of changed objects.
type Worker struct {
	*task.Runner
	// Objects handles one S3 notification ({"Records": [...]}). After an error the message is retried.
	Objects func(ctx context.Context, body json.RawMessage) error

	tasks, dead, objects *queue.Queue // nil when not configured
	margin               time.Duration
	parallel             int
	sweep                func(ctx context.Context) (int, error) // removes the folders of deleted plugins
}

func New(c Config) (*Worker, *app.Base, error) {
	if err := c.Validate(); err != nil {
		return nil, nil, err
	}
	c.Database.Connect = 0 // nobody waits for an answer: a slow database is worth the time
	return app.Wire(c.Config, func(base *app.Base) (*Worker, error) { return wire(base, c) })
}

// wire makes the worker of the platform.
func wire(base *app.Base, c Config) (*Worker, error) {
	system, err := base.OpenSystem(c.Database, c.SystemURL, 4)
	if err != nil {
		return nil, err
	}
	key, err := seal.New(c.Seal)
	if err != nil {
		return nil, err
	}
	w := &Worker{margin: c.Margin, parallel: c.Parallel, tasks: queue.Open(c.Queue, c.Queue.TaskURL),
		dead: queue.Open(c.Queue, c.Queue.DeadURL), objects: queue.Open(c.Queue, c.Queue.ObjectURL)}
	added := base.Tasks.To(system)
	covers := &rendition.Maker{Database: base.Database, Content: c.Reader(base.Library), Media: base.Media, Bucket: base.Bucket, Renderer: imaging.New(c.Images)}
	s := &scanner.Scanner{Database: base.Database, Library: base.Library, Publish: base.Publish, Parallel: c.Parallel, Timeout: c.Timeout, Content: covers.Content,
		Packs: c.Packs.Made == pack.AtScan, Added: added}
	if c.Covers {
		s.Cover = func(ctx context.Context, tenant, book uuid.UUID, secret []byte, fingerprint string, size, quality int, image []byte) (string, error) {
			return covers.StoreCover(ctx, tenant, book, secret, fingerprint, rendition.Cover{MaxDimension: size, Quality: quality}, image)
		}
	}
	plugins := &plugin.Runner{Database: base.Database, Client: plug.New(c.Plugins), Key: key, Publish: base.Publish, Added: added}
	w.Objects = (&ingest.Ingest{System: system, Scanner: s}).Objects
	w.sweep = func(ctx context.Context) (int, error) { return plugin.SweepFolders(ctx, system, plugins.Client) }
	host, err := os.Hostname()
	if err != nil {
		host = "worker"
	}
	w.Runner = &task.Runner{
		System: system, Publish: base.Publish, Slots: c.Slots, Poll: c.Poll, Lease: c.Lease, Slice: c.Slice,
		Worker:    fmt.Sprintf("%s/%d", host, os.Getpid()),
		Handlers:  handlers(base, c, s, covers, plugins),
		ScanEnded: (&scan.Settler{Database: base.Database, Publish: base.Publish, Added: added}).Ended,
		Added:     added,
	}
	return w, nil
}

// handlers are what does the tasks of each type.
func handlers(base *app.Base, c Config, s *scanner.Scanner, covers *rendition.Maker, plugins *plugin.Runner) map[string]task.Handler {
	packs := &pack.Maker{Database: base.Database, Content: s.Content, Media: base.Media, Bucket: base.Bucket, Publish: base.Publish}
	sizes := &measure.Measurer{Database: base.Database, Content: s.Content, Media: base.Media, Bucket: base.Bucket, Publish: base.Publish, Added: s.Added}
	digests := &digest.Maker{Database: base.Database, Content: s.Content, Publish: base.Publish, Parallel: c.Parallel, Timeout: c.Timeout}
	filler := &rendition.Filler{Maker: covers, Publish: base.Publish, Parallel: c.Parallel, Timeout: c.Timeout, Reading: s.Reading}
	tracker := &release.Tracker{Database: base.Database, Publish: base.Publish}
	exports := &export.Maker{Database: base.Database, Media: base.Media, Bucket: base.Bucket, Publish: base.Publish}
	orphans := &orphan.Cleaner{Finder: orphan.Finder{Database: base.Database, Media: base.Media, Bucket: base.Bucket}, Publish: base.Publish}
	return map[string]task.Handler{
		task.ScanLibrary:     s.Scan,
		task.AnalyzeBooks:    s.AnalyzeBooks,
		task.AnalyzeBook:     s.AnalyzeBooks,
		task.AnalyzeSeries:   s.AnalyzeSeries,
		task.AnalyzeLibrary:  s.AnalyzeLibrary,
		task.RenumberSeries:  s.RenumberSeries,
		task.ReprocessTitles: s.ReprocessTitles,
		task.PackBook:        s.Beside(packs.Pack),
		task.MeasurePages:    s.Beside(sizes.Measure),
		task.BookCovers:      filler.Books,
		task.SeriesCovers:    filler.Series,
		task.KOReaderDigests: digests.Make,
		task.PurgeDeleted:    s.Purge,
		task.PluginAutoMatch: plugins.Match,
		task.RefreshLibrary:  plugins.Refresh,
		task.ExportSeries:    exports.Make,
		task.CleanUpExports:  exports.Clean,
		task.CleanUpOrphans:  orphans.Clean,
		task.CleanUpPDF:      packs.Clear,
		task.FindDuplicates:  (&duplicate.Finder{Database: base.Database}).Find,

		task.UserPluginSync:            plugins.Sync,
		task.UserPluginRecommendations: plugins.Recommend,
		task.UserPluginDismissal:       plugins.Dismiss,

		task.PollReleaseSource: plugins.Poll,
		task.TrackSeries:       tracker.Track,
		task.BackfillTracking:  tracker.Backfill,
	}
}
