package task_test

import (
	"context"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
)

func TestNuke(t *testing.T) {
	t.Parallel()
	s, p := serve(t)
	admin := s.User(t, "one", "admin")
	lib := library(t, s)
	scan := add(t, s, s.One, task.Spec{Type: task.ScanLibrary, LibraryID: &lib})
	exec(t, s, "insert into scan (tenant_id, id, library_id, mode, books_created) values ($1, $2, $3, 'normal', 7)", s.One, scan, lib)
	child := add(t, s, s.One, task.Spec{Type: task.AnalyzeBooks, ParentID: &scan})
	add(t, s, s.One, task.Spec{Type: task.AnalyzeSeries})
	failed := add(t, s, s.One, task.Spec{Type: task.AnalyzeBook})
	exec(t, s, "update task set status = 'running', lease_epoch = 1 where id in ($1, $2)", scan, child)
	exec(t, s, "update task set status = 'failed', completed_at = now() where id = $1", failed)
	foreign := add(t, s, s.Two, task.Spec{Type: task.AnalyzeBook})
	s.User(t, "one", "maintainer").Do("DELETE", base+"/nuke", nil).Want(403)
	if m := admin.Do("DELETE", base+"/nuke", nil).Want(200).Map(); m["deleted"] != 4.0 {
		t.Errorf("%v", m)
	}
	if m := admin.Do("GET", base, nil).Want(200).Map(); m["total"] != 0.0 {
		t.Errorf("%v", m)
	}
	if got, want := p.String(), "task_progress analyze_books cancelled, task_progress scan_library cancelled, scan_progress cancelled 7"; got != want {
		t.Errorf("events %q, want %q", got, want)
	}
	for _, id := range []uuid.UUID{scan, child} {
		if err := s.DB.App.Enter(db.In(context.Background(), db.Task{Tenant: s.One, ID: id, Epoch: 1})); !db.LeaseLost(err) {
			t.Errorf("the worker of a deleted task may still write: %v", err)
		}
	}
	s.User(t, "two", "admin").Do("GET", base+"/"+foreign.String(), nil).Want(200)
	if m := admin.Do("DELETE", base+"/nuke", nil).Want(200).Map(); m["deleted"] != 0.0 {
		t.Errorf("%v", m)
	}
}

// Workers end children and add some while everything is deleted: nothing blocks, and nothing is left.
func TestNukeBesideWorkers(t *testing.T) {
	t.Parallel()
	s, _ := serve(t)
	admin := s.User(t, "one", "admin")
	for round := range 5 {
		var wg sync.WaitGroup
		parent := endingChildren(t, s, &wg)
		for range 3 {
			wg.Go(func() {
				held := db.In(context.Background(), db.Task{Tenant: s.One, ID: parent, Epoch: 1})
				var b pgx.Batch
				var id uuid.UUID
				if err := task.Add(&b, task.Spec{Type: task.AnalyzeBooks, ParentID: &parent}, &id); err != nil {
					t.Error(err)
				}
				if err := s.DB.App.Run(held, &b); err != nil && !db.LeaseLost(err) {
					t.Errorf("add a child: %v", err)
				}
			})
		}
		wg.Go(func() {
			if r := admin.Do("DELETE", base+"/nuke", nil); r.Status != 200 {
				t.Errorf("nuke: %d %s", r.Status, r.Body)
			}
		})
		wg.Wait()
		if m := admin.Do("GET", base, nil).Want(200).Map(); m["total"] != 0.0 {
			t.Fatalf("round %d: %v tasks are left", round, m["total"])
		}
	}
}
