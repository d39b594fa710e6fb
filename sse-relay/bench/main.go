// Command bench measures a relay: memory per idle connection, and the time until an event has reached every client. It
// starts Redis and a relay as processes of their own. It plays the API, the publisher and all clients itself, so client
// and relay are separate processes.
//
//	go run ./sse-relay/bench -clients 10000
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/sse-relay/internal/rig"
)

type options struct {
	clients, users, rounds, deaf int
	settle                       time.Duration
	relay                        string
}

func main() {
	var o options
	flag.IntVar(&o.clients, "clients", 10_000, "connections to open")
	flag.IntVar(&o.users, "users", 0, "different credentials among them; 0 is one for each")
	flag.IntVar(&o.rounds, "rounds", 20, "events sent to all of them, one after the other")
	flag.IntVar(&o.deaf, "deaf", 100, "connections that never read, in a second measurement")
	flag.DurationVar(&o.settle, "settle", 35*time.Second, "how long connections are idle before memory is read again")
	flag.StringVar(&o.relay, "relay", "", "the relay's binary; empty builds it")
	flag.Parse()
	if err := run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil || files.Cur < uint64(o.clients+o.deaf+500) {
		return fmt.Errorf("%d open files are allowed, %d are needed: raise ulimit -n (%v)", files.Cur, o.clients+o.deaf+500, err)
	}
	if o.users == 0 {
		o.users = o.clients
	}
	folder, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	b := &bench{options: o, tenant: uuid.New(), deafUser: uuid.New()}
	stop, err := b.start(ctx, folder)
	defer stop()
	if err != nil {
		return err
	}
	if err := b.memory(); err != nil {
		return err
	}
	if err := b.fanOut(ctx, "fan-out"); err != nil {
		return err
	}
	if err := b.fillDeaf(ctx); err != nil {
		return err
	}
	return b.fanOut(ctx, fmt.Sprintf("fan-out beside %d clients that do not read", o.deaf))
}

type bench struct {
	options
	tenant    uuid.UUID
	deafUser  uuid.UUID
	addr      string
	pid       int
	publisher *events.Publisher
	arrivals  chan arrival
	connected []net.Conn
}

// arrival is the number of an event and the time when one client received it.
type arrival struct {
	number int
	at     time.Time
}

// start starts the API, Redis and the relay. The returned function stops what was started, also after an error.
func (b *bench) start(ctx context.Context, folder string) (stop func(), err error) {
	var cleanup []func()
	later := func(f func()) { cleanup = append(cleanup, f) }
	stop = func() {
		for _, f := range slices.Backward(cleanup) {
			f()
		}
	}
	api, err := b.startAPI(later)
	if err != nil {
		return stop, err
	}
	socket := filepath.Join(folder, "redis")
	if err := b.startRedis(ctx, socket, later); err != nil {
		return stop, err
	}
	if b.relay == "" {
		b.relay = filepath.Join(folder, "sse-relay")
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", b.relay, "github.com/longbox/longbox/sse-relay").CombinedOutput(); err != nil {
			return stop, fmt.Errorf("build the relay: %w\n%s", err, out)
		}
	}
	return stop, b.startRelay(ctx, "http://"+api, "unix://"+socket, later)
}

// startAPI starts the API that checks the clients' tokens, and returns its address.
func (b *bench) startAPI(later func(func())) (string, error) {
	api := rig.NewAPI()
	for i := range b.users {
		api.Set(b.token(i), rig.Reader(b.tenant))
	}
	deaf := rig.Reader(b.tenant)
	deaf.User = b.deafUser
	api.Set("Bearer deaf", deaf)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: api}
	go server.Serve(listener)
	later(func() { server.Close() })
	return listener.Addr().String(), nil
}

