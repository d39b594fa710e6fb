package relay

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/sse-relay/rig"
)

// TestClientsThatNeverRead fills the sockets of a hundred clients that do not read.
func TestClientsThatNeverRead(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"queue full": func(c *Config) { c.WriteTimeout = time.Minute },
		"deadline":   func(c *Config) { c.WriteTimeout, c.ClientQueue = 6*time.Second, 16<<20 },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, func(c *Config) { c.MaxPerUser = 200; change(c) })
			neverRead(t, s)
		})
	}
}

func neverRead(t *testing.T, s *stage) {
	tenant := uuid.New()
	token, _ := s.account(tenant)
	deaf, _ := s.account(tenant)
	const count = 100
	for range count {
		s.deaf(deaf)
	}
	eventually(t, "a hundred streams", func() bool { return s.server.limits.open() == count })
	reader := s.open("/api/v1/events/stream", token)
	text := strings.Repeat("x", 20_000)
	slow := func() int64 {
		n := int64(0)
		for _, shard := range s.server.hub.shards {
			n += shard.closed[tooSlow].Load()
		}
		return n
	}
	var worst time.Duration
	deadline := time.Now().Add(30 * time.Second)
	for filled := 0; slow() < count; filled++ {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d clients were dropped within 30 s", slow(), count)
		}
		start := time.Now()
		event := events.Event{Topic: events.Entities, Kind: "n", Data: text}
		if filled > 50 { // every socket is full: small ones now, so that a large queue does not overflow
			event.Data = "x"
		}
		s.publish(tenant, event)
		s.expect(reader, "n")
		worst = max(worst, time.Since(start))
	}
	t.Logf("longest delivery beside %d deaf clients: %s", count, worst)
	if worst > 4*time.Second { // less than either timeout: nobody waited for a deaf one
		t.Errorf("a delivery took %s", worst)
	}
	eventually(t, "only the reader is left", func() bool { return s.server.limits.open() == 1 })
}

// A scan sends events about thousands of books within a second, faster than a client on another continent can receive
// them: the relay queues them.
func TestBurst(t *testing.T) {
	s := newStage(t, nil)
	tenant := uuid.New()
	token, _ := s.account(tenant)
	reader, slow := s.open("/api/v1/events/stream", token), s.open("/api/v1/events/stream", token)
	const count = 3000 // of 300 bytes
	text := strings.Repeat("x", 250)
	for i := 0; i < count; i += 100 {
		var batch []events.Event
		for j := range 100 {
			batch = append(batch, events.Event{Topic: events.Entities, Kind: "n", Data: fmt.Sprint(text, i+j)})
		}
		s.publish(tenant, batch...)
	}
	for _, c := range []*rig.Client{reader, slow} {
		for i := range count {
			if b := s.expect(c, "n"); !strings.HasSuffix(b.Data, fmt.Sprintf("x%d\"", i)) {
				t.Fatalf("event %d has data %s", i, b.Data)
			}
		}
	}
}

// pairAndWatcher are the ends of a connection, the relay's first, and what watches it.
func pairAndWatcher(t *testing.T) (pair [2]int, w *watcher) {
	t.Helper()
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(pair[1]) })
	if w, err = newWatcher(); err != nil {
		t.Fatal(err)
	}
	return pair, w
}

// Bytes that fit into the socket are written before more are queued: a client is not dropped for bytes that it could
// have read.
func TestQueueIsWrittenFirst(t *testing.T) {
	t.Parallel()
	pair, w := pairAndWatcher(t)
	s := newShard(Config{ClientQueue: 100_000, WriteTimeout: time.Second}, w, 1<<20, func(seat) {})
	c := &connection{shard: s, seat: seat{topic: &topic{}}, fd: int32(pair[0])}
	s.join(c)
	bytes := make([]byte, 10_000)
	for range 100 {
		for len(c.queue) < 95_000 && !c.gone {
			s.write(c, bytes)
		}
		if s.queued != len(c.queue) {
			t.Fatalf("%d bytes queued, %d counted", len(c.queue), s.queued)
		}
		for into := make([]byte, 1<<16); ; {
			if n, err := syscall.Read(pair[1], into); n <= 0 || err != nil {
				break
			}
		}
		if s.write(c, bytes); c.gone {
			t.Fatal("dropped though it has read all")
		}
	}
	for !c.gone { // it reads no more
		s.write(c, bytes)
	}
	if s.queued != 0 || s.closed[tooSlow].Load() != 1 {
		t.Errorf("%d bytes counted of nobody, %d dropped", s.queued, s.closed[tooSlow].Load())
	}
}

