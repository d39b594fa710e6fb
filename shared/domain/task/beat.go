package task

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
)

// Beat renews the leases every second until ctx ends. It cancels the handlers of tasks whose lease was lost, so that a
// cancelled task stops within two seconds. It also makes room for waiting tenants.
func (r *Runner) Beat(ctx context.Context) {
	r.init()
	tick := time.NewTicker(min(time.Second, r.Lease/4))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := r.beat(ctx); err != nil && ctx.Err() == nil {
			slog.Warn("the heartbeat of this worker's tasks failed", "error", err)
		}
	}
}

// beat renews the leases once. Its timeout leaves time for further attempts: a database whose machine is gone may never
// answer.
func (r *Runner) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, max(r.Lease/3, time.Second))
	defer cancel()
	r.mu.Lock()
	held := make([]Held, 0, len(r.held))
	for _, h := range r.held {
		held = append(held, h.Held)
	}
	r.mu.Unlock()
	if len(held) == 0 {
		return nil
	}
	still, err := renew(ctx, r.System, r.Lease, held)
	if err != nil {
		return err
	}
	r.mu.Lock()
	for _, h := range held {
		if run, ok := r.held[h.Scope()]; ok && !still[h.Scope()] {
			run.cancel(errLost)
		}
	}
	r.mu.Unlock()
	return r.makeRoom(ctx)
}

// makeRoom pauses a task that has used up its slice, if every slot is taken and a tenant without a slot is waiting. It
// picks the longest-running task of the tenant with the most slots, each only once: one that cannot pause would keep
// the others from it. The task continues when its turn comes.
func (r *Runner) makeRoom(ctx context.Context) error {
	r.mu.Lock()
	slots := map[uuid.UUID]int{}
	tenants := make([]uuid.UUID, 0, len(r.held))
	for _, run := range r.held {
		slots[run.Tenant]++
		tenants = append(tenants, run.Tenant)
	}
	var longest *running
	for _, run := range r.held {
		switch {
		case run.asked || time.Since(run.since) < r.Slice:
		case longest == nil, slots[run.Tenant] > slots[longest.Tenant],
			slots[run.Tenant] == slots[longest.Tenant] && run.since.Before(longest.since):
			longest = run
		}
	}
	full := len(r.held) == r.Slots
	r.mu.Unlock()
	if r.Slice == 0 || !full || longest == nil {
		return nil
	}
	var waiting bool
	err := r.System.Pool().QueryRow(ctx, `select exists (select from app.waiting_tenants() w where w.id <> all($1::uuid[]) and exists (
		select from task k where k.tenant_id = w.id and k.status = 'pending' and k.scheduled_for < now() - interval '1 second'
		  and (k.type <> 'scan_library' or w.max_scans is null or w.max_scans > (
		    select count(*) from task s where s.tenant_id = w.id and s.status = 'running' and s.type = 'scan_library'))))`, tenants).Scan(&waiting)
	if err != nil {
		return fmt.Errorf("find tenants with waiting tasks: %w", err)
	}
	if waiting {
		r.mu.Lock()
		longest.asked = true
		r.mu.Unlock()
		longest.pause()
	}
	return nil
}
