package rendition

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/longbox/longbox/shared/domain/cover"
	"github.com/longbox/longbox/shared/domain/page"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
)

// fillBatch is the number of covers between two checkpoints.
const fillBatch = 50

// Filler makes the covers that tasks request (package cover).
type Filler struct {
	*Maker
	Publish  events.Publish
	Parallel int           // covers made at once
	Timeout  time.Duration // per cover
	// Reading calls a function that reads the books of one batch (scanner.Scanner.Reading).
	Reading func(ctx context.Context, read func() error) error
}

// CoverCounts are the counts of a task that makes covers.
type CoverCounts struct {
	Made    int64 `json:"made"`
	Kept    int64 `json:"kept"`    // existed already
	Failed  int64 `json:"failed"`  // cannot be read or rendered
	Without int64 `json:"without"` // nothing to show: not analysed, or no pages
}

// CoverError says why a cover could not be made.
type CoverError struct {
	ID      uuid.UUID `json:"id"` // of the book or series
	Message string    `json:"message"`
}

// maxErrors is the maximum number of errors in a result.
const maxErrors = 10

// filled is the result of a task that makes covers.
type filled struct {
	CoverCounts
	Errors []CoverError `json:"errors,omitempty"` // of the first failures
}

// fillPlace is the checkpoint of a task that makes covers.
type fillPlace struct {
	filled
	After *uuid.UUID `json:"after,omitempty"` // nil at the start
	Total int64      `json:"total"`
}

func (p *fillPlace) done() int64 { return p.Made + p.Kept + p.Failed + p.Without }

// owner is a book or series whose cover is made.
type owner struct {
	ID        uuid.UUID `db:"id"`
	LibraryID uuid.UUID `db:"library_id"`
}

// filling selects the owners whose covers a task makes: rows k of a table that match where, whose parameter is $1.
type filling struct {
	entity  events.EntityType
	from    string
	where   string
	arg     any
	queries []string // for the cover of one owner
	force   bool
}

// Books handles generate_thumbnails tasks.
func (f *Filler) Books(ctx context.Context, h task.Held) (any, error) {
	p, err := params(h)
	if err != nil {
		return nil, err
	}
	w := filling{entity: events.BookEntity, from: "book k where k.tenant_id = app.tenant() and k.deleted_at is null", queries: []string{bookCover}, force: p.Force}
	switch {
	case p.BookIDs != nil:
		w.where, w.arg = "k.id = any($1)", p.BookIDs
	case h.BookID != nil:
		w.where, w.arg = "k.id = $1", h.BookID
	case p.SeriesIDs != nil:
		w.where, w.arg = "k.series_id = any($1)", p.SeriesIDs
	case h.SeriesID != nil:
		w.where, w.arg = "k.series_id = $1", h.SeriesID
	default:
		w.where, w.arg = ofLibrary, h.LibraryID
	}
	return f.fill(ctx, h, w)
}

// Series handles generate_series_thumbnails tasks.
func (f *Filler) Series(ctx context.Context, h task.Held) (any, error) {
	p, err := params(h)
	if err != nil {
		return nil, err
	}
	w := filling{entity: events.SeriesEntity, from: "series k where k.tenant_id = app.tenant()", queries: seriesCovers, force: p.Force}
	switch {
	case p.SeriesIDs != nil:
		w.where, w.arg = "k.id = any($1)", p.SeriesIDs
	case h.SeriesID != nil:
		w.where, w.arg = "k.id = $1", h.SeriesID
	default:
		w.where, w.arg = ofLibrary, h.LibraryID
	}
	return f.fill(ctx, h, w)
}

// ofLibrary limits a task to one library, or to none.
const ofLibrary = "($1::uuid is null or k.library_id = $1)"

func params(h task.Held) (p cover.Params, err error) {
	if err = json.Unmarshal(h.Params, &p); err != nil {
		err = fmt.Errorf("read parameters of the cover task: %w", err)
	}
	return p, err
}

// fill makes the covers in batches, in the order of ids, from the task's checkpoint on.
func (f *Filler) fill(ctx context.Context, h task.Held, w filling) (any, error) {
	var at fillPlace
	if err := h.Resume(&at); err != nil {
		return nil, err
	}
	for {
		part, err := f.next(ctx, h, w, &at)
		if err != nil {
			return nil, err
		}
		if len(part) == 0 {
			return at.filled, nil
		}
		var done int
		err = f.Reading(ctx, func() error {
			done, err = f.fillPart(ctx, h, w, part, &at)
			return err
		})
		if err != nil {
			return nil, err
		}
		f.Publish(ctx, h.Tenant, task.ProgressEvent(h, at.done(), at.Total))
		if done < len(part) || task.MustPause(ctx) {
			return nil, task.Paused(at)
		}
	}
}

