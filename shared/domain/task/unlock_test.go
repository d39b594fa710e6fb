package task

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/testkit"
)

// A worker whose task is unlocked claims it again at once: the first run stops, and the second one, with its own lease,
// is neither stopped nor forgotten.
func TestUnlockedTaskOfTheSameWorker(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	tenant := d.Tenant(t, "one")
	add(t, d, tenant, 1)
	type start struct {
		ctx context.Context
		h   Held
	}
	starts, stop := make(chan start, 2), make(chan struct{})
	r := worker(d, func(ctx context.Context, h Held) (any, error) {
		starts <- start{ctx, h}
		if h.Epoch == 1 { // stops as soon as told
			<-ctx.Done()
			return nil, ctx.Err()
		}
		<-stop
		return nil, ctx.Err()
	})
	r.Lease = time.Second
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	defer running.Wait()
	defer cancel()
	first := <-starts
	_, err := unlock(db.In(ctx, db.Tenant(tenant)), d.App, first.h.ID)
	must(t, err)
	second := <-starts
	if second.h.ID != first.h.ID || second.h.Epoch != 2 || second.h.Attempts != 1 {
		t.Errorf("the second run: %+v", second.h)
	}
	<-first.ctx.Done()
	// Its lease is renewed after the first run has ended.
	var until time.Time
	must(t, d.Owner.Pool().QueryRow(ctx, "select lease_until from task").Scan(&until))
	for range 2 {
		testkit.Eventually(t, 10*time.Second, func() bool {
			before := until
			must(t, d.Owner.Pool().QueryRow(ctx, "select lease_until from task").Scan(&until))
			return until.After(before)
		})
	}
	if second.ctx.Err() != nil || count(t, d, "status = 'running' and lease_epoch = 2") != 1 {
		t.Errorf("the second run was stopped: %v", context.Cause(second.ctx))
	}
	close(stop)
	testkit.Eventually(t, 10*time.Second, func() bool { return count(t, d, "status = 'completed'") == 1 })
}