// startRedis starts Redis and the publisher of the events.
func (b *bench) startRedis(ctx context.Context, socket string, later func(func())) error {
	server := exec.CommandContext(ctx, "redis-server", "--port", "0", "--unixsocket", socket, "--save", "")
	if err := server.Start(); err != nil {
		return fmt.Errorf("start redis-server: %w", err)
	}
	later(func() { _ = server.Process.Kill(); _ = server.Wait() })
	rdb := redis.NewClient(&redis.Options{Network: "unix", Addr: socket})
	later(func() { rdb.Close() })
	for started := time.Now(); rdb.Ping(ctx).Err() != nil; {
		if time.Since(started) > 10*time.Second {
			return errors.New("redis-server does not answer")
		}
	}
	b.publisher = events.New(rdb, events.Config{Timeout: time.Second}, nil)
	return nil
}

// startRelay starts the relay and waits until it is ready.
func (b *bench) startRelay(ctx context.Context, api, redis string, later func(func())) error {
	relay := exec.CommandContext(ctx, b.relay)
	relay.Env = append(os.Environ(), "LISTEN_ADDR=127.0.0.1:0", "API_URL="+api, "REDIS_URL="+redis, "LOG_LEVEL=INFO",
		"MAX_CONNECTIONS="+strconv.Itoa(b.clients+b.deaf+100), "MAX_CONNECTIONS_PER_USER=1000000",
		"CLIENT_QUEUE=16777216") // so that clients that do not read are still there while the others are measured
	out, err := relay.StderrPipe()
	if err != nil {
		return err
	}
	if err := relay.Start(); err != nil {
		return err
	}
	later(func() { _ = relay.Process.Kill(); _ = relay.Wait() })
	b.pid = relay.Process.Pid
	log := bufio.NewScanner(out)
	for b.addr == "" && log.Scan() {
		var line struct{ Msg, Address string }
		if err := json.Unmarshal(log.Bytes(), &line); err == nil && line.Msg == "ready" {
			b.addr = line.Address
		}
	}
	if b.addr == "" {
		return errors.New("the relay did not start")
	}
	go func() {
		for log.Scan() {
		}
	}()
	later(func() {
		for _, c := range b.connected {
			c.Close()
		}
	})
	return nil
}

// token returns a token of about real length.
func (b *bench) token(i int) string {
	return fmt.Sprintf("Bearer %0300d", i%b.users)
}

// memory opens the connections and prints the relay's memory per connection.
func (b *bench) memory() error {
	before, err := b.rss()
	if err != nil {
		return err
	}
	b.arrivals = make(chan arrival, b.clients)
	started := time.Now()
	var group sync.WaitGroup
	var mu sync.Mutex
	var failed error
	next := make(chan int)
	for range 64 {
		group.Go(func() {
			for i := range next {
				c, err := rig.Open(b.addr, "/api/v1/events/stream", "Authorization: "+b.token(i))
				if err == nil && c.Response.StatusCode != http.StatusOK {
					err = errors.New(c.Response.Status)
				}
				mu.Lock()
				if err != nil {
					failed = errors.Join(failed, err)
				} else {
					b.connected = append(b.connected, c.Conn)
					go b.read(c)
				}
				mu.Unlock()
			}
		})
	}
	for i := range b.clients {
		next <- i
	}
	close(next)
	group.Wait()
	if failed != nil {
		return fmt.Errorf("connect: %w", failed)
	}
	took := time.Since(started)
	fresh, err := b.rss()
	if err != nil {
		return err
	}
	busy, err := b.cpu()
	if err != nil {
		return err
	}
	time.Sleep(b.settle)
	after, err := b.cpu()
	if err != nil {
		return err
	}
	idle, err := b.rss()
	if err != nil {
		return err
	}
	each := func(now int) float64 { return float64(now-before) / float64(b.clients) }
	fmt.Printf("connections          %d of %d credentials in %.2f s\n", b.clients, b.users, took.Seconds())
	fmt.Printf("relay RSS            %.1f MB without, %.1f MB after connecting, %.1f MB after %s idle\n",
		float64(before)/1024, float64(fresh)/1024, float64(idle)/1024, b.settle)
	fmt.Printf("relay CPU            %.1f %% of one core while idle\n", 100*(after-busy).Seconds()/b.settle.Seconds())
	fmt.Printf("per connection       %.2f KB after connecting, %.2f KB idle\n", each(fresh), each(idle))
	return nil
}