// A connection that has lost its access gets no event, even before the next tick.
func TestNothingIsDeliveredWithoutAccess(t *testing.T) {
	t.Parallel()
	pair, w := pairAndWatcher(t)
	s := newShard(Config{ClientQueue: 100_000}, w, 1<<20, func(seat) {})
	c := &connection{shard: s, seat: seat{topic: &topic{}, grant: &grant{}}, fd: int32(pair[0])}
	s.join(c)
	c.grant.revoked.Store(true)
	f := eventFrame(events.Message{ID: events.ID{Millis: 1}, Kind: "n", Data: "1"})
	s.deliver(c.topic, &f)
	if n, _ := syscall.Read(pair[1], make([]byte, 1<<10)); n > 0 || !c.gone || s.closed[accessLost].Load() != 1 {
		t.Errorf("%d bytes written, gone %v", n, c.gone)
	}
}

// A client that is slow to take what it missed holds no more live events than its queue has room for.
func TestHeldEventsAreBounded(t *testing.T) {
	t.Parallel()
	pair, w := pairAndWatcher(t)
	f := eventFrame(events.Message{ID: events.ID{Millis: 1}, Kind: "n", Data: "1"})
	s := newShard(Config{ClientQueue: 10 * len(f.bytes)}, w, 1<<20, func(seat) {})
	c := &connection{shard: s, seat: seat{topic: &topic{}, grant: &grant{}}, held: &held{}, fd: int32(pair[0])}
	s.join(c)
	for range 10 {
		s.deliver(c.topic, &f)
	}
	if c.gone || len(c.held.frames) != 10 {
		t.Fatal("dropped though there is room")
	}
	if s.deliver(c.topic, &f); !c.gone || s.closed[tooSlow].Load() != 1 {
		t.Error("more is held than there is room for")
	}
}

// After the clock was set back, streams still get keep-alives, and a client that does not read is still dropped.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	pair, w := pairAndWatcher(t)
	s := newShard(Config{ClientQueue: 1 << 20, KeepAlive: 15 * time.Second, WriteTimeout: 10 * time.Second}, w, 1<<20, func(seat) {})
	c := &connection{shard: s, seat: seat{grant: &grant{}, topic: &topic{}}, fd: int32(pair[0])}
	s.join(c)
	tick := func(at time.Time) {
		s.now = at.UnixNano()
		s.tick(int64(maxTick))
	}
	now := time.Now()
	tick(now)
	read := func() int {
		n, _ := syscall.Read(pair[1], make([]byte, 1<<10))
		return n
	}
	if read() != len(keepAlive) {
		t.Fatal("no keep-alive at first")
	}
	now = now.Add(-time.Hour)
	for range 15*4 + 1 {
		now = now.Add(maxTick)
		tick(now)
	}
	if read() != len(keepAlive) {
		t.Error("no keep-alive within 15 s of the new time")
	}
	for len(c.queue) == 0 && !c.gone {
		s.write(c, make([]byte, 10_000))
	}
	now = now.Add(-time.Hour)
	for range 10*4 + 2 {
		now = now.Add(maxTick)
		tick(now)
	}
	if !c.gone || s.closed[tooSlow].Load() != 1 {
		t.Error("a client that reads nothing is kept for more than 10 s of the new time")
	}
}

// With many clients that do not read, some are dropped before each has reached its own limit.
func TestQueuesTogetherAreBounded(t *testing.T) {
	s := newStage(t, func(c *Config) { c.MaxPerUser, c.WriteTimeout, c.ClientQueue = 1000, time.Minute, 16<<20 })
	tenant := uuid.New()
	token, _ := s.account(tenant)
	reader := s.open("/api/v1/events/stream", token)
	deaf, _ := s.account(tenant)
	for range 20 {
		s.deaf(deaf)
	}
	eventually(t, "the streams", func() bool { return s.server.limits.open() == 21 })
	text := strings.Repeat("x", 30_000)
	for range 500 { // 300 MB for the twenty, less than the queue of each has room for
		s.publish(tenant, events.Event{Topic: events.Entities, Kind: "n", Data: text})
		s.expect(reader, "n")
		if s.server.limits.open() < 21 {
			return
		}
	}
	t.Error("nobody was dropped")
}

