package task

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/testkit"
)

// The database aborts a transaction of a deadlock: the end of a task is recorded anyway, immediately.
func TestFinishAfterADeadlock(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	tenant := d.Tenant(t, "one")
	all := family(t, d, tenant, 1)
	parent, child := all[0], all[1]
	ctx := context.Background()
	config, err := pgx.ParseConfig(testkit.Superuser(t))
	must(t, err)
	config.Database = d.Owner.Pool().Config().ConnConfig.Database
	config.RuntimeParams["deadlock_timeout"] = "1min" // so that another transaction is aborted
	conn, err := pgx.ConnectConfig(ctx, config)
	must(t, err)
	defer conn.Close(context.Background())
	other, err := conn.Begin(ctx)
	must(t, err)
	_, err = other.Exec(ctx, "select from task where id = $1 for update", parent.ID)
	must(t, err)
	ended := make(chan []state)
	go func() {
		states, err := finish(ctx, d.System, child, nil, nil, nil)
		if err != nil {
			t.Error(err)
		}
		ended <- states
	}()
	testkit.Eventually(t, 10*time.Second, func() bool {
		var waits bool
		err := d.Owner.Pool().QueryRow(ctx, `select exists (select from pg_locks l join pg_stat_activity a using (pid)
			where not l.granted and a.datname = current_database())`).Scan(&waits)
		return err == nil && waits
	})
	_, err = other.Exec(ctx, "select from task where id = $1 for update", child.ID)
	must(t, err)
	must(t, other.Commit(ctx))
	if states := <-ended; len(states) != 2 || states[0].Status != Completed {
		t.Errorf("%v", states)
	}
}

// A task that is given back keeps its checkpoint, and does not disturb its next worker or the children that it waits
// for.
func TestGiveBack(t *testing.T) {
	t.Parallel()
	d, ctx := testkit.DB(t), context.Background()
	tenant := d.Tenant(t, "one")
	add(t, d, tenant, 1)
	for _, place := range []json.RawMessage{json.RawMessage(`7`), nil} { // paused; stopped
		held, err := claim(ctx, d.System, "w", time.Minute, 1)
		must(t, err)
		late := held[0]
		late.Epoch--
		must(t, giveBack(ctx, d.System, late, nil, 0))
		if count(t, d, "status = 'running'") != 1 {
			t.Fatal("a worker that had lost the task took it from the next one")
		}
		if must(t, giveBack(ctx, d.System, held[0], place, 0)); count(t, d, "status = 'pending' and attempts = 0 and place = '7'") != 1 {
			t.Errorf("with the place %s: the place or an attempt is lost", place)
		}
	}
	exec(t, d, "delete from task")
	all := family(t, d, tenant, 1)
	_, err := finish(ctx, d.System, all[0], nil, nil, nil)
	must(t, err)
	var b pgx.Batch
	var n int64
	QueueGiveBack(&b, &n)
	must(t, d.App.Run(db.In(ctx, db.Tenant(tenant)), &b))
	if n != 1 || count(t, d, "id = $1 and status = 'running' and done", all[0].ID) != 1 {
		t.Errorf("%d tasks were given back; the one that waits for its child is among them", n)
	}
}
