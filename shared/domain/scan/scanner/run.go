package scanner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/longbox/longbox/shared/domain/content"
	"github.com/longbox/longbox/shared/domain/filesystem"
	"github.com/longbox/longbox/shared/domain/library"
	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/domain/strategy"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
)

// listers is how many ranges of a library are listed in parallel.
const listers = 4

// Scanner runs the tasks that read libraries.
type Scanner struct {
	Database *db.DB
	Library  *blob.Store
	Publish  events.Publish
	Cover    CoverFunc       // nil: no covers are rendered during analysis
	Parallel int             // files of one batch read in parallel
	Timeout  time.Duration   // for the analysis of one file; zero: defaultTimeout
	Kills    int             // workers that a file may kill before it is recorded; zero: defaultKills
	Content  *content.Reader // nil: reads Library with default limits, and cannot draw PDF pages
	Packs    bool            // page packs are made after the analysis, not on the first request for a page
	// Added is called when a running scan has added tasks; nil if no messages are sent.
	Added task.Added

	alone alone // for reading a suspected file with nothing beside it
}

// libraryRow is the library's data for a scan.
type libraryRow struct {
	ID             uuid.UUID `db:"id"`
	Path           string    `db:"path"`
	Bucket         string    `db:"bucket"`
	Prefix         string    `db:"prefix"`
	Root           string    `db:"root"` // prefix of the tenant's root
	AllowedFormats []string  `db:"allowed_formats"`
	Excluded       string    `db:"excluded"`
	strategies
	Rules    json.RawMessage `db:"rules"`
	MaxBooks *int64          `db:"max_books"` // of the tenant; nil: no limit
}

// run syncs the books of one library with the store: all of them in a scan, or those of a few keys in a look.
type run struct {
	*Scanner
	tenant      uuid.UUID
	scanID      *uuid.UUID // its task; nil without a scan
	library     libraryRow
	set         *strategy.Set
	rules       []library.TitleRule
	selected    func(key string) (format string, ok bool) // whether a key is a book of this library: see library.Selection
	sidecar     func(key string) (kind, about string)
	params      scan.Params
	retryFailed bool               // setting scanner.retry_failed_files
	batch       int64              // books per analysis task: setting scanner.batch_size
	minutes     int64              // maximum time of the listing: setting scanner.scan_timeout_minutes
	begun       time.Time          // when this run of the task began
	started     time.Time          // by the database's clock
	touched     map[uuid.UUID]bool // series whose books changed; used by the writer only
	written     int64              // books since statistics were gathered; used by the writer only
	mu          sync.Mutex         // guards at while ranges are listed
	at          place
	keep        bool // in a look, books whose file is gone are only counted, in spared
	spared      int
	refused     int // files beyond the limit in a look
}

// collected combines several pages of the listing.
type collected struct {
	seen, unchanged int64
	changes         []change
	sidecars        []sidecarChange
}

func (c *collected) add(d difference) {
	c.seen += int64(d.seen)
	c.unchanged += int64(d.unchanged)
	c.changes = append(c.changes, d.changes...)
	c.sidecars = append(c.sidecars, d.sidecars...)
}

// full reports whether the changes fill a batch.
func (c *collected) full() bool { return len(c.changes)+len(c.sidecars) >= writeBatch }

func (c *collected) empty() bool {
	return c.seen+c.unchanged == 0 && len(c.changes)+len(c.sidecars) == 0
}

// take removes a batch: changes up to the limit, and all counts.
func (c *collected) take() collected {
	n, m := min(len(c.changes), writeBatch), min(len(c.sidecars), writeBatch)
	out := collected{seen: c.seen, unchanged: c.unchanged, changes: c.changes[:n], sidecars: c.sidecars[:m]}
	*c = collected{changes: c.changes[n:], sidecars: c.sidecars[m:]}
	return out
}

// Result is the result of a scan's task.
type Result struct {
	FilesListed int64 `json:"filesListed"`
	Vanished    int   `json:"booksDeleted"`
}

// errLong ends a scan whose listing exceeds its time limit.
var errLong = errors.New("the scan's time is up")

