package task

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

const (
	onceIn     = time.Minute
	maxOnce    = 1000
	onceWithin = 2 * time.Second // a reader's answer waits for it
)

// Once queues a task about a book for readers who have met the reason for it, once a minute: many meet it at a time.
type Once struct {
	mu    sync.Mutex
	since map[uuid.UUID]time.Time
}

// Add queues the task that add adds to the batch, in the tenant's name: the reader need not be allowed to ask for it.
// It is not ended by a client that goes away.
func (o *Once) Add(ctx context.Context, d *db.DB, added Added, book uuid.UUID, add func(b *pgx.Batch, id *uuid.UUID) error) error {
	if !o.first(book) {
		return nil
	}
	tenant := httpapi.TenantOf(ctx).ID
	ctx, cancel := context.WithTimeout(db.In(context.WithoutCancel(ctx), db.Tenant(tenant)), onceWithin)
	defer cancel()
	var b pgx.Batch
	var id uuid.UUID
	err := add(&b, &id)
	if err == nil {
		err = d.Run(ctx, &b)
	}
	if err != nil {
		o.again(book)
		return err
	}
	if id != uuid.Nil {
		added.Tell(ctx, tenant)
	}
	return nil
}

// first tells whether it was not called for the book within the last minute.
func (o *Once) first(book uuid.UUID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	if last, known := o.since[book]; known && now.Sub(last) < onceIn {
		return false
	}
	if o.since == nil || len(o.since) >= maxOnce {
		o.since = map[uuid.UUID]time.Time{}
	}
	o.since[book] = now
	return true
}

// again lets the next call for the book be the first: asking failed.
func (o *Once) again(book uuid.UUID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.since, book)
}
