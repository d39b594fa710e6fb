package scheduler

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/longbox/longbox/shared/platform/blob"
)

// expireFor limits the time for expired objects in one round. Each prefix has its part.
const expireFor = 20 * time.Second

// expiry deletes expired page renditions and exports: below each prefix about thirty times in the life of an object,
// since the whole listing is read to find them. An AWS bucket has lifecycle rules instead.
type expiry struct {
	media  *blob.Store
	bucket string
	places map[string]string    // the last key of each prefix that is not finished
	done   map[string]time.Time // when each prefix was finished
}

// delete deletes what has expired below the prefixes that are due, for about the given time each; the next call
// continues. Objects that the store refuses to delete do not stop the rest.
func (e *expiry) delete(ctx context.Context, now time.Time, within time.Duration) error {
	var failures error
	for prefix, life := range blob.Lives {
		if now.Sub(e.done[prefix]) < life/30 {
			continue
		}
		failures = errors.Join(failures, e.below(ctx, prefix, now, now.Add(-life), time.Now().Add(within)))
	}
	return failures
}

func (e *expiry) below(ctx context.Context, prefix string, now, before, end time.Time) (refused error) {
	for page, err := range e.media.List(ctx, e.bucket, prefix, e.places[prefix]) {
		if err != nil {
			return errors.Join(refused, err)
		}
		if len(page) == 0 {
			break
		}
		last := page[len(page)-1].Key
		page = slices.DeleteFunc(page, func(o blob.Object) bool { return !o.Modified.Before(before) })
		if _, err := e.media.DeleteAll(ctx, e.bucket, prefix, page); errors.As(err, new(*blob.Undeleted)) {
			refused = cmp.Or(refused, err)
		} else if err != nil {
			return errors.Join(refused, err)
		}
		e.places[prefix] = last
		if time.Now().After(end) {
			return refused
		}
	}
	delete(e.places, prefix)
	e.done[prefix] = now
	return refused
}
