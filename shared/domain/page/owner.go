package page

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// rememberOwner limits how long the CDN's misses are still answered after a tenant was suspended, and how long pictures
// are stored under its old keys after they were exchanged. It is less than operator.DefaultSettle.
const rememberOwner = 5 * time.Second

// Owner is the tenant of a book.
type Owner struct {
	ID                uuid.UUID `db:"id"`
	Name              string    `db:"name"`
	Status            string    `db:"status"`
	Secret            []byte    `db:"secret"`
	MaxRenditionBytes *int64    `db:"max_rendition_bytes"`
}

// Tenant returns the tenant for the request's context.
func (o *Owner) Tenant() httpapi.Tenant {
	return httpapi.Tenant{ID: o.ID, Name: o.Name, Secret: o.Secret, Suspended: o.Status != "active", MaxRenditionBytes: o.MaxRenditionBytes}
}

// QueueOwner adds the query for the entered tenant to a batch; dst is nil if there is none.
func QueueOwner(b *pgx.Batch, dst **Owner) {
	db.One(b, dst, "select id, name, status, secret, max_rendition_bytes from tenant where id = app.tenant()")
}

// Owned returns the index of a tenant's book, with the place of page n, and the tenant. It serves the CDN, which has no
// account: the address itself proves permission. ctx must be in the tenant. It takes one round trip, or none within
// five seconds if the address fits the cached index; an address that does not fit belongs to a newer file.
func (f *Finder) Owned(ctx context.Context, tenant, book uuid.UUID, n int, fits func(*Index, *Owner) bool) (*Index, *Owner, error) {
	at := place{tenant: tenant, book: book} // without an access generation, unlike any caller's
	now := time.Now()
	f.mu.Lock()
	found := f.indexes[at]
	f.mu.Unlock()
	if now.Before(found.expires) && found.index.has(n) && fits(found.index, found.owner) {
		return found.index, found.owner, nil
	}
	part := pages{n, n}
	if found.index != nil {
		part = allPages
	}
	var b pgx.Batch
	var i *Index
	var owner *Owner
	queue(&b, &i, book, part)
	QueueOwner(&b, &owner)
	if err := f.database.Run(ctx, &b); err != nil {
		return nil, nil, err
	}
	if i == nil || owner == nil {
		return nil, nil, fault.Missing("Book")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.keep(at, indexed{i, owner, now.Add(rememberOwner)})
	return i, owner, nil
}
