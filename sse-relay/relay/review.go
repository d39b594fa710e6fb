package relay

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/events"
)

const (
	asksAtOnce = 32 // concurrent requests to the API per tenant
	idleGrants = time.Minute
)

// changed requests a review of all connections of a tenant, and one more when the API has surely noticed the change: if
// Redis is late, a process of the API answers by what it has known of the tenant for up to 5 s.
func (a *access) changed(tenant uuid.UUID) {
	a.request(tenant, true)
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.later[tenant] {
		a.later[tenant] = true
		time.AfterFunc(a.settled, func() {
			a.mu.Lock()
			delete(a.later, tenant)
			a.mu.Unlock()
			a.request(tenant, true)
		})
	}
}

// mayHaveChanged requests a review of those connections of a tenant that have another generation.
func (a *access) mayHaveChanged(tenant uuid.UUID) { a.request(tenant, false) }

func (a *access) request(tenant uuid.UUID, all bool) {
	a.mu.Lock()
	a.mark(tenant, all)
	a.mu.Unlock()
	a.look()
}

// mark marks a tenant as due. The caller holds a.mu.
func (a *access) mark(tenant uuid.UUID, all bool) { a.due[tenant] = a.due[tenant] || all }

func (a *access) look() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// run reviews tenants when they change, and every tenant periodically, until ctx ends.
func (a *access) run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	timer := time.NewTimer(a.interval())
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			a.dueAll()
			timer.Reset(a.interval())
		case <-a.wake:
		}
		for tenant, all := range a.take() {
			group.Go(func() {
				again := a.review(ctx, tenant, all)
				a.mu.Lock()
				delete(a.busy, tenant)
				a.mu.Unlock()
				if again {
					time.AfterFunc(500*time.Millisecond+rand.N(time.Second), func() { a.mayHaveChanged(tenant) })
				}
				a.look() // for tenants that became due meanwhile
			})
		}
	}
}

// interval is a random duration a little below the maximum, so that many relays do not ask at once.
func (a *access) interval() time.Duration {
	return a.cfg.AccessInterval*4/5 + rand.N(a.cfg.AccessInterval/5+1)
}

// take returns the tenants that are due, except those under review.
func (a *access) take() map[uuid.UUID]bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := map[uuid.UUID]bool{}
	for tenant, all := range a.due {
		if !a.busy[tenant] {
			taken[tenant] = all
			a.busy[tenant] = true
			delete(a.due, tenant)
		}
	}
	return taken
}

// dueAll marks every tenant as due and drops credentials that were not used for a while.
func (a *access) dueAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for tenant, grants := range a.owners {
		for g := range grants {
			if g.connections == 0 && time.Since(g.used) > idleGrants {
				a.forget(g)
			}
		}
		a.mark(tenant, false)
	}
}

// review asks the API again about the tenant's credentials, once per credential. It reports whether some could not be
// checked.
func (a *access) review(ctx context.Context, tenant uuid.UUID, all bool) bool {
	generation, err := a.generation(ctx, tenant)
	if err != nil {
		a.log.Warn("cannot read the access generation; every connection is checked at the API", "tenant", tenant, "error", err)
		generation, all = unknownGeneration, true
	}
	var group sync.WaitGroup
	places := make(chan struct{}, asksAtOnce)
	for _, g := range a.unconfirmed(tenant, generation, all) {
		select {
		case <-ctx.Done():
			group.Wait()
			return false
		case places <- struct{}{}:
		}
		group.Go(func() {
			a.confirm(ctx, g, generation)
			<-places
		})
	}
	group.Wait()
	return err == nil && len(a.unconfirmed(tenant, generation, false)) > 0
}

func (a *access) confirm(ctx context.Context, g *grant, generation string) {
	a.mu.Lock()
	c, connected := g.credential, g.connections > 0
	a.mu.Unlock()
	if !connected { // it was closed meanwhile
		return
	}
	asked := time.Now()
	said, err := a.api.ask(ctx, c, events.Entities) // the user did not ask: the events stream is not counted
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		a.deny(g.key, asked, err)
		return
	}
	a.record(g.key, said, generation, asked)
	if !g.permissions.Load().has(requiredPermission) {
		a.mu.Lock()
		a.revoke(g)
		a.mu.Unlock()
	}
}

// unconfirmed returns the tenant's grants that need a check by the API.
func (a *access) unconfirmed(tenant uuid.UUID, generation string, all bool) []*grant {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []*grant
	for g := range a.owners[tenant] {
		switch {
		case !all && !a.doubtful(g, generation):
		case g.connections == 0:
			a.forget(g) // no connection: the next connect asks the API
		default:
			out = append(out, g)
		}
	}
	return out
}
