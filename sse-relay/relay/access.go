package relay

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"

	"github.com/longbox/longbox/shared/platform/events"
)

const (
	maxPlaces = 10_000
	// unknownGeneration is a value that Redis never holds. A grant with it is checked with the API again.
	unknownGeneration = "\x00"
)

// access caches the API's answer about each credential until the tenant's access generation changes. Then it asks again
// about the connected ones.
type access struct {
	cfg     Config
	rdb     redis.UniversalClient
	log     *slog.Logger
	api     *apiClient
	sets    permissionSets
	flights singleflight.Group
	wake    chan struct{}
	settled time.Duration // after a change: how long the API may answer as before

	mu     sync.Mutex
	grants map[[sha256.Size]byte]*grant
	owners map[uuid.UUID]map[*grant]struct{} // the same grants by tenant
	places map[[sha256.Size]byte]uuid.UUID   // tenant by host, to read its generation before a request to the API
	due    map[uuid.UUID]bool                // tenants to review; true: even if the generation is the same
	busy   map[uuid.UUID]bool                // tenants under review
	later  map[uuid.UUID]bool                // tenants with a review to come
}

func newAccess(cfg Config, rdb redis.UniversalClient, log *slog.Logger) *access {
	return &access{cfg: cfg, rdb: rdb, log: log, api: newAPIClient(cfg), wake: make(chan struct{}, 1), settled: 6 * time.Second,
		grants: map[[sha256.Size]byte]*grant{}, owners: map[uuid.UUID]map[*grant]struct{}{}, places: map[[sha256.Size]byte]uuid.UUID{},
		due: map[uuid.UUID]bool{}, busy: map[uuid.UUID]bool{}, later: map[uuid.UUID]bool{}}
}

// admission is a grant with the rate limit headers of the API's response.
type admission struct {
	*grant
	limit http.Header
}

// authorize returns the credential's grant and counts one more connection, which the caller must release. Errors are a
// *refusal of the API or wrap errUnavailable.
//
// Connections to the events stream are exempt from the rate limit, so a cached grant is enough. For the other streams
// the API is asked each time, so that it counts them.
func (a *access) authorize(ctx context.Context, c credential, stream events.Topic) (admission, error) {
	key := c.key()
	for range 3 { // a grant may be revoked between being found and being held
		var found admission
		if stream == events.Entities {
			found.grant = a.cached(ctx, key)
		}
		if found.grant == nil {
			var err error
			if found, err = a.fetchOnce(ctx, key, c, stream); err != nil {
				return admission{}, err
			}
		}
		if a.hold(found.grant, c) {
			return found, nil
		}
	}
	return admission{}, fmt.Errorf("%w: the user's access keeps changing", errUnavailable)
}

// hold counts one more connection of the grant and stores the credential. It reports false when the grant was revoked.
func (a *access) hold(g *grant, c credential) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.grants[g.key] != g || !g.valid(time.Now().UnixNano()) {
		return false
	}
	g.used, g.credential = time.Now(), c
	g.connections++
	return true
}

// release ends a connection. A grant without connections is never reviewed, so its key is enough. The credential is
// dropped: it may be as long as a request header, and differ each time.
func (a *access) release(g *grant) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if g.connections--; g.connections == 0 {
		g.credential = credential{}
	}
}

// cached returns the grant if it is valid under the tenant's current generation, or nil.
func (a *access) cached(ctx context.Context, key [sha256.Size]byte) *grant {
	a.mu.Lock()
	g := a.grants[key]
	a.mu.Unlock()
	if g == nil || !g.valid(time.Now().UnixNano()) {
		return nil
	}
	generation, err := a.generation(ctx, g.tenant)
	if err != nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.doubtful(g, generation) {
		return nil
	}
	return g
}

// doubtful reports whether the API must confirm a grant, given the tenant's current generation. The caller holds a.mu.
func (a *access) doubtful(g *grant, generation string) bool {
	return g.generation != generation || !g.failing.IsZero() || time.Since(g.asked) > a.cfg.AccessMaxAge
}

// fetchOnce calls fetch once for concurrent callers with the same credential and stream.
func (a *access) fetchOnce(ctx context.Context, key [sha256.Size]byte, c credential, stream events.Topic) (admission, error) {
	found := a.flights.DoChan(string(key[:])+string(stream), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*a.cfg.APITimeout)
		defer cancel()
		return a.fetch(ctx, key, c, stream)
	})
	select {
	case <-ctx.Done():
		return admission{}, fmt.Errorf("%w: %w", errUnavailable, ctx.Err())
	case result := <-found:
		if result.Err != nil {
			return admission{}, result.Err
		}
		return result.Val.(admission), nil
	}
}

