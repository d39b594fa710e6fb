package page

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

const (
	remember   = time.Minute
	maxEntries = 2000    // indexes and permits each
	maxPages   = 400_000 // of all indexes; 200 pages take about 25 KB
)

// Finder finds the indexes of books that the caller may see.
type Finder struct {
	database *db.DB

	mu      sync.Mutex
	permits map[permit]permitted
	indexes map[place]indexed
	pages   int // of all indexes
}

// permit identifies a caller that was let in, at one access generation.
type permit struct {
	tenant, account uuid.UUID
	access          string // the tenant's access generation, read from Redis with this request
	credential      int32  // generation of the token or password; -1 for a key
	key             string
	permission      string
}

// permitted is a cached permission.
type permitted struct {
	until   time.Time
	limited bool // by sharing tags: each book is then looked up in the caller's name
}

// place is the cache key of an index.
type place struct {
	tenant, book uuid.UUID
	access       string
	account      uuid.UUID // of a limited caller, who may see less than others
}

type indexed struct {
	index   *Index
	owner   *Owner // for the CDN
	expires time.Time
}

// NewFinder makes a Finder with an empty cache.
func NewFinder(d *db.DB) *Finder {
	return &Finder{database: d, permits: map[permit]permitted{}, indexes: map[place]indexed{}}
}

// Find returns the index of a book for the request's caller, with the place of page n (0: of no page). It takes one
// round trip to Postgres: for permission and book or, if the caller is cached, for the book only. If the index is
// cached too, it takes none: Redis confirms, with the rate limit, that no access has changed since. The first request
// loads the place of one page; the second loads all pages of the book.
func (f *Finder) Find(ctx context.Context, book uuid.UUID, n int) (*Index, error) {
	part := pages{n, n}
	if n < 1 {
		part = noPages
	}
	caller := auth.CallerOf(ctx)
	access := httpapi.Generation(ctx)
	if caller == nil || access == "" {
		return load(ctx, f.database, &pgx.Batch{}, book, part)
	}
	who := permit{tenant: caller.Tenant, account: caller.AccountID, access: access, credential: -1, key: string(caller.KeyHash), permission: caller.Permission}
	if caller.Generation != nil {
		who.credential = *caller.Generation
	}
	at := place{tenant: caller.Tenant, book: book, access: access}
	now := time.Now()
	f.mu.Lock()
	known := f.permits[who]
	let := now.Before(known.until)
	if let && known.limited {
		caller.Limited, at.account = true, caller.AccountID
	}
	found := f.indexes[at]
	f.mu.Unlock()
	if let && now.Before(found.expires) && found.index.has(n) && !found.index.costly(n) {
		caller.Entered = true
		return found.index, nil
	}
	if found.index != nil {
		part = allPages
	}
	var b pgx.Batch
	var keyEnds *time.Time
	if let && !known.limited { // the permission is cached: no lookup of the caller with the book
		caller.Entered = true
		ctx = db.In(ctx, db.Tenant(caller.Tenant))
	} else if caller.KeyHash != nil {
		db.Value(&b, &keyEnds, "select expires_at from api_key where tenant_id = app.tenant() and account_id = app.account() and hash = $1", caller.KeyHash)
	}
	i, err := load(ctx, f.database, &b, book, part)
	if err != nil {
		return nil, err
	}
	if caller.Limited {
		at.account = caller.AccountID
	}
	until := now.Add(remember)
	if keyEnds != nil && keyEnds.Before(until) { // nothing announces the expiry of a key
		until = *keyEnds
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.permits) >= maxEntries {
		clear(f.permits)
	}
	f.keep(at, indexed{index: i, expires: now.Add(remember)})
	if !let {
		f.permits[who] = permitted{until, caller.Limited}
	}
	return i, nil
}

// keep caches an index. f.mu must be held.
func (f *Finder) keep(at place, i indexed) {
	f.drop(at)
	if n := len(i.index.Names); len(f.indexes) >= maxEntries || f.pages+n > maxPages {
		clear(f.indexes)
		f.pages = 0
	}
	f.indexes[at] = i
	f.pages += len(i.index.Names)
}

// drop removes an index from the cache. f.mu must be held.
func (f *Finder) drop(at place) {
	if old, ok := f.indexes[at]; ok {
		f.pages -= len(old.index.Names)
		delete(f.indexes, at)
	}
}

// forget drops the cached index of a book whose file or page pack has changed.
func (f *Finder) forget(ctx context.Context, book uuid.UUID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := place{tenant: httpapi.TenantOf(ctx).ID, book: book, access: httpapi.Generation(ctx)}
	if caller := auth.CallerOf(ctx); caller != nil && caller.Limited {
		at.account = caller.AccountID
	}
	f.drop(at)
}
