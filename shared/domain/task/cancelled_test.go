package task

import (
	"context"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/testkit"
)

// A worker's event for a task that was just cancelled is not the last event that listeners get.
func TestProgressAfterTheCancellation(t *testing.T) {
	t.Parallel()
	for name, child := range map[string]bool{"of the task": false, "of its parent": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := testkit.DB(t)
			tenant := d.Tenant(t, "one")
			ctx := db.In(context.Background(), db.Tenant(tenant))
			var parent, id uuid.UUID
			var b pgx.Batch
			must(t, Add(&b, Spec{Type: AnalyzeLibrary}, &parent))
			must(t, d.App.Run(ctx, &b))
			id = parent
			if child {
				exec(t, d, "update task set status = 'running', started_at = now(), done = true, open_children = 1 where id = $1", parent)
				b = pgx.Batch{}
				must(t, Add(&b, Spec{Type: AnalyzeBooks, ParentID: &parent}, &id))
				must(t, d.App.Run(ctx, &b))
			}
			var told []string
			publish := func(_ context.Context, _ uuid.UUID, all ...events.Event) {
				for _, e := range all {
					if p := e.Data.(events.TaskProgress); p.TaskID == parent {
						told = append(told, p.Status)
					}
				}
			}
			work := func(run context.Context, h Held) (any, error) {
				ended, err := Cancel(ctx, d.App, parent)
				must(t, err)
				publish(ctx, tenant, ended...)
				of := h
				of.ID = parent
				publish(ctx, tenant, ProgressEvent(of, 3, 9))
				return nil, d.App.Enter(run)
			}
			r := worker(d, work)
			r.Handlers[AnalyzeLibrary], r.Publish = work, publish
			must(t, r.Take(ctx, message{tenant, id}.String()))
			if len(told) == 0 || told[len(told)-1] != Cancelled || !slices.Contains(told[:len(told)-1], Running) {
				t.Errorf("told %q", told)
			}
		})
	}
}
