package task

import (
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
)

// Wake is the channel that tells workers on the same database that a task was added.
const Wake = "longbox_task"

// Add queues the insertion of a task into the batch that causes it; id receives its id, or that of the
// unfinished task with the same DedupeKey.
func Add(b *pgx.Batch, s Spec, id *uuid.UUID) error {
	params := json.RawMessage(`{}`)
	if s.Params != nil {
		data, err := json.Marshal(s.Params)
		if err != nil {
			return fmt.Errorf("task %s: params: %w", s.Type, err)
		}
		params = data
	}
	fresh := s.ID
	if fresh == uuid.Nil {
		var err error
		if fresh, err = uuid.NewV7(); err != nil {
			return err
		}
	}
	var dedupe *string
	if s.DedupeKey != "" {
		dedupe = &s.DedupeKey
	}
	db.Value(b, id, `insert into task (tenant_id, id, type, priority, params, library_id, series_id, book_id, parent_id, dedupe_key, created_by)
		values (app.tenant(), $1, $2, $3, $4, $5, $6, $7, $8, $9, app.account())
		on conflict (tenant_id, dedupe_key) where dedupe_key is not null and status in ('pending', 'running')
		do update set priority = greatest(task.priority, excluded.priority)
		returning id`, fresh, s.Type, priorities[s.Type], params, s.LibraryID, s.SeriesID, s.BookID, s.ParentID, dedupe)
	b.Queue("select pg_notify($1, '')", Wake)
	return nil
}
