package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
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
	held, err := claim(ctx, d.System, "w", time.Minute, 1)
	must(t, err)
	if must(t, giveBack(ctx, d.System, held[0], nil, time.Hour)); count(t, d, "scheduled_for > now() + interval '50 minutes'") != 1 {
		t.Error("a task that continues in an hour is due now")
	}
	exec(t, d, "update task set scheduled_for = now()")
	held, err = claim(ctx, d.System, "w", time.Minute, 1)
	must(t, err)
	exec(t, d, "update task set status = 'cancelled', completed_at = now()")
	if must(t, giveBack(ctx, d.System, held[0], json.RawMessage(`8`), 0)); count(t, d, "status = 'cancelled'") != 1 {
		t.Error("a task that was cancelled while its handler paused runs again")
	}
	exec(t, d, "delete from task")
	all := family(t, d, tenant, 1)
	_, err = finish(ctx, d.System, all[0], nil, nil, nil)
	must(t, err)
	var b pgx.Batch
	var n int64
	QueueGiveBack(&b, &n)
	must(t, d.App.Run(db.In(ctx, db.Tenant(tenant)), &b))
	if n != 1 || count(t, d, "id = $1 and status = 'running' and done", all[0].ID) != 1 {
		t.Errorf("%d tasks were given back; the one that waits for its child is among them", n)
	}
}

// A task whose worker died continues from its last checkpoint, and not from the beginning.
func TestCheckpointOfADeadWorker(t *testing.T) {
	t.Parallel()
	d, ctx := testkit.DB(t), context.Background()
	tenant := d.Tenant(t, "one")
	add(t, d, tenant, 1)
	first, err := claim(ctx, d.System, "w", time.Minute, 1)
	must(t, err)
	must(t, giveBack(ctx, d.System, first[0], json.RawMessage(`7`), 0))
	died := func() {
		t.Helper()
		_, err := claim(ctx, d.System, "w", time.Minute, 1)
		must(t, err)
		exec(t, d, "update task set lease_until = now() - interval '1 second'")
	}
	died()
	_, err = Rescue(ctx, d.System, nil)
	must(t, err)
	next, err := claim(ctx, d.System, "w", time.Minute, 1)
	if err != nil || len(next) != 1 || next[0].Deaths != 1 || string(next[0].Place) != "7" {
		t.Fatalf("after the rescue: %+v, %v", next, err)
	}
	must(t, giveBack(ctx, d.System, next[0], nil, 0))
	died()
	taken, _, err := claimNamed(ctx, d.System, "w", time.Minute, tenant, first[0].ID)
	if err != nil || taken == nil || taken.Deaths != 2 || string(taken.Place) != "7" {
		t.Errorf("taken over: %+v, %v", taken, err)
	}
}

// A failed run is repeated after 30 seconds, the next one after a minute.
func TestRetriesWaitLonger(t *testing.T) {
	t.Parallel()
	d, ctx := testkit.DB(t), context.Background()
	tenant := d.Tenant(t, "one")
	add(t, d, tenant, 1)
	var id uuid.UUID
	must(t, d.Owner.Pool().QueryRow(ctx, "select id from task").Scan(&id))
	r := worker(d, func(context.Context, Held) (any, error) { return nil, errors.New("the store is away") })
	for _, wait := range []time.Duration{30 * time.Second, time.Minute} {
		var before time.Time
		must(t, d.Owner.Pool().QueryRow(ctx, "update task set scheduled_for = now() returning now()").Scan(&before))
		must(t, r.Take(ctx, message{tenant, id}.String()))
		if count(t, d, "status = 'pending' and scheduled_for between $1::timestamptz + $2 and now() + $2", before, wait) != 1 {
			t.Errorf("want a retry after %s", wait)
		}
	}
}

// A child of a cancelled parent that still runs writes nothing more, and is cancelled by the next rescue.
func TestChildOfACancelledParent(t *testing.T) {
	t.Parallel()
	d, ctx := testkit.DB(t), context.Background()
	all := family(t, d, d.Tenant(t, "one"), 1)
	must(t, d.App.Enter(db.In(ctx, all[1].Scope())))
	exec(t, d, "update task set status = 'cancelled', completed_at = now() where id = $1", all[0].ID)
	if err := d.App.Enter(db.In(ctx, all[1].Scope())); !db.LeaseLost(err) {
		t.Errorf("the child may still write: %v", err)
	}
	n, err := Rescue(ctx, d.System, nil)
	if err != nil || n != 1 || count(t, d, "id = $1 and status = 'cancelled' and completed_at is not null and lease_until is null", all[1].ID) != 1 {
		t.Errorf("%d tasks changed, the child is not cancelled: %v", n, err)
	}
}

func TestLast(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		attempts int
		err      error
		last     bool
	}{
		"another attempt is left":     {2, errors.New("away"), false},
		"the last attempt":            {3, errors.New("away"), true},
		"paused in the last attempt":  {3, Paused(1), false},
		"unavailable":                 {1, fault.New(fault.Unavailable, "away"), false},
		"refused":                     {1, fault.New(fault.BadRequest, "no"), true},
		"gone":                        {1, fault.New(fault.NotFound, "no"), true},
		"in conflict, told elsewhere": {1, fmt.Errorf("told: %w", fault.New(fault.Conflict, "no")), true},
	} {
		if got := (Held{Attempts: c.attempts, Allowed: 3}).Last(c.err); got != c.last {
			t.Errorf("%s: %v", name, got)
		}
	}
}
