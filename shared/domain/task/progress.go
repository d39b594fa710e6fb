package task

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
)

// QueueProgress stores the progress of a task, and the checkpoint from which another run continues if this one dies.
func QueueProgress(b *pgx.Batch, h Held, current, total int64, place any) error {
	data, err := json.Marshal(place)
	if err != nil {
		return fmt.Errorf("encode checkpoint: %w", err)
	}
	b.Queue("update task set progress_current = $2, progress_total = $3, place = $4 where tenant_id = app.tenant() and id = $1", h.ID, current, total, json.RawMessage(data))
	return nil
}

// QueueDone adds a child's work to the progress of its parent, and reads the parent for ProgressEvent.
func QueueDone(b *pgx.Batch, parent uuid.UUID, done int, dst **Held) {
	db.One(b, dst, `with t as (update task set progress_current = least(progress_current + $2, progress_total)
		where tenant_id = app.tenant() and id = $1 returning *) select `+heldColumns+" from t"+countedBy, parent, done)
}

// ProgressEvent returns the event for the progress of a running task.
func ProgressEvent(h Held, current, total int64) events.Event {
	h.Current, h.Total = current, total
	return progressEvent(h, Running, nil)
}

func progressEvent(h Held, status string, failure *string) events.Event {
	e := events.TaskProgress{TaskID: h.ID, TaskType: h.Type, Status: status, Progress: events.Progress{Current: h.Current, Total: h.Total},
		Error: failure, StartedAt: h.Started, LibraryID: h.LibraryID, SeriesID: h.SeriesID, BookID: h.BookID}
	if status != Running && status != Pending {
		e.CompletedAt = new(time.Now().UTC())
	}
	return Progressed(e)
}

// Progressed returns the task_progress event and adds a message. All listeners get it, so it omits the error of a task
// for a single user.
func Progressed(p events.TaskProgress) events.Event {
	if kinds[p.TaskType].personal {
		p.Error = nil
	}
	p.Progress.Message = describe(p.TaskType, p.Status, p.Progress.Current, p.Progress.Total)
	return events.TaskProgressed(p)
}

// describe returns a message for people: what a task does, its progress if it counts, and its end if it does not run
// ("Scanning the library: 42 of 100 files").
func describe(typ, status string, current, total int64) string {
	k := kinds[typ]
	does := cmp.Or(k.does, typ) // a type of another version
	var more []string
	if total > 0 {
		more = append(more, fmt.Sprintf("%d of %d%s", current, total, k.items))
	}
	if status != Running {
		more = append(more, status)
	}
	if len(more) == 0 {
		return does
	}
	return does + ": " + strings.Join(more, ", ")
}
