package taxonomy

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
)

// RemoveTag takes a tag from that many series and books at once, until end.
func RemoveTag(ctx context.Context, d *db.DB, id uuid.UUID, rows int, end time.Time) ([]events.Event, error) {
	return tags.remove(ctx, d, id, rows, end)
}

// CountUsed is the statement that counts genres.
var CountUsed = "select count(*) from genre t where t.tenant_id = app.tenant() and " + genres.used()
