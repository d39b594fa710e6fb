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
	onceWithin = 2 * time.Second // the client's response waits for it
)

// Once queues a task for a book on behalf of readers, at most once a minute per book and process: many requests
// meet the same reason at once.
type Once struct {
	mu    sync.Mutex
	since map[uuid.UUID]time.Time
}

// Add queues the task that add adds to the batch, as the tenant, so the reader needs no permission for it. It goes on
// if the client disconnects.
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

// first reports whether there was no call for the book within the last minute.
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

// again lets the next call for the book through, after a failure.
func (o *Once) again(book uuid.UUID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.since, book)
}
