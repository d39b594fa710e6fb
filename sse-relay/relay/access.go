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
	// unknownGeneration is no generation that Redis could hold: such a grant is asked about again.
	unknownGeneration = "\x00"
)

// access keeps what the API said of each credential for as long as the tenant's generation stays,
// and asks again for those that are connected when it changes.
type access struct {
	cfg     Config
	rdb     redis.UniversalClient
	log     *slog.Logger
	api     *apiClient
	sets    permissionSets
	flights singleflight.Group
	wake    chan struct{}

	mu     sync.Mutex
	grants map[[sha256.Size]byte]*grant
	owners map[uuid.UUID]map[*grant]struct{} // the same grants by tenant
	places map[[sha256.Size]byte]uuid.UUID   // tenant by host, to read its generation before asking the API
	due    map[uuid.UUID]bool                // tenants to look at; true: whatever their generation
	busy   map[uuid.UUID]bool                // tenants that are being looked at
}

func newAccess(cfg Config, rdb redis.UniversalClient, log *slog.Logger) *access {
	return &access{cfg: cfg, rdb: rdb, log: log, api: newAPIClient(cfg), wake: make(chan struct{}, 1),
		grants: map[[sha256.Size]byte]*grant{}, owners: map[uuid.UUID]map[*grant]struct{}{}, places: map[[sha256.Size]byte]uuid.UUID{},
		due: map[uuid.UUID]bool{}, busy: map[uuid.UUID]bool{}}
}

// admission is a grant with the fields of the API's answer that tell of the rate limit.
type admission struct {
	*grant
	limit http.Header
}

// authorize returns the credential's grant with one more connection, which the caller must release.
// Errors are a *refusal of the API or wrap errUnavailable.
//
// Connecting to the events stream is exempt from the rate limit: what is remembered of the credential will do. For the
// others the API is asked each time, so that it counts them.
func (a *access) authorize(ctx context.Context, c credential, stream events.Topic) (admission, error) {
	key := c.key()
	for range 3 { // a grant may lose its access between being found and being held
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
	return admission{}, fmt.Errorf("%w: the access keeps changing", errUnavailable)
}

// hold counts one more connection of the grant, which shows the credential, unless it has lost its access.
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

// release is the end of a connection. Nobody is asked about a grant without one: its key will do to know it again,
// while what the client sent may be as long as a request's head, and another each time.
func (a *access) release(g *grant) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if g.connections--; g.connections == 0 {
		g.credential = credential{}
	}
}

// cached returns the grant when it is known to hold under the tenant's present generation.
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

// doubtful tells whether the API must be asked about a grant, the tenant's generation being this one. The caller holds
// a.mu.
func (a *access) doubtful(g *grant, generation string) bool {
	return g.generation != generation || !g.failing.IsZero() || time.Since(g.asked) > a.cfg.AccessMaxAge
}

// fetchOnce is fetch, shared by those who ask for the same at a time.
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

// fetch asks the API. Its answer counts for a generation that was the same before and after.
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
			if !tooMany(err) { // says nothing of the connections that are there
				a.deny(key, asked, err)
			}
			return admission{}, err
		}
		if i == 0 && stream != events.Entities { // to connect once counts once, however often it must be asked
			limit, stream = said.limit, events.Entities
		}
		if said.TenantID != tenant { // the first from this host: now it is known which generation to read
			a.mu.Lock()
			if len(a.places) >= maxPlaces {
				clear(a.places)
			}
			a.places[c.place()] = said.TenantID
			a.mu.Unlock()
			continue
		}
		if errBefore != nil {
			before = unknownGeneration // Redis is away: asked again when it is back
		}
		g := a.admit(key, said, before, asked)
		if errBefore != nil {
			return admission{g, limit}, nil
		}
		if after, err := a.generation(ctx, tenant); err != nil || after == before {
			return admission{g, limit}, nil
		}
	}
	return admission{}, fmt.Errorf("%w: the tenant's access keeps changing", errUnavailable)
}

// admit records an answer that was asked for at the given time; an older one than recorded is void.
func (a *access) admit(key [sha256.Size]byte, said answer, generation string, asked time.Time) *grant {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.grants[key]
	if g != nil && (g.tenant != said.TenantID || g.user != said.UserID.String()) {
		a.revoke(g) // the same credential is somebody else now
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

// deny takes the access of a credential that the API refuses, or notes that it could not be asked.
func (a *access) deny(key [sha256.Size]byte, asked time.Time, err error) {
	if g, since := a.doubt(key, asked, err); g != nil { // logged without the lock, which shards take
		a.log.Warn("connections are closed: the API could not confirm their access", "tenant", g.tenant, "user", g.user,
			"since", since, "error", err)
	}
}

// doubt is deny; it returns the grant that was revoked because it could not be confirmed since then, if so.
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

// revoke ends a grant for good. The caller holds a.mu.
func (a *access) revoke(g *grant) {
	g.revoked.Store(true)
	a.forget(g)
}

// forget takes a grant out of the cache. The caller holds a.mu.
func (a *access) forget(g *grant) {
	if a.grants[g.key] == g {
		delete(a.grants, g.key)
	}
	delete(a.owners[g.tenant], g)
	if len(a.owners[g.tenant]) == 0 {
		delete(a.owners, g.tenant)
	}
}

// generation reads the tenant's access generation; none yet is the empty string.
func (a *access) generation(ctx context.Context, tenant uuid.UUID) (string, error) {
	value, err := a.rdb.Get(ctx, events.GenerationKey(tenant)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("read the access generation: %w", err)
	}
	return value, nil
}
