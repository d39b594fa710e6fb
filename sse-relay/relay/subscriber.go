package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const channelsAtOnce = 500

// subscriber keeps one Redis connection subscribed to the wanted channels.
type subscriber struct {
	rdb   redis.UniversalClient
	log   *slog.Logger
	hub   *hub
	wake  chan struct{}
	alive atomic.Bool // subscribed, for the health response

	mu      sync.Mutex
	wanted  map[string]struct{}
	changes []change // in request order, not yet sent
}

type change struct {
	channel string
	add     bool
}

func newSubscriber(rdb redis.UniversalClient, log *slog.Logger, h *hub) *subscriber {
	return &subscriber{rdb: rdb, log: log, hub: h, wake: make(chan struct{}, 1), wanted: map[string]struct{}{}}
}

func (s *subscriber) add(channel string)    { s.change(channel, true) }
func (s *subscriber) remove(channel string) { s.change(channel, false) }

func (s *subscriber) change(channel string, add bool) {
	s.mu.Lock()
	if add {
		s.wanted[channel] = struct{}{}
	} else {
		delete(s.wanted, channel)
	}
	s.changes = append(s.changes, change{channel, add})
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run reconnects until ctx ends.
func (s *subscriber) run(ctx context.Context) {
	wait := newBackoff()
	for ctx.Err() == nil {
		began := time.Now()
		err := s.session(ctx)
		s.alive.Store(false)
		if ctx.Err() != nil {
			return
		}
		s.log.Warn("the subscription to Redis broke; connecting again", "error", err)
		if time.Since(began) > 10*time.Second {
			wait = newBackoff()
		}
		wait.sleep(ctx)
	}
}

// session opens a connection, subscribes to all wanted channels and serves until the connection breaks.
func (s *subscriber) session(ctx context.Context) error {
	s.mu.Lock()
	channels := slices.Collect(maps.Keys(s.wanted))
	s.changes = nil
	s.mu.Unlock()
	ps := s.rdb.Subscribe(ctx)
	defer ps.Close()
	if err := ps.Ping(ctx); err != nil {
		return err
	}
	for part := range slices.Chunk(channels, channelsAtOnce) {
		if err := ps.Subscribe(ctx, part...); err != nil {
			return err
		}
	}
	heard := &atomic.Int64{}
	heard.Store(time.Now().UnixNano())
	session, cancel := context.WithCancelCause(ctx)
	var group sync.WaitGroup
	group.Go(func() {
		cancel(s.maintain(session, ps, heard))
		ps.Close() // ends receive below
	})
	// Received messages are handled under ctx: a broken session must not interrupt a delivery.
	cancel(s.receive(ctx, ps, heard))
	group.Wait()
	return context.Cause(session)
}

// maintain sends subscription changes and pings. When Redis does not answer, it ends the session.
func (s *subscriber) maintain(ctx context.Context, ps *redis.PubSub, heard *atomic.Int64) error {
	ticker := time.NewTicker(s.hub.cfg.RedisPing)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.wake:
			if err := s.send(ctx, ps); err != nil {
				return err
			}
		case <-ticker.C:
			if silent := time.Since(time.Unix(0, heard.Load())); silent > 5*s.hub.cfg.RedisPing/2 {
				return fmt.Errorf("no data from Redis for %s", silent.Round(time.Millisecond))
			}
			if err := ps.Ping(ctx); err != nil {
				return err
			}
		}
	}
}

func (s *subscriber) send(ctx context.Context, ps *redis.PubSub) error {
	s.mu.Lock()
	changes := s.changes
	s.changes = nil
	s.mu.Unlock()
	for len(changes) > 0 {
		var run []string // consecutive changes of the same kind are sent together
		for len(run) < len(changes) && len(run) < channelsAtOnce && changes[len(run)].add == changes[0].add {
			run = append(run, changes[len(run)].channel)
		}
		call := ps.Unsubscribe
		if changes[0].add {
			call = ps.Subscribe
		}
		if err := call(ctx, run...); err != nil {
			return err
		}
		changes = changes[len(run):]
	}
	return nil
}

func (s *subscriber) receive(ctx context.Context, ps *redis.PubSub, heard *atomic.Int64) error {
	for {
		message, err := ps.Receive(ctx)
		if err != nil {
			return err
		}
		heard.Store(time.Now().UnixNano())
		s.alive.Store(true)
		switch m := message.(type) {
		case *redis.Subscription:
			if m.Kind == "subscribe" {
				s.hub.subscribed(ctx, m.Channel)
			}
		case *redis.Message:
			s.hub.message(ctx, m.Channel, m.Payload)
		case *redis.Pong:
		default:
			return errors.New("unexpected kind of message from Redis")
		}
	}
}
