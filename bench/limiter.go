package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/longbox/longbox/shared/platform/ratelimit"
	"github.com/longbox/longbox/shared/platform/redisconn"
)

// twoCommands is the minimum for a script that keeps a bucket: it reads and writes a key.
var twoCommands = goredis.NewScript("redis.call('pttl', KEYS[1]); return redis.call('set', KEYS[1], '', 'px', ARGV[1])")

// limiter measures the cost of the rate limiter: a take compared with a PING, and requests while Redis is down.
func limiter(ctx context.Context, s *system, out *report) error {
	opt, err := redisconn.Options(s.redis.URL())
	if err != nil {
		return err
	}
	rdb := goredis.NewClient(opt)
	defer rdb.Close()
	l := ratelimit.New(rdb, slog.New(slog.DiscardHandler))
	defer l.Close()
	var ping, take, least []float64
	for i := range 4000 {
		began := time.Now()
		if err := rdb.Ping(ctx).Err(); err != nil {
			return err
		}
		between := time.Now()
		res := l.Take(ctx, ratelimit.Bucket{Key: "bench", Rate: 50, Burst: 1e6}, []string{"bench:generation", "bench:books"})
		taken := time.Now()
		if err := twoCommands.Run(ctx, rdb, []string{"bench:least"}, 4000).Err(); err != nil {
			return err
		}
		if i < 100 { // These load the scripts and warm up the connection.
			continue
		}
		if res.Degraded {
			return fmt.Errorf("the limiter lost Redis under load; the machine is too busy to measure it")
		}
		ping, take, least = append(ping, since(began)-since(between)), append(take, since(between)-since(taken)), append(least, since(taken))
	}
	out.ratio("limiter against PING", take, ping, 1.25)
	out.ratio("  a script of two commands against PING", least, ping, 0)
	for _, c := range []struct {
		name        string
		mode        mode
		first, next float64
	}{{"Redis refused", refused, 1, 1}, {"Redis black-holed", silent, 25, 0.2}} {
		if err := s.outage(ctx, out, c.name, c.mode, c.first, c.next); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// outage measures how much longer an authenticated request takes while Redis is down than without a limiter: the first
// one, and the following ones. Each of five outages uses a new process.
func (s *system) outage(ctx context.Context, out *report, name string, m mode, firstBar, nextBar float64) error {
	var well, first, next []float64
	for range 5 {
		if err := s.outageOnce(ctx, m, &well, &first, &next); err != nil {
			return err
		}
	}
	out.info("request with Redis", median(well), "ms")
	out.info(name+": request after", median(next), "ms")
	out.atMost(name+": first request, added", median(first)-median(well), firstBar, "ms")
	out.atMost(name+": following requests, added", median(next)-median(well), nextBar, "ms")
	return nil
}

func (s *system) outageOnce(ctx context.Context, m mode, well, first, next *[]float64) error {
	opt, err := redisconn.Options(s.redis.URL())
	if err != nil {
		return err
	}
	g, err := newGate(opt.Network, opt.Addr)
	if err != nil {
		return err
	}
	defer g.set(refused)
	through := url.URL{Scheme: "redis", User: url.UserPassword(opt.Username, opt.Password), Host: g.address}
	api, err := s.function(ctx, "api", "REDIS_URL="+through.String())
	if err != nil {
		return err
	}
	defer api.Stop()
	c := newClient(s.token)
	get := func(n int, into *[]float64) error {
		for range n {
			took, err := measure(c.get(ctx, api.url+"/api/v1/auth/me"))
			if err != nil {
				return err
			}
			*into = append(*into, took)
		}
		return nil
	}
	var warm []float64
	if err := get(50, &warm); err != nil {
		return err
	}
	if err := get(200, well); err != nil {
		return err
	}
	g.set(m)
	if err := get(1, first); err != nil {
		return err
	}
	return get(200, next)
}

// mode is how the gate treats connections.
type mode int

const (
	passing mode = iota
	refused      // existing connections are closed, new ones refused
	silent       // connections are accepted, without responses
)

// gate is a TCP proxy in front of Redis that can be closed.
type gate struct {
	address, network, target string

	mu       sync.Mutex
	mode     mode
	listener net.Listener
	conns    []net.Conn
}

func newGate(network, target string) (*gate, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g := &gate{address: l.Addr().String(), network: network, target: target, listener: l}
	go g.serve()
	return g, nil
}

func (g *gate) set(m mode) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mode = m
	if m != refused {
		return
	}
	g.listener.Close()
	for _, c := range g.conns {
		c.Close()
	}
}

func (g *gate) now() mode {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mode
}

func (g *gate) serve() {
	for {
		client, err := g.listener.Accept()
		if err != nil {
			return // Closed.
		}
		server, err := net.Dial(g.network, g.target)
		if err != nil {
			client.Close() // The client reports it.
			continue
		}
		g.mu.Lock()
		g.conns = append(g.conns, client, server)
		g.mu.Unlock()
		go g.copy(server, client)
		go g.copy(client, server)
	}
}

// copy passes bytes on, or drops them while the gate is silent.
func (g *gate) copy(to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && g.now() != silent {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
