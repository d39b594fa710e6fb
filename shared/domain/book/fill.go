package book

import (
	"context"
	"time"

	"github.com/longbox/longbox/shared/platform/db"
)

// Fill keeps the day that books came out with those whose metadata was written before it was kept, for some time; the rest
// waits for the next call. The scheduler calls it in every round, until no tenant is left. For the books of one transaction
// the scans of their tenant wait.
func Fill(ctx context.Context, system *db.DB, given time.Duration) error {
	return fill(ctx, system, given, 1000)
}

func fill(ctx context.Context, system *db.DB, given time.Duration, atOnce int) error {
	return db.Fill{Table: "release_fill", Function: "app.fill_release_days", AtOnce: atOnce, What: "the days that books came out"}.Run(ctx, system, given)
}
