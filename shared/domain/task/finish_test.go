package task

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/testkit"
)

// The database ends a deadlock at the cost of who found it: the end of a task is recorded all the same, at once.
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
	config.RuntimeParams["deadlock_timeout"] = "1min" // so that it is not this one that finds the deadlock
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
