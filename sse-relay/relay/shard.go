package relay

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/longbox/longbox/shared/platform/events"
)

type reason uint8

const (
	closedByClient reason = iota
	tooSlow
	accessLost
	tokenExpired
	replayFailed
	relayStops
	reasonCount
)

func (r reason) String() string {
	return [reasonCount]string{"client", "slow", "access", "expired", "replay", "stop"}[r]
}

// maxTick limits how long a connection outlives its access.
const maxTick = 250 * time.Millisecond

// queueMemory limits the queued bytes of all connections together. Each connection may always queue leastQueue.
const (
	queueMemory = 128 << 20
	leastQueue  = 64 << 10
)

// shard owns a part of the connections. Only its goroutine touches them, so every other method than send and run is
// called through send.
type shard struct {
	in      chan func(*shard)
	stopped chan struct{}
	all     []*connection
	topics  map[*topic][]*connection
	last    map[*topic]events.ID // newest event, of topics with connections
	watcher *watcher
	leave   func(seat)
	cfg     Config
	now     int64 // Unix nanoseconds, as of the call or tick at hand
	queued  int   // queued bytes of all connections
	room    int   // limit of queued; beyond it no connection may queue more than leastQueue
	ending  bool
	closed  [reasonCount]atomic.Int64
}

func newShard(cfg Config, w *watcher, room int, leave func(seat)) *shard {
	return &shard{in: make(chan func(*shard), 1024), stopped: make(chan struct{}), topics: map[*topic][]*connection{}, last: map[*topic]events.ID{},
		watcher: w, leave: leave, cfg: cfg, room: room}
}

// send queues a call for the shard's goroutine and waits for room. It reports false once the shard has ended.
func (s *shard) send(ctx context.Context, call func(*shard)) bool {
	select {
	case s.in <- call:
		return true
	case <-s.stopped:
		return false
	case <-ctx.Done():
		return false
	}
}

// run serves the shard's connections until ctx ends.
func (s *shard) run(ctx context.Context) {
	defer close(s.stopped)
	tick := min(max(s.cfg.KeepAlive/16, 5*time.Millisecond), maxTick)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			for len(s.all) > 0 {
				s.drop(s.all[len(s.all)-1], relayStops)
			}
			return
		case call := <-s.in:
			s.now = time.Now().UnixNano()
			call(s)
		case at := <-ticker.C:
			s.now = at.UnixNano()
			s.tick(int64(tick))
		}
	}
}

// join adds a connection. From now on it gets the topic's events, into held.
func (s *shard) join(c *connection) {
	here := s.topics[c.topic]
	c.atAll, c.atHere = int32(len(s.all)), int32(len(here))
	s.all, s.topics[c.topic] = append(s.all, c), append(here, c)
}

// open takes over the socket of a connection whose start is written: it delivers the held events, and then live ones.
// Events up to after are not delivered.
func (s *shard) open(c *connection, after events.ID) {
	if c.gone {
		return
	}
	err := c.detach()
	if err == nil {
		err = s.watcher.add(c)
	}
	if err != nil { // the client has closed it, or no file descriptors are left
		s.drop(c, closedByClient)
		return
	}
	held := c.held
	c.held, c.after, c.ping = nil, after, s.now+int64(s.cfg.KeepAlive)
	for _, f := range held.frames {
		if s.frame(c, f); c.gone {
			return
		}
	}
	if s.ending {
		s.bid(c)
	}
}

// deliver writes a frame to the listeners of a topic that may see it.
func (s *shard) deliver(t *topic, f *frame) {
	here := s.topics[t]
	if len(here) > 0 {
		s.last[t] = f.id
	}
	for i := len(here) - 1; i >= 0; i-- { // backwards: the last one moves to the index of a dropped one
		s.frame(here[i], f)
	}
}

func (s *shard) frame(c *connection, f *frame) {
	switch {
	case c.held != nil:
		if c.held.bytes += len(f.bytes); c.held.bytes > s.cfg.ClientQueue {
			s.drop(c, tooSlow)
			return
		}
		c.held.frames = append(c.held.frames, f)
	case f.resync:
		c.after = f.id
		s.write(c, f.bytes)
	case f.id.Compare(c.after) <= 0:
	case !c.grant.valid(s.now):
		s.drop(c, c.grant.lostBy(s.now))
	case c.grant.sees(f.permission, f.user):
		c.after = f.id
		s.write(c, f.bytes)
	}
}

