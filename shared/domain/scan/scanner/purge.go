package scanner

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
)

// purge removes the books marked deleted for good, with their progress, and the series left empty where the
// setting purge.purge_empty_series allows. Library files are never touched.
func (s *run) purge(ctx context.Context) error {
	for {
		var b pgx.Batch
		var books []written
		queueLock(&b, s.library.ID)
		db.All(&b, &books, `delete from book where tenant_id = app.tenant() and id in (
			  select id from book where tenant_id = app.tenant() and library_id = $1 and deleted_at is not null limit $2)
			returning id, series_id, revision`, s.library.ID, writeBatch)
		var series []uuid.UUID
		db.Values(&b, &series, `delete from series s where tenant_id = app.tenant() and library_id = $1 and book_count = 0
			and not exists (select from book b where b.tenant_id = app.tenant() and b.series_id = s.id)
			and coalesce((select value from setting where tenant_id = app.tenant() and key = 'purge.purge_empty_series'), 'true') = 'true'
			returning id`, s.library.ID)
		if err := s.Database.Run(ctx, &b); err != nil {
			return err
		}
		var out []events.Event
		for _, w := range books {
			out = append(out, events.BookDeleted(events.Book{ID: w.ID, SeriesID: w.SeriesID, LibraryID: s.library.ID}))
		}
		for _, id := range series {
			delete(s.touched, id)
			out = append(out, events.SeriesDeleted(events.Series{ID: id, LibraryID: s.library.ID}))
		}
		s.Publish(ctx, s.tenant, out...)
		if len(books) < writeBatch {
			return nil
		}
		if task.MustPause(ctx) {
			return s.pause()
		}
	}
}
