package relay

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/longbox/longbox/shared/platform/events"
)

// hub holds the topics that have listeners, and the shards that serve them.
type hub struct {
	cfg     Config
	rdb     redis.UniversalClient
	log     *slog.Logger
	access  *access
	shards  []*shard
	watcher *watcher
	next    atomic.Uint32 // shard of the next connection
	sub     *subscriber
	reads   chan struct{} // limits concurrent reads of streams
	tasks   sync.WaitGroup

	mu      sync.Mutex
	topics  map[string]*topic
	tenants map[string]*tenant // by generation channel
}

// tenant is a tenant with at least one topic.
type tenant struct {
	id     uuid.UUID
	topics int
}

// newHub returns a hub whose shards call leave for each connection that ends.
func newHub(cfg Config, rdb redis.UniversalClient, log *slog.Logger, access *access, leave func(seat)) (*hub, error) {
	w, err := newWatcher()
	if err != nil {
		return nil, err
	}
	h := &hub{cfg: cfg, rdb: rdb, log: log, access: access, watcher: w, reads: make(chan struct{}, cfg.ReplayReads),
		topics: map[string]*topic{}, tenants: map[string]*tenant{}}
	shards := max(4, 2*runtime.GOMAXPROCS(0))
	for range shards {
		h.shards = append(h.shards, newShard(cfg, w, queueMemory/shards, leave))
	}
	h.sub = newSubscriber(rdb, log, h)
	return h, nil
}

func (h *hub) run(ctx context.Context) {
	for _, s := range h.shards {
		h.tasks.Go(func() { s.run(ctx) })
	}
	h.tasks.Go(func() { h.sub.run(ctx) })
	h.tasks.Go(func() { h.check(ctx) })
	h.tasks.Go(func() {
		if err := h.watcher.run(ctx); err != nil {
			h.log.Error("cannot watch for closed connections; they are noticed late", "error", err)
		}
	})
	ticker := time.NewTicker(10 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			h.tasks.Wait()
			return
		case <-ticker.C:
			h.forget()
		}
	}
}

// stop sends every client away. Streams that are about to start end right after their start.
func (h *hub) stop(ctx context.Context) {
	for _, s := range h.shards {
		done := make(chan struct{})
		if s.send(ctx, func(s *shard) { s.stop(); close(done) }) {
			select {
			case <-done:
			case <-ctx.Done():
			}
		}
	}
}

// acquire returns the topic with one more listener, and subscribes to a new topic. Server.leave removes the listener.
func (h *hub) acquire(id uuid.UUID, name events.Topic) *topic {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := events.Key(id, name)
	t := h.topics[key]
	if t == nil {
		t = &topic{key: key, tenant: id, hub: h, ready: make(chan struct{})}
		h.topics[key] = t
		channel := events.GenerationKey(id)
		if h.tenants[channel] == nil {
			h.tenants[channel] = &tenant{id: id}
			h.sub.add(channel)
		}
		h.tenants[channel].topics++
		h.sub.add(key)
	}
	t.unused = false
	t.listeners.Add(1)
	return t
}

// forget ends the subscriptions of topics that had no listener at two checks in a row.
func (h *hub) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, t := range h.topics {
		switch {
		case t.listeners.Load() > 0:
			t.unused = false
		case !t.unused:
			t.unused = true
		default:
			delete(h.topics, key)
			h.sub.remove(key)
			channel := events.GenerationKey(t.tenant)
			if h.tenants[channel].topics--; h.tenants[channel].topics == 0 {
				delete(h.tenants, channel)
				h.sub.remove(channel)
			}
		}
	}
}

// check checks every topic that has listeners for lost events, one after the other, about once in each AccessInterval.
func (h *hub) check(ctx context.Context) {
	for {
		h.mu.Lock()
		topics := slices.DeleteFunc(slices.Collect(maps.Values(h.topics)), func(t *topic) bool { return t.listeners.Load() == 0 })
		h.mu.Unlock()
		pause := max(h.cfg.AccessInterval/time.Duration(len(topics)+1), time.Millisecond)
		for _, t := range append(topics, nil) { // the last pause is for the topics that come meanwhile
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
			if t != nil {
				t.check(ctx)
			}
		}
	}
}

// subscribed is called by the subscriber when a subscription is active.
func (h *hub) subscribed(ctx context.Context, channel string) {
	t, owner := h.find(channel)
	if t != nil {
		t.subscribed(ctx)
	}
	if owner != nil {
		h.access.mayHaveChanged(owner.id)
	}
}

// message is called by the subscriber, in the order of each channel.
func (h *hub) message(ctx context.Context, channel, payload string) {
	t, owner := h.find(channel)
	if owner != nil {
		h.access.changed(owner.id)
	}
	if t == nil {
		return
	}
	m, err := events.DecodeMessage(payload)
	if err != nil {
		h.log.Error("cannot decode an event", "channel", channel, "error", err)
		return
	}
	t.live(ctx, m)
}

func (h *hub) find(channel string) (*topic, *tenant) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.topics[channel], h.tenants[channel]
}

// after reads one page of a stream, from the event after from up to to. It reports false when from is not in the
// stream: then nothing is known about the events after it.
func (h *hub) after(ctx context.Context, key string, from events.ID, to *events.ID) ([]events.Message, bool, error) {
	if err := h.enter(ctx); err != nil {
		return nil, false, err
	}
	defer h.leave()
	page, err := events.Range(ctx, h.rdb, key, from, to, int64(h.cfg.ReplayPage))
	if err != nil {
		return nil, false, err
	}
	if len(page) == 0 || page[0].ID != from {
		return nil, false, nil
	}
	return page[1:], true, nil
}

// enter waits for a free slot to read from Redis.
func (h *hub) enter(ctx context.Context) error {
	select {
	case h.reads <- struct{}{}:
		return nil
	case <-ctx.Done():
		return errors.Join(errors.New("too many streams are read at the same time"), ctx.Err())
	}
}

func (h *hub) leave() { <-h.reads }

// backoff is a growing delay with jitter, to spread retries.
type backoff struct{ next time.Duration }

func newBackoff() *backoff { return &backoff{50 * time.Millisecond} }

func (b *backoff) sleep(ctx context.Context) {
	timer := time.NewTimer(b.next/2 + rand.N(b.next))
	defer timer.Stop()
	b.next = min(2*b.next, 2*time.Second)
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
