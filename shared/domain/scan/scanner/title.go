package scanner

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/library"
	"github.com/longbox/longbox/shared/domain/strategy"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
)

// titleBatch is the number of series per transaction.
const titleBatch = 500

// changesKept is the maximum number of changes in a task's result.
const changesKept = 1000

type titleParams struct {
	DryRun    bool        `json:"dryRun"`
	SeriesIDs []uuid.UUID `json:"seriesIds"` // of any libraries; nil: the task's target
}

// TitleChange is the result for one series.
type TitleChange struct {
	SeriesID         uuid.UUID `json:"seriesId"`
	OriginalTitle    string    `json:"originalTitle"`
	NewTitle         string    `json:"newTitle"`
	Changed          bool      `json:"changed"`
	Skipped          bool      `json:"skipped"`
	SkipReason       *string   `json:"skipReason"`
	TitleSortCleared bool      `json:"titleSortCleared"`
}

// TitleChanges is the result and checkpoint of a task that retitles series. Results omits series whose title stays.
type TitleChanges struct {
	Changed   int           `json:"changed"`
	Skipped   int           `json:"skipped"`
	Unchanged int           `json:"unchanged"`
	DryRun    bool          `json:"dryRun"`
	Results   []TitleChange `json:"results"`
	After     *uuid.UUID    `json:"after,omitempty"` // last series processed; nil when all were
}

type nameRow struct {
	ID        uuid.UUID `db:"id"`
	LibraryID uuid.UUID `db:"library_id"`
	Name      string    `db:"name"`
	Title     string    `db:"title"`
	TitleSort *string   `db:"custom_title_sort"`
	Locks     []string  `db:"locks"`
}

// ReprocessTitles handles reprocess_series_titles tasks: it retitles one, several or all series of a library by the
// library's rules for folder names. Locked titles stay.
func (s *Scanner) ReprocessTitles(ctx context.Context, h task.Held) (any, error) {
	var p titleParams
	if err := json.Unmarshal(h.Params, &p); err != nil {
		return nil, fmt.Errorf("read parameters of the titles: %w", err)
	}
	done := TitleChanges{DryRun: p.DryRun, Results: []TitleChange{}}
	if err := h.Resume(&done); err != nil {
		return nil, err
	}
	for {
		n, err := s.reprocess(ctx, h, p.SeriesIDs, &done)
		if err != nil {
			return nil, err
		}
		if n < titleBatch {
			done.After = nil
			return done, nil
		}
		if task.MustPause(ctx) {
			return nil, task.Paused(done)
		}
	}
}

// reprocess retitles one batch, in one transaction per library; n is the number of series it checked.
func (s *Scanner) reprocess(ctx context.Context, h task.Held, chosen []uuid.UUID, done *TitleChanges) (n int, err error) {
	rows, err := db.List[nameRow](ctx, s.Database, `select id, library_id, name, title, custom_title_sort, locks from series
		where tenant_id = app.tenant() and ($1::uuid is null or library_id = $1) and ($2::uuid is null or id = $2) and ($3::uuid[] is null or id = any($3))
		  and ($4::uuid is null or id > $4)
		order by id limit $5`, h.LibraryID, h.SeriesID, chosen, done.After, titleBatch)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	libraries := map[uuid.UUID][]nameRow{}
	for _, row := range rows {
		libraries[row.LibraryID] = append(libraries[row.LibraryID], row)
	}
	for id, part := range libraries {
		if err := s.reprocessOf(ctx, h.Tenant, id, part, done); err != nil {
			return 0, err
		}
	}
	done.After = &rows[len(rows)-1].ID
	return len(rows), nil
}

// reprocessOf retitles series of one library; nothing is done if the library was deleted meanwhile.
func (s *Scanner) reprocessOf(ctx context.Context, tenant, library uuid.UUID, rows []nameRow, done *TitleChanges) error {
	r, err := s.open(ctx, tenant, library)
	if err != nil || r == nil {
		return err
	}
	changed := done.add(rows, r.rules)
	if done.DryRun {
		return nil
	}
	return r.rename(ctx, changed)
}

// add counts the results, and returns the series that get another title.
func (t *TitleChanges) add(rows []nameRow, rules []library.TitleRule) (changed []TitleChange) {
	for _, row := range rows {
		c := TitleChange{SeriesID: row.ID, OriginalTitle: row.Title, NewTitle: library.CleanTitle(rules, row.Name)}
		switch {
		case c.NewTitle == row.Title:
			t.Unchanged++
			continue
		case slices.Contains(row.Locks, "title"):
			c.Skipped, c.SkipReason = true, new("The title is locked")
			t.Skipped++
		default:
			c.Changed, c.TitleSortCleared = true, row.TitleSort != nil && !slices.Contains(row.Locks, "titleSort")
			t.Changed++
			changed = append(changed, c)
		}
		if len(t.Results) < changesKept {
			t.Results = append(t.Results, c)
		}
	}
	return changed
}

// rename sets the new titles of series, unless they were locked meanwhile, and renames the books that are named after
// them.
func (r *run) rename(ctx context.Context, changed []TitleChange) error {
	if len(changed) == 0 {
		return nil
	}
	var ids, renamed []uuid.UUID
	var titles, sorts, searches []string
	for _, c := range changed {
		ids, titles = append(ids, c.SeriesID), append(titles, c.NewTitle)
		sorts, searches = append(sorts, naming.SortTitle(c.NewTitle)), append(searches, naming.Normalize(c.NewTitle))
	}
	var b pgx.Batch
	queueLock(&b, r.library.ID)
	db.Values(&b, &renamed, `update series s set title = u.title, search_title = u.search, updated_at = now(),
		  custom_title_sort = case when 'titleSort' = any(s.locks) then s.custom_title_sort end,
		  title_sort = case when 'titleSort' = any(s.locks) then s.title_sort else u.sort end
		from unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) as u(id, title, sort, search)
		where s.tenant_id = app.tenant() and s.id = u.id and not 'title' = any(s.locks) returning s.id`, ids, titles, sorts, searches)
	out, err := r.runAndArrange(ctx, &b, map[uuid.UUID]*strategy.Set{r.library.ID: r.set}, false, func() map[uuid.UUID][]uuid.UUID {
		return map[uuid.UUID][]uuid.UUID{r.library.ID: renamed}
	})
	if err != nil {
		return err
	}
	for _, id := range renamed {
		out = append(out, events.SeriesUpdated(events.Series{ID: id, LibraryID: r.library.ID}, "title"))
	}
	r.Publish(ctx, r.tenant, out...)
	return nil
}

// RenumberSeries handles renumber_series tasks: it renumbers the books of a series by the library's strategy, reading
// their files if needed. Locked numbers stay. A task for several series adds a child per series.
func (s *Scanner) RenumberSeries(ctx context.Context, h task.Held) (any, error) {
	if h.SeriesID == nil {
		var p struct {
			SeriesIDs []uuid.UUID `json:"seriesIds"`
		}
		if err := json.Unmarshal(h.Params, &p); err != nil {
			return nil, fmt.Errorf("read parameters of the numbering: %w", err)
		}
		return s.renumberEach(ctx, h, p.SeriesIDs)
	}
	r, err := s.open(ctx, h.Tenant, *h.LibraryID)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, fault.New(fault.NotFound, "The library was deleted")
	}
	if !r.set.Positions() {
		h.ParentID = nil // the task for several series is no scan that arranges at its end
		return s.AnalyzeSeries(ctx, h)
	}
	return nil, r.arrangeSeries(ctx, []uuid.UUID{*h.SeriesID})
}
