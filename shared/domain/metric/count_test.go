package metric_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/task"
)

// Each way for a task to end is counted exactly once.
func TestEveryEndIsCountedOnce(t *testing.T) {
	t.Parallel()
	s := serve(t)
	me, ctx := s.User(t, "one", "admin"), context.Background()
	rescue := func() {
		t.Helper()
		if _, err := task.Rescue(ctx, s.DB.System, nil); err != nil {
			t.Fatal(err)
		}
	}
	// waiting creates a parent whose own work is done, and its only child.
	waiting := func(typ string) (parent, child uuid.UUID) {
		parent = begun(t, s, s.One, typ, time.Second, 0)
		child = begun(t, s, s.One, "child", time.Second, 0)
		exec(t, s, "update task set done = true, open_children = 1, lease_until = null where id = $1", parent)
		exec(t, s, "update task set parent_id = $2 where id = $1", child, parent)
		return parent, child
	}
	for _, c := range []struct {
		typ               string
		end               func()
		succeeded, failed float64
	}{
		{"completed", func() {
			id := begun(t, s, s.One, "completed", time.Second, 0)
			finish(t, s, s.One, id, nil, "")
			finish(t, s, s.One, id, nil, "") // the worker reports it twice
		}, 1, 0},
		{"failed", func() { finish(t, s, s.One, begun(t, s, s.One, "failed", time.Second, 0), nil, "broken") }, 0, 1},
		{"tried again", func() {
			id := begun(t, s, s.One, "tried again", time.Second, 0)
			system(t, s, "select app.finish_task($1, $2, 1, null, 'broken', interval '0')", s.One, id)
			if counted(t, me, "tried again") != nil {
				t.Error("an attempt was counted as an end")
			}
			exec(t, s, "update task set status = 'running', attempts = 2 where id = $1", id)
			finish(t, s, s.One, id, nil, "")
		}, 1, 0},
		{"given up", func() {
			id := add(t, s, s.One, task.Spec{Type: "given up"})
			system(t, s, "select app.fail_task($1, $2, 'its message came too often')", s.One, id)
		}, 0, 1},
		{"silent", func() {
			id := begun(t, s, s.One, "silent", time.Second, 0)
			exec(t, s, "update task set lease_until = now() - interval '1 second', max_attempts = 1 where id = $1", id)
			rescue()
			rescue()
		}, 0, 1},
		{"parent of an ended child", func() {
			_, child := waiting("parent of an ended child")
			finish(t, s, s.One, child, nil, "")
		}, 1, 0},
		{"parent of a cancelled child", func() {
			_, child := waiting("parent of a cancelled child")
			me.Do("POST", "/api/v1/tasks/"+child.String()+"/cancel", nil).Want(200)
		}, 1, 0},
		{"parent of a lost child", func() {
			_, child := waiting("parent of a lost child")
			exec(t, s, "delete from task where id = $1", child)
			rescue()
		}, 1, 0},
		{"cancelled", func() {
			id := begun(t, s, s.One, "cancelled", time.Second, 0)
			me.Do("POST", "/api/v1/tasks/"+id.String()+"/cancel", nil).Want(200)
		}, 0, 0},
		{"by hand again", func() {
			id := begun(t, s, s.One, "by hand again", time.Second, 0)
			finish(t, s, s.One, id, nil, "broken")
			me.Do("POST", "/api/v1/tasks/"+id.String()+"/retry", nil).Want(200)
			exec(t, s, "update task set status = 'running', started_at = now() where id = $1", id)
			finish(t, s, s.One, id, nil, "")
		}, 1, 1},
	} {
		c.end()
		m := counted(t, me, c.typ)
		if c.succeeded+c.failed == 0 {
			if m != nil {
				t.Errorf("%s: %v", c.typ, m)
			}
			continue
		}
		if m == nil || m["succeeded"] != c.succeeded || m["failed"] != c.failed || m["executed"] != c.succeeded+c.failed {
			t.Errorf("%s: %v, want %v succeeded and %v failed", c.typ, m, c.succeeded, c.failed)
		}
	}
	if m := counted(t, me, "child"); m["executed"] != 1.0 { // of three, one ended, one was cancelled, one vanished
		t.Errorf("children: %v", m)
	}
	if m := counted(t, me, "tried again"); m["retried"] != 1.0 || m["lastError"] != nil {
		t.Errorf("tried again: %v", m)
	}
	if m := counted(t, me, "given up"); m["avgDurationMs"] != nil || m["minDurationMs"] != nil || m["p95DurationMs"] != nil || m["lastError"] != "its message came too often" {
		t.Errorf("a task that never began: %v", m)
	}
	if n := rows(t, s, s.Two); n != 0 {
		t.Errorf("another tenant has %d rows", n)
	}
}

