package relay

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/sse-relay/rig"
)

// TestThousandCuts cuts the connections of twenty clients fifty times each while numbers are
// published; the connections to Redis are cut too and the relay is restarted.
func TestThousandCuts(t *testing.T) {
	s := newStage(t, func(c *Config) { c.ReplayPage = 20 })
	tenant := uuid.New()
	const clients, cuts, last = 20, 50, -1
	var tokens []string
	for range clients {
		token, _ := s.account(tenant)
		tokens = append(tokens, token)
	}
	killer := redis.NewClient(&redis.Options{Network: "unix", Addr: strings.TrimPrefix(s.redis.URL, "unix://")})
	defer killer.Close()

	var done atomic.Int64 // cuts so far
	var seen [clients]atomic.Int64
	var resumed sync.WaitGroup // every client has an id to resume from before the first number
	resumed.Add(clients)
	var group sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i := range clients {
		group.Go(func() {
			if err := follow(ctx, s.addr, tokens[i], cuts, last, &done, &seen[i], resumed.Done); err != nil {
				t.Errorf("client %d: %v", i, err)
				cancel()
			}
		})
	}
	resumed.Wait()
	slowest := func() int64 {
		low := seen[0].Load()
		for i := range seen {
			low = min(low, seen[i].Load())
		}
		return low
	}
	published, kills, restarts := int64(0), 0, 0
	for done.Load() < clients*cuts && ctx.Err() == nil {
		var batch []events.Event
		for range 1 + rand.N(8) {
			batch = append(batch, numbered("n", int(published)))
			published++
		}
		if err := s.publisher.Publish(ctx, tenant, batch...); err != nil && !strings.Contains(err.Error(), "delayed") {
			t.Fatal(err)
		}
		if published-slowest() > 500 { // keep to the pace of the slowest
			eventually(t, "the slowest client catches up", func() bool { return published-slowest() < 300 || ctx.Err() != nil })
		}
		if at := done.Load(); at > int64(40*(kills+1)) {
			kills++
			for _, kind := range []string{"pubsub", "normal"} {
				if err := killer.Do(ctx, "client", "kill", "type", kind, "skipme", "yes").Err(); err != nil && ctx.Err() == nil {
					t.Fatal(err)
				}
			}
		}
		if at := done.Load(); at > int64(250*(restarts+1)) {
			restarts++
			s.end()
			s.start()
		}
	}
	if err := s.publisher.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.publish(tenant, numbered("n", last))
	group.Wait()
	for i := range seen {
		if got := seen[i].Load(); got != published {
			t.Errorf("client %d saw %d of %d events", i, got, published)
		}
	}
	t.Logf("%d cuts, %d events to each of %d clients, %d times Redis' connections killed, %d restarts", done.Load(), published, clients, kills, restarts)
	if done.Load() < clients*cuts || kills < 20 || restarts < 3 {
		t.Errorf("%d cuts, %d kills, %d restarts", done.Load(), kills, restarts)
	}
}

// follow reads numbers until the last one, cutting its connection as often as told. Every number
// must be the next one: none missing, none twice, none out of order.
func follow(ctx context.Context, addr, token string, cuts, last int, done, seen *atomic.Int64, ready func()) error {
	id, next := "", 0
	for ctx.Err() == nil {
		lines := []string{token}
		if id != "" {
			lines = append(lines, "Last-Event-ID: "+id)
		}
		c, err := rig.Open(addr, "/api/v1/events/stream", lines...)
		if err != nil {
			continue // the relay is being restarted
		}
		if c.Response.StatusCode != 200 {
			c.Close()
			continue
		}
		cut := -1
		if cuts > 0 {
			cut = rand.N(40)
		}
		for cut != 0 {
			b, err := c.Next()
			if err != nil {
				break // cut by the other side: the relay's restart
			}
			if b.ID != "" {
				id = b.ID
				if ready != nil {
					ready()
					ready = nil
				}
			}
			if b.Event == "" {
				continue
			}
			if b.Event != "n" {
				c.Close()
				return fmt.Errorf("%+v where %d was due", b, next)
			}
			n, err := strconv.Atoi(b.Data)
			if err == nil && n == last {
				c.Close()
				return nil
			}
			if err != nil || n != next {
				c.Close()
				return fmt.Errorf("%s where %d was due", b.Data, next)
			}
			next++
			seen.Store(int64(next))
			cut--
		}
		if cut == 0 {
			cuts--
			done.Add(1)
			if rand.N(2) == 0 {
				c.Conn.(*net.TCPConn).SetLinger(0) // reset instead of a clean end
			}
		}
		c.Close()
	}
	return ctx.Err()
}
