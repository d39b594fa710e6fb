package tenant

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Default is the name of the tenant of a single-tenant installation.
const Default = "default"

// remember limits how long a change of a tenant (suspension, hosts, quotas) takes to reach every process. With Redis it
// takes effect with the next request: see Confirm.
const (
	remember = 5 * time.Second
	maxHosts = 10_000
)

// Config says whether unknown hosts belong to the default tenant.
type Config struct {
	Single bool `env:"SINGLE_TENANT" envDefault:"false"`
}

// Resolver finds tenants by host and caches them for seconds.
type Resolver struct {
	database *db.DB
	single   bool

	mu    sync.Mutex
	hosts map[string]entry
}

type entry struct {
	tenant     *httpapi.Tenant // nil: there is none
	generation string          // access generation for which the entry is known to be valid; "" if unknown
	expires    time.Time
}

// NewResolver makes a Resolver that looks tenants up in the database.
func NewResolver(d *db.DB, c Config) *Resolver {
	return &Resolver{database: d, single: c.Single, hosts: map[string]entry{}}
}

// ByHost returns the tenant of a host name, or NotFound. TooManyRequests if the client's address has caused too many
// look-ups; hosts that are cached are still answered, as while the database is away.
func (r *Resolver) ByHost(ctx context.Context, host string) (httpapi.Tenant, error) {
	now := time.Now()
	e, ok := r.remembered(host)
	if !ok || now.After(e.expires) {
		var found *httpapi.Tenant
		err := httpapi.TakeLookup(ctx)
		if err == nil {
			found, err = r.lookup(ctx, host)
		}
		switch {
		case err != nil && !ok:
			return httpapi.Tenant{}, err
		case err == nil:
			// The old entry's generation applies to the new row, too: no change was announced up to it.
			e = entry{tenant: found, generation: e.generation, expires: now.Add(remember)}
			r.keep(host, e)
		}
	}
	return e.answer()
}

// Confirm is ByHost with the access generation that Redis has returned since: if it differs from the cached one, the
// tenant is looked up again. Every change of a tenant announces a new generation, so it takes effect with the next
// request everywhere.
func (r *Resolver) Confirm(ctx context.Context, host, generation string) (httpapi.Tenant, error) {
	e, ok := r.remembered(host)
	switch {
	case !ok: // evicted in between
		return r.ByHost(ctx, host)
	case e.generation == generation:
		return e.answer()
	case e.generation != "":
		found, err := r.lookup(ctx, host)
		if err != nil {
			return httpapi.Tenant{}, err
		}
		e.tenant, e.expires = found, time.Now().Add(remember)
	}
	// The first generation seen may be slightly newer than the row; the entry expires soon.
	e.generation = generation
	r.keep(host, e)
	return e.answer()
}

func (r *Resolver) remembered(host string) (entry, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.hosts[host]
	return e, ok
}

func (e entry) answer() (httpapi.Tenant, error) {
	if e.tenant == nil {
		return httpapi.Tenant{}, fault.New(fault.NotFound, "No library server answers to this host name")
	}
	return *e.tenant, nil
}

func (r *Resolver) keep(host string, e entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.hosts) >= maxHosts {
		clear(r.hosts) // clients choose the hosts: the cache is bounded, and cheap to refill
	}
	r.hosts[host] = e
}

type row struct {
	ID                uuid.UUID `db:"id"`
	Name              string    `db:"name"`
	Status            string    `db:"status"`
	Secret            []byte    `db:"secret"`
	MaxRenditionBytes *int64    `db:"max_rendition_bytes"`
	MaxRequests       *int      `db:"max_requests"`
}

func (r *Resolver) lookup(ctx context.Context, host string) (*httpapi.Tenant, error) {
	var b pgx.Batch
	var own, fallback *row
	var prefix, fallbackPrefix *string
	queue := func(dst **row, prefix **string, host string) {
		db.One(&b, dst, "select * from app.tenant_by_host($1)", host)
		db.Value(&b, prefix, "select app.komga_prefix($1)", host)
	}
	queue(&own, &prefix, host)
	if r.single {
		queue(&fallback, &fallbackPrefix, Default)
	}
	// No tenant is entered yet: the function returns one row by name and nothing else.
	if err := r.database.Run(db.In(ctx, db.Tenant(uuid.Nil)), &b); err != nil {
		return nil, err
	}
	found := own
	if found == nil {
		found, prefix = fallback, fallbackPrefix
	}
	if found == nil {
		return nil, nil
	}
	t := &httpapi.Tenant{ID: found.ID, Name: found.Name, Secret: found.Secret, Suspended: found.Status != "active",
		MaxRenditionBytes: found.MaxRenditionBytes}
	if prefix != nil {
		t.Prefix = *prefix
	}
	if found.MaxRequests != nil {
		t.MaxRequests = *found.MaxRequests
	}
	return t, nil
}