// next stores the checkpoint and selects the owners after it; the first time it also counts all.
func (f *Filler) next(ctx context.Context, h task.Held, w filling, at *fillPlace) ([]owner, error) {
	var b pgx.Batch
	var part []owner
	if at.After == nil {
		db.Value(&b, &at.Total, "select count(*) from "+w.from+" and "+w.where, w.arg)
	} else if err := task.QueueProgress(&b, h, at.done(), max(at.done(), at.Total), at); err != nil {
		return nil, err
	}
	db.All(&b, &part, "select k.id, k.library_id from "+w.from+" and "+w.where+" and ($2::uuid is null or k.id > $2) order by k.id limit $3", w.arg, at.After, fillBatch)
	return part, f.Database.Run(ctx, &b)
}

// outcome is the result for one cover.
type outcome struct {
	state
	why string // it failed
}

type state int

const (
	without state = iota
	kept
	made
	failed
)

// fillPart makes the covers of a batch and publishes events; done is how many it made before the task had to pause.
func (f *Filler) fillPart(ctx context.Context, h task.Held, w filling, part []owner, at *fillPlace) (done int, err error) {
	var b pgx.Batch
	var tenant *page.Owner
	page.QueueOwner(&b, &tenant)
	covers := make([]func() *coverRow, len(part))
	for i, o := range part {
		covers[i] = queueCovers(&b, w.queries, o.ID)
	}
	if err := f.Database.Run(ctx, &b); err != nil {
		return 0, err
	}
	if tenant == nil {
		return 0, fault.Missing("Tenant")
	}
	outcomes := make([]outcome, len(part))
	g, shared := errgroup.WithContext(ctx)
	g.SetLimit(f.Parallel)
	for i := range part {
		if i > 0 && task.MustPause(ctx) {
			break
		}
		done++
		g.Go(func() (err error) {
			outcomes[i], err = fault.Guarded(func() (outcome, error) { return f.one(shared, tenant, covers[i](), w.force) })()
			if errors.Is(err, fault.ErrPanic) { // one book must not keep the others from their covers
				slog.ErrorContext(ctx, "no cover, because making it crashed", "entity", w.entity, "entityId", part[i].ID, "error", err)
				outcomes[i], err = outcome{failed, "Making the cover crashed; the log of the worker has the cause"}, nil
			}
			return err
		})
	}
	failure := g.Wait()
	var told []events.Event
	for i, o := range part[:done] {
		switch outcomes[i].state {
		case without:
			at.Without++
		case kept:
			at.Kept++
		case failed:
			at.Failed++
			if len(at.Errors) < maxErrors {
				at.Errors = append(at.Errors, CoverError{o.ID, outcomes[i].why})
			}
		case made:
			at.Made++
			told = append(told, events.CoverUpdated(w.entity, o.ID, &o.LibraryID))
			if shown := covers[i]().ID; shown != o.ID { // a series shows the cover of a book
				told = append(told, events.CoverUpdated(events.BookEntity, shown, &o.LibraryID))
			}
		}
	}
	f.Publish(ctx, h.Tenant, told...) // also after a failure: the retry finds these covers, and tells nobody
	if failure != nil {
		return 0, failure
	}
	at.After = &part[done-1].ID
	return done, nil
}

// one makes one cover, unless it exists. It returns an error only if the store does not answer: a broken book must not
// keep the others from their covers.
func (f *Filler) one(ctx context.Context, tenant *page.Owner, row *coverRow, force bool) (outcome, error) {
	if row == nil {
		return outcome{}, nil
	}
	if !force {
		key := coverKey(tenant.ID, row.ID, tenant.Secret, row.Fingerprint, row.Cover)
		_, err := f.Media.ReadRange(ctx, f.Bucket, blob.Object{Key: key}, 0, 1)
		if err == nil {
			return outcome{state: kept}, nil
		}
		if !errors.Is(err, blob.ErrNotFound) {
			return outcome{}, unavailable(err)
		}
	}
	limited, cancel := context.WithTimeout(ctx, f.Timeout)
	defer cancel()
	source, err := f.coverSource(limited, row)
	warning := ""
	if err == nil {
		warning, err = f.StoreCover(limited, tenant.ID, row.ID, tenant.Secret, row.Fingerprint, row.Cover, source)
	}
	switch {
	case err == nil && warning == "":
		return outcome{state: made}, nil
	case ctx.Err() != nil:
		return outcome{}, ctx.Err()
	case warning != "":
		return outcome{failed, warning}, nil
	case limited.Err() != nil:
		return outcome{failed, fmt.Sprintf("Making the cover takes longer than %s", f.Timeout)}, nil
	case blob.Lost(err) && !row.uploaded():
		return outcome{failed, "The file is gone or has changed; scan the library"}, nil
	case standsIn(err):
		return outcome{failed, fault.From(err).Message}, nil
	case source == nil && f.notGiven(ctx, row, err):
		return outcome{failed, "The file cannot be opened; check its permissions"}, nil
	}
	return outcome{}, err
}

// notGiven reports whether an error means that the store lists the book's file but does not let anybody, or Longbox,
// read it. A retry would change nothing.
func (f *Filler) notGiven(ctx context.Context, row *coverRow, err error) bool {
	if row.uploaded() {
		return false
	}
	err = f.Content.Store.Why(ctx, row.Bucket, row.object(), err)
	return errors.Is(err, blob.ErrDenied) || errors.Is(err, blob.ErrClosed)
}
