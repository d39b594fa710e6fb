package taxonomy

import (
	"context"
	"time"

	"github.com/longbox/longbox/shared/platform/db"
)

// FillSome is Fill with so many books at once.
func FillSome(ctx context.Context, system *db.DB, atOnce int) error {
	return fill(ctx, system, time.Minute, atOnce)
}

// CountUsed is the statement that counts genres.
var CountUsed = "select count(*) from genre t where t.tenant_id = app.tenant() and " + genres.used()
