package taxonomy

import (
	"context"
	"time"

	"github.com/longbox/longbox/shared/platform/db"
)

// Fill gives books that were read before there were genres and tags of books those that their files named then, for some
// time; the rest waits for the next call. The scheduler calls it in every round, until no tenant is left. For the books of
// one transaction the scans of their tenant wait.
func Fill(ctx context.Context, system *db.DB, given time.Duration) error {
	return fill(ctx, system, given, 1000)
}

func fill(ctx context.Context, system *db.DB, given time.Duration, atOnce int) error {
	return db.Fill{Table: "term_fill", Function: "app.fill_terms", AtOnce: atOnce, What: "the genres and tags that the files of books name"}.Run(ctx, system, given)
}
