package rendition

import (
	"maps"
	"sync"
	"time"
)

const (
	rememberUnmade = time.Minute // as long as browsers cache the placeholder
	maxUnmade      = 2000
)

// memory caches recent failures, so that no request waits for the same failure again at once.
type memory struct {
	mu sync.Mutex
	of map[string]failure
}

type failure struct {
	err   error
	until time.Time
}

// note records why the object could not be made.
func (m *memory) note(key string, err error, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.of) >= maxUnmade {
		maps.DeleteFunc(m.of, func(_ string, f failure) bool { return !now.Before(f.until) })
	}
	if m.of == nil || len(m.of) >= maxUnmade {
		m.of = map[string]failure{}
	}
	m.of[key] = failure{err, now.Add(rememberUnmade)}
}

// recall returns why the object could not be made recently, or nil.
func (m *memory) recall(key string, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f, ok := m.of[key]; ok && now.Before(f.until) {
		return f.err
	}
	return nil
}
