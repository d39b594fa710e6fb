package plugin

import (
	"context"
	"encoding/json"
	"math"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/automatch"
	"github.com/longbox/longbox/shared/platform/fault"
)

// wanted holds which items of a kind meet the conditions of automatic matching; nil if there are no conditions.
type wanted map[uuid.UUID]bool

// looksAtOnce is the number of items per batch.
const looksAtOnce = 100

// wantedOf checks which items meet the conditions.
func (r *Runner) wantedOf(ctx context.Context, kind string, of []item, conditions ...json.RawMessage) (wanted, error) {
	if !slices.ContainsFunc(conditions, automatch.Ruled) {
		return nil, nil
	}
	out := wanted{}
	for page := range slices.Chunk(of, looksAtOnce) {
		var b pgx.Batch
		loads := make([]func() (map[string]any, error), len(page))
		for i := range page {
			loads[i] = queueContext(&b, kind, &page[i])
		}
		if err := r.Database.Run(ctx, &b); err != nil {
			return nil, err
		}
		for i, load := range loads {
			about, err := load()
			if fault.Is(err, fault.NotFound) { // deleted meanwhile
				continue
			}
			if err != nil {
				return nil, err
			}
			no, err := failed(about, conditions...)
			if err != nil {
				return nil, err
			}
			out[page[i].ID] = no == nil
		}
	}
	return out, nil
}

// queueContext adds the selects of an item's context to the batch.
func queueContext(b *pgx.Batch, kind string, i *item) (load func() (map[string]any, error)) {
	read := queueSubject(b, kind, i)
	return func() (map[string]any, error) {
		s, err := read()
		if err != nil {
			return nil, err
		}
		return s.context()
	}
}

// failed returns a rule that a context fails, nil if it meets all conditions.
func failed(about map[string]any, all ...json.RawMessage) (*automatch.Rule, error) {
	for _, c := range all {
		if no, err := automatch.Unmet(c, about); err != nil || no != nil {
			return no, err
		}
	}
	return nil, nil
}

// share estimates from a sample of items how many of all items would be searched for.
func (w wanted) share(of int64) int64 {
	if len(w) == 0 {
		return of
	}
	return int64(math.Round(float64(of) * float64(len(w.ids())) / float64(len(w))))
}

// ids returns the ids of the wanted items; nil if there are no conditions.
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
