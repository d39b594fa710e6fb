package plugin

import (
	"context"
	"encoding/json"
	"math"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/automatch"
	"github.com/longbox/longbox/shared/domain/series"
	"github.com/longbox/longbox/shared/platform/fault"
)

// searchedSeries is a series with items that must be searched for.
type searchedSeries struct {
	ID    uuid.UUID `db:"series_id"`
	Items int64     `db:"items"` // number of such items
}

// wanted holds which series meet the conditions of automatic matching; nil if there are no conditions.
type wanted map[uuid.UUID]bool

// looksAtOnce is the number of series per batch.
const looksAtOnce = 100

// wantedOf checks which series meet the conditions. The lists of the two kinds may overlap.
func (r *Runner) wantedOf(ctx context.Context, of [][]searchedSeries, conditions ...json.RawMessage) (wanted, error) {
	some := false
	for _, c := range conditions {
		some = some || automatch.Ruled(c)
	}
	if !some {
		return nil, nil
	}
	var ids []uuid.UUID
	for _, all := range of {
		for _, s := range all {
			if !slices.Contains(ids, s.ID) {
				ids = append(ids, s.ID)
			}
		}
	}
	out := wanted{}
	for page := range slices.Chunk(ids, looksAtOnce) {
		var b pgx.Batch
		loads := make([]func() (*series.Details, error), len(page))
		for i, id := range page {
			loads[i] = series.QueueDetails(&b, id)
		}
		if err := r.Database.Run(ctx, &b); err != nil {
			return nil, err
		}
		for i, load := range loads {
			d, err := load()
			if fault.Is(err, fault.NotFound) { // deleted meanwhile
				continue
			}
			if err != nil {
				return nil, err
			}
			if out[page[i]], err = meets(d, conditions); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// meets reports whether a series meets all conditions.
func meets(d *series.Details, all []json.RawMessage) (bool, error) {
	about, err := contextOf(d)
	if err != nil {
		return false, err
	}
	for _, c := range all {
		if no, err := automatch.Unmet(c, about); err != nil || no != nil {
			return false, err
		}
	}
	return true, nil
}

// share estimates from a sample of series how many of the items would be searched for.
func (w wanted) share(some []searchedSeries, of int64) int64 {
	if w == nil {
		return of
	}
	var met, seen int64
	for _, s := range some {
		if seen += s.Items; w[s.ID] {
			met += s.Items
		}
	}
	if seen == 0 {
		return of
	}
	return min(int64(math.Round(float64(of)*float64(met)/float64(seen))), of)
}

// ids returns the ids of the wanted series; nil if there are no conditions.
func (w wanted) ids() []uuid.UUID {
	if w == nil {
		return nil
	}
	out := []uuid.UUID{}
	for id, met := range w {
		if met {
			out = append(out, id)
		}
	}
	return out
}
