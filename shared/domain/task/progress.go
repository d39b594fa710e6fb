package task

import (
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/events"
)

// QueueProgress notes how far a task is, and the place where another run goes on if this one dies.
func QueueProgress(b *pgx.Batch, h Held, current, total int64, place any) error {
	data, err := json.Marshal(place)
	if err != nil {
		return fmt.Errorf("place of the task: %w", err)
	}
	b.Queue("update task set progress_current = $2, progress_total = $3, place = $4 where tenant_id = app.tenant() and id = $1", h.ID, current, total, json.RawMessage(data))
	return nil
}

// ProgressEvent tells listeners how far a running task is.
func ProgressEvent(h Held, current, total int64) events.Event {
	p := progress(h, Running)
	p.Progress = &events.Progress{Current: current, Total: total}
	return events.TaskProgressed(p)
}

func progress(h Held, status string) events.TaskProgress {
	return events.TaskProgress{TaskID: h.ID, TaskType: h.Type, Status: status, StartedAt: utc(h.Started),
		LibraryID: h.LibraryID, SeriesID: h.SeriesID, BookID: h.BookID}
}