// rss returns the relay's resident memory in KB.
func (b *bench) rss() (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.pid))
	if err != nil {
		return 0, err
	}
	_, rest, found := bytes.Cut(status, []byte("VmRSS:"))
	if !found {
		return 0, errors.New("no VmRSS: has the relay ended?")
	}
	return strconv.Atoi(strings.Fields(string(rest))[0])
}

// cpu returns the CPU time that the relay has used.
func (b *bench) cpu() (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", b.pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	var ticks int // of 10 ms: user and system time
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			return 0, fmt.Errorf("read the relay's processor time: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

func (b *bench) read(c *rig.Client) {
	if err := c.Conn.SetReadDeadline(time.Time{}); err != nil {
		return
	}
	in := bufio.NewReaderSize(c.Conn, 256)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return
		}
		if text, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			at := time.Now()
			if n, err := strconv.Atoi(string(bytes.TrimSpace(text))); err == nil {
				b.arrivals <- arrival{n, at}
			}
		}
	}
}

// fanOut sends events to all clients and prints the delivery times.
func (b *bench) fanOut(ctx context.Context, title string) error {
	var all []time.Duration
	var last []time.Duration
	before, err := b.cpu()
	if err != nil {
		return err
	}
	for round := range b.rounds + 2 {
		sent := time.Now()
		event := events.Event{Topic: events.Entities, Kind: "bench", Permission: "BooksRead", Data: round}
		if err := b.publisher.Publish(ctx, b.tenant, event); err != nil {
			return err
		}
		slowest := time.Duration(0)
		var these []time.Duration
		timeout := time.After(30 * time.Second)
		for range b.clients {
			select {
			case a := <-b.arrivals:
				if a.number != round {
					return fmt.Errorf("event %d arrived in round %d", a.number, round)
				}
				these = append(these, a.at.Sub(sent))
				slowest = max(slowest, a.at.Sub(sent))
			case <-timeout:
				return fmt.Errorf("round %d: only %d of %d clients had the event within 30 s", round, len(these), b.clients)
			}
		}
		if round >= 2 { // the first ones warm up
			all, last = append(all, these...), append(last, slowest)
		}
	}
	after, err := b.cpu()
	if err != nil {
		return err
	}
	slices.Sort(all)
	slices.Sort(last)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	at := func(q float64) float64 { return ms(all[int(q*float64(len(all)-1))]) }
	middle := last[len(last)/2]
	fmt.Printf("%s: p50 %.1f ms, p95 %.1f ms, p99 %.1f ms, last client (median of %d rounds) %.1f ms, %.0f messages/s, relay CPU %.1f µs a message\n",
		title, at(0.5), at(0.95), at(0.99), b.rounds, ms(middle), float64(b.clients)/middle.Seconds(),
		float64((after-before).Microseconds())/float64(b.clients*(b.rounds+2)))
	return nil
}

// fillDeaf opens the connections that never read and fills their sockets.
func (b *bench) fillDeaf(ctx context.Context) error {
	for range b.deaf {
		c, err := rig.Open(b.addr, "/api/v1/events/stream", "Authorization: Bearer deaf")
		if err != nil {
			return err
		}
		if c.Response.StatusCode != http.StatusOK {
			return errors.New(c.Response.Status)
		}
		b.connected = append(b.connected, c.Conn)
	}
	// A loopback socket buffers about 3 MB without a reader.
	filler := events.Event{Topic: events.Entities, Kind: "filler", UserID: b.deafUser.String(), Data: strings.Repeat("x", 30_000)}
	for range 150 {
		if err := b.publisher.Publish(ctx, b.tenant, filler); err != nil {
			return err
		}
	}
	return nil
}
