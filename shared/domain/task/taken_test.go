package task_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
)

func TestUnlock(t *testing.T) {
	t.Parallel()
	s, p := serve(t)
	c := s.User(t, "one", "maintainer")
	id := add(t, s, s.One, task.Spec{Type: task.AnalyzeBook})
	if m := c.Do("POST", base+"/"+id.String()+"/unlock", nil).Want(200).Map(); !strings.Contains(m["message"].(string), "already") || p.String() != "" {
		t.Errorf("a pending task: %v, events %s", m, p)
	}
	exec(t, s, `update task set status = 'running', lease_epoch = 4, attempts = 2, locked_by = 'w', lease_until = now() + interval '1 hour',
		started_at = now(), scheduled_for = now() - interval '1 hour' where id = $1`, id)
	held := db.In(context.Background(), db.Task{Tenant: s.One, ID: id, Epoch: 4})
	if err := s.DB.App.Enter(held); err != nil {
		t.Fatal(err)
	}
	if m := c.Do("POST", base+"/"+id.String()+"/unlock", nil).Want(200).Map(); m["message"] == "" {
		t.Errorf("%v", m)
	}
	got := c.Do("GET", base+"/"+id.String(), nil).Want(200).Map()
	if got["status"] != "pending" || got["attempts"] != 1.0 || got["lockedBy"] != nil || got["lockedUntil"] != nil || p.String() != "task_progress analyze_book pending" {
		t.Errorf("%v, events %s", got, p)
	}
	late := func(when string) {
		t.Helper()
		if err := s.DB.App.Enter(held); !db.LeaseLost(err) {
			t.Errorf("%s its worker may still write: %v", when, err)
		}
		var ended int
		if err := s.DB.System.Pool().QueryRow(context.Background(), "select count(*) from app.finish_task($1, $2, 4, '{}', null, null)", s.One, id).Scan(&ended); err != nil || ended != 0 {
			t.Errorf("%s its worker may still end it: %d, %v", when, ended, err)
		}
	}
	late("unlocked,")
	if _, err := s.DB.System.Pool().Exec(context.Background(), "select app.claim_named($1, $2, 'other', '1 minute')", s.One, id); err != nil {
		t.Fatal(err)
	}
	late("claimed by another,")
	if got := c.Do("GET", base+"/"+id.String(), nil).Want(200).Map(); got["status"] != "running" || got["lockedBy"] != "other" {
		t.Errorf("%v", got)
	}
	exec(t, s, "update task set done = true where id = $1", id)
	for status, says := range map[string]string{"running": "waits", "completed": "completed", "failed": "failed", "cancelled": "cancelled"} {
		exec(t, s, "update task set status = $2, completed_at = case when $2 <> 'running' then now() end where id = $1", id, status)
		if m := c.Do("POST", base+"/"+id.String()+"/unlock", nil).Want(400).Map(); !strings.Contains(m["message"].(string), says) {
			t.Errorf("%s: %v", status, m)
		}
	}
	c.Do("POST", base+"/"+uuid.NewString()+"/unlock", nil).Want(404)
	c.Do("POST", base+"/x/unlock", nil).Want(400)
}
