package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"
	goredis "github.com/redis/go-redis/v9"

	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/redisconn"
	"github.com/longbox/longbox/sse-relay/rig"
)

const (
	listeners    = 10_000 // connections, each with a credential of its own
	deaf         = 100    // connections that never read, in a second measurement
	relayRounds  = 20     // events sent to all, one after the other
	relaySettles = 35 * time.Second
)

// crier publishes to a relay and is all of its clients.
type crier struct {
	relay     *function
	tenant    uuid.UUID
	deafUser  uuid.UUID
	publisher *events.Publisher
	arrivals  chan arrival
	connected []net.Conn
}

// arrival is the number of an event and the time when one client received it.
type arrival struct {
	number int
	at     time.Time
}

// relay measures a relay with 10,000 clients: memory per idle connection, and the time until an event has reached every
// client. The benchmark plays the API, the publisher and the clients.
func relay(ctx context.Context, s *system, out *report) error {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil || files.Cur < listeners+deaf+500 {
		return fmt.Errorf("%d open files are allowed, %d are needed: raise ulimit -n (%v)", files.Cur, listeners+deaf+500, err)
	}
	c := &crier{tenant: uuid.New(), deafUser: uuid.New(), arrivals: make(chan arrival, listeners)}
	api := httptest.NewServer(c.accounts())
	defer api.Close()
	opt, err := redisconn.Options(s.redis.URL())
	if err != nil {
		return err
	}
	rdb := goredis.NewClient(opt)
	defer rdb.Close()
	c.publisher = events.New(rdb, events.Config{Timeout: time.Second}, nil)
	c.relay, err = s.function(ctx, "sse-relay", "API_URL="+api.URL, "MAX_CONNECTIONS="+strconv.Itoa(listeners+deaf+100),
		"MAX_CONNECTIONS_PER_USER=1000000",
		"CLIENT_QUEUE=16777216") // so that clients that do not read are still there while the others are measured
	if err != nil {
		return err
	}
	defer c.relay.Stop()
	defer func() {
		for _, conn := range c.connected {
			conn.Close()
		}
	}()
	if err := c.memory(ctx, out); err != nil {
		return err
	}
	if err := c.fanOut(ctx, out, fmt.Sprintf("event to %d clients", listeners)); err != nil {
		return err
	}
	if err := c.fillDeaf(ctx); err != nil {
		return err
	}
	return c.fanOut(ctx, out, fmt.Sprintf("event, %d other clients do not read", deaf))
}

// accounts returns the API that checks the clients' tokens.
func (c *crier) accounts() *rig.API {
	api := rig.NewAPI()
	for i := range listeners {
		api.Set(listener(i), rig.Reader(c.tenant))
	}
	account := rig.Reader(c.tenant)
	account.User = c.deafUser
	api.Set("Bearer deaf", account)
	return api
}

// listener returns a credential of about real length.
func listener(i int) string { return fmt.Sprintf("Bearer %0300d", i) }

func (c *crier) open(credential string) (*rig.Client, error) {
	client, err := rig.Open(c.relay.address, "/api/v1/events/stream", "Authorization: "+credential)
	if err == nil && client.Response.StatusCode != http.StatusOK {
		err = errors.New(client.Response.Status)
	}
	return client, err
}

// memory opens the connections and prints the relay's memory per connection.
func (c *crier) memory(ctx context.Context, out *report) error {
	var rss [3]float64 // without connections, with new ones, with idle ones
	var busy [2]float64
	read := func(i int) (err error) {
		rss[i], err = memory(c.relay.pid, "VmRSS")
		return err
	}
	if err := read(0); err != nil {
		return err
	}
	if err := c.connect(); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if err := read(1); err != nil {
		return err
	}
	var err error
	if busy[0], err = cpu(c.relay.pid); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(relaySettles):
	}
	if busy[1], err = cpu(c.relay.pid); err != nil {
		return err
	}
	if err := read(2); err != nil {
		return err
	}
	out.info("relay without connections", rss[0], "MB")
	out.info("  a new connection", (rss[1]-rss[0])*1024/listeners, "KB")
	out.atMost("  an idle connection", (rss[2]-rss[0])*1024/listeners, 3, "KB")
	out.info("  CPU while all are idle, of one core", (busy[1]-busy[0])/10/relaySettles.Seconds(), "%")
	return nil
}

