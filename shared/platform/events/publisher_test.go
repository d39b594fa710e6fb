package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/longbox/longbox/shared/platform/events/redistest"
)

func number(i int) Event { return Event{Topic: Entities, Kind: "n", Data: i} }

// stored returns the data of every entry of the tenant's entity stream.
func stored(t *testing.T, rdb *redis.Client, tenant uuid.UUID) []string {
	t.Helper()
	messages, err := Range(t.Context(), rdb, Key(tenant, Entities), ID{}, nil, 1_000_000)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range messages {
		if m.Kind != "" {
			out = append(out, m.Data)
		}
	}
	return out
}

func TestStreamOrderIsChannelOrder(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	tenant, other := uuid.New(), uuid.New()
	sub := server.Client.Subscribe(t.Context(), Key(tenant, Entities))
	defer sub.Close()
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	const writers, each = 8, 300
	var group sync.WaitGroup
	for w := range writers {
		p := New(server.Client, Config{Timeout: time.Second}, nil)
		group.Go(func() {
			for i := 0; i < each; i += 3 {
				err := p.Publish(t.Context(), tenant, number(w*each+i), number(w*each+i+1), number(w*each+i+2))
				if err = errors.Join(err, p.Publish(t.Context(), other, number(-1))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var heard []string
	ids := map[ID]bool{}
	var last ID
	for len(heard) < writers*each {
		message, err := sub.ReceiveMessage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m, err := DecodeMessage(message.Payload)
		if err != nil {
			t.Fatal(err)
		}
		if m.Kind == "" { // before each call: the newest id
			if m.ID != last {
				t.Fatalf("a call follows %s, the last event was %s", m.ID, last)
			}
			continue
		}
		if m.ID.Compare(last) <= 0 || ids[m.ID] {
			t.Fatalf("id %s after %s", m.ID, last)
		}
		last, ids[m.ID] = m.ID, true
		heard = append(heard, m.Data)
	}
	group.Wait()
	if got := stored(t, server.Client, tenant); !slices.Equal(got, heard) {
		t.Errorf("the stream has %d entries in another order than the %d of the channel", len(got), len(heard))
	}
	for w := range writers { // each writer's events in its own order
		next := w * each
		for _, text := range heard {
			if n, _ := strconv.Atoi(text); n/each == w {
				if n != next {
					t.Fatalf("writer %d: %d, want %d", w, n, next)
				}
				next++
			}
		}
	}
	for _, key := range server.Client.Keys(t.Context(), "*").Val() {
		if !strings.Contains(key, tenant.String()) && !strings.Contains(key, other.String()) {
			t.Errorf("key %q names no tenant", key)
		}
	}
}

func TestReplayIsBounded(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	tenant := uuid.New()
	p := New(server.Client, Config{Replay: 200, Timeout: time.Second}, nil)
	var many []Event
	for i := range 3000 {
		many = append(many, number(i))
	}
	if err := p.Publish(t.Context(), tenant, many...); err != nil {
		t.Fatal(err)
	}
	got := stored(t, server.Client, tenant)
	if len(got) < 200 || len(got) > 400 || got[len(got)-1] != "2999" {
		t.Errorf("%d entries kept up to %s, want about 200 up to 2999", len(got), got[len(got)-1])
	}
	if ttl := server.Client.TTL(t.Context(), Key(tenant, Entities)).Val(); ttl < 167*time.Hour || ttl > 168*time.Hour {
		t.Errorf("the stream lives %s, want a week", ttl)
	}
}

// counter counts round trips.
type counter struct{ trips int }

func (c *counter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.trips++
		return next(ctx, cmd)
	}
}

func (c *counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.trips++
		return next(ctx, cmds)
	}
}

func TestOneRoundTrip(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := New(server.Client, Config{Timeout: time.Second}, nil)
	tenant := uuid.New()
	count := &counter{}
	for _, n := range []int{1, 1000} {
		events := make([]Event, n)
		for i := range events {
			events[i] = number(i)
		}
		publish := func() {
			if err := p.Publish(t.Context(), tenant, events...); err != nil {
				t.Fatal(err)
			}
		}
		publish() // opens the connection
		server.Client.AddHook(count)
		count.trips = 0
		publish()
		if count.trips != 1 {
			t.Errorf("%d events in %d round trips, want 1", n, count.trips)
		}
		count = &counter{} // hooks stay: count anew with another one
	}
	if got := len(stored(t, server.Client, tenant)); got != 2002 {
		t.Errorf("%d events stored, want 2002", got)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := New(server.Client, Config{Queue: 5, Timeout: time.Second}, nil)
	tenant := uuid.New()
	if err := p.Publish(t.Context(), tenant, number(1), Event{Topic: "other", Kind: "n", Data: 2}); err == nil || !strings.Contains(err.Error(), "unknown topic") {
		t.Errorf("unknown topic: %v", err)
	}
	if err := p.Publish(t.Context(), tenant, make([]Event, 6)...); err == nil {
		t.Error("events without a topic were accepted")
	}
	if err := p.Publish(t.Context(), tenant, number(1), number(2), number(3), number(4), number(5), number(6)); !errors.Is(err, ErrDropped) {
		t.Errorf("more than the queue: %v, want ErrDropped", err)
	}
	if err := p.Publish(t.Context(), tenant); err != nil {
		t.Errorf("nothing to publish: %v", err)
	}
	server.Client.Set(t.Context(), Key(tenant, Entities), "not a stream", 0)
	if err := p.Publish(t.Context(), tenant, number(1)); !errors.Is(err, ErrDropped) || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("a script that fails: %v, want ErrDropped with its cause", err)
	}
}

// TestDeadRedis measures how long callers wait for a Redis that refuses or ignores connections.
func TestDeadRedis(t *testing.T) {
	t.Parallel()
	hole, err := net.Listen("tcp", "127.0.0.1:0") // accepts (in the kernel) and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer hole.Close()
	refused, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused.Close()
	for name, addr := range map[string]string{"refused": refused.Addr().String(), "black hole": hole.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			rdb := redis.NewClient(&redis.Options{Addr: addr}) // with the library's own, patient defaults
			defer rdb.Close()
			p := New(rdb, Config{Hold: time.Second, Pause: time.Minute}, nil)
			start := time.Now()
			if err := p.Publish(t.Context(), uuid.New(), number(0)); !errors.Is(err, ErrDelayed) {
				t.Errorf("first: %v, want ErrDelayed", err)
			}
			first := time.Since(start)
			start = time.Now()
			for range 1000 {
				if err := p.Publish(t.Context(), uuid.New(), number(0)); !errors.Is(err, ErrDelayed) {
					t.Fatalf("following: %v, want ErrDelayed", err)
				}
			}
			following := time.Since(start)
			t.Logf("first %s, following %s", first, following)
			// Longbox waits for 5 s. A thousand times EVENT_TIMEOUT would be 20 s.
			if first > 3*time.Second || following > 10*time.Second {
				t.Errorf("first %s, following %s", first, following)
			}
		})
	}
}

// Listeners of a stream that lacks events get a resync event once Redis is back, and no others do.
func TestDroppedEventsAreTold(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	tenant, other := uuid.New(), uuid.New()
	p := New(server.Client, Config{Queue: 5, Timeout: time.Second, Hold: time.Second}, nil)
	resync := `{"reason":"not_sent"}`
	expect := func(what string, tenant uuid.UUID, want ...string) {
		t.Helper()
		if err := p.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := stored(t, server.Client, tenant); !slices.Equal(got, want) {
			t.Errorf("%s: stored %v, want %v", what, got, want)
		}
	}
	if err := p.Publish(t.Context(), tenant, number(1), number(2), number(3), number(4), number(5), number(6)); !errors.Is(err, ErrDropped) {
		t.Fatalf("%v, want ErrDropped", err)
	}
	expect("too many at once", tenant, resync)
	server.Stop(t)
	if err := p.Publish(t.Context(), tenant, number(7)); !errors.Is(err, ErrDelayed) {
		t.Fatalf("%v, want ErrDelayed", err)
	}
	if err := p.Flush(t.Context()); err != nil { // held for too long
		t.Fatal(err)
	}
	server.Run(t)
	if err := p.Publish(t.Context(), other, number(8)); err != nil && !errors.Is(err, ErrDelayed) {
		t.Fatal(err)
	}
	expect("Redis was away for too long", tenant, resync)
	expect("nothing was lost", other, "8")
	server.Client.Set(t.Context(), Key(tenant, Entities), "not a stream", 0)
	if err := p.Publish(t.Context(), tenant, number(9)); !errors.Is(err, ErrDropped) {
		t.Fatalf("%v, want ErrDropped", err)
	}
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Client.Del(t.Context(), Key(tenant, Entities))
	if err := p.Publish(t.Context(), other, number(10)); err != nil {
		t.Fatal(err)
	}
	expect("Redis refused it", tenant, resync)
}

// A process without further events, such as a worker after its scan, sends it too.
func TestDroppedEventsAreToldWithoutOthers(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	tenant := uuid.New()
	p := New(server.Client, Config{Hold: time.Second}, nil)
	server.Stop(t)
	if err := p.Publish(t.Context(), tenant, number(1), number(2)); !errors.Is(err, ErrDelayed) {
		t.Fatalf("%v, want ErrDelayed", err)
	}
	if err := p.Flush(t.Context()); err != nil { // held for too long
		t.Fatal(err)
	}
	server.Run(t)
	if got, err := server.Client.XRead(t.Context(), &redis.XReadArgs{Streams: []string{Key(tenant, Entities), "0"}, Block: 10 * time.Second}).Result(); err != nil {
		t.Fatalf("nothing is told: %v, %v", got, err)
	}
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := stored(t, server.Client, tenant); !slices.Equal(got, []string{`{"reason":"not_sent"}`}) {
		t.Errorf("stored %v, want one resync", got)
	}
}

// A change of access that could not be announced in time is announced when Redis is back.
func TestDroppedChangeOfAccess(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	tenant := uuid.New()
	p := New(server.Client, Config{Hold: time.Second}, nil)
	server.Stop(t)
	if err := p.ChangeAccess(t.Context(), tenant); !errors.Is(err, ErrDelayed) {
		t.Fatalf("%v, want ErrDelayed", err)
	}
	if err := p.Flush(t.Context()); err != nil { // held for too long
		t.Fatal(err)
	}
	server.Run(t)
	sub := server.Client.Subscribe(t.Context(), GenerationKey(tenant))
	defer sub.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := sub.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	if now := server.Client.Get(ctx, GenerationKey(tenant)).Val(); now == "" { // else it was faster
		message, err := sub.ReceiveMessage(ctx)
		if err != nil {
			t.Fatalf("nothing is announced: %v", err)
		}
		if now := server.Client.Get(ctx, GenerationKey(tenant)).Val(); now == "" || now != message.Payload {
			t.Errorf("announced %q, stored %q", message.Payload, now)
		}
	}
	if got := stored(t, server.Client, tenant); len(got) > 0 {
		t.Errorf("stored %v, want no event", got)
	}
}

func TestCancelledCallerStillPublishes(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := New(server.Client, Config{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tenant := uuid.New()
	if err := p.Publish(ctx, tenant, number(7)); err != nil && !errors.Is(err, ErrDelayed) {
		t.Fatal(err)
	}
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := stored(t, server.Client, tenant); !slices.Equal(got, []string{"7"}) {
		t.Errorf("stored %v, want 7", got)
	}
}

// TestExactlyOnceThroughCuts kills every connection to Redis again and again while events are sent.
func TestExactlyOnceThroughCuts(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	killer := redis.NewClient(&redis.Options{Network: "unix", Addr: strings.TrimPrefix(server.URL, "unix://")})
	defer killer.Close()
	p := New(server.Client, Config{Pause: time.Millisecond}, nil)
	tenant := uuid.New()
	const total = 3000
	var want []string
	for i := range total {
		if err := p.Publish(t.Context(), tenant, number(i)); err != nil && !errors.Is(err, ErrDelayed) {
			t.Fatal(err)
		}
		want = append(want, strconv.Itoa(i))
		if i%50 == 0 {
			if err := killer.Do(t.Context(), "client", "kill", "type", "normal", "skipme", "yes").Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := stored(t, killer, tenant); !slices.Equal(got, want) {
		t.Errorf("%d events stored, want %d, each once and in order", len(got), total)
	}
}

// TestOutage stops Redis: what was published meanwhile arrives after its return, in order.
func TestOutage(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := New(server.Client, Config{}, nil)
	tenant := uuid.New()
	server.Stop(t)
	var want []string
	for i := range 100 {
		if err := p.Publish(t.Context(), tenant, number(i)); !errors.Is(err, ErrDelayed) {
			t.Fatalf("without Redis: %v, want ErrDelayed", err)
		}
		want = append(want, strconv.Itoa(i))
	}
	server.Run(t)
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := stored(t, server.Client, tenant); !slices.Equal(got, want) {
		t.Errorf("stored %v", got)
	}
}

// loading is a Redis that refuses the first commands because it is loading its file, and accepts the following, even in
// the same pipeline.
type loading struct {
	err  error
	left atomic.Int64 // commands that it refuses
}

func (l *loading) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l *loading) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, c redis.Cmder) error {
		if c.Name() == "eval" && l.left.Add(-1) >= 0 {
			c.SetErr(l.err)
			return l.err
		}
		return next(ctx, c)
	}
}

func (l *loading) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		if commands[0].Name() != "eval" { // the greeting of a connection
			return next(ctx, commands)
		}
		var first error
		for len(commands) > 0 && l.left.Add(-1) >= 0 {
			first = l.err
			commands[0].SetErr(l.err)
			commands = commands[1:]
		}
		if len(commands) == 0 {
			return first
		}
		return cmp.Or(next(ctx, commands), first)
	}
}