// Scan handles scan_library tasks. Its time limit counts the time of its runs since it began to list, but not the time
// between them: its tenant may have been suspended, or the machine off.
func (s *Scanner) Scan(ctx context.Context, h task.Held) (any, error) {
	r, err := s.begin(ctx, h)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(r.minutes)*time.Minute-r.at.Spent, errLong)
	defer cancel()
	out, err := r.scan(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errLong) {
		return nil, fault.Wrap(err, fault.Conflict, "The scan was stopped after %d minutes (setting scanner.scan_timeout_minutes). What it found is kept. "+
			"Raise the setting, or find out why the store is slow", r.minutes)
	}
	return out, err
}

// scan lists the library and syncs its books with the listing.
func (r *run) scan(ctx context.Context) (any, error) {
	if err := r.listAndWrite(ctx); err != nil {
		if err := r.noteTooMany(ctx, err); err != nil {
			return nil, err
		}
		return nil, r.explain(err)
	}
	if len(r.at.Ranges) > 0 {
		return nil, r.pause()
	}
	for _, step := range []func(context.Context) error{r.tellUnlisted, r.guard, r.deleteGone, r.renameSeries, r.deleteLost, r.catchUp, r.arrangeTouched} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return Result{FilesListed: r.at.Listed, Vanished: r.at.Deleted}, nil
}

