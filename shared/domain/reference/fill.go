package reference

import (
	"context"
	"time"

	"github.com/longbox/longbox/shared/platform/db"
)

// Fill keeps what is searched for in titles that were written before it was kept, for some time; the rest waits for the
// next call. The scheduler calls it in every round, until no tenant is left. For the titles of one transaction the scans of
// their tenant wait.
func Fill(ctx context.Context, system *db.DB, given time.Duration) error {
	return fill(ctx, system, given, 1000)
}

func fill(ctx context.Context, system *db.DB, given time.Duration, atOnce int) error {
	return db.Fill{Table: "alternate_title_fill", Function: "app.fill_alternate_titles", AtOnce: atOnce, What: "what is searched for in alternate titles"}.Run(ctx, system, given)
}
