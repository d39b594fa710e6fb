package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/caarlos0/env/v11"
	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/events/redistest"
	"github.com/longbox/longbox/shared/testkit"
	"github.com/longbox/longbox/sse-relay/rig"
)

// stage is a relay with a real Redis and an API around it.
type stage struct {
	t         *testing.T
	cfg       Config
	redis     *redistest.Server
	api       *rig.API
	apiServer *httptest.Server
	publisher *events.Publisher
	addr      string
	server    *Server
	end       func() // stops the relay and waits for it
}

// newStage starts everything; change may alter the configuration.
func newStage(t *testing.T, change func(*Config)) *stage {
	t.Helper()
	t.Parallel()
	cfg, err := env.ParseAsWithOptions[Config](env.Options{Environment: map[string]string{}})
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{t: t, redis: redistest.Start(t), api: rig.NewAPI(), addr: testkit.Address(t)}
	s.apiServer = httptest.NewServer(s.api)
	t.Cleanup(s.apiServer.Close)
	cfg.RedisURL, cfg.APIURL = s.redis.URL, s.apiServer.URL
	cfg.RedisPing, cfg.MaxConnections = 200*time.Millisecond, 1000
	if change != nil {
		change(&cfg)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	s.cfg = cfg
	s.publisher = events.New(s.redis.Client, events.Config{Timeout: time.Second, Replay: 1_000_000}, nil)
	s.start()
	t.Cleanup(func() { s.end() })
	return s
}

// start runs a relay, on the same address as the last one.
func (s *stage) start() {
	s.t.Helper()
	rdb, err := s.cfg.RedisClient()
	if err != nil {
		s.t.Fatal(err)
	}
	s.server, err = New(s.cfg, rdb, slog.New(slog.NewTextHandler(testLog{s.t}, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		s.t.Fatal(err)
	}
	listener, err := net.Listen("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.server.Serve(ctx, listener) }()
	s.end = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Error(err)
		}
		rdb.Close()
	})
}

type testLog struct{ t *testing.T }

func (l testLog) Write(line []byte) (int, error) {
	l.t.Log(string(bytes.TrimSpace(line)))
	return len(line), nil
}

// account makes the API know a new reader and returns its token line and account.
func (s *stage) account(tenant uuid.UUID) (string, rig.Account) {
	account := rig.Reader(tenant)
	token := "Bearer " + account.User.String()
	s.api.Set(token, account)
	return "Authorization: " + token, account
}

// open opens a stream that must be accepted and reads its first block.
func (s *stage) open(path string, lines ...string) *rig.Client {
	s.t.Helper()
	c, err := rig.Open(s.addr, path, lines...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	if c.Response.StatusCode != http.StatusOK {
		body, _ := c.Body()
		s.t.Fatalf("%s: %s %s", path, c.Response.Status, body)
	}
	if b, err := c.Next(); err != nil || b.Retry == "" {
		s.t.Fatalf("first block %+v, %v: want a retry line", b, err)
	}
	return c
}

// refused opens a stream that must be refused with the status and returns the body.
func (s *stage) refused(status int, path string, lines ...string) (*rig.Client, map[string]any) {
	s.t.Helper()
	c, err := rig.Open(s.addr, path, append(lines, "Connection: close")...)
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	text, err := c.Body()
	body := map[string]any{}
	if err != nil || c.Response.StatusCode != status || json.Unmarshal([]byte(text), &body) != nil {
		s.t.Fatalf("%s answers %s %s (%v), want %d and JSON", path, c.Response.Status, text, err, status)
	}
	return c, body
}

// taken fails the test unless so many streams have places, and nobody else: of the relay, of users, of topics, of
// grants.
func (s *stage) taken(streams int) {
	s.t.Helper()
	open, users, topics, grants := s.server.limits.open(), 0, 0, 0
	s.server.limits.mu.Lock()
	for _, n := range s.server.limits.users {
		users += n
	}
	s.server.limits.mu.Unlock()
	s.server.hub.mu.Lock()
	for _, topic := range s.server.hub.topics {
		topics += int(topic.listeners.Load())
	}
	s.server.hub.mu.Unlock()
	s.server.access.mu.Lock()
	for _, g := range s.server.access.grants {
		grants += g.connections
	}
	s.server.access.mu.Unlock()
	if open != streams || users != streams || topics != streams || grants != streams {
		s.t.Errorf("places taken: %d, of users %d, of topics %d, of grants %d; want %d of each", open, users, topics, grants, streams)
	}
}

func (s *stage) publish(tenant uuid.UUID, list ...events.Event) {
	s.t.Helper()
	if err := s.publisher.Publish(s.t.Context(), tenant, list...); err != nil {
		s.t.Fatal(err)
	}
}

// expect reads the next event, which must be of the kind, and returns it.
func (s *stage) expect(c *rig.Client, kind string) rig.Block {
	s.t.Helper()
	b, err := c.NextEvent()
	if err != nil || b.Event != kind {
		s.t.Fatalf("%+v, %v: want an event %s", b, err, kind)
	}
	return b
}

// ended reads until the stream ends, which must be before the limit, and returns its events.
func (s *stage) ended(c *rig.Client, limit time.Duration) []rig.Block {
	s.t.Helper()
	start := time.Now()
	var seen []rig.Block
	for {
		b, err := c.Next()
		if passed := time.Since(start); passed > limit { // with a keep-alive, or when nothing comes
			s.t.Fatalf("after %s: %+v, %v; want the end of the stream within %s", passed, b, err, limit)
		}
		if err != nil {
			return seen
		}
		seen = append(seen, b)
	}
}

// eventually waits until the condition holds, at most ten seconds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-deadline.C:
			t.Fatal("not within 10 s: " + what)
		case <-ticker.C:
		}
	}
}

func numbered(kind string, n int) events.Event {
	return events.Event{Topic: events.Entities, Kind: kind, Data: n}
}