// deaf opens a stream and never reads from it.
func (s *stage) deaf(lines ...string) {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	if err := conn.(*net.TCPConn).SetReadBuffer(2048); err != nil {
		s.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "GET /api/v1/events/stream HTTP/1.1\r\nHost: a.test\r\n%s\r\n\r\n", strings.Join(lines, "\r\n")); err != nil {
		s.t.Fatal(err)
	}
}

// TestDeafClientDuringReplay does not read while it is given what it missed.
func TestDeafClientDuringReplay(t *testing.T) {
	s := newStage(t, func(c *Config) { c.WriteTimeout = 300 * time.Millisecond })
	tenant := uuid.New()
	token, _ := s.account(tenant)
	first := s.open("/api/v1/events/stream", token)
	start := first.LastID
	for range 300 {
		s.publish(tenant, events.Event{Topic: events.Entities, Kind: "n", Data: strings.Repeat("x", 30_000)})
		s.expect(first, "n")
	}
	s.deaf(token, "Last-Event-ID: "+start)
	eventually(t, "its stream", func() bool { return s.server.limits.open() == 2 })
	eventually(t, "it is dropped", func() bool { return s.server.limits.open() == 1 })
	s.publish(tenant, numbered("n", 1))
	s.expect(first, "n")
}

func TestGracefulEnd(t *testing.T) {
	s := newStage(t, nil)
	tenant := uuid.New()
	var clients []*rig.Client
	for range 30 {
		token, _ := s.account(tenant)
		clients = append(clients, s.open("/api/v1/events/stream", token))
	}
	start := time.Now()
	s.end()
	if passed := time.Since(start); passed > 5*time.Second {
		t.Errorf("stopping took %s", passed)
	}
	waits := map[string]bool{}
	for _, c := range clients {
		blocks := s.ended(c, time.Second)
		if len(blocks) != 1 || blocks[0].Retry == "" {
			t.Fatalf("before the end: %+v, want a retry line", blocks)
		}
		waits[blocks[0].Retry] = true
	}
	if len(waits) < 10 {
		t.Errorf("%d different waits for 30 clients: they come back together", len(waits))
	}
	if _, err := rig.Open(s.addr, "/api/v1/events/stream"); err == nil {
		t.Error("a stopped relay accepts connections")
	}
}

// TestGracefulEndDuringReplay stops the relay while a client is being given what it missed.
func TestGracefulEndDuringReplay(t *testing.T) {
	s := newStage(t, nil)
	tenant := uuid.New()
	token, _ := s.account(tenant)
	first := s.open("/api/v1/events/stream", token)
	start := first.LastID
	s.publish(tenant, numbered("n", 0))
	s.expect(first, "n")
	for range s.cfg.ReplayReads { // nobody can read a stream
		s.server.hub.reads <- struct{}{}
	}
	c := s.open("/api/v1/events/stream", token, "Last-Event-ID: "+start)
	go s.end()
	eventually(t, "no new connections", func() bool {
		probe, err := net.Dial("tcp", s.addr)
		if err == nil {
			probe.Close()
		}
		return err != nil
	})
	for range s.cfg.ReplayReads {
		<-s.server.hub.reads
	}
	s.expect(c, "n")
	if blocks := s.ended(c, 5*time.Second); len(blocks) != 1 || blocks[0].Retry == "" {
		t.Errorf("before the end: %+v, want a retry line", blocks)
	}
}

// TestRedisAway stops Redis: streams stay and live, and go on when it is back.
func TestRedisAway(t *testing.T) {
	s := newStage(t, func(c *Config) { c.KeepAlive = 50 * time.Millisecond })
	tenant := uuid.New()
	token, _ := s.account(tenant)
	stranger, _ := s.account(uuid.New())
	c := s.open("/api/v1/events/stream", token)
	s.redis.Stop(t)
	for range 5 {
		if b, err := c.Next(); err != nil || b.Comment != "keep-alive" {
			t.Fatalf("%+v, %v: want keep-alives without Redis", b, err)
		}
	}
	refusal, _ := s.refused(503, "/api/v1/events/stream", stranger)
	if refusal.Response.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After without Redis")
	}
	s.taken(1)
	s.redis.Run(t) // it lost everything, and the relay says so
	if b := s.expect(c, "resync"); b.Data != `{"reason":"history_lost"}` {
		t.Errorf("data %s", b.Data)
	}
	if err := s.publisher.Publish(t.Context(), tenant, numbered("again", 1)); err != nil && !strings.Contains(err.Error(), "delayed") {
		t.Fatal(err)
	}
	s.expect(c, "again")
	s.open("/api/v1/events/stream", stranger)
}

