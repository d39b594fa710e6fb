package plugin

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/automatch"
	"github.com/longbox/longbox/shared/platform/fault"
)

// looksAtOnce is the number of items per batch.
const looksAtOnce = 100

// wanted returns which of some items meet the conditions of automatic matching, and how many of the items still exist;
// nil and 0 if there are no conditions.
func (r *Runner) wanted(ctx context.Context, kind string, of []item, conditions ...json.RawMessage) (ids []uuid.UUID, looked int, err error) {
	if !slices.ContainsFunc(conditions, automatch.Ruled) {
		return nil, 0, nil
	}
	ids = []uuid.UUID{}
	for page := range slices.Chunk(of, looksAtOnce) {
		var b pgx.Batch
		loads := make([]func() (subject, error), len(page))
		for i := range page {
			loads[i] = queueSubject(&b, kind, &page[i])
		}
		if err := r.Database.Run(ctx, &b); err != nil {
			return nil, 0, err
		}
		for i, load := range loads {
			s, err := load()
			if fault.Is(err, fault.NotFound) { // deleted meanwhile
				continue
			}
			if err != nil {
				return nil, 0, err
			}
			about, err := s.context()
			if err != nil {
				return nil, 0, err
			}
			no, err := failed(about, conditions...)
			if err != nil {
				return nil, 0, err
			}
			if no == nil {
				ids = append(ids, page[i].ID)
			}
			looked++
		}
	}
	return ids, looked, nil
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