// begin loads the library and resumes from the task's checkpoint. Without one it starts over, and cancels the pending
// children of an interrupted attempt: their books are found again.
func (s *Scanner) begin(ctx context.Context, h task.Held) (*run, error) {
	var p scan.Params
	if err := json.Unmarshal(h.Params, &p); err != nil {
		return nil, fmt.Errorf("read parameters of the scan: %w", err)
	}
	r := &run{Scanner: s, tenant: h.Tenant, scanID: &h.ID, params: p, begun: time.Now(), touched: map[uuid.UUID]bool{}}
	var status *scan.Status
	var b pgx.Batch
	var emptied []uuid.UUID
	if err := h.Resume(&r.at); err != nil {
		return nil, err
	}
	if h.Place != nil {
		for _, id := range r.at.Touched {
			r.touched[id] = true
		}
		// The checkpoint is used once: a run that dies has listed more than it says.
		b.Queue("update task set place = null where tenant_id = app.tenant() and id = $1", h.ID)
	} else {
		// A failed scan that is retried must be settled again.
		b.Queue(`update scan set files_total = 0, files_processed = 0, files_refused = 0, files_gone = 0, removals_held = 0, unlisted = 0, settled = false
			where tenant_id = app.tenant() and id = $1`, h.ID)
		task.QueueTakeBack(&b, h.ID)
		db.Value(&b, &r.at.CatchUp, leftUndone, h.LibraryID, h.ID)
		// Books that an attempt that died found gone are not found again; their series may still be renamed.
		db.Values(&b, &emptied, `select s.id from scan c join task t on t.tenant_id = c.tenant_id and t.id = c.id
			join series s on s.tenant_id = c.tenant_id and s.library_id = c.library_id and s.book_count = 0
			where c.tenant_id = app.tenant() and c.id = $1 and c.books_deleted > 0
			  and exists (select from book k where k.tenant_id = s.tenant_id and k.series_id = s.id and k.deleted_at >= t.created_at)`, h.ID)
	}
	load := r.queueLibrary(&b, *h.LibraryID)
	db.One(&b, &status, scan.ByTaskSQL, h.ID)
	if err := s.Database.Run(ctx, &b); err != nil {
		return nil, err
	}
	if found, err := load(); err != nil {
		return nil, err
	} else if !found || status == nil {
		return nil, fault.New(fault.NotFound, "The library was deleted")
	}
	for _, id := range emptied {
		r.at.Emptied, r.touched[id] = true, true
	}
	s.Publish(ctx, h.Tenant, status.Event(), status.TaskEvent())
	if h.Place == nil {
		if err := r.unlinked(ctx); err != nil {
			return nil, err
		}
		if err := r.split(ctx); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// split sets the ranges to list.
func (r *run) split(ctx context.Context) (err error) {
	if r.at.Ranges, err = ranges(ctx, r.Library, r.library.Bucket, r.prefix(), listers); err != nil {
		return r.explain(err)
	}
	if r.params.Path != "" { // the books of other folders do not matter
		r.at.Ranges[0].from = r.prefix()
		r.at.Ranges[len(r.at.Ranges)-1].to = r.library.Prefix + r.params.Path + "0" // 0 follows the slash
	}
	return nil
}

// prefix returns the prefix of the keys to list.
func (r *run) prefix() string {
	if r.params.Path == "" {
		return r.library.Prefix
	}
	return r.library.Prefix + r.params.Path + "/"
}

// unlinked refuses to list what is only reachable through a symbolic link: it may be outside the tenant's roots.
func (r *run) unlinked(ctx context.Context) error {
	missing := filesystem.Reach(ctx, r.Library, r.library.Bucket, r.library.Root, r.prefix())
	if !fault.Is(missing, fault.BadRequest) {
		return missing
	}
	folders, objects, _, err := r.Library.Folders(ctx, r.library.Bucket, r.prefix(), "", 1)
	if err != nil {
		return r.explain(err)
	}
	if len(folders)+len(objects) == 0 { // gone, and so are its books
		return nil
	}
	return fault.New(fault.Conflict, "%s is reached through a symbolic link, which Longbox does not follow: nothing was changed. Create a library for the "+
		"folder that the link leads to", r.shownPath())
}

// shownPath returns the displayed path of the scanned folder.
func (r *run) shownPath() string { return strings.TrimSuffix(r.library.Path+"/"+r.params.Path, "/") }

// open returns a run of a library without a scan; nil if there is no such library.
func (s *Scanner) open(ctx context.Context, tenant, library uuid.UUID) (*run, error) {
	r := &run{Scanner: s, tenant: tenant, touched: map[uuid.UUID]bool{}}
	var b pgx.Batch
	load := r.queueLibrary(&b, library)
	if err := s.Database.Run(ctx, &b); err != nil {
		return nil, err
	}
	if found, err := load(); err != nil || !found {
		return nil, err
	}
	return r, nil
}

// queueLibrary reads the library and the time; load reports whether the library exists, after the batch has run.
func (r *run) queueLibrary(b *pgx.Batch, id uuid.UUID) (load func() (found bool, err error)) {
	var lib *libraryRow
	db.One(b, &lib, `select id, path, bucket, prefix, allowed_formats,
		coalesce((select min(r.prefix) from library_root r where r.tenant_id = app.tenant() and r.bucket = l.bucket and starts_with(l.prefix, r.prefix)), prefix) as root,
		coalesce(excluded_patterns, '') as excluded,
		`+strategyColumns+`, title_preprocessing_rules as rules,
		(select max_books from tenant where id = app.tenant()) as max_books
		from library l where tenant_id = app.tenant() and id = $1`, id)
	setting.Bool(b, setting.RetryFailedFiles, &r.retryFailed)
	setting.Int(b, setting.ScanBatchSize, &r.batch)
	setting.Int(b, setting.ScanTimeout, &r.minutes)
	db.Value(b, &r.started, "select clock_timestamp()")
	return func() (bool, error) {
		if lib == nil {
			return false, nil
		}
		r.library = *lib
		var err error
		if r.set, err = lib.strategies.set(); err != nil {
			return true, err
		}
		if r.selected, err = library.Selection(lib.AllowedFormats, lib.Excluded); err != nil {
			return true, fault.Wrap(err, fault.BadRequest, "The library's excludedPatterns are not valid: %v", err)
		}
		if r.sidecar, err = library.Sidecars(lib.Excluded, r.set.Packages()); err != nil {
			return true, err
		}
		if len(lib.Rules) > 0 {
			if err := json.Unmarshal(lib.Rules, &r.rules); err != nil {
				return true, fault.Wrap(err, fault.BadRequest, "The library's titlePreprocessingRules are not valid: %v", err)
			}
		}
		return true, nil
	}
}

// errStop ends the listing of a range when the scan must pause.
var errStop = errors.New("stop listing")

// listAndWrite lists ranges in parallel; one writer writes the changes meanwhile. What remains in r.at.Ranges is listed
// after a pause.
func (r *run) listAndWrite(ctx context.Context) error {
	parts := r.at.Ranges
	r.at.Ranges = nil
	found := make(chan difference, listers)
	g, ctx := errgroup.WithContext(ctx)
	var working sync.WaitGroup
	for _, part := range parts {
		working.Add(1)
		g.Go(func() error {
			defer working.Done()
			return r.listRange(ctx, part, found)
		})
	}
	g.Go(func() error { working.Wait(); close(found); return nil })
	g.Go(func() error { return r.collect(ctx, found) })
	return g.Wait()
}

// listRange lists a range, compares its pages and sends the differences. If the scan must pause, the rest stays in
// r.at.Ranges.
func (r *run) listRange(ctx context.Context, part keyRange, found chan<- difference) error {
	seen, next := r.started, r.started
	told := 0 // of the folders that cannot be listed
	err := list(ctx, r.Library, r.library.Bucket, r.prefix(), part, r.mayHoldBooks, func(l listed) error {
		if len(l.page) > 0 && !l.earlier { // asked for after the page before it was compared
			seen = next
		}
		d, now, err := r.compare(ctx, l, seen)
		if err != nil {
			return err
		}
		next = now
		r.note(d, l.unlisted[told:])
		told = len(l.unlisted)
		select {
		case found <- d:
		case <-ctx.Done():
			return ctx.Err()
		}
		if l.covered.to != part.to && task.MustPause(ctx) {
			r.leaveRange(keyRange{l.covered.to, part.to})
			return errStop
		}
		return nil
	})
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

// note adds to the checkpoint what only the end of the scan handles.
func (r *run) note(d difference, unlisted []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at.Listed += int64(d.seen)
	r.at.Vanished = append(r.at.Vanished, d.vanished...)
	r.at.Lost = append(r.at.Lost, d.lost...)
	r.at.Unlisted = append(append(r.at.Unlisted, unlisted...), d.long...)
}

// leaveRange leaves a range to the next run.
func (r *run) leaveRange(rest keyRange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at.Ranges = append(r.at.Ranges, rest)
}

// collect collects differences into batches and writes them; progress is written at least every second.
func (r *run) collect(ctx context.Context, found <-chan difference) error {
	var part collected
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for more := true; more; {
		all := false // write even what does not fill a batch
		select {
		case d, ok := <-found:
			part.add(d)
			more, all = ok, !ok
		case <-tick.C:
			all = true
		case <-ctx.Done():
			return ctx.Err()
		}
		for part.full() || all && !part.empty() {
			if err := r.write(ctx, part.take()); err != nil {
				return err
			}
		}
	}
	return nil
}

// explain turns a failed listing into an error for the library's owner; a failed listing never removes anything.
func (r *run) explain(err error) error {
	var many *blob.UnlistedError
	switch {
	case errors.As(err, &many):
		var first []string
		for _, folder := range many.Folders[:min(len(many.Folders), 5)] {
			first = append(first, clip(strings.TrimPrefix(folder, r.library.Prefix), 200))
		}
		return fault.Wrap(err, fault.Unavailable,
			"More than %d folders of %s cannot be listed, among them %s: check their permissions, that their names are UTF-8, and that the storage works. "+
				"Nothing was removed; Longbox tries a scan three times", len(many.Folders), r.library.Path, strings.Join(first, ", "))
	case errors.Is(err, blob.ErrNotFound):
		return fault.Wrap(err, fault.Conflict,
			"%s was not found: check that the folder or bucket exists, is mounted, and is still offered as a library root. Nothing was removed", r.library.Path)
	case errors.Is(err, blob.ErrDenied):
		return fault.Wrap(err, fault.Conflict,
			"%s cannot be listed, because access is denied: check the permissions of the folder, or the permissions and the region of the bucket. Nothing was removed",
			r.library.Path)
	case blob.Unreachable(err):
		return fault.Wrap(err, fault.Unavailable,
			"%s cannot be listed: check its permissions, and that the storage works. Nothing was removed; Longbox tries a scan three times", r.library.Path)
	}
	return err
}
