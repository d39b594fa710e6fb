package rendition

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/collection"
	"github.com/longbox/longbox/shared/domain/series"
	"github.com/longbox/longbox/shared/platform/db"
)

// lookedAt is the number of series of an automatic collection that are searched for a cover.
const lookedAt = 50

// automaticCover returns the cover of the first series that meets a collection's condition for the caller; nil if there
// is none, or if the collection's members were chosen. The series may change at any moment.
func (m *Maker) automaticCover(ctx context.Context, id uuid.UUID) (row *coverRow, err error) {
	err = collection.Automatic(ctx, m.Database, id, func(b *pgx.Batch, members *series.Listed) {
		page, args := members.Page(lookedAt, 0)
		db.One(b, &row, firstCover("select id, row_number() over () as place, id as member from ("+page+") p"), args...)
	})
	return row, err
}
