package reference

import (
	"context"
	"time"

	"github.com/longbox/longbox/shared/platform/db"
)

// FillSome is Fill with so many titles at once.
func FillSome(ctx context.Context, system *db.DB, atOnce int) error {
	return fill(ctx, system, time.Minute, atOnce)
}
