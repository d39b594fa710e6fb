package rendition

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/blob"
)

// pageLife is how long a stored page rendition is kept; covers stay.
const pageLife = 30 * 24 * time.Hour

// Expire deletes a tenant's page renditions that are past their time, and says how many. In the cloud the
// bucket's lifecycle rule does this.
func Expire(ctx context.Context, store *blob.Store, bucket string, tenant uuid.UUID, now time.Time) (int, error) {
	n := 0
	for page, err := range store.List(ctx, bucket, tenant.String()+"/page/", "") {
		if err != nil {
			return n, err
		}
		for _, o := range page {
			if now.Sub(o.Modified) < pageLife {
				continue
			}
			if err := store.Delete(ctx, bucket, o.Key); err != nil {
				return n, err
			}
			n++
		}
	}
	return n, nil
}
