package task

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/testkit"
)

func add(t *testing.T, d *testkit.Databases, tenant uuid.UUID, n int) {
	t.Helper()
	var b pgx.Batch
	for range n {
		if err := Add(&b, Spec{Type: AnalyzeBooks}, new(uuid.UUID)); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.App.Run(db.In(context.Background(), db.Tenant(tenant)), &b); err != nil {
		t.Fatal(err)
	}
}

func TestNoTaskIsClaimedTwice(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	add(t, d, d.Tenant(t, "one"), 300)
	var mu sync.Mutex
	seen := map[uuid.UUID]int{}
	var claimers sync.WaitGroup
	for range 32 {
		claimers.Go(func() {
			for {
				got, err := claim(context.Background(), d.System, "w", time.Minute, 3)
				if err != nil {
					t.Error(err)
					return
				}
				if len(got) == 0 {
					return
				}
				mu.Lock()
				for _, h := range got {
					seen[h.ID]++
				}
				mu.Unlock()
			}
		})
	}
	claimers.Wait()
	if len(seen) != 300 {
		t.Errorf("%d of 300 tasks were claimed", len(seen))
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("task %s was claimed %d times", id, n)
		}
	}
}

func TestAPausedWorkerIsFencedOff(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	tenant := d.Tenant(t, "one")
	add(t, d, tenant, 1)
	ctx := context.Background()
	first, err := claim(ctx, d.System, "slow", time.Millisecond, 1)
	if err != nil || len(first) != 1 {
		t.Fatal(first, err)
	}
	testkit.Eventually(t, 5*time.Second, func() bool { n, err := Rescue(ctx, d.System); return err == nil && n == 1 })
	second, err := claim(ctx, d.System, "fast", time.Minute, 1)
	if err != nil || len(second) != 1 || second[0].Epoch != first[0].Epoch+1 {
		t.Fatal(second, err)
	}
	// What the first worker still writes has no effect, and its end is not recorded.
	_, err = db.Exec(db.In(ctx, first[0].Scope()), d.App, "insert into library_root (tenant_id, path, bucket) values (app.tenant(), '/late', 'x')")
	if !db.ErrLost(err) {
		t.Errorf("a late write: %v", err)
	}
	if states, err := finish(ctx, d.System, first[0], nil, nil, nil); err != nil || len(states) != 0 {
		t.Errorf("a late end: %v, %v", states, err)
	}
	if still, err := renew(ctx, d.System, time.Minute, first); err != nil || still[first[0].ID] {
		t.Errorf("a late renewal: %v, %v", still, err)
	}
	if _, err := db.Exec(db.In(ctx, second[0].Scope()), d.App, "select 1"); err != nil {
		t.Errorf("the holder: %v", err)
	}
	if states, err := finish(ctx, d.System, second[0], nil, nil, nil); err != nil || len(states) != 1 || states[0].Status != Completed {
		t.Errorf("the holder's end: %v, %v", states, err)
	}
}

func TestParentWaitsForChildren(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	tenant := d.Tenant(t, "one")
	ctx := context.Background()
	var b pgx.Batch
	parent := uuid.New()
	var id uuid.UUID
	must(t, Add(&b, Spec{ID: parent, Type: ScanLibrary}, &id))
	for range 2 {
		must(t, Add(&b, Spec{Type: AnalyzeBooks, ParentID: &parent}, &id))
	}
	b.Queue("update task set open_children = 2 where tenant_id = app.tenant() and id = $1", parent)
	must(t, d.App.Run(db.In(ctx, db.Tenant(tenant)), &b))
	all, err := claim(ctx, d.System, "w", time.Minute, 3)
	if err != nil || len(all) != 3 || all[0].ID != parent {
		t.Fatal(all, err)
	}
	want := []string{Running, Completed, Completed}
	failure := "broken"
	for i, h := range all {
		var text *string
		if i == 1 {
			text = &failure // a failed child ends, too
			want[1] = Failed
		}
		states, err := finish(ctx, d.System, h, nil, text, nil)
		if err != nil || len(states) == 0 || states[0].Status != want[i] {
			t.Fatalf("task %d: %v, %v", i, states, err)
		}
		if i == 2 && (len(states) != 2 || states[1] != (state{parent, Completed})) {
			t.Errorf("the parent after its last child: %v", states)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
