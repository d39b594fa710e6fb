package task

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
)

// nuke deletes every task of the tenant and returns their number and the events of those that were running, which the
// caller publishes. Workers notice at their next write, which is refused, or within a second.
//
// Children come first, as when a child ends. The last pass takes those that were added while the second one waited:
// their parents are gone then, so no more come.
func nuke(ctx context.Context, d *db.DB) (int64, []events.Event, error) {
	var passes [3]int64
	ended, err := db.RetryDeadlock(func() ([]changed, error) {
		var b pgx.Batch
		var children, ran []changed
		db.NoStatementTimeout(&b) // 100,000 tasks take long
		const running = `select t.status as before, ` + changedColumns + ` from task t` + countedBy + `
			where t.tenant_id = app.tenant() and t.status = 'running' and t.parent_id is `
		db.All(&b, &children, running+"not null for update of t")
		db.Affected(&b, &passes[0], "delete from task where tenant_id = app.tenant() and parent_id is not null")
		db.All(&b, &ran, running+"null for update of t")
		db.Affected(&b, &passes[1], "delete from task where tenant_id = app.tenant()")
		db.Affected(&b, &passes[2], "delete from task where tenant_id = app.tenant()")
		err := d.Run(ctx, &b)
		return append(children, ran...), err
	})
	if err != nil {
		return 0, nil, err
	}
	now := time.Now().UTC()
	var out []events.Event
	for i := range ended {
		ended[i].Status, ended[i].CompletedAt = Cancelled, &now
		out = append(out, ended[i].events()...)
	}
	return passes[0] + passes[1] + passes[2], out, nil
}
