package relay

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/events"
)

// maxWaiting limits the live events that a topic holds while it reads its stream. With more it reads again.
const maxWaiting = 1000

// topic is one stream of one tenant, with the channel of the same name.
type topic struct {
	key       string
	tenant    uuid.UUID
	hub       *hub
	listeners atomic.Int64 // raised under hub.mu only, so that the topic is not forgotten meanwhile
	unused    bool         // no listener at the last check; guarded by hub.mu
	ready     chan struct{}

	mu      sync.Mutex
	known   bool      // last is set
	last    events.ID // newest event sent to the shards
	syncing bool      // the stream is being read: live events wait
	again   bool      // the stream must be read once more
	waiting []events.Message
}

// join adds the connection as a listener, held, and returns the newest event that it will not get.
func (t *topic) join(ctx context.Context, c *connection) (events.ID, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last, c.shard.send(ctx, func(s *shard) { s.join(c) })
}

// live handles an event from the channel.
func (t *topic) live(ctx context.Context, m events.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case !t.syncing && t.known && t.lacks(m):
		t.read(ctx)
	case !t.syncing && t.known:
		t.deliver(ctx, m)
	case len(t.waiting) < maxWaiting:
		t.waiting = append(t.waiting, m)
	default:
		t.waiting, t.again = nil, true
	}
}

// lacks reports whether a live message names an earlier event that did not come: Redis may lose a live event, or swap
// two, while the subscription stays up. The caller holds t.mu.
func (t *topic) lacks(m events.Message) bool { return m.Kind == "" && m.ID.Compare(t.last) > 0 }

// deliver sends an event to every shard, once. The caller holds t.mu.
func (t *topic) deliver(ctx context.Context, m events.Message) {
	if m.ID.Compare(t.last) <= 0 {
		return
	}
	t.last = m.ID
	if m.Kind != "" {
		f := eventFrame(m)
		t.toShards(ctx, &f)
	}
}

func (t *topic) toShards(ctx context.Context, f *frame) {
	deliver := func(s *shard) { s.deliver(t, f) }
	for _, s := range t.hub.shards {
		s.send(ctx, deliver)
	}
}

// subscribed starts to read the stream: events from before the subscription are only there.
func (t *topic) subscribed(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.read(ctx)
}

// check reads the stream if it has events that did not come. It finds a lost event that no other follows.
func (t *topic) check(ctx context.Context) {
	t.mu.Lock()
	known, last := t.known, t.last
	t.mu.Unlock()
	if !known || t.hub.enter(ctx) != nil {
		return
	}
	last.Seq++
	page, err := events.Range(ctx, t.hub.rdb, t.key, last, nil, 2)
	t.hub.leave()
	if err != nil {
		t.hub.log.Warn("cannot check a stream for lost events; trying again later", "stream", t.key, "error", err)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.syncing && slices.ContainsFunc(page, func(m events.Message) bool { return m.Kind != "" && m.ID.Compare(t.last) > 0 }) {
		t.read(ctx)
	}
}

// read starts to read the stream; live events wait meanwhile. The caller holds t.mu.
func (t *topic) read(ctx context.Context) {
	if t.syncing {
		t.again = true
		return
	}
	t.syncing = true
	t.hub.tasks.Go(func() { t.sync(ctx) })
}

// sync reads the stream until it has caught up with the channel, and retries when Redis fails.
func (t *topic) sync(ctx context.Context) {
	for wait := newBackoff(); ctx.Err() == nil; {
		if err := t.catchUp(ctx); err != nil {
			t.hub.log.Warn("cannot read a stream; trying again", "stream", t.key, "error", err)
			wait.sleep(ctx)
			continue
		}
		t.mu.Lock()
		if t.again {
			t.again = false
			t.mu.Unlock()
			continue
		}
		gap := slices.IndexFunc(t.waiting, func(m events.Message) bool {
			if t.lacks(m) {
				return true
			}
			t.deliver(ctx, m)
			return false
		})
		if gap >= 0 { // without this message: if the stream does not have the event either, it is not read again
			t.waiting = t.waiting[gap+1:]
			t.mu.Unlock()
			continue
		}
		t.waiting, t.syncing = nil, false
		t.mu.Unlock()
		return
	}
}

func (t *topic) catchUp(ctx context.Context) error {
	t.mu.Lock()
	known, last := t.known, t.last
	t.mu.Unlock()
	if !known {
		return t.restart(ctx)
	}
	for {
		page, found, err := t.hub.after(ctx, t.key, last, nil)
		if err != nil {
			return err
		}
		if !found {
			return t.restart(ctx)
		}
		t.mu.Lock()
		for _, m := range page {
			t.deliver(ctx, m)
		}
		last = t.last
		t.mu.Unlock()
		if len(page) < t.hub.cfg.ReplayPage-1 {
			return nil
		}
	}
}

// restart continues at the end of the stream. Existing listeners have missed events.
func (t *topic) restart(ctx context.Context) error {
	if err := t.hub.enter(ctx); err != nil {
		return err
	}
	tail, err := events.Tail(ctx, t.hub.rdb, t.key)
	t.hub.leave()
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = tail
	if !t.known {
		t.known = true
		close(t.ready)
		return nil
	}
	t.hub.log.Warn("a stream lost its history; its clients get a resync event", "stream", t.key)
	f := resyncFrame(tail, reasonLost)
	t.toShards(ctx, &f)
	return nil
}