// TestRedisIsSilent puts a proxy before Redis that stops forwarding: what was published meanwhile
// arrives, once and in order, when it forwards again.
func TestRedisIsSilent(t *testing.T) {
	var p *proxy
	s := newStage(t, func(c *Config) {
		p = newProxy(t, strings.TrimPrefix(c.RedisURL, "unix://"))
		c.RedisURL, c.RedisPing = "redis://"+p.listener.Addr().String(), 50*time.Millisecond
	})
	tenant := uuid.New()
	token, _ := s.account(tenant)
	c := s.open("/api/v1/events/stream", token)
	s.publish(tenant, numbered("n", 0))
	s.expect(c, "n")
	p.silent.Store(true)
	for i := range 50 {
		s.publish(tenant, numbered("n", i+1))
	}
	eventually(t, "the relay notices", func() bool { return !s.server.hub.sub.alive.Load() })
	p.silent.Store(false)
	p.cut()
	for i := range 50 {
		if b := s.expect(c, "n"); b.Data != strconv.Itoa(i+1) {
			t.Fatalf("%s, want %d", b.Data, i+1)
		}
	}
}

// proxy forwards TCP connections to a Unix socket, or swallows what they say.
type proxy struct {
	listener net.Listener
	silent   atomic.Bool
	mu       sync.Mutex
	open     []net.Conn
}

func newProxy(t *testing.T, socket string) *proxy {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener}
	t.Cleanup(func() { listener.Close(); p.cut() })
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("unix", socket)
			if err != nil {
				in.Close()
				continue
			}
			p.mu.Lock()
			p.open = append(p.open, in, out)
			p.mu.Unlock()
			go p.copy(in, out)
			go p.copy(out, in)
		}
	}()
	return p
}