// Workers end children and parents while a scheduler runs and metrics are deleted: there is no deadlock, and every end
// is in the metrics or was deleted.
func TestCountingBesideOthers(t *testing.T) {
	t.Parallel()
	s := serve(t)
	admin := s.User(t, "one", "admin")
	var parents, children []uuid.UUID
	for range 8 {
		parent := begun(t, s, s.One, "parent", time.Second, 0)
		exec(t, s, "update task set done = true, open_children = 8, lease_until = null where id = $1", parent)
		parents = append(parents, parent)
		for range 8 {
			child := begun(t, s, s.One, "child", time.Second, 0)
			exec(t, s, "update task set parent_id = $2 where id = $1", child, parent)
			children = append(children, child)
		}
	}
	for _, typ := range []string{"parent", "child"} { // they end in the other order within one statement
		for range 4 {
			id := begun(t, s, s.One, typ, time.Second, 0)
			exec(t, s, "update task set lease_until = now() - interval '1 second', max_attempts = 1 where id = $1", id)
		}
	}
	var all sync.WaitGroup
	work := make(chan uuid.UUID)
	for range 8 {
		all.Go(func() {
			for id := range work {
				finish(t, s, s.One, id, nil, "")
			}
		})
	}
	removed := 0.0
	all.Go(func() {
		if _, err := task.Rescue(context.Background(), s.DB.System, nil); err != nil {
			t.Error(err)
		}
		for range 5 {
			for method, at := range map[string]string{"DELETE": base, "POST": base + "/cleanup"} {
				if r := admin.Do(method, at, nil); r.Status != 200 {
					t.Errorf("status %d: %s", r.Status, r.Body)
				}
			}
			removed++
		}
	})
	for i := range children {
		work <- children[i%8*8+i/8] // round-robin over the parents
	}
	close(work)
	all.Wait()
	admin.Do("DELETE", base, nil).Want(200)
	for _, id := range parents {
		if m := admin.Do("GET", "/api/v1/tasks/"+id.String(), nil).Want(200).Map(); m["status"] != "completed" {
			t.Errorf("a parent is %v", m["status"])
		}
	}
	// Without the others, every concurrent end is counted.
	for range 40 {
		children = append(children, begun(t, s, s.One, "child", time.Second, 0))
	}
	var rest sync.WaitGroup
	for _, id := range children[64:] {
		rest.Go(func() { finish(t, s, s.One, id, nil, "") })
	}
	rest.Wait()
	if m := counted(t, admin, "child"); m["succeeded"] != 40.0 {
		t.Errorf("of 40 that ended at once: %v", m)
	}
}

func TestDisabledCountsNothing(t *testing.T) {
	t.Parallel()
	s := serve(t)
	me := s.User(t, "one", "reader")
	figure(t, s, s.One, 1, "before", 3, 0)
	keep(t, s, s.One, "disabled")
	finish(t, s, s.One, begun(t, s, s.One, "now", time.Second, 0), nil, "")
	if n := rows(t, s, s.One); n != 1 {
		t.Errorf("%d rows", n)
	}
	m := me.Do("GET", base, nil).Want(200).Map()
	if m["retention"] != "disabled" || len(m["byType"].([]any)) != 0 || m["summary"].(map[string]any)["totalExecuted"] != 0.0 {
		t.Errorf("%v", m)
	}
	if m := me.Do("GET", base+"/history", nil).Want(200).Map(); len(m["points"].([]any)) != 0 {
		t.Errorf("%v", m)
	}
	keep(t, s, s.One, "7")
	finish(t, s, s.One, begun(t, s, s.One, "now", time.Second, 0), nil, "")
	if m := counted(t, me, "now"); m["executed"] != 1.0 {
		t.Errorf("enabled again: %v", m)
	}
}

// A task whose end was rolled back is not counted.
func TestUndoneEndIsNotCounted(t *testing.T) {
	t.Parallel()
	s := serve(t)
	id := begun(t, s, s.One, "undone", time.Second, 0)
	ctx := context.Background()
	tx, err := s.DB.System.Pool().Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, "select app.finish_task($1, $2, 1, null, null, null)", s.One, id); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if n := rows(t, s, s.One); n != 0 {
		t.Errorf("%d rows", n)
	}
}
