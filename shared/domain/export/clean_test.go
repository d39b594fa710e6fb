package export_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/export"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
)

// A clean-up deletes what has expired and every unreferenced file, and nothing else.
func TestClean(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.addSeries(r.library, "Saga", 2)
	me, other := r.User(t, "one", "reader"), r.User(t, "one", "reader")
	make := func(c string) uuid.UUID {
		t.Helper()
		user := me
		if c == "other" {
			user = other
		}
		id := r.ask(user, `{"format":"csv"}`)
		if err := r.run(id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	kept, expired, deleted := make("me"), make("me"), make("me")
	make("other")
	r.exec("update series_export set expires_at = now() where id = $1", expired)
	me.Do("DELETE", at+"/"+deleted.String(), nil).Want(204)
	r.exec("delete from account where id = $1", other.ID)
	unfinished := r.ask(me, `{"format":"csv"}`)
	put := func(key string) {
		t.Helper()
		if err := r.s3.Config.Media().Put(t.Context(), r.s3.Config.MediaBucket, export.Folder(r.One)+key, "text/csv", []byte("12345")); err != nil {
			t.Fatal(err)
		}
	}
	put(unfinished.String() + "/1") // just stored; its row follows
	put(kept.String() + "/7")       // by a run that had lost its lease
	put("no export/1")
	r.s3.Keep(deleted.String())
	if got, err := r.clean(); err == nil || got.Expired != 1 || got.Objects != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	r.s3.Counter.Meddle(nil)
	if got, err := r.clean(); err != nil || got.Expired != 0 || got.Objects != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	want := []string{kept.String() + "/1", "no export/1", unfinished.String() + "/1"}
	slices.Sort(want)
	got := r.objects()
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("left: %v, want %v", got, want)
	}
	me.Do("GET", at+"/"+kept.String()+"/download", nil).Want(200)
	if n := r.number("select count(*) from export_cleanup"); n != 1 {
		t.Error("nothing is to be cleaned up any more")
	}
	r.exec("delete from series_export")
	if got, err := r.clean(); err != nil || got.Objects != 2 || r.number("select count(*) from export_cleanup") != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	// The task of a deleted export has nothing to do.
	h := task.Held{Tenant: r.One, ID: unfinished, Type: task.ExportSeries, Epoch: 1, Attempts: 1, Allowed: 3}
	r.exec("update task set status = 'running', lease_epoch = 1 where id = $1", unfinished)
	h.Params = []byte(`{"exportId":"` + unfinished.String() + `","userId":"` + me.ID.String() + `"}`)
	if out, err := r.maker.Make(db.In(t.Context(), h.Scope()), h); err != nil || out != (export.Result{}) {
		t.Errorf("%v, %v", out, err)
	}
}

// Clean-ups run by the schedule, which exists by default, and once after a deletion.
func TestSchedule(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me := r.User(t, "one", "reader")
	now := time.Date(2026, 5, 1, 11, 59, 0, 0, time.UTC)
	after := func(d time.Duration) int {
		t.Helper()
		now = now.Add(d)
		total := 0
		var mu sync.Mutex
		var all sync.WaitGroup
		for range 4 { // schedulers
			all.Go(func() {
				n, err := export.Due(context.Background(), r.DB.System, now)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				total += n
			})
		}
		all.Wait()
		return total
	}
	end := func() {
		r.exec("update task set status = 'completed', completed_at = now() where type = $1", task.CleanUpExports)
		r.exec("update export_cleanup set cleaned = deletions")
	}
	var id uuid.UUID
	for _, s := range []struct {
		what string
		do   func()
		wait time.Duration
		want int
	}{
		{"nobody has had exports", nil, 24 * time.Hour, 0},
		{"the schedule is met", func() { id = r.ask(me, `{"format":"csv"}`) }, 0, 0},
		{"before half past", nil, 30 * time.Minute, 0},
		{"half past", nil, 2 * time.Minute, 1},
		{"it still runs", nil, time.Hour, 0},
		{"an hour later", end, time.Hour, 1},
		{"something was deleted", func() { end(); me.Do("DELETE", at+"/"+id.String(), nil).Want(204) }, time.Second, 1},
		{"once", end, time.Second, 0},
		{"deleted, which its user was", func() {
			other := r.User(t, "one", "reader")
			r.ask(other, `{"format":"csv"}`)
			r.exec("delete from account where id = $1", other.ID)
		}, time.Second, 1},
		{"deleted while one runs", func() { id = r.ask(me, `{"format":"csv"}`); me.Do("DELETE", at+"/"+id.String(), nil).Want(204) }, time.Second, 0},
		{"and after it", end, time.Second, 1},
		{"another schedule is met", func() { end(); r.DB.Set(t, r.One, "exports.cleanup_cron", "0 0 * * *") }, time.Hour, 0},
		{"in another zone", func() { r.DB.Set(t, r.One, "scheduler.timezone", "Asia/Tokyo") }, 0, 0},
		{"at midnight there", nil, 24 * time.Hour, 1},
		{"off", func() { end(); r.DB.Set(t, r.One, "exports.cleanup_cron", "") }, 0, 0},
		{"for ever", nil, 1000 * time.Hour, 0},
		{"but for what was deleted", func() { id = r.ask(me, `{"format":"csv"}`); me.Do("DELETE", at+"/"+id.String(), nil).Want(204) }, time.Hour, 1},
		{"suspended", func() {
			end()
			r.DB.Set(t, r.One, "exports.cleanup_cron", "0 * * * *")
			r.exec("update tenant set status = 'suspended'")
		}, 9 * time.Hour, 0},
	} {
		if s.do != nil {
			s.do()
		}
		if got := after(s.wait); got != s.want {
			t.Errorf("%s: %d clean-ups, want %d", s.what, got, s.want)
		}
	}
}

// While the files of deleted exports cannot be deleted, a clean-up is added every few minutes, even if the schedule is
// off.
func TestFailedCleanUpIsRepeated(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me := r.User(t, "one", "reader")
	r.DB.Set(t, r.One, "exports.cleanup_cron", "")
	id := r.ask(me, `{"format":"csv"}`)
	if err := r.run(id); err != nil {
		t.Fatal(err)
	}
	r.ask(me, `{"format":"csv"}`) // another one stays
	now := time.Now()
	due := func(after time.Duration, want int) {
		t.Helper()
		now = now.Add(after)
		if n, err := export.Due(t.Context(), r.DB.System, now); err != nil || n != want {
			t.Errorf("%d clean-ups, %v; want %d", n, err, want)
		}
	}
	end := func(status string) {
		r.exec("update task set status = $2, completed_at = now() where type = $1", task.CleanUpExports, status)
	}
	due(0, 0) // the schedule is met
	me.Do("DELETE", at+"/"+id.String(), nil).Want(204)
	due(time.Second, 1)
	r.s3.Keep(id.String())
	if _, err := r.clean(); err == nil {
		t.Error("the store has deleted a locked object")
	}
	end("failed")
	due(time.Minute, 0)
	due(time.Hour, 1)
	due(time.Hour, 0) // it is pending
	r.s3.Counter.Meddle(nil)
	if got, err := r.clean(); err != nil || got.Objects != 1 || len(r.objects()) != 0 {
		t.Errorf("%+v, %v; left: %v", got, err, r.objects())
	}
	end("completed")
	due(time.Hour, 0)
}

// A scheduler waits for a running clean-up: both lock in the same order.
func TestScheduleWhileItRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me := r.User(t, "one", "reader")
	me.Do("DELETE", at+"/"+r.ask(me, `{"format":"csv"}`).String(), nil).Want(204)
	if n, err := export.Due(t.Context(), r.DB.System, time.Now()); n != 1 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	me.Do("DELETE", at+"/"+r.ask(me, `{"format":"csv"}`).String(), nil).Want(204)
	r.DB.LockedInOrder(t, "select from task where type = '"+task.CleanUpExports+"' for share", "update export_cleanup set deletions = deletions", func() error {
		_, err := export.Due(context.Background(), r.DB.System, time.Now())
		return err
	})
}