// write writes queued bytes first, then bytes, and queues what the socket does not accept.
func (s *shard) write(c *connection, bytes []byte) {
	if len(c.queue) > 0 && !s.flush(c) {
		return
	}
	if len(c.queue) == 0 {
		n, err := c.write(bytes)
		if err != nil {
			s.drop(c, closedByClient)
			return
		}
		if bytes = bytes[n:]; len(bytes) == 0 {
			return
		}
		c.full = s.now
	}
	most := s.cfg.ClientQueue
	if s.queued > s.room {
		most = min(most, leastQueue)
	}
	if len(c.queue)+len(bytes) > most {
		s.drop(c, tooSlow)
		return
	}
	c.queue = append(c.queue, bytes...)
	s.queued += len(bytes)
}

// tick writes queued bytes, sends keep-alives and drops expired or stalled connections.
func (s *shard) tick(length int64) {
	for i := len(s.all) - 1; i >= 0; i-- {
		c := s.all[i]
		if !c.grant.valid(s.now) {
			s.drop(c, c.grant.lostBy(s.now))
			continue
		}
		if c.held != nil {
			continue
		}
		c.ping, c.full = min(c.ping, s.now+int64(s.cfg.KeepAlive)), min(c.full, s.now) // in case the clock was set back
		if len(c.queue) > 0 && !s.flush(c) {
			continue
		}
		if s.now+length/2 >= c.ping {
			c.ping = max(c.ping, s.now-length) + int64(s.cfg.KeepAlive)
			s.write(c, []byte(s.place(c)+keepAlive))
		}
	}
}

// place returns the id of the newest event of the stream if that is hidden from the client, and everything before it is
// written: once the stream no longer has the last event that the client saw, it could not resume.
func (s *shard) place(c *connection) string {
	last := s.last[c.topic]
	if len(c.queue) > 0 || last.Compare(c.after) <= 0 {
		return ""
	}
	c.after = last
	return "id: " + last.String() + "\n\n"
}

// flush writes queued bytes. It reports whether the connection is still open.
func (s *shard) flush(c *connection) bool {
	n, err := c.write(c.queue)
	if err != nil {
		s.drop(c, closedByClient)
		return false
	}
	s.queued -= n
	if n == len(c.queue) {
		c.queue = nil
		return true
	}
	c.queue = c.queue[n:]
	if n > 0 {
		c.full = s.now
	}
	if s.now-c.full > int64(s.cfg.WriteTimeout) {
		s.drop(c, tooSlow)
		return false
	}
	return true
}

// stop sends every client away. A client whose stream is about to start follows right after.
func (s *shard) stop() {
	s.ending = true
	for i := len(s.all) - 1; i >= 0; i-- {
		if c := s.all[i]; c.held == nil {
			s.bid(c)
		}
	}
}

// bid asks a client to reconnect after a random delay, to another relay, and closes the connection.
func (s *shard) bid(c *connection) {
	if len(c.queue) == 0 {
		// An error does no harm: the connection ends anyway.
		_, _ = c.write(fmt.Appendf(nil, "retry: %d\n\n", 500+rand.N(4500)))
	}
	s.drop(c, relayStops)
}

func (s *shard) drop(c *connection, why reason) {
	if c.gone {
		return
	}
	c.gone = true
	last := len(s.all) - 1
	s.all[c.atAll] = s.all[last]
	s.all[c.atAll].atAll = c.atAll
	s.all[last] = nil
	s.all = s.all[:last]
	here := s.topics[c.topic]
	last = len(here) - 1
	here[c.atHere] = here[last]
	here[c.atHere].atHere = c.atHere
	here[last] = nil
	if here = here[:last]; last == 0 {
		delete(s.topics, c.topic)
		delete(s.last, c.topic)
	} else {
		s.topics[c.topic] = here
	}
	if cap(s.all) > 64 && len(s.all) < cap(s.all)/4 {
		s.all = slices.Clip(slices.Clone(s.all))
	}
	s.close(c, why)
}

func (s *shard) close(c *connection, why reason) {
	s.watcher.remove(c)
	c.close()
	s.queued -= len(c.queue)
	c.queue, c.held = nil, nil
	s.closed[why].Add(1)
	s.leave(c.seat)
}