// fetch asks the API. The answer is valid for a generation that was the same before and after the request.
func (a *access) fetch(ctx context.Context, key [sha256.Size]byte, c credential, stream events.Topic) (admission, error) {
	var limit http.Header
	for i := range 4 {
		a.mu.Lock()
		tenant := a.places[c.place()]
		a.mu.Unlock()
		var before string
		var errBefore error
		if tenant != uuid.Nil {
			before, errBefore = a.generation(ctx, tenant)
		}
		asked := time.Now()
		said, err := a.api.ask(ctx, c, stream)
		if err != nil {
			if !tooMany(err) { // a 429 says nothing about open connections
				a.deny(key, asked, err)
			}
			return admission{}, err
		}
		if i == 0 && stream != events.Entities { // one connect counts once, however many requests it needs
			limit, stream = said.limit, events.Entities
		}
		// The first request from this host: now its tenant, and so the generation's key, is known.
		if said.TenantID != tenant {
			a.mu.Lock()
			if len(a.places) >= maxPlaces {
				clear(a.places)
			}
			a.places[c.place()] = said.TenantID
			a.mu.Unlock()
			continue
		}
		if errBefore != nil {
			before = unknownGeneration // Redis is down: ask again when it is back
		}
		g := a.record(key, said, before, asked)
		if errBefore != nil {
			return admission{g, limit}, nil
		}
		if after, err := a.generation(ctx, tenant); err != nil || after == before {
			return admission{g, limit}, nil
		}
	}
	return admission{}, fmt.Errorf("%w: the tenant's access keeps changing", errUnavailable)
}

// record stores an answer to a request made at the given time. It ignores an answer older than the stored one.
func (a *access) record(key [sha256.Size]byte, said answer, generation string, asked time.Time) *grant {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.grants[key]
	if g != nil && (g.tenant != said.TenantID || g.user != said.UserID.String()) {
		a.revoke(g) // the credential now belongs to another user
		g = nil
	}
	if g == nil {
		g = &grant{key: key, tenant: said.TenantID, user: said.UserID.String(), used: asked}
		a.grants[key] = g
		if a.owners[g.tenant] == nil {
			a.owners[g.tenant] = map[*grant]struct{}{}
		}
		a.owners[g.tenant][g] = struct{}{}
	}
	if asked.Before(g.asked) {
		return g
	}
	g.asked, g.generation, g.failing = asked, generation, time.Time{}
	g.permissions.Store(a.sets.of(said.Permissions))
	g.expires.Store(expiry(said.ExpiresAt))
	return g
}

// deny revokes a credential that the API refuses, or records that the API was unreachable.
func (a *access) deny(key [sha256.Size]byte, asked time.Time, err error) {
	if g, since := a.doubt(key, asked, err); g != nil { // logged outside the lock, which shards take
		a.log.Warn("connections are closed: the API could not confirm their access", "tenant", g.tenant, "user", g.user,
			"since", since, "error", err)
	}
}

// doubt does the work of deny. It returns a grant that it revoked because it was unconfirmed for too long, and since
// when.
func (a *access) doubt(key [sha256.Size]byte, asked time.Time, err error) (*grant, time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.grants[key]
	if g == nil || asked.Before(g.asked) {
		return nil, time.Time{}
	}
	var refused *refusal
	if errors.As(err, &refused) && refused.lasting() {
		a.revoke(g)
		return nil, time.Time{}
	}
	if g.failing.IsZero() {
		g.failing = time.Now()
	}
	if time.Since(g.failing) <= a.cfg.AccessGrace {
		return nil, time.Time{}
	}
	a.revoke(g)
	return g, g.failing
}

// revoke invalidates a grant permanently. The caller holds a.mu.
func (a *access) revoke(g *grant) {
	g.revoked.Store(true)
	a.forget(g)
}

// forget removes a grant from the cache. The caller holds a.mu.
func (a *access) forget(g *grant) {
	if a.grants[g.key] == g {
		delete(a.grants, g.key)
	}
	delete(a.owners[g.tenant], g)
	if len(a.owners[g.tenant]) == 0 {
		delete(a.owners, g.tenant)
	}
}

// generation reads the tenant's access generation; the empty string means none yet.
func (a *access) generation(ctx context.Context, tenant uuid.UUID) (string, error) {
	value, err := a.rdb.Get(ctx, events.GenerationKey(tenant)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("read the access generation: %w", err)
	}
	return value, nil
}