func (p *proxy) copy(from io.Reader, to io.WriteCloser) {
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if p.silent.Load() {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.open {
		c.Close()
	}
	p.open = nil
}

// TestRedisConnectionsKilled loses the subscription while much is published.
func TestRedisConnectionsKilled(t *testing.T) {
	s := newStage(t, func(c *Config) { c.ReplayPage = 10 })
	tenant := uuid.New()
	token, _ := s.account(tenant)
	c := s.open("/api/v1/events/stream", token)
	const total = 3000
	var group sync.WaitGroup
	group.Go(func() {
		for i := range total {
			s.publish(tenant, numbered("n", i))
			if i%100 == 0 {
				if err := s.redis.Client.Do(t.Context(), "client", "kill", "type", "pubsub").Err(); err != nil {
					t.Error(err)
				}
			}
		}
	})
	for i := range total {
		if b := s.expect(c, "n"); b.Data != strconv.Itoa(i) {
			t.Fatalf("%s, want %d", b.Data, i)
		}
	}
	group.Wait()
}

// TestClientAheadOfTheRelay resumes from an event that this relay has not heard of yet, because its
// subscription is broken.
func TestClientAheadOfTheRelay(t *testing.T) {
	s := newStage(t, nil)
	tenant := uuid.New()
	token, _ := s.account(tenant)
	c := s.open("/api/v1/events/stream", token)
	s.publish(tenant, numbered("n", 0))
	s.expect(c, "n")

	rights := func(user string, rules ...any) {
		t.Helper()
		if err := s.redis.Client.Do(t.Context(), append([]any{"acl", "setuser", user}, rules...)...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	rights("publisher", "on", "nopass", "~*", "&*", "+@all")
	rights("default", "resetchannels") // ends the relay's subscription; it still reads streams
	eventually(t, "the subscription is broken", func() bool { return !s.server.hub.sub.alive.Load() })
	options := *s.redis.Client.Options()
	options.Username, options.Password = "publisher", "any"
	rdb := redis.NewClient(&options)
	defer rdb.Close()
	publisher := events.New(rdb, events.Config{Timeout: time.Second}, nil)
	if err := publisher.Publish(t.Context(), tenant, numbered("n", 1), numbered("n", 2)); err != nil {
		t.Fatal(err)
	}
	entries, err := rdb.XRevRangeN(t.Context(), events.Key(tenant, events.Entities), "+", "-", 2).Result()
	if err != nil {
		t.Fatal(err)
	}
	ahead := s.open("/api/v1/events/stream", token, "Last-Event-ID: "+entries[1].ID) // that of 1
	rights("default", "allchannels")
	for i := range 2 {
		if b := s.expect(c, "n"); b.Data != strconv.Itoa(i+1) {
			t.Errorf("%s, want %d", b.Data, i+1)
		}
	}
	if b := s.expect(ahead, "n"); b.Data != "2" {
		t.Errorf("%s, want 2: the client had 1 already", b.Data)
	}
}

// TestLiveEventWhileReading hears an event after the stream was read and before it is live again.
func TestLiveEventWhileReading(t *testing.T) {
	s := newStage(t, nil)
	tenant := uuid.New()
	token, _ := s.account(tenant)
	c := s.open("/api/v1/events/stream", token)
	topic, _ := s.server.hub.find(events.Key(tenant, events.Entities))
	topic.mu.Lock()
	topic.syncing = true
	later := topic.last
	topic.mu.Unlock()
	later.Millis += 1000
	topic.live(t.Context(), events.Message{ID: later, Kind: "late", Data: "1"}) // not in the stream
	topic.sync(t.Context())
	s.expect(c, "late")
}

// lose appends an event to the stream whose live message is lost.
func (s *stage) lose(tenant uuid.UUID, kind string) {
	s.t.Helper()
	add := &redis.XAddArgs{Stream: events.Key(tenant, events.Entities), Values: []string{"e", kind + "\t\t\t1"}}
	if err := s.redis.Client.XAdd(s.t.Context(), add).Err(); err != nil {
		s.t.Fatal(err)
	}
}

// A live event that is lost while the subscription stays up comes before the next one.
func TestLostLiveEvent(t *testing.T) {
	s := newStage(t, nil)
	tenant := uuid.New()
	token, _ := s.account(tenant)
	c := s.open("/api/v1/events/stream", token)
	s.publish(tenant, numbered("zero", 0))
	s.expect(c, "zero")
	s.lose(tenant, "one")
	s.publish(tenant, numbered("two", 2), numbered("three", 3))
	s.lose(tenant, "four")
	s.publish(tenant, numbered("five", 5))
	for _, kind := range []string{"one", "two", "three", "four", "five"} {
		s.expect(c, kind)
	}
}

// A lost event that no other follows comes within the interval.
func TestLostLastEvent(t *testing.T) {
	s := newStage(t, func(c *Config) { c.AccessInterval = 50 * time.Millisecond })
	tenant := uuid.New()
	token, _ := s.account(tenant)
	c := s.open("/api/v1/events/stream", token)
	s.publish(tenant, numbered("first", 1))
	s.expect(c, "first")
	s.lose(tenant, "last")
	s.expect(c, "last")
}

// A stream that has expired, so that its newest event is gone, is no reason for a resync event.
func TestExpiredStreamIsNotReadAgain(t *testing.T) {
	s := newStage(t, func(c *Config) { c.AccessInterval = time.Minute })
	tenant := uuid.New()
	token, _ := s.account(tenant)
	c := s.open("/api/v1/events/stream", token)
	s.publish(tenant, numbered("first", 1))
	s.expect(c, "first")
	if err := s.redis.Client.XTrimMaxLen(t.Context(), events.Key(tenant, events.Entities), 0).Err(); err != nil {
		t.Fatal(err)
	}
	topic, _ := s.server.hub.find(events.Key(tenant, events.Entities))
	topic.check(t.Context())
	topic.mu.Lock()
	if topic.syncing {
		t.Error("an empty stream is read again")
	}
	topic.mu.Unlock()
	s.publish(tenant, numbered("next", 2))
	s.expect(c, "next")
}

// Two live messages that overtake each other are delivered in the order of the stream, none twice.
func TestOvertakenLiveEvents(t *testing.T) {
	s := newStage(t, nil)
	tenant := uuid.New()
	token, _ := s.account(tenant)
	c := s.open("/api/v1/events/stream", token)
	topic, _ := s.server.hub.find(events.Key(tenant, events.Entities))
	topic.mu.Lock()
	last := topic.last
	topic.mu.Unlock()
	s.lose(tenant, "two")
	s.lose(tenant, "three")
	page, err := events.Range(t.Context(), s.redis.Client, topic.key, last, nil, 10)
	if err != nil || len(page) != 3 {
		t.Fatalf("%v, %v", page, err)
	}
	topic.live(t.Context(), events.Message{ID: page[1].ID}) // before three
	topic.live(t.Context(), page[2])
	topic.live(t.Context(), events.Message{ID: last}) // before two
	topic.live(t.Context(), page[1])
	s.expect(c, "two")
	s.expect(c, "three")
	s.publish(tenant, numbered("four", 4))
	s.expect(c, "four")
}

// An event that is not in the stream either, after Redis lost its data, does not make the relay read for ever.
func TestLostEventThatIsGone(t *testing.T) {
	s := newStage(t, nil)
	tenant := uuid.New()
	token, _ := s.account(tenant)
	c := s.open("/api/v1/events/stream", token)
	topic, _ := s.server.hub.find(events.Key(tenant, events.Entities))
	topic.mu.Lock()
	gone := topic.last
	topic.mu.Unlock()
	gone.Millis += 1000
	topic.live(t.Context(), events.Message{ID: gone})
	topic.live(t.Context(), events.Message{ID: gone})
	gone.Seq++
	topic.live(t.Context(), events.Message{ID: gone, Kind: "late", Data: "1"})
	s.expect(c, "late")
}

// Of very many live events while the stream is read none is kept: the stream is read again.
func TestManyLiveEventsWhileReading(t *testing.T) {
	t.Parallel()
	topic := &topic{syncing: true}
	for i := range maxWaiting {
		topic.live(t.Context(), events.Message{ID: events.ID{Millis: 1, Seq: uint64(i)}})
	}
	if topic.again || len(topic.waiting) != maxWaiting {
		t.Errorf("read again %v, %d wait", topic.again, len(topic.waiting))
	}
	topic.live(t.Context(), events.Message{ID: events.ID{Millis: 2}})
	if !topic.again || len(topic.waiting) != 0 {
		t.Errorf("one more: read again %v, %d wait", topic.again, len(topic.waiting))
	}
}

// After a new connection to Redis all channels are subscribed again, more than one command takes.
func TestManyChannelsAreSubscribedAgain(t *testing.T) {
	s := newStage(t, nil)
	const count = 2*channelsAtOnce + 1
	for i := range count {
		s.server.hub.sub.add(fmt.Sprint("channel ", i))
	}
	var first, id, channels int
	subscribed := func() bool {
		list := s.redis.Client.Do(t.Context(), "client", "list", "type", "pubsub").Val()
		_, _ = fmt.Sscanf(fmt.Sprint(list), "id=%d", &id) // no connection at the moment
		_, after, _ := strings.Cut(fmt.Sprint(list), " sub=")
		_, _ = fmt.Sscanf(after, "%d", &channels)
		return id != first && channels == count
	}
	eventually(t, "the subscriptions", subscribed)
	first = id
	if err := s.redis.Client.Do(t.Context(), "client", "kill", "type", "pubsub").Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new subscriptions", subscribed)
}

// A client that leaves while its stream starts frees its slots.
func TestAClientThatLeavesAtOnce(t *testing.T) {
	s := newStage(t, func(c *Config) { c.KeepAlive = 20 * time.Millisecond })
	token, _ := s.account(uuid.New())
	began := make(chan error, 1)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at, refused := s.server.admit(w, r, events.Entities)
		if refused != nil {
			began <- refused.cause
			return
		}
		c, err := s.server.takeOver(w, at)
		if err == nil {
			left, leave := context.WithCancel(r.Context())
			leave()
			_, _ = s.server.hub.begin(left, c, http.Header{}, "") // may be told that the client has left
		}
		began <- err
	}))
	defer front.Close()
	for range 40 {
		conn, err := net.Dial("tcp", front.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: a.test\r\n%s\r\n\r\n", token)
		err = <-began
		conn.Close()
		if err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "all are dropped", func() bool { return s.server.limits.open() == 0 })
}