// connect opens the connections, 64 at a time.
func (c *crier) connect() error {
	var all sync.WaitGroup
	var mu sync.Mutex
	var failed error
	next := make(chan int)
	for range 64 {
		all.Go(func() {
			for i := range next {
				client, err := c.open(listener(i))
				mu.Lock()
				if err != nil {
					failed = errors.Join(failed, err)
				} else {
					c.connected = append(c.connected, client.Conn)
					go c.read(client)
				}
				mu.Unlock()
			}
		})
	}
	for i := range listeners {
		next <- i
	}
	close(next)
	all.Wait()
	return failed
}

func (c *crier) read(client *rig.Client) {
	if err := client.Conn.SetReadDeadline(time.Time{}); err != nil {
		return
	}
	in := bufio.NewReaderSize(client.Conn, 256)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return
		}
		if text, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			at := time.Now()
			if n, err := strconv.Atoi(string(bytes.TrimSpace(text))); err == nil {
				c.arrivals <- arrival{n, at}
			}
		}
	}
}

// fanOut sends events to all clients and prints the delivery times.
func (c *crier) fanOut(ctx context.Context, out *report, title string) error {
	var all, last []float64
	before, err := cpu(c.relay.pid)
	if err != nil {
		return err
	}
	for round := range relayRounds + 2 {
		took, err := c.round(ctx, round)
		if err != nil {
			return err
		}
		if round >= 2 { // the first ones warm up
			all, last = append(all, took...), append(last, percentile(took, 100))
		}
	}
	after, err := cpu(c.relay.pid)
	if err != nil {
		return err
	}
	for _, p := range []int{50, 95, 99} {
		out.info(fmt.Sprintf("%s, p%d", title, p), percentile(all, p), "ms")
	}
	out.info("  last client, median of the rounds", median(last), "ms")
	out.info("  events delivered a second", 1000*listeners/median(last), "")
	out.info("  CPU of the relay per delivery", 1000*(after-before)/(listeners*(relayRounds+2)), "µs")
	return nil
}

// round sends one event and returns the milliseconds until each client had it.
func (c *crier) round(ctx context.Context, n int) (took []float64, err error) {
	sent := time.Now()
	if err := c.publisher.Publish(ctx, c.tenant, events.Event{Topic: events.Entities, Kind: "bench", Permission: "BooksRead", Data: n}); err != nil {
		return nil, err
	}
	timeout := time.After(30 * time.Second)
	for range listeners {
		select {
		case a := <-c.arrivals:
			if a.number != n {
				return nil, fmt.Errorf("event %d arrived in round %d", a.number, n)
			}
			took = append(took, float64(a.at.Sub(sent).Nanoseconds())/1e6)
		case <-timeout:
			return nil, fmt.Errorf("round %d: only %d of %d clients had the event within 30 s", n, len(took), listeners)
		}
	}
	return took, nil
}

// fillDeaf opens the connections that never read and fills their sockets.
func (c *crier) fillDeaf(ctx context.Context) error {
	for range deaf {
		client, err := c.open("Bearer deaf")
		if err != nil {
			return err
		}
		c.connected = append(c.connected, client.Conn)
	}
	// A loopback socket buffers about 3 MB without a reader.
	filler := events.Event{Topic: events.Entities, Kind: "filler", UserID: c.deafUser.String(), Data: strings.Repeat("x", 30_000)}
	for range 150 {
		if err := c.publisher.Publish(ctx, c.tenant, filler); err != nil {
			return err
		}
	}
	return nil
}
