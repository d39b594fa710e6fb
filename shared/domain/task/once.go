package task

import (
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	onceIn  = time.Minute
	maxOnce = 1000
)

// Once lets a process ask for something about a book once a minute: many readers meet the same reason at a time.
type Once struct {
	mu    sync.Mutex
	since map[uuid.UUID]time.Time
}

// First tells whether it was not called for the book within the last minute.
func (o *Once) First(book uuid.UUID) bool {
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

// Again lets the next call for the book be the first: asking failed.
func (o *Once) Again(book uuid.UUID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.since, book)
}