// A Redis that accepts writes again in the middle of the queue gets all events, in order: after loading its data, with
// disk space or replicas again, or after a script.
func TestRefusalsEndInTheMiddle(t *testing.T) {
	t.Parallel()
	for _, reply := range []string{"LOADING Redis is loading the dataset in memory", "MISCONF Errors writing to the AOF file: No space left on device",
		"NOREPLICAS Not enough good replicas to write.", "BUSY Redis is busy running a script.", "OOM command not allowed when used memory > 'maxmemory'."} {
		t.Run(reply, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			hook := &loading{err: server.Client.Eval(t.Context(), "return redis.error_reply(ARGV[1])", nil, reply).Err()}
			server.Client.AddHook(hook)
			hook.left.Store(4)
			tenant := uuid.New()
			p := New(server.Client, Config{}, nil)
			var want []string
			for i := range 20 {
				if err := p.Publish(t.Context(), tenant, number(i)); !errors.Is(err, ErrDelayed) {
					t.Fatalf("%v, want ErrDelayed", err)
				}
				want = append(want, strconv.Itoa(i))
			}
			if err := p.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := stored(t, server.Client, tenant); !slices.Equal(got, want) {
				t.Errorf("stored %v, want %v", got, want)
			}
		})
	}
}

// A Redis that refuses the head of a pipeline and accepts the rest has lost events. This is reported, because events
// sent again would count as already sent.
func TestRefusalsEndWithinAPipeline(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	hook := &loading{err: server.Client.Eval(t.Context(), "return redis.error_reply('LOADING Redis is loading')", nil).Err()}
	server.Client.AddHook(hook)
	hook.left.Store(1)
	p, tenant := New(server.Client, Config{}, nil), uuid.New()
	var all []Event
	for i := range 250 {
		all = append(all, number(i))
	}
	if err := p.Publish(t.Context(), tenant, all...); !errors.Is(err, ErrDropped) {
		t.Errorf("%v with %d of %d events stored, want ErrDropped", err, len(stored(t, server.Client, tenant)), len(all))
	}
}

func TestLostAnswerWritesOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := New(server.Client, Config{Timeout: time.Second}, nil)
	tenant := uuid.New()
	keys := []string{"lb:{" + tenant.String() + "}:publisher:" + p.mark(), Key(tenant, Entities), Key(tenant, Tasks), Key(tenant, Scans)}
	for try := range 2 {
		fresh, err := server.Client.Eval(t.Context(), publishScript, keys, 5, 100, 60, 0, "n\t\t\t1").Int()
		if err != nil || fresh != 1-try {
			t.Errorf("try %d: %d, %v", try, fresh, err)
		}
	}
	if got := stored(t, server.Client, tenant); len(got) != 1 {
		t.Errorf("stored %v, want one entry", got)
	}
}

func TestChangeAccess(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := New(server.Client, Config{Timeout: time.Second}, nil)
	tenant := uuid.New()
	sub := server.Client.Subscribe(t.Context(), GenerationKey(tenant))
	defer sub.Close()
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for range 3 {
		if err := p.ChangeAccess(t.Context(), tenant); err != nil {
			t.Fatal(err)
		}
		message, err := sub.ReceiveMessage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		now := server.Client.Get(t.Context(), GenerationKey(tenant)).Val()
		if message.Payload != now || now == "" || seen[now] {
			t.Errorf("announced %q, stored %q, seen before: %v", message.Payload, now, seen[now])
		}
		seen[now] = true
	}
}

// Cached books are dropped even if the event that says so is one too many.
func TestDroppedElsewhere(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	tenant, moved := uuid.New(), number(1)
	moved.Elsewhere = true
	p := New(server.Client, Config{Queue: 1}, nil)
	if err := p.Publish(t.Context(), tenant, moved, number(2)); !errors.Is(err, ErrDropped) {
		t.Fatalf("%v, want ErrDropped", err)
	}
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if server.Client.Get(t.Context(), BooksKey(tenant)).Val() == "" {
		t.Error("processes keep their cached books")
	}
}

// A client that hears of a moved file sends requests with another generation, and no relay has to check access for it.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := New(server.Client, Config{Timeout: time.Second}, nil)
	tenant, book := uuid.New(), Book{ID: uuid.New(), SeriesID: uuid.New(), LibraryID: uuid.New()}
	publish := func(e ...Event) string {
		t.Helper()
		if err := p.Publish(t.Context(), tenant, e...); err != nil {
			t.Fatal(err)
		}
		return server.Client.Get(t.Context(), BooksKey(tenant)).Val()
	}
	if got := publish(BookCreated(book), BookUpdated(book, "title"), BookUpdated(book)); got != "" {
		t.Errorf("no file lies elsewhere, but %q", got)
	}
	first := publish(BookUpdated(book, "title"), BookUpdated(book, "path"))
	again := BookUpdated(book, "analysis")
	again.Elsewhere = true
	second := publish(again)
	if first == "" || second == "" || first == second {
		t.Errorf("%q after %q", second, first)
	}
	if gone := publish(BookUpdated(book, "deleted")); gone == "" || gone == second {
		t.Errorf("a file is gone: %q after %q", gone, second)
	}
	if n := server.Client.Exists(t.Context(), GenerationKey(tenant)).Val(); n != 0 {
		t.Error("the access generation has changed with a book")
	}
	if left := server.Client.TTL(t.Context(), BooksKey(tenant)).Val(); left < time.Minute {
		t.Errorf("it is kept for %s, and books are remembered for a minute", left)
	}
}

func TestTail(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	key := Key(uuid.New(), Tasks)
	first, err := Tail(t.Context(), server.Client, key)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Tail(t.Context(), server.Client, key)
	if err != nil || again != first {
		t.Errorf("newest entry %v then %v, %v", first, again, err)
	}
	messages, err := Range(t.Context(), server.Client, key, first, nil, 10)
	if err != nil || len(messages) != 1 || messages[0].Kind != "" || messages[0].ID != first {
		t.Errorf("%+v, %v: want the marker alone", messages, err)
	}
}

func BenchmarkPublish(b *testing.B) {
	server := redistest.Start(b)
	p := New(server.Client, Config{Timeout: time.Second}, nil)
	tenant := uuid.New()
	event := BookCreated(Book{uuid.New(), uuid.New(), uuid.New()})
	for _, n := range []int{1, 100} {
		events := make([]Event, n)
		for i := range events {
			events[i] = event
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if err := p.Publish(b.Context(), tenant, events...); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
